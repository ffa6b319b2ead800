"""Reads an Arrow message's sizes from its metadata (a FlatBuffer), before Arrow allocates anything
by them.

Arrow has verified the FlatBuffer's offsets when a `Message` is given out, not what the numbers in
it say.  Of the format (Message.fbs of Arrow) only this is read: the length of a batch, of its
columns, and its buffers if compressed."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

_HEADER, _DATA = 2, 1  # fields of Message and DictionaryBatch
_LENGTH, _NODES, _BUFFERS, _COMPRESSION = 0, 1, 2, 3  # fields of RecordBatch
_PAIR = np.dtype("<i8")


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


class Malformed(Exception):
    """The metadata contradicts itself or the body."""


def sizes_of(message: pa.ipc.Message) -> Sizes:
    """Of a message of type ``record batch`` or ``dictionary``.  Raises Malformed."""
    try:
        table = _Table.root(memoryview(message.metadata)).child(_HEADER)
        if message.type == "dictionary":
            table = table.child(_DATA)
        rows = table.number(_LENGTH)
        lengths = table.pairs(_NODES)[:, 0]
        unpacked = (
            0 if table.at(_COMPRESSION) is None else _unpacked(table.pairs(_BUFFERS), message.body)
        )
    except (struct.error, IndexError, ValueError, TypeError) as problem:
        raise Malformed(f"its metadata can't be read ({problem})") from None
    longest, least = int(lengths.max(initial=rows)), int(lengths.min(initial=rows))
    return Sizes(rows, longest, least, unpacked)


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
class _Table:
    """A FlatBuffer table at `place`: a signed offset back to its list of field offsets, and the
    fields."""

    view: memoryview
    place: int

    @classmethod
    def root(cls, view: memoryview) -> _Table:
        return cls(view, struct.unpack_from("<I", view, 0)[0])

    def at(self, field: int) -> int | None:
        """Where a field lies; None if it is not there."""
        fields = self.place - struct.unpack_from("<i", self.view, self.place)[0]
        slot = 4 + 2 * field
        if fields < 0 or slot + 2 > struct.unpack_from("<H", self.view, fields)[0]:
            return None
        offset = struct.unpack_from("<H", self.view, fields + slot)[0]
        return self.place + offset if offset else None

    def child(self, field: int) -> _Table:
        where = self.at(field)
        if where is None:
            raise Malformed("a part of its metadata is missing")
        return _Table(self.view, where + struct.unpack_from("<I", self.view, where)[0])

    def number(self, field: int) -> int:
        where = self.at(field)
        return 0 if where is None else int(struct.unpack_from("<q", self.view, where)[0])

    def pairs(self, field: int) -> np.ndarray:
        """A vector of structs of two int64, as int64[n, 2]."""
        where = self.at(field)
        if where is None:
            return np.empty((0, 2), _PAIR)
        start = where + struct.unpack_from("<I", self.view, where)[0]
        count = struct.unpack_from("<I", self.view, start)[0]
        return np.frombuffer(self.view, _PAIR, 2 * count, start + 4).reshape(-1, 2)
