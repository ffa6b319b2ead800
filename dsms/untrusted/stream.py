"""An Arrow IPC stream from outside -> a table, with nothing believed that it says of itself.

The order: each message's metadata as far as it tells sizes, the schema's types, then the data, then
its contents."""

from __future__ import annotations

import pyarrow as pa

from dsms.errors import UsageError
from dsms.untrusted.contents import LIMIT, check_contents, check_size
from dsms.untrusted.malformed import Malformed
from dsms.untrusted.metadata import sizes_of
from dsms.untrusted.types import check_schema

MAX_METADATA = 4 << 20  # bytes of one message
_BATCHES = ("record batch", "dictionary")
# NumPy's and Numba's arrays should be aligned; a blob lies anywhere in its frame
ALIGNED = (
    {"ensure_alignment": pa.ipc.Alignment.DataTypeSpecific} if hasattr(pa.ipc, "Alignment") else {}
)
_OPTIONS = pa.ipc.IpcReadOptions(**ALIGNED)
# what reading raises where the bytes are no Arrow data, or no sound ones
UNREADABLE = (
    pa.ArrowException,
    Malformed,
    OSError,
    UnicodeDecodeError,
    OverflowError,
    MemoryError,
)


def read_stream(data: bytes | memoryview, what: str = "`arrow`") -> pa.Table:
    """The table in the bytes.  Raises DS510 if they are no valid stream, DS503 for types that no
    stream takes."""
    limit = max(LIMIT, len(data))
    buffer = pa.py_buffer(data)
    try:
        _check_messages(buffer, limit)
        with pa.ipc.open_stream(buffer, options=_OPTIONS) as reader:
            check_schema(reader.schema)
            table = reader.read_all()
        check_size(table.num_rows, table.num_columns)
        check_contents(table, limit)
        return table
    except UNREADABLE as problem:
        raise UsageError("DS510", f"{what} is not an Arrow IPC stream: {_line(problem)}") from None


def _check_messages(buffer: pa.Buffer, limit: int) -> None:
    """Raises Malformed for messages whose sizes are impossible or over `limit`."""
    rows = unpacked = 0
    reader = pa.ipc.MessageReader.open_stream(buffer)
    while (message := _next(reader)) is not None:
        if message.metadata.size > MAX_METADATA:
            raise Malformed(f"a message has {message.metadata.size} bytes of metadata")
        if message.type not in _BATCHES:
            continue
        sizes = sizes_of(message)
        rows += sizes.rows
        unpacked += sizes.unpacked
        if sizes.least < 0:
            raise Malformed("a length is negative")
        check_size(max(rows, sizes.longest), 1)
        if unpacked > limit:
            raise Malformed(f"its compressed buffers hold {unpacked} bytes, the limit is {limit}")


def _next(reader: pa.ipc.MessageReader) -> pa.ipc.Message | None:
    try:
        return reader.read_next_message()
    except StopIteration:
        return None


def _line(problem: Exception) -> str:
    lines = str(problem).strip().splitlines()
    return lines[0] if lines else type(problem).__name__
