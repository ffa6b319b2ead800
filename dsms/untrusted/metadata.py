"""Reads an Arrow message's sizes from its metadata (a FlatBuffer), before Arrow allocates anything
by them.

Arrow has verified the FlatBuffer's offsets when a `Message` is given out, not what the numbers in
it say.  Of the format (Message.fbs of Arrow) only this is read: the length of a batch, of its
columns, and its buffers if compressed."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dsms.untrusted.malformed import Malformed

_HEADER, _BODY, _DATA = 2, 3, 1  # fields of Message and DictionaryBatch
_LENGTH, _NODES, _BUFFERS, _COMPRESSION = 0, 1, 2, 3  # fields of RecordBatch
_PAIR = np.dtype(("<i8", 2))


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a message of rows (or of a dictionary) declares.

    rows      of the batch
    longest   of the columns, its children and `rows`
    least     the smallest of these lengths, which may be negative in a bad message
    unpacked  bytes that compressed buffers declare to hold in all; 0 where nothing is compressed
    """

    rows: int
    longest: int
    least: int
    unpacked: int


@contextmanager
def readable() -> Iterator[None]:
    """Raises Malformed for offsets that lead nowhere."""
    try:
        yield
    except (struct.error, IndexError, ValueError, TypeError):
        raise Malformed("its metadata can't be read") from None


def sizes_of(message: pa.ipc.Message) -> Sizes:
    """Of a message of type ``record batch`` or ``dictionary``.  Raises Malformed."""
    with readable():
        table = Table.root(memoryview(message.metadata)).child(_HEADER)
        if message.type == "dictionary":
            table = table.child(_DATA)
        rows = table.number(_LENGTH)
        lengths = table.structs(_NODES, _PAIR)[:, 0]
        packed = table.at(_COMPRESSION) is not None
        unpacked = _unpacked(table.structs(_BUFFERS, _PAIR), message.body) if packed else 0
    longest, least = int(lengths.max(initial=rows)), int(lengths.min(initial=rows))
    return Sizes(rows, longest, least, unpacked)


def body_size(metadata: bytes) -> int:
    """Bytes that follow the metadata of a message, as it declares.  Raises Malformed."""
    with readable():
        size = Table.root(memoryview(metadata)).number(_BODY)
    if size < 0:
        raise Malformed("a length is negative")
    return size


def _unpacked(buffers: np.ndarray, body: pa.Buffer | None) -> int:
    """The sum of the lengths that stand in front of compressed buffers (-1: that one is not
    compressed)."""
    view = memoryview(b"" if body is None else body)
    total = 0
    for offset, length in buffers.tolist():
        if length == 0:
            continue
        if length < 8 or offset < 0 or offset + length > len(view):
            raise Malformed("a compressed buffer lies outside its body")
        (declared,) = struct.unpack_from("<q", view, offset)
        if declared < -1:
            raise Malformed(f"a compressed buffer declares {declared} bytes")
        total += max(declared, 0)
    return total


@dataclass(frozen=True, slots=True)
class Table:
    """A FlatBuffer table at `place`: a signed offset back to its list of field offsets, and the
    fields."""

    view: memoryview
    place: int

    @classmethod
    def root(cls, view: memoryview) -> Table:
        return cls(view, struct.unpack_from("<I", view, 0)[0])

    def at(self, field: int) -> int | None:
        """Where a field lies; None if it is not there."""
        fields = self.place - struct.unpack_from("<i", self.view, self.place)[0]
        slot = 4 + 2 * field
        if fields < 0 or slot + 2 > struct.unpack_from("<H", self.view, fields)[0]:
            return None
        offset = struct.unpack_from("<H", self.view, fields + slot)[0]
        return self.place + offset if offset else None

    def child(self, field: int) -> Table:
        where = self.at(field)
        if where is None:
            raise Malformed("a part of its metadata is missing")
        return Table(self.view, where + struct.unpack_from("<I", self.view, where)[0])

    def number(self, field: int) -> int:
        where = self.at(field)
        return 0 if where is None else int(struct.unpack_from("<q", self.view, where)[0])

    def short(self, field: int) -> int:
        where = self.at(field)
        return 0 if where is None else int(struct.unpack_from("<h", self.view, where)[0])

    def structs(self, field: int, kind: np.dtype) -> np.ndarray:
        """A vector of structs of that type."""
        where = self.at(field)
        if where is None:
            return np.empty(0, kind)
        start = where + struct.unpack_from("<I", self.view, where)[0]
        count = struct.unpack_from("<I", self.view, start)[0]
        return np.frombuffer(self.view, kind, count, start + 4)
