"""How passwords and tokens are kept: as hashes that tell neither.

A password is hashed by argon2id (RFC 9106), which costs whoever guesses memory and time; a token is
128 random bits or more, of which SHA-256 is enough: there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argon2 import PasswordHasher

TOKEN_BYTES = 24
SHORTEST_TOKEN = 22  # characters: 128 bits in base64
SHORTEST_PASSWORD = 8
MOST_TOKENS = 8  # of one user
NUMBER = 8  # digits by which SHOW USERS names a token


@cache
def _hasher() -> PasswordHasher:
    from argon2 import PasswordHasher

    return PasswordHasher(time_cost=2, memory_cost=19 << 10, parallelism=1)


def hash_password(password: str) -> str:
    """Takes some 20 ms and 19 MB: not in the engine's thread."""
    return _hasher().hash(password)


@cache
def nobody() -> str:
    """The hash of a password that nobody has: who is unknown waits as long as who is known."""
    return hash_password(secrets.token_urlsafe())


def fits(password: str, hashed: str | None) -> bool:
    """Whether that is the password; takes as long whether there is one or not."""
    from argon2.exceptions import Argon2Error, InvalidHashError

    try:
        return _hasher().verify(hashed or nobody(), password) and hashed is not None
    except (Argon2Error, InvalidHashError):
        return False


def new_token() -> str:
    """192 random bits, in letters and digits that a shell takes as they are."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def hash_token(token: str) -> str:
    """SHA-256, in hex."""
    return hashlib.sha256(token.encode()).hexdigest()


def number_of(hashed: str) -> str:
    """What SHOW USERS calls a token."""
    return hashed[:NUMBER]


def same(token: str, hashed: str) -> bool:
    """Whether the token has that hash, in a time that does not tell where they differ."""
    return hmac.compare_digest(hash_token(token), hashed)
