"""The first line of a CSV file: its columns, and where the rows begin."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from dsms.errors import UsageError
from dsms_client.files.source import BOM, FileSource


@dataclass(frozen=True, slots=True)
class Header:
    """`size`: its bytes, `lines`: its lines (names may hold line breaks)."""

    names: list[str]
    size: int
    lines: int


def read_header(source: FileSource, delimiter: str) -> Header:
    """The header.  Raises DS530 if there is none."""
    with source.binary() as stream:
        start = len(BOM) if stream.read(len(BOM)) == BOM else 0
    taken: list[str] = []
    with source.text("surrogateescape") as lines:
        try:
            names = next(csv.reader(_noted(lines, taken), delimiter=delimiter, strict=True), None)
        except csv.Error as problem:
            raise UsageError(
                "DS530", f"cannot read the header of {source.path}: {problem}"
            ) from None
    if not names:
        begins = f"{source.path} begins with an empty line" if taken else f"{source.path} is empty"
        raise UsageError("DS530", f"{begins}, it should begin with a line of column names")
    head = "".join(taken)
    with source.guarded():
        size = start + len(head.encode("utf-8", "surrogateescape").decode().encode())
    return Header(names, size, sum(line.count("\n") or 1 for line in taken))


def _noted(lines: IO[str], taken: list[str]) -> Iterator[str]:
    for line in lines:
        taken.append(line)
        yield line
