"""Secrets of connectors: what a declaration says is where they are, not what they are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from dsms_server.connectors.protocol import Failed

PREFIX = "DSMS_SECRET_"  # of variables: no other one is for whoever makes a source
MOST = 64 << 10  # bytes of a file


def read(place: str, key: str, folder: str | None, environ: Mapping[str, str] = os.environ) -> str:
    """The secret in ``env('NAME')`` or ``file('name')``, the latter in the folder that the server
    was told.  Raises DS667."""
    if place == "env":
        if not key.startswith(PREFIX):
            hint = f"name one whose name begins with {PREFIX}"
            raise Failed("DS667", f"the variable {key} is not for sources and sinks", hint=hint)
        if key not in environ:
            raise Failed(
                "DS667", f"the server has no variable {key}", hint="set it, and start anew"
            )
        return environ[key]
    if folder is None:
        hint = "dsms serve --secrets FOLDER"
        raise Failed("DS667", f"file({key!r}): the server has no folder of secrets", hint=hint)
    root = Path(folder).resolve()
    try:
        path = (root / key).resolve(strict=True)
        if not path.is_relative_to(root) or path == root:
            raise FileNotFoundError(key)
        with path.open("rb") as file:
            return file.read(MOST).decode().rstrip("\r\n")
    except (OSError, ValueError):
        hint = "it is the name of a file in the folder of --secrets, which the server may read"
        raise Failed("DS667", f"there is no secret {key}", hint=hint) from None


def without(text: str, secrets: Iterable[str]) -> str:
    """The text with *** in place of secrets."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, "***")
    return text
