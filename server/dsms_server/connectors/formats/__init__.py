"""Messages -> rows of a stream, and result rows -> messages.  A file a format.

`reading` and `writing` give them by their names.  What arrives by other ways than sources (a
request that holds lines of JSON) is read by the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dsms.errors import UsageError
from dsms_client.protocol import nearest
from dsms_server.connectors.formats.arrow import ReadArrow, WriteArrow
from dsms_server.connectors.formats.avro import ReadAvro
from dsms_server.connectors.formats.base import BESIDE, Decoded, Reading, Writing
from dsms_server.connectors.formats.csv import ReadCsv, WriteCsv
from dsms_server.connectors.formats.json import ReadJson, WriteJson
from dsms_server.connectors.formats.text import ReadText

READ: dict[str, type[Reading]] = {
    "json": ReadJson, "csv": ReadCsv, "arrow": ReadArrow, "avro": ReadAvro, "text": ReadText,
}  # a table  # fmt: skip
WRITE: dict[str, type[Writing]] = {"json": WriteJson, "csv": WriteCsv, "arrow": WriteArrow}


def reading(name: str) -> type[Reading]:
    """How messages of that format are read.  Raises DS448."""
    return _found(READ, name)


def writing(name: str) -> type[Writing]:
    """How messages of that format are written.  Raises DS448."""
    return _found(WRITE, name)


def _found(known: Mapping[str, Any], name: str) -> Any:
    if name in known:
        return known[name]
    hint = nearest(name, list(known)) or f"there are {', '.join(known)}"
    raise UsageError("DS448", f"there is no format {name} here", hint=hint)


__all__ = ["BESIDE", "READ", "WRITE", "Decoded", "Reading", "Writing", "reading", "writing"]
