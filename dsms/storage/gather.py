"""Arrow IPC bytes of a batch without a copy of its columns: buffers, to be written one after the
other."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa


class _Gatherer(io.RawIOBase):
    """A file that keeps what is written to it by reference."""

    def __init__(self) -> None:
        self.buffers: list[Any] = []
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        size = len(data) if isinstance(data, bytes) else memoryview(data).nbytes
        self.buffers.append(data)
        self.size += size
        return size

    def tell(self) -> int:
        return self.size


def ipc_buffers(batch: pa.RecordBatch, file: bool = False) -> list[Any]:
    """The batch as an IPC stream (or `file`), in buffers; whole columns are those of the batch."""
    out = _Gatherer()
    sink = pa.PythonFile(out, mode="w")
    with (pa.ipc.new_file if file else pa.ipc.new_stream)(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return out.buffers
