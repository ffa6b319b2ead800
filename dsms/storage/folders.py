"""Names of streams and queries as names of folders: any name has one, below the folder that it is
asked for."""

from __future__ import annotations

UNSAFE = '/\\~\0:*?"<>|'


def folder_name(name: str) -> str:
    """The folder of that name.  Most names stand as they are; what could lead elsewhere is written
    ~XX, in hexadecimal digits of UTF-8, as is a dot at the beginning."""
    out = "".join(_written(c) if c in UNSAFE or ord(c) < 32 else c for c in name)
    return _written(".") + out[1:] if out.startswith(".") else out


def _written(char: str) -> str:
    return "".join(f"~{byte:02x}" for byte in char.encode())
