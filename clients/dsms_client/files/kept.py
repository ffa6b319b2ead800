"""The rows that a stream keeps -> Parquet files, and the heartbeats that stand between them.

Where rows lie further apart than MAX FUTURE, the clock has come there by heartbeats.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from dsms.errors import DsmsError
from dsms_client import literals
from dsms_client.files.timecolumn import own_columns

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from dsms_client.sync import Client

FED = "that of "  # how SHOW STREAMS says that queries give a stream's time


@dataclass(slots=True)
class Files:
    """Those of one stream, in `folder`, called `stem`.

    last   the instant (µs) of the row before, None: there was none
    most   MAX FUTURE in µs, None: any row may follow
    found  their names, and the heartbeat (µs) that each needs in front of it"""

    folder: Path
    stem: str
    last: int | None
    most: int | None
    found: list[tuple[str, int | None]] = field(default_factory=list)
    _open: pq.ParquetWriter | None = None

    def take(self, rows: pa.Table, at: np.ndarray | None) -> None:
        """The next rows, and their instants (int64[n], ascending) where heartbeats may be
        needed."""
        if at is None or self.most is None or not len(at):
            self._write(rows)
            return
        before = np.concatenate(([at[0] if self.last is None else self.last], at[:-1]))
        cuts = np.flatnonzero(at - before > self.most).tolist()
        self.last = int(at[-1])
        self._write(rows.slice(0, cuts[0] if cuts else None))
        for first, end in pairwise([*cuts, len(at)]):
            self._begin(rows.schema, int(at[first]) - 1)
            self._write(rows.slice(first, end - first))

    def _begin(self, schema: pa.Schema, before: int | None) -> None:
        import pyarrow.parquet as pq

        self.close()
        name = f"{self.stem}{f'-{len(self.found)}' if self.found else ''}.parquet"
        self.found.append((name, before))
        self._open = pq.ParquetWriter(self.folder / name, schema)

    def _write(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        if self._open is None:
            self._begin(rows.schema, None)
        assert self._open is not None
        self._open.write_table(rows)

    def close(self) -> None:
        """No row follows in the file that is open."""
        if self._open is not None:
            self._open.close()
            self._open = None


def write(client: Client, files: Files, status: dict[str, Any]) -> None:
    """The rows of a stream, of which SHOW STREAMS says `status`."""
    name, timed = status["stream"], status["clock"].startswith(("event time", FED))
    given = _given(client, status)
    stamp = "at"
    while stamp in given:
        stamp += "_"
    stamped = timed and files.most is not None
    asked = [*map(literals.name, given), *([f"INSTANT(s) AS {stamp}"] if stamped else [])]
    sql = f"SELECT {', '.join(asked)} FROM {literals.name(name)} s [RANGE UNBOUNDED]"
    try:
        for table in _parts(client, sql, _span(client, name, timed)):
            at = _micros(table.column(stamp)) if stamped else None
            files.take(table.drop_columns([stamp]) if stamped else table, at)
    finally:
        files.close()


def _given(client: Client, status: dict[str, Any]) -> Sequence[str]:
    """The columns that rows bring."""
    made, _ = client.work(lambda one: own_columns(one, status["stream"]))
    if status["key"] is not None:  # what it holds are rows that take places
        made = {*made, "_op"}
    return [
        column for column, _ in client.names()["streams"][status["stream"]] if column not in made
    ]


def _micros(instants: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(instants.cast(pa.timestamp("us", "UTC")).cast(pa.int64()), np.int64)


def _span(client: Client, name: str, timed: bool) -> tuple[int, int] | None:
    """The first and the last instant of a stream with event time; None: it has no rows, or none
    with an instant in a column."""
    if not timed:
        return None
    asked = f"SELECT MIN(INSTANT(s)), MAX(INSTANT(s)) FROM {literals.name(name)} s"
    ((first, last),) = client.query(f"{asked} [RANGE UNBOUNDED]").rows
    return None if first is None else (first, last)


def _parts(client: Client, asked: str, span: tuple[int, int] | None) -> Iterator[pa.Table]:
    """The answer, in as many parts of the time as it takes (DS623: one is too long)."""
    where = ""
    if span is not None:
        first, last = (literals.literal(at, "TIMESTAMP") for at in span)
        where = f" WHERE INSTANT(s) BETWEEN {first} AND {last}"
    try:
        table = client.query(asked + where).table()
    except DsmsError as problem:
        if problem.code != "DS623" or span is None or span[0] == span[1]:
            raise
        middle = (span[0] + span[1]) // 2
        yield from _parts(client, asked, (span[0], middle))
        yield from _parts(client, asked, (middle + 1, span[1]))
        return
    yield table
