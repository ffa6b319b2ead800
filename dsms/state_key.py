"""The key of a data folder: 32 random bytes or more, in a file that only its owner reads.

The file holds them as they are, in hexadecimal digits or in base64.  What is encrypted with it, and
how, is said in `dsms.storage.encryption`.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import secrets

from dsms.errors import UsageError

LEAST = 32  # bytes
MOST = 4096  # of a file
HEX = re.compile(rb"[0-9A-Fa-f]+")
BASE64 = re.compile(rb"[A-Za-z0-9+/_-]+=*")
HOW = "make one by `dsms rekey --new FILE`, or `openssl rand -hex 32 > FILE`"


def read(path: str) -> bytes:
    """The key in a file.  Raises DS556."""
    try:
        with open(path, "rb") as file:
            found = file.read(MOST + 1)
    except OSError as error:
        raise UsageError(
            "DS556", f"cannot read the state key from {path}: {error.strerror}", hint=HOW
        ) from None
    return checked(decoded(found), path)


def decoded(found: bytes) -> bytes:
    """The bytes that a file stands for: text in hexadecimal digits or base64, or themselves."""
    text = b"".join(found.split())
    if HEX.fullmatch(text) and len(text) % 2 == 0:
        return bytes.fromhex(text.decode())
    if BASE64.fullmatch(text):
        try:
            return base64.b64decode(text.translate(bytes.maketrans(b"-_", b"+/")), validate=True)
        except binascii.Error:
            pass
    return found


def checked(key: bytes, where: str = "the state key") -> bytes:
    """The key, if it can be one.  Raises DS556."""
    if not LEAST <= len(key) <= MOST:
        what = f"{where} holds {len(key)} bytes, and a state key has {LEAST} to {MOST}"
        raise UsageError("DS556", what, hint=HOW)
    if len(set(key)) < LEAST // 4:
        raise UsageError("DS556", f"{where} holds no random bytes", hint=HOW)
    return key


def write_new(path: str) -> None:
    """Make a key, in hexadecimal digits, in a file that is not there yet.  Raises DS556."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(LEAST) + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise UsageError("DS556", f"cannot write a state key to {path}: {error.strerror}") from None
