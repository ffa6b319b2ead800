"""Logs of Zeek as it writes them: a header of `#` lines says what divides values, what stands for
none, and how the columns are called and typed (docs.zeek.org, "Log formats"; TSV)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dsms.errors import UsageError
from dsms_client.files import csvfile
from dsms_client.files.header import Header
from dsms_client.files.options import Options
from dsms_client.files.pieces import Column, Mapping, Pieces, map_columns
from dsms_client.files.source import FileSource

# Zeek's types -> SQL; an interval is a number of seconds with fractions, and stays one
TYPES = {
    "time": "TIMESTAMP", "bool": "BOOL", "count": "INT", "int": "INT", "port": "INT",
    "double": "FLOAT", "interval": "FLOAT",
}  # a table  # fmt: skip


@dataclass(frozen=True, slots=True)
class ZeekHeader:
    """What the `#` lines say; `size` is theirs in bytes."""

    names: list[str]
    types: list[str]
    delimiter: str
    nulls: tuple[str, ...]
    lines: int
    size: int


def read_zeek_header(source: FileSource, start: bytes) -> ZeekHeader:
    """Raises DS530 where there is none."""
    size, said = 0, []
    for line in start.splitlines(keepends=True):
        if not line.startswith(b"#") or not line.endswith(b"\n"):
            break
        size += len(line)
        said.append(line.decode(errors="replace").rstrip("\r\n"))
    if not said or not said[0].startswith("#separator "):
        raise UsageError(
            "DS530",
            f"{source.name} does not begin with `#separator`, as logs of Zeek do",
            hint="without these lines it is TSV: --format tsv --names ts,uid,... --null -",
        )
    escaped = said[0].removeprefix("#separator ")
    divider = re.sub(r"\\x([0-9a-fA-F]{2})", lambda m: chr(int(m[1], 16)), escaped) or "\t"
    fields = {key: rest for key, *rest in (line[1:].split(divider) for line in said[1:])}
    names, types = fields.get("fields", []), fields.get("types", [])
    if not names or len(divider) != 1:
        raise UsageError("DS530", f"{source.name} has no line `#fields` with names of columns")
    unset = fields.get("unset_field", ["-"])[0]
    return ZeekHeader(names, types, divider, (unset,), len(said), size)


def read(
    source: FileSource, columns: Sequence[Column], renamed: dict[str, str], options: Options
) -> tuple[Mapping, Pieces]:
    """How columns match, and the pieces.  Raises DS530, DS532."""
    header = read_zeek_header(source, source.head(csvfile.BLOCK))
    options = replace(
        options,
        delimiter=header.delimiter,
        nulls=header.nulls if options.nulls is None else options.nulls,
        unit=options.unit or "s",
        quoted=False,
        skip="#",
    )
    mapping = replace(map_columns(header.names, columns, renamed), options=options)

    def pieces() -> Pieces:
        with source.binary() as stream:
            past = header.size
            while past and (part := stream.read(past)):
                past -= len(part)
            begin = Header(header.names, header.lines, b"")
            yield from csvfile.rows(source, stream, begin, mapping, header.delimiter)

    return mapping, pieces()
