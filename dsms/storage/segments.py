"""Sealed sub-windows: one immutable Arrow IPC file each, whose arrays are used where they are
mapped.

The file holds the stream's columns by position, then `ts` and the arrival numbers, and in the end a
checksum of all of that and of its own name: another segment in its place is not taken for it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import xxhash

from dsms.errors import UsageError
from dsms.sql.types import Schema
from dsms.state.batch import Batch
from dsms.storage.files import Files
from dsms.storage.gather import ipc_buffers


@dataclass(frozen=True, slots=True)
class Segment:
    """A sealed sub-window: where it is, how much it holds, and of which instants."""

    path: str
    rows: int
    bytes: int
    first: int
    last: int


def seal(files: Files, path: str, rows: Batch) -> Segment:
    """Write the rows of a sub-window; the file is whole or not there."""
    arrays = [*rows.cols, pa.array(rows.ts), pa.array(rows.ids[0])]
    batch = pa.record_batch(arrays, names=[str(i) for i in range(len(arrays))])
    buffers, check = ipc_buffers(batch, file=True), xxhash.xxh3_64(_name(path))
    for buffer in buffers:
        check.update(buffer)
    files.write_atomic(path, [*buffers, check.digest()], sync=False)
    size = sum(memoryview(b).nbytes for b in buffers)
    first, last = (int(rows.ts[0]), int(rows.ts[-1])) if len(rows) else (0, -1)
    return Segment(path, len(rows), size + 8, first, last)


def load(files: Files, path: str, schema: Schema, verify: bool = False) -> Batch:
    """The rows of a sealed sub-window, mapped.

    Raises DS553 (missing), DS554 (damaged: cut short, another schema or, if `verify`, another
    checksum)."""
    data = files.map(path)
    try:
        if data.size < 16:
            raise ValueError("it is cut short")
        whole, digest = data.slice(0, data.size - 8), bytes(data.slice(data.size - 8))
        if verify:
            check = xxhash.xxh3_64(_name(path))
            check.update(whole)
            if check.digest() != digest:
                raise ValueError("its checksum is not that of its name and contents")
        with pa.ipc.open_file(whole) as found:
            batch = found.get_batch(0)
        if [c.type for c in batch.columns[:-2]] != [f.type.arrow for f in schema]:
            raise ValueError("its columns are not those of the stream")
    except (pa.ArrowException, ValueError, OSError) as error:
        raise UsageError(
            "DS554",
            f"{path} is damaged: {error}",
            hint="restore the file from a backup, or drop the stream",
        ) from None
    *cols, ts, ids = batch.columns
    return Batch(_numbers(ts), None, None, (_numbers(ids),), tuple(cols))


def _name(path: str) -> bytes:
    """The stream's folder and the file's name: the data folder may be moved."""
    return "/".join(path.split("/")[-2:]).encode()


def _numbers(array: pa.Array) -> np.ndarray:
    return array.to_numpy(zero_copy_only=True)
