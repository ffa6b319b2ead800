"""The end of an Arrow IPC file: which columns it has, and where its messages lie.

Not every writer leaves a stream between the marks of a file (polars has no schema there), so that a
file is read as its footer says.  Of the format (File.fbs of Arrow) only this is read."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import IO

import numpy as np

from dsms.untrusted.malformed import Malformed
from dsms.untrusted.metadata import Table, readable

MARK = b"ARROW1"  # begins and ends a file
BEGIN = b"\xff\xff\xff\xff"  # of a message; before Arrow 0.15 its size came first
MOST = 64 << 20  # bytes of a footer
NO_END = "it is cut short, or damaged: its end is not that of an Arrow file"
_VERSION, _SCHEMA, _DICTIONARIES, _ROWS = 0, 1, 2, 3  # fields of Footer
_BLOCK = np.dtype([("offset", "<i8"), ("metadata", "<i4"), ("", "<i4"), ("body", "<i8")])
_END = struct.Struct("<i6s")  # the size of the footer, and the mark
# a Message whose header is a schema: where its table begins; the sizes of the list of its fields
# and of itself, where its version, its type and its header are in it; then that table
_HEADER = struct.Struct("<I HHHHHH iIhBx4x")
_TABLE, _POINTER = 16, 20


@dataclass(frozen=True, slots=True)
class Footer:
    """`schema`: the bytes of a message that says what the footer says of columns; `places`: where
    messages begin, those of dictionaries first."""

    schema: bytes
    places: tuple[int, ...]


def footer_of(file: IO[bytes]) -> Footer:
    """Raises Malformed."""
    size = file.seek(0, 2)
    if size < len(MARK) + _END.size:
        raise Malformed(NO_END)
    file.seek(size - _END.size)
    length, mark = _END.unpack(file.read(_END.size))
    if mark != MARK or not 0 < length <= min(size - len(MARK) - _END.size, MOST):
        raise Malformed(NO_END)
    file.seek(size - _END.size - length)
    data = file.read(length)
    with readable():
        footer = Table.root(memoryview(data))
        places = [
            place
            for blocks in (_DICTIONARIES, _ROWS)
            for place in footer.structs(blocks, _BLOCK)["offset"].tolist()
        ]
        schema = _message(data, footer)
    if len(set(places)) < len(places) or not all(0 < place < size for place in places):
        raise Malformed("its end says of two messages that they are in one place, or of one none")
    return Footer(schema, tuple(places))


def _message(data: bytes, footer: Table) -> bytes:
    """The footer behind the beginning of a message, whose header is the schema in it."""
    schema = _HEADER.size + footer.child(_SCHEMA).place - _POINTER
    version = footer.short(_VERSION)
    head = _HEADER.pack(_TABLE, 12, 12, 8, 10, 4, 0, _TABLE - 4, schema, version, 1)
    padded = head + data + bytes(-len(data) % 8)
    return BEGIN + struct.pack("<i", len(padded)) + padded
