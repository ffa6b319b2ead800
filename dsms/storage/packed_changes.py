"""Changes of tables, and whole tables, as the catalog file keeps them: columns as Arrow streams,
numbers as they lie in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from dsms.tables.changes import Change, TableSnapshot

LARGE = 1 << 16  # bytes of rows that are compressed: what SQLite writes takes longer


def packed(table: str, change: Change, inserted: bytes | None = None) -> bytes:
    """A change of a table as bytes.  `inserted`: its new rows, if they are packed already."""
    rows = packed_rows(change.inserted) if inserted is None else inserted
    parts = (ints(change.deleted), rows)
    head = json.dumps(
        [table, change.at, change.first_version, change.rows, *map(len, parts)]
    ).encode()
    return b"".join((len(head).to_bytes(4, "little"), head, *parts))


def unpacked(body: bytes) -> tuple[str, Change]:
    """The table and the change again."""
    size = 4 + int.from_bytes(body[:4], "little")
    table, at, first_version, rows, deleted, inserted = json.loads(body[4:size])
    parts = body[size : size + deleted], body[size + deleted : size + deleted + inserted]
    return table, change_of(at, *parts, first_version, rows)


def packed_rows(columns: Sequence[pa.Array]) -> bytes:
    """Columns as an Arrow IPC stream, found again by position; empty for no columns."""
    if not columns:
        return b""
    packing = "lz4" if sum(c.nbytes for c in columns) > LARGE else None
    batch = pa.record_batch(list(columns), names=[str(i) for i in range(len(columns))])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(
        sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=packing)
    ) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def unpacked_rows(blob: bytes) -> tuple[pa.Array, ...]:
    """Columns again."""
    if not blob:
        return ()
    with pa.ipc.open_stream(blob) as reader:
        return tuple(reader.read_next_batch().columns)


def ints(values: np.ndarray) -> bytes:
    """int64 numbers as bytes."""
    return values.astype("<i8", copy=False).tobytes()


def change_of(at: int, deleted: bytes, inserted: bytes, first_version: int, rows: int) -> Change:
    """A change of what is kept of it."""
    versions = np.frombuffer(deleted, "<i8").astype(np.int64)
    return Change(at, versions, unpacked_rows(inserted), first_version, rows)


def snapshot_of(row: tuple) -> TableSnapshot:
    """A table of its row in the file."""
    _, rows, dead, next_version, last_change, forgotten = row
    version, born, ended, *columns = unpacked_rows(rows)
    version, born, ended = (v.to_numpy().astype(np.int64) for v in (version, born, ended))
    dead_keys, numbers = unpacked_rows(dead), (next_version, last_change, forgotten)
    return TableSnapshot(tuple(columns), version, born, ended, dead_keys, *numbers)
