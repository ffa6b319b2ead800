"""Result rows -> pushes of the kind `changes`: rows of all kinds and instants together, in order.

Arrow   the columns of the query, then ``$sign`` (int8: 1 enters, -1 leaves, 0 is part of a periodic
        answer) and ``$at`` (int64 µs, null before any clock).
Rows    `data`, and beside it `signs` and `ats`, as many.

Whole instants are in one frame.  Only an instant that is longer than `limit` bytes by itself comes
in parts, numbered on; all but the last say ``more: true``.  An empty piece among the frames is a
moment to let others have their turn, as in `dsms_server.pushes`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgpack
import pyarrow as pa

from dsms.api import Chunk, NetChange, Push, joined, shown_instant
from dsms.sql.types import MIN_INSTANT
from dsms.tabular.tables import AT, SIGN, to_edge
from dsms_client import columns
from dsms_client.protocol import HEADER, pack
from dsms_server import pushes
from dsms_server.pushes import NOT_YET, end_of_instant, fitting, push_frames

Piece = tuple[int, bytes, bytes, bytes]  # rows, and their data, signs and instants


def change_frames(
    items: Sequence[Push | Chunk], query: str, types: tuple[str, ...], form: str, limit: int
) -> Iterator[bytes]:
    """The frames of what a subscription gave, each built by short steps."""
    for item in _together(items):
        if isinstance(item, NetChange) and not len(item):
            yield pack(_nothing(item, query))
        elif isinstance(item, Push):
            yield from push_frames(item, query, types, form, limit)
        elif form == "arrow" or (form == "auto" and len(item) >= pushes.WORTH_ARROW):
            yield from _arrow_frames(item, query, types, limit)
        else:
            yield from _rows_frames(item, query, limit)


def _together(items: Sequence[Push | Chunk]) -> Iterator[Push | Chunk]:
    """Neighbouring chunks as one, as long as that is short."""
    held: list[Chunk] = []
    rows = 0
    for item in items:
        if held and (isinstance(item, Push | NetChange) or rows > pushes.ARROW_PIECE):
            yield joined(held)
            held, rows = [], 0
        if isinstance(item, Push | NetChange):
            yield item
        elif len(item):
            held.append(item)
            rows += len(item)
    if held:
        yield joined(held)


def _pieces(chunk: Chunk, size: int) -> Iterator[tuple[int, int]]:
    """(first, stop) of stretches of whole instants that have about `size` rows."""
    first = 0
    while first < len(chunk):
        stop = end_of_instant(chunk.at, first, first + size)
        yield first, stop
        first = stop


def _nothing(change: NetChange, query: str) -> dict[str, Any]:
    """That the answer is as it was, as of a later instant."""
    at = shown_instant(change.upto)
    head = {"push": query, "seq": change.seq, "kind": "changes", "at": at, "conflated": True}
    return head | {"data": [], "signs": [], "ats": []}


def _head(chunk: Chunk, query: str, first: int, stop: int, more: bool) -> dict[str, Any]:
    at = shown_instant(int(chunk.at[stop - 1]))
    if isinstance(chunk, NetChange):
        head = {"push": query, "seq": chunk.seq, "kind": "changes", "at": at, "conflated": True}
    else:
        head = {"push": query, "seq": chunk.seq + first, "kind": "changes", "at": at}
    return head | ({"more": True} if more else {})


# -- Arrow -----------------------------------------------------------------------------------------


def _arrow_frames(chunk: Chunk, query: str, types: tuple[str, ...], limit: int) -> Iterator[bytes]:
    for first, stop in _pieces(chunk, pushes.ARROW_PIECE):
        for start, end, more in fitting(chunk.data, chunk.at, first, stop, limit):
            yield NOT_YET
            data = columns.ipc(_marked(chunk, types, start, end))
            yield pack(_head(chunk, query, start, end, more) | {"data": data})


def _marked(chunk: Chunk, types: tuple[str, ...], first: int, stop: int) -> pa.Table:
    table = to_edge(chunk.data.slice(first, stop - first), types)
    at = chunk.at[first:stop]
    early = at < MIN_INSTANT if at[0] < MIN_INSTANT else None
    table = table.append_column(SIGN, pa.array(chunk.sign[first:stop], pa.int8()))
    return table.append_column(AT, pa.array(at, pa.int64(), mask=early))


# -- rows ------------------------------------------------------------------------------------------


def _rows_frames(chunk: Chunk, query: str, limit: int) -> Iterator[bytes]:
    for first, stop in _pieces(chunk, pushes.ROWS_PIECE):
        yield from _fitting_rows(chunk, query, first, stop, limit)


def _fitting_rows(chunk: Chunk, query: str, first: int, stop: int, limit: int) -> Iterator[bytes]:
    """Frames of whole instants; of one instant alone as many as it takes."""
    at = chunk.at[first:stop]
    if at[0] == at[-1]:
        yield from _parts(chunk, query, first, stop, limit)
        return
    pieces = list(_packed(chunk, first, stop, limit))
    frame = _frame(_head(chunk, query, first, stop, False), pieces)
    if len(frame) - HEADER.size <= limit:
        yield frame
        return
    cut = first + end_of_instant(at, 0, len(at) // 2)
    yield from _fitting_rows(chunk, query, first, cut, limit)
    yield from _fitting_rows(chunk, query, cut, stop, limit)


def _parts(chunk: Chunk, query: str, first: int, stop: int, limit: int) -> Iterator[bytes]:
    """One instant: a frame, or as many as it takes."""
    room = limit - len(msgpack.packb(_head(chunk, query, first, stop, True))) - 64
    held: list[Piece] = []
    size, at = 0, first
    for piece in _packed(chunk, first, stop, room):
        own = sum(map(len, piece[1:]))
        if held and size + own > room:
            yield _frame(_head(chunk, query, first, at, True), held)
            held, size, first = [], 0, at
        held.append(piece)
        size += own
        at += piece[0]
        yield NOT_YET
    yield _frame(_head(chunk, query, first, at, False), held)


def _packed(chunk: Chunk, first: int, stop: int, most: int) -> Iterator[Piece]:
    """The rows without the headers of their lists: at most `most` bytes a piece, or one row."""
    for start in range(first, stop, pushes.ROWS_PIECE):
        end = min(stop, start + pushes.ROWS_PIECE)
        rows = columns.batch_to_rows(chunk.data.slice(start, end - start))
        ats = [shown_instant(at) for at in chunk.at[start:end].tolist()]
        yield from _halved(rows, chunk.sign[start:end].tolist(), ats, most)


def _halved(rows: list[Any], signs: list[int], ats: list[int | None], most: int) -> Iterator[Piece]:
    bare = 1 if len(rows) < 16 else 3
    data, sign, at = (msgpack.packb(values)[bare:] for values in (rows, signs, ats))
    if len(data) + len(sign) + len(at) <= most or len(rows) == 1:
        yield len(rows), data, sign, at
        return
    middle = len(rows) // 2
    yield from _halved(rows[:middle], signs[:middle], ats[:middle], most)
    yield from _halved(rows[middle:], signs[middle:], ats[middle:], most)


def _frame(head: dict[str, Any], pieces: list[Piece]) -> bytes:
    packer = msgpack.Packer()
    rows = packer.pack_array_header(sum(piece[0] for piece in pieces))
    parts = [packer.pack_map_header(len(head) + 3)]
    for key, value in head.items():
        parts += (packer.pack(key), packer.pack(value))
    for place, key in enumerate(("data", "signs", "ats"), 1):
        parts += (packer.pack(key), rows, *(piece[place] for piece in pieces))
    return b"".join((HEADER.pack(sum(map(len, parts))), *parts))
