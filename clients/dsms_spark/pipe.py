"""What a server and its Spark process say to each other: frames of msgpack on a pair of pipes.

A frame is an 8-byte big-endian length and one msgpack map.  The server asks `{id, op, ...}`, the
process answers `{id, ok: true, ...}` or `{id, error}`, and meanwhile `{id, progress, done, of}` as
often as it likes.

    ping                          whether it is alive
    start                         make the Spark session now
    update {url, upto?}           apply what has landed to an archive's index
    compact {url}                 rewrite an archive's small files
    execute {job, buffers}        run a query that reads archives; answers {answer, buffers}
    cancel {request}              stop the request of that id
    stop                          finish and end

Objects travel pickled; the bytes of Arrow data stand beside them as IPC streams, so a slice costs
its own size and not that of what it was cut from.  Both ends are processes of one server: nothing
here is meant for strangers.
"""

from __future__ import annotations

import pickle
import struct
import threading
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import IO, Any

import msgpack
import pyarrow as pa

LENGTH = struct.Struct(">Q")
MOST = 1 << 35  # bytes of a frame: more is no frame


class Channel:
    """One end.  Any thread may `send`; one thread calls `receive`."""

    def __init__(self, incoming: IO[bytes], outgoing: IO[bytes]) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._sending = threading.Lock()

    def send(self, message: Mapping[str, Any]) -> None:
        """Raises OSError (BrokenPipeError) or ValueError where the other end is gone or this one is
        closed."""
        body = msgpack.packb(message)
        with self._sending:
            self._outgoing.write(LENGTH.pack(len(body)))
            self._outgoing.write(body)
            self._outgoing.flush()

    def receive(self) -> dict[str, Any] | None:
        """The next message; None: the other end is gone.  Raises ValueError for what is no
        message."""
        head = self._incoming.read(LENGTH.size)
        if len(head) < LENGTH.size:
            return None
        (size,) = LENGTH.unpack(head)
        if size > MOST:
            raise ValueError(f"no frame begins with {head!r}")
        body = self._incoming.read(size)
        return msgpack.unpackb(body) if len(body) == size else None

    def close(self) -> None:
        """Close the way out, which the other end sees as the end of all."""
        with self._sending:
            try:
                self._outgoing.close()
            except OSError:  # what it still held can't be written any more
                return


def packed(value: Any) -> dict[str, Any]:
    """A Python object as fields of a message: `pickle` and the `buffers` of its Arrow data."""
    buffers: list[pickle.PickleBuffer] = []
    out = BytesIO()
    _Pickler(out, buffers.append).dump(value)
    return {"pickle": out.getvalue(), "buffers": [b.raw() for b in buffers]}


def unpacked(message: Mapping[str, Any]) -> Any:
    """The object of a message."""
    return pickle.loads(message["pickle"], buffers=message["buffers"])


class _Pickler(pickle.Pickler):
    def __init__(self, out: BytesIO, keep: Callable[[pickle.PickleBuffer], Any]) -> None:
        super().__init__(out, protocol=5, buffer_callback=keep)

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, pa.RecordBatch):
            return _batch, (pickle.PickleBuffer(_ipc(value)), value.schema)
        if isinstance(value, pa.Table):
            return _table, (pickle.PickleBuffer(_ipc(value)),)
        if isinstance(value, pa.Array):
            held = pa.RecordBatch.from_arrays([value], ["x"])
            return _array, (pickle.PickleBuffer(_ipc(held)), held.schema)
        return NotImplemented


def _ipc(data: pa.RecordBatch | pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, data.schema) as writer:
        writer.write(data)
    return sink.getvalue()


def _table(buffer: Any) -> pa.Table:
    with pa.ipc.open_stream(pa.py_buffer(buffer)) as reader:
        return reader.read_all()


def _batch(buffer: Any, schema: pa.Schema) -> pa.RecordBatch:
    with pa.ipc.open_stream(pa.py_buffer(buffer)) as reader:
        batches = list(reader)
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=schema)


def _array(buffer: Any, schema: pa.Schema) -> pa.Array:
    return _batch(buffer, schema).column(0)
