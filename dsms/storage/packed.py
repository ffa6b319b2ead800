"""The bytes of a state: its parts one after the other, compressed a piece at a time, so that a part
of any size takes no more memory than a piece while it is written or read.

    magic 8 bytes | length u32 | checksum u64 | a table in JSON: version, how many parts
    of each part: bytes u64, and of each PIECE of it: stored bytes u32 | checksum u64 | stored bytes

Checksums of pieces are seeded with the length of their part.  Parts of up to SMALL bytes are not
compressed.  Before version 6 the table had all lengths and checksums, and parts were one piece.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import xxhash

from dsms.errors import UsageError

MAGIC = b"dsmsST01"
VERSION = 6  # of the encoding; what objects are made of has versions of its own (`stored.txt`)
IN_TABLE = 5  # as above: lengths stand in the table
LEGACY = 4  # pickles that name modules
SMALL = 512  # bytes up to which a part is not compressed
PIECE = 8 << 20  # bytes that are compressed in one go
MOST = 255  # to one: what LZ4 can make of data at most
_HEAD = struct.Struct("<8sIQ")  # magic, length and checksum of the table
_PART, _PIECE = struct.Struct("<Q"), struct.Struct("<IQ")

Blob = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Packed:
    """A part as it is written."""

    pieces: tuple[bytes, ...]

    @property
    def nbytes(self) -> int:
        return sum(map(len, self.pieces))


@dataclass(slots=True)
class Packing:
    """Parts that are to be written: copies, packed ones, or memory that never changes.

    room   bytes that may still be copied
    held   bytes of the copies and of what is packed: what this holds beside the state itself
    """

    room: int = 0
    held: int = 0
    parts: list[Blob | Packed] = field(default_factory=list)

    def put(self, part: Blob | Packed, size: int, place: int | None = None) -> None:
        self.held += size
        self.parts.insert(len(self.parts) if place is None else place, part)

    def __call__(self) -> Iterator[bytes]:
        """The file, once: each part is let go of when it has been given."""
        parts, self.parts = self.parts, []
        yield from written(_taken(parts), len(parts))
        self.held = 0


def _taken(parts: list[Blob | Packed]) -> Iterator[Blob | Packed]:
    parts.reverse()
    while parts:
        yield parts.pop()


def pack(blob: Blob, rest: Callable[[], None] = lambda: None) -> Packed:
    """A part, compressed now; `rest` is called between two pieces."""
    pieces: list[bytes] = []
    for piece in _pieces(blob):
        pieces.append(piece)
        rest()
    return Packed(tuple(pieces))


def _pieces(blob: Blob) -> Iterator[bytes]:
    flat = memoryview(blob).cast("B")
    size = len(flat)
    yield _PART.pack(size)
    for start in range(0, size, PIECE):
        piece = flat[start : start + PIECE]
        data = bytes(piece) if size <= SMALL else pa.compress(piece, codec="lz4", asbytes=True)
        yield _PIECE.pack(len(data), xxhash.xxh3_64_intdigest(data, seed=size))
        yield data


def written(parts: Iterable[Blob | Packed], count: int) -> Iterator[bytes]:
    """The bytes of a file of so many parts, piece by piece."""
    table = {"version": VERSION, "python": sys.version_info[:2], "blobs": count}
    head = json.dumps(table).encode()
    yield _HEAD.pack(MAGIC, len(head), xxhash.xxh3_64_intdigest(head)) + head
    for part in parts:
        yield from part.pieces if isinstance(part, Packed) else _pieces(part)


def unpacked(data: memoryview, where: Path | str) -> tuple[int, list[bytearray]]:
    """(version of the encoding, the parts).  Raises DS545 where they are not what was written,
    DS546 of another version."""
    try:
        magic, length, crc = _HEAD.unpack_from(data)
        head = bytes(data[_HEAD.size : _HEAD.size + length])
        if magic != MAGIC or xxhash.xxh3_64_intdigest(head) != crc:
            raise ValueError("its head is not what was written")
        table = json.loads(head)
        if table["version"] not in (LEGACY, IN_TABLE, VERSION):
            raise UsageError(
                "DS546",
                f"the state in {where} was written by another version of dsms "
                f"(layout {table['version']}; {LEGACY} to {VERSION} are known)",
                hint="start the version that wrote it, or a newer one",
            )
        rest, blobs = data[_HEAD.size + length :], table["blobs"]
        found = _parts(rest, blobs) if isinstance(blobs, int) else _blobs(rest, blobs)
        if not found:
            raise ValueError("it is empty")
        return table["version"], found
    except (
        struct.error,
        ValueError,
        LookupError,
        TypeError,
        pa.ArrowException,
        MemoryError,
    ) as error:
        raise UsageError(
            "DS545", f"the state in {where} is damaged: {error}", hint="restore it from a backup"
        ) from None


def _parts(data: memoryview, count: int) -> list[bytearray]:
    out, at = [], 0
    for _ in range(count):
        (size,) = _PART.unpack_from(data, at)
        at += _PART.size
        part = bytearray()
        for start in range(0, size, PIECE):
            stored, crc = _PIECE.unpack_from(data, at)
            at += _PIECE.size
            piece = _whole(data, at, stored, crc, size)
            part += _unpacked(piece, min(PIECE, size - start), size <= SMALL, at)
            at += stored
        out.append(part)
    return out


def _blobs(data: memoryview, sizes: Sequence[tuple[int, int, int]]) -> list[bytearray]:
    """As it was up to version IN_TABLE."""
    out, at = [], 0
    for stored, size, crc in sizes:
        part = _whole(data, at, stored, crc)
        out.append(bytearray(_unpacked(part, size, size <= SMALL, at)))
        at += stored
    return out


def _whole(data: memoryview, at: int, stored: int, crc: int, seed: int = 0) -> memoryview:
    part = data[at : at + stored]
    if len(part) != stored or xxhash.xxh3_64_intdigest(part, seed=seed) != crc:
        raise ValueError(f"a part of it at byte {at} is not what was written")
    return part


def _unpacked(part: memoryview, size: int, plain: bool, at: int) -> memoryview | pa.Buffer:
    if plain:
        return part
    if not 0 <= size <= MOST * len(part) + SMALL:
        raise ValueError(f"a part of it at byte {at} can't hold what it is said to")
    return pa.decompress(part, size, codec="lz4")
