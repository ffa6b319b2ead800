"""Push frames that say which share of the rows that came their query's streams have kept."""

from __future__ import annotations

from collections.abc import Iterator

import msgpack

from dsms_client.protocol import HEADER

ROOM = 16  # bytes that it takes
FEW = 0x80  # the first byte of a map of less than 16 entries, without their number


def with_share(pieces: Iterator[bytes], share: float | None) -> Iterator[bytes]:
    """The frames, each with one more field, `share`; as they are where all rows were kept."""
    if share is None:
        yield from pieces
        return
    field = msgpack.packb("share") + msgpack.packb(share)
    for piece in pieces:
        yield b"".join(_marked(piece, field))


def _marked(piece: bytes, field: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(piece):
        (size,) = HEADER.unpack_from(piece, at)
        at += HEADER.size
        head = piece[at]
        assert FEW <= head < FEW + 15
        yield HEADER.pack(size + len(field))
        yield bytes([head + 1])
        yield piece[at + 1 : at + size]
        yield field
        at += size
