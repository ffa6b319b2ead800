"""The batches of an Arrow IPC file or stream from outside, of those columns that are taken."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import IO, Any

import pyarrow as pa

from dsms.untrusted.contents import written_out
from dsms.untrusted.malformed import Malformed
from dsms.untrusted.messages import MOST, messages
from dsms.untrusted.stream import ALIGNED


class Batches:
    """Read once.  `schema`: of all columns, not judged."""

    def __init__(self, file: IO[bytes]) -> None:
        """Raises Malformed or pa.ArrowException if it does not begin with a schema."""
        self._messages = messages(file)
        self._first = next(self._messages, None)
        if self._first is None:
            raise Malformed("it is empty")
        self.schema: pa.Schema = pa.ipc.read_schema(pa.py_buffer(self._first))

    def of(self, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Batches of at most so many rows, valid throughout, of columns whose types were judged.

        Raises Malformed, pa.ArrowException, OSError (Arrow's, of a damaged message) or
        UnicodeDecodeError."""
        assert self._first is not None
        places = [self.schema.get_field_index(name) for name in columns]
        options = pa.ipc.IpcReadOptions(included_fields=places, **ALIGNED)
        parts: Any = _Parts(chain([self._first], self._messages))
        for batch in pa.ipc.open_stream(parts, options=options):
            batch.validate(full=True)
            for first in range(0, batch.num_rows, rows):
                piece = batch.slice(first, rows)
                _check_written_out(piece)
                yield piece
        parts.drain()


def _check_written_out(batch: pa.RecordBatch) -> None:
    """Raises Malformed for a dictionary, runs or views that stand for far too much."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if (size := written_out(column)) > MOST:
            raise Malformed(f"{batch.num_rows} values of {name!r} are {size} bytes in full")


class _Parts(io.RawIOBase):
    """Messages as the file that Arrow's reader reads: without a copy, where it asks for parts of
    one."""

    def __init__(self, found: Iterable[bytes]) -> None:
        self._found, self._left = iter(found), memoryview(b"")

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> Any:
        if not self._left:
            self._left = memoryview(next(self._found, b""))
        size = len(self._left) if size < 0 else size
        part, self._left = self._left[:size], self._left[size:]
        return part

    def drain(self) -> None:
        """Look at what is behind the last message."""
        for _ in self._found:
            pass
