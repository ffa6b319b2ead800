"""Changes of a query -> a file or a pipe: JSON lines, CSV, an Arrow IPC stream or Parquet.

Before the columns of the query stand `$seq` (the number of the row; NULL in the answer that a
subscription begins with, and in net changes), `$sign` (1 enters, -1 leaves, 0 is part of a periodic
answer) and `$at` (its instant).  What is written ends with a whole row, whenever it is closed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, Any, Protocol, TextIO

import numpy as np
import pyarrow as pa

from dsms.tabular.names import unique
from dsms.tabular.tables import to_edge
from dsms_client.changes import Changes
from dsms_client.columns import rows_to_batch
from dsms_client.shell import show
from dsms_client.visible import for_screen

ROW_GROUP = 1 << 16  # rows that are gathered for Parquet
BESIDE = {"$seq": "INT", "$sign": "INT", "$at": "TIMESTAMP"}


class Writer(Protocol):
    """Takes changes, and is closed once."""

    def write(self, changes: Changes) -> None: ...

    def close(self) -> None: ...


def writer(
    form: str, path: Path | None, columns: tuple[str, ...], types: tuple[str, ...]
) -> Writer:
    """What writes changes of such a query into `path` (None: stdout)."""
    names, kinds = unique((*BESIDE, *columns)), (*BESIDE.values(), *types)
    if form in ("json", "csv"):
        out = sys.stdout if path is None else path.open("w", encoding="utf-8")
        return Text(form, out, names, kinds)
    sink = sys.stdout.buffer if path is None else path.open("wb")
    schema = to_edge(rows_to_batch([], names, kinds), kinds).schema
    return Table(form, sink, schema)


class Text:
    """A line per row; what has come is written at once."""

    def __init__(
        self, form: str, out: TextIO, names: tuple[str, ...], types: tuple[str, ...]
    ) -> None:
        self._form, self._out, self._names, self._types = form, out, names, types
        if form == "csv":
            self._put([show.csv_line(names)])

    def write(self, changes: Changes) -> None:
        seqs = _numbers(changes).to_pylist()
        marks = zip(seqs, changes.sign.tolist(), changes.ats.to_pylist(), strict=True)
        rows = [(*mark, *row) for mark, row in zip(marks, changes.rows, strict=True)]
        lines = show.as_csv if self._form == "csv" else show.as_json
        self._put(list(lines(self._names, self._types, rows))[self._form == "csv" :])

    def close(self) -> None:
        if self._out is not sys.stdout:
            self._out.close()

    def _put(self, lines: list[str]) -> None:
        self._out.write("".join(f"{for_screen(line, self._out)}\n" for line in lines))
        self._out.flush()


class Table:
    """Columns: Arrow as it comes, Parquet in row groups."""

    def __init__(self, form: str, sink: IO[bytes], schema: pa.Schema) -> None:
        self._sink, self._schema = sink, schema
        self._least = ROW_GROUP if form == "parquet" else 1
        self._held: list[pa.Table] = []
        self._made: Any
        if form == "parquet":
            from pyarrow import parquet

            self._made = parquet.ParquetWriter(sink, schema)
        else:
            self._made = pa.ipc.new_stream(sink, schema)

    def write(self, changes: Changes) -> None:
        ats = changes.ats.cast(pa.timestamp("us"))
        beside = [_numbers(changes), pa.array(changes.sign, pa.int64()), ats]
        rows = changes.data.table().columns
        self._held.append(pa.table([*beside, *rows], schema=self._schema))
        if sum(table.num_rows for table in self._held) >= self._least:
            self._put()

    def close(self) -> None:
        if self._held:
            self._put()
        self._made.close()
        self._sink.flush()
        if self._sink is not sys.stdout.buffer:
            self._sink.close()

    def _put(self) -> None:
        held, self._held = self._held, []
        self._made.write_table(pa.concat_tables(held))
        self._sink.flush()


def _numbers(changes: Changes) -> pa.Array:
    if changes.kind == "snapshot" or changes.conflated:
        return pa.nulls(len(changes), pa.int64())
    return pa.array(np.arange(changes.seq, changes.seq + len(changes)))
