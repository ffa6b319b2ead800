"""The line of names that a CSV file begins with, if it does."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dsms.errors import UsageError
from dsms_client.files.options import Options
from dsms_client.files.source import BOM, FileSource

LONGEST = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Header:
    """The names of the columns; `lines` that are no rows before the first one, and the bytes that
    were read already behind them."""

    names: list[str]
    lines: int
    rest: bytes


def read_header(
    source: FileSource,
    stream: Any,
    block: int,
    delimiter: str,
    options: Options,
    columns: Sequence[str],
) -> Header:
    """The names.  Raises DS530 if there are none."""
    start, over = b"", False
    while True:
        part = stream.read(block)
        start, over = start + part, not part
        if len(start) >= 8 or b"\n" in start or over:
            break
    source.judge(start)
    start = start.removeprefix(BOM)
    skipped, before = 0, 0
    while options.skip and start.startswith(options.skip.encode(), before) and b"\n" in start:
        before, skipped = start.index(b"\n", before) + 1, skipped + 1
    start = start[before:]
    while True:
        found = _first_row(source, start, delimiter, over)
        if found is not None:
            break
        part = stream.read(block)
        start, over = start + part, not part
    names, size, lines = found
    if options.names is None:
        if not names:
            begins = "begins with an empty line" if start else "is empty"
            raise UsageError(
                "DS530",
                f"{source.name} {begins}, it should begin with a line of column names",
                hint="a file without one needs --no-header, or --names",
            )
        return Header(named(names, columns), skipped + lines, start[size:])
    given = list(options.names or columns)
    more = [""] * (len(names) - len(given))
    return Header(named((given + more)[: max(len(names), 1)], columns), skipped, start)


def named(names: Sequence[str], known: Sequence[str] = ()) -> list[str]:
    """Columns without a name are column0, column1, ... by their place, as DuckDB calls them, unless
    the stream has a column (of `known`) that is called so."""
    found: list[str] = []
    for place, name in enumerate(names):
        own = name.strip() or name in known
        free = name if own else f"column{place}"
        while not own and (free in names or free in found):
            free = f"{free}_"
        found.append(free)
    return found


def _first_row(
    source: FileSource, start: bytes, delimiter: str, over: bool
) -> tuple[list[str], int, int] | None:
    """Its values, bytes and lines; None if more has to be read."""
    taken: list[str] = []

    def noted() -> Iterator[str]:
        for line in io.StringIO(start.decode("utf-8", "surrogateescape"), newline=""):
            taken.append(line)
            yield line

    try:
        names = next(csv.reader(noted(), delimiter=delimiter, strict=True), [])
    except csv.Error as problem:
        if not over and len(start) < LONGEST:
            return None
        message = f"cannot read the header of {source.name}: {problem}"
        raise UsageError("DS530", message) from None
    head = "".join(taken).encode("utf-8", "surrogateescape")
    if len(head) >= len(start) and not over:
        return None
    with source.guarded():
        head.decode()
    return names, len(head), sum(line.count("\n") or 1 for line in taken)
