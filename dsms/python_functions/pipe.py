"""What goes between the engine and the process that runs Python functions: a head in JSON, then one
Arrow batch, both with their lengths before them."""

from __future__ import annotations

import json
import struct
from typing import Any, BinaryIO

import pyarrow as pa

_LENGTHS = struct.Struct("<IQ")


def send(to: BinaryIO, head: dict[str, Any], batch: pa.RecordBatch | None = None) -> None:
    """Write a message.  Raises OSError where nobody reads any more."""
    text, data = json.dumps(head).encode(), b"" if batch is None else _bytes(batch)
    to.write(_LENGTHS.pack(len(text), len(data)))
    to.write(text)
    to.write(data)
    to.flush()


def receive(of: BinaryIO) -> tuple[dict[str, Any], pa.RecordBatch | None]:
    """Read a message.  Raises EOFError where there will be none."""
    text, data = _LENGTHS.unpack(_exactly(of, _LENGTHS.size))
    head = json.loads(_exactly(of, text))
    body = _exactly(of, data)
    return head, None if not data else pa.ipc.open_stream(body).read_next_batch()


def _bytes(batch: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def _exactly(of: BinaryIO, size: int) -> bytes:
    found = of.read(size)
    if len(found) < size:
        raise EOFError
    return found
