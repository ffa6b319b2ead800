"""Who a peer is: by a token, by a name and a password, or by a certificate.

Secrets are compared by their hashes, in a time that tells nothing.  Of a server without users
whoever shows the token may do all, and has no name.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dsms.errors import UsageError
from dsms.rights import ADMINISTRATOR, Rights, User
from dsms.rights.model import key_of
from dsms.rights.secrets import fits, hash_token, same
from dsms_server.config import Config


@dataclass(frozen=True, slots=True)
class Identity:
    """Who is there; `user` None: whoever may do all.  `proof`: the hash of what was shown, None
    where it can't change: while the user has it, the session goes on."""

    user: str | None = None
    proof: str | None = None


class Identities:
    """`rights`: as they are now; any thread may ask."""

    def __init__(self, config: Config, rights: Callable[[], Rights]) -> None:
        self._token, self._auth = config.token, config.auth
        self._rights = rights

    @property
    def guarded(self) -> bool:
        """Whether a peer must show something."""
        return self._auth or self._token is not None

    def check(self, message: dict[str, Any], certificate: str | None) -> None:
        """Raise DS605 for a hello that shows nothing, or that means another kind of server."""
        if not self._auth:
            if "user" in message or "password" in message:
                raise UsageError(
                    "DS605", "this server knows no users", hint="leave user and password out"
                )
            if self._token is not None and not message.get("token"):
                hint = "give the token that `dsms serve` was given"
                raise UsageError("DS605", "this server asks for a token", hint=hint)
            return
        if (
            not message.get("token")
            and not ("user" in message and "password" in message)
            and certificate is None
        ):
            raise UsageError(
                "DS605",
                "this server asks who you are",
                hint="give a token, or a user and a password",
            )

    def by_token(self, token: str | None, user: str | None) -> Identity | None:
        """Whose token that is; `user`: who he says he is, if he does."""
        secret = self._token
        if not self._auth:
            fits = secret is None or hmac.compare_digest((token or "").encode(), secret.encode())
            return Identity() if fits else None
        if secret is not None and token and hmac.compare_digest(token.encode(), secret.encode()):
            return (
                Identity(ADMINISTRATOR) if key_of(user or ADMINISTRATOR) == ADMINISTRATOR else None
            )
        hashed = hash_token(token or "")
        found = self._rights().of_token(hashed)
        if found is None or not any(same(token or "", t) for t in found.tokens):
            return None
        return (
            Identity(found.name, hashed)
            if key_of(user or found.name) == key_of(found.name)
            else None
        )

    def by_password(self, user: str, password: str) -> Identity | None:
        """Slow: in a thread of its own.  It takes as long whether there is such a user or not."""
        found = self._rights().users.get(key_of(user), User(user))
        return Identity(found.name, found.password) if fits(password, found.password) else None

    def by_certificate(self, name: str | None) -> Identity | None:
        """The user whose name is that of a certificate that the TLS handshake has judged."""
        found = self._rights().users.get(key_of(name or ""))
        return None if found is None else Identity(found.name)

    def holds(self, identity: Identity) -> bool:
        """Whether the user is still there, and has what he has shown."""
        if identity.user is None or identity.user == ADMINISTRATOR:
            return True
        found = self._rights().users.get(key_of(identity.user))
        return found is not None and (
            identity.proof is None or identity.proof in (found.password, *found.tokens)
        )


def name_of(certificate: dict[str, Any] | None) -> str | None:
    """The common name of a peer's certificate, as the ssl module gives it."""
    subject = (certificate or {}).get("subject", ())
    return next((value for part in subject for key, value in part if key == "commonName"), None)
