"""Texts of sizes: the one reader for the command line, configuration files and quotas."""

from __future__ import annotations

import re

_SIZE = re.compile(r"([0-9]+)\s*(?:([kmgt])(?:i?b)?|b|bytes)?", re.IGNORECASE | re.ASCII)
_UNITS = {"k": 10, "m": 20, "g": 30, "t": 40}
MOST = (1 << 63) - 1


def size_of(text: str) -> int | None:
    """``64 MB``, ``1g``, ``65536`` -> bytes (of 1024 to the K); None: it is none."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        return None
    size = int(found[1]) << _UNITS.get((found[2] or "").lower(), 0)
    return size if size <= MOST else None
