"""Pushes -> frames, in the form the session asked for (`rows`, `arrow`, or `auto`: whichever is
cheaper).

Rows    a frame holds rows of one kind and one instant: a boundary, or what one instant inserts or
        deletes.
Arrow   a frame holds rows of one kind as an Arrow IPC stream; where their instants differ, a last
        int64 column ``$at`` gives each row's own and `at` is the last one's.  An instant is never
        in two frames.
Parts   Only what is longer than `limit` bytes by itself comes in several frames, numbered on; all
        but the last say ``more: true``.  A snapshot counts as one instant.

An empty piece among the frames means that another is being built: it is a moment to let others have
their turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import msgpack
import numpy as np
import pyarrow as pa

from dsms.api import Chunk, Push, kind_of, shown_instant
from dsms.tabular.tables import AT, to_edge
from dsms_client import columns
from dsms_client.protocol import HEADER, pack

ROWS_PIECE = 1024  # rows encoded at a time: a millisecond or two on the event loop
ARROW_PIECE = 65536  # rows from which a frame of several instants is cut between them
WORTH_ARROW = 256  # rows of a push from which `auto` sends Arrow
UNNUMBERED = ("snapshot", "progress", "end")
NOT_YET = b""


def rows_of(item: Push | Chunk) -> int:
    """Result rows in it."""
    if isinstance(item, Chunk):
        return len(item)
    return 0 if item.data is None else item.data.num_rows


def push_frames(
    item: Push | Chunk, query: str, types: tuple[str, ...], form: str, limit: int
) -> Iterator[bytes]:
    """The frames of what a subscription gave, each built by steps that are short beside a turn of
    the event loop."""
    if form == "auto":
        form = "arrow" if _run_length(item) >= WORTH_ARROW else "rows"
    match item:
        case Push(data=None):
            yield pack(_head(item, item.at))
        case Push() if form == "arrow":
            yield from _arrow_frames(item, types, limit)
        case Push():
            yield from _rows_frames(_Runs.of_push(item), limit)
        case Chunk() if form == "arrow":
            most = None if item.data.nbytes <= limit else limit
            for push in item.pushes(query):
                yield from _arrow_frames(push, types, most)
        case Chunk():
            yield from _rows_frames(_Runs.of_chunk(item, query), limit)


def _run_length(item: Push | Chunk) -> int:
    """Rows per push frame, on average, if sent as Arrow."""
    if isinstance(item, Push):
        return 0 if item.data is None else item.data.num_rows
    changes = item.sign[1:] != item.sign[:-1]
    if (item.sign == 0).any():
        changes = changes | (item.at[1:] != item.at[:-1])
    return len(item) // (1 + int(np.count_nonzero(changes)))


def _head(push: Push, at: int | None, skip: int = 0, more: bool = False) -> dict[str, Any]:
    """A push's fields, `data` not among them but where it is nil."""
    seq = push.seq if push.kind in UNNUMBERED else push.seq + skip
    head: dict[str, Any] = {"push": push.query, "seq": seq, "kind": push.kind, "at": at}
    if push.message is not None:
        head["message"] = push.message
    if push.code is not None:
        head["code"] = push.code
    if more:
        head["more"] = True
    if push.data is None:
        head["data"] = None
    return head


# -- rows ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Runs:
    """Rows of a query, and where in them something else begins.

    seq      of the first row; `numbered`: the others follow
    starts   int64[r + 1]  of each run of one kind and instant, and the end
    kinds    of each run; `ats`: its instant
    """

    query: str
    seq: int
    numbered: bool
    data: pa.RecordBatch
    starts: np.ndarray
    kinds: Sequence[str]
    ats: Sequence[int | None]

    @classmethod
    def of_push(cls, push: Push) -> _Runs:
        assert push.data is not None
        if push.ats is None or not push.data.num_rows:
            starts, ats = np.array([0, push.data.num_rows]), [push.at]
        else:
            own = np.asarray(push.ats)
            starts = _starts(own[1:] != own[:-1])
            ats = [shown_instant(at) for at in own[starts[:-1]].tolist()]
        numbered = push.kind not in UNNUMBERED
        return cls(push.query, push.seq, numbered, push.data, starts, [push.kind] * len(ats), ats)

    @classmethod
    def of_chunk(cls, chunk: Chunk, query: str) -> _Runs:
        starts = _starts((chunk.sign[1:] != chunk.sign[:-1]) | (chunk.at[1:] != chunk.at[:-1]))
        kinds = [kind_of(sign) for sign in chunk.sign[starts[:-1]].tolist()]
        ats = [shown_instant(at) for at in chunk.at[starts[:-1]].tolist()]
        return cls(query, chunk.seq, True, chunk.data, starts, kinds, ats)

    def head(self, run: int, row: int, more: bool = False) -> dict[str, Any]:
        """The fields of a push of that run that begins with that row, but for `data`."""
        seq = self.seq + row if self.numbered else self.seq
        head = {"push": self.query, "seq": seq, "kind": self.kinds[run], "at": self.ats[run]}
        if more:
            head["more"] = True
        return head


def _starts(changes: np.ndarray) -> np.ndarray:
    """Where runs begin, and the end: `changes[i]` is true where row i + 1 differs from row i."""
    return np.concatenate([[0], np.flatnonzero(changes) + 1, [len(changes) + 1]])


def _rows_frames(runs: _Runs, limit: int) -> Iterator[bytes]:
    """Short runs are encoded many at a time, long ones a piece at a time."""
    run, last = 0, len(runs.kinds)
    while run < last:
        first = int(runs.starts[run])
        stop = max(run + 1, int(np.searchsorted(runs.starts, first + ROWS_PIECE, "right")) - 1)
        if runs.starts[stop] - first > ROWS_PIECE:
            yield from _parts(runs, run, limit)
        else:
            rows = columns.batch_to_rows(runs.data.slice(first, int(runs.starts[stop]) - first))
            yield from _short(runs, range(run, stop), rows, limit)
        run = stop


def _short(runs: _Runs, numbers: range, rows: list[tuple[Any, ...]], limit: int) -> Iterator[bytes]:
    """The frames of runs whose rows are here, in one piece unless some are too long."""
    out: list[bytes] = []
    starts = runs.starts[numbers.start : numbers.stop + 1].tolist()
    first = starts[0]
    query, seq, step = runs.query, runs.seq, int(runs.numbered)
    for run, (start, stop) in zip(numbers, pairwise(starts), strict=True):
        data = rows[start - first : stop - first]
        at, kind = runs.ats[run], runs.kinds[run]
        body = msgpack.packb(
            {"push": query, "seq": seq + step * start, "kind": kind, "at": at, "data": data}
        )
        if len(body) <= limit:
            out += (HEADER.pack(len(body)), body)
            continue
        yield b"".join(out)
        out = []
        yield from _parts(runs, run, limit)
    if out:
        yield b"".join(out)


def _parts(runs: _Runs, run: int, limit: int) -> Iterator[bytes]:
    """One run: a frame, or as many as it takes."""
    first, stop = int(runs.starts[run]), int(runs.starts[run + 1])
    head = msgpack.packb(runs.head(run, first, True))
    room = limit - len(head) - 32  # the list's header, and larger numbers
    held: list[bytes] = []
    size, at = 0, first
    for count, piece in _packed(runs.data.slice(first, stop - first), room):
        if held and size + len(piece) > room:
            yield _frame(runs.head(run, first, True), at - first, held)
            held, size, first = [], 0, at
        held.append(piece)
        size += len(piece)
        at += count
        yield NOT_YET
    yield _frame(runs.head(run, first), at - first, held)


def _packed(data: pa.RecordBatch, most: int) -> Iterator[tuple[int, bytes]]:
    """Rows without the header of their list, and how many they are: at most `most` bytes, or one
    row."""
    for first in range(0, data.num_rows, ROWS_PIECE):
        yield from _halved(columns.batch_to_rows(data.slice(first, ROWS_PIECE)), most)


def _halved(rows: list[tuple[Any, ...]], most: int) -> Iterator[tuple[int, bytes]]:
    piece = msgpack.packb(rows)[1 if len(rows) < 16 else 3 :]
    if len(piece) <= most or len(rows) == 1:
        yield len(rows), piece
        return
    middle = len(rows) // 2
    yield from _halved(rows[:middle], most)
    yield from _halved(rows[middle:], most)


def _frame(head: dict[str, Any], rows: int, pieces: list[bytes]) -> bytes:
    packer = msgpack.Packer()
    start = [packer.pack_map_header(len(head) + 1)]
    for key, value in head.items():
        start += (packer.pack(key), packer.pack(value))
    start += (packer.pack("data"), packer.pack_array_header(rows))
    return b"".join((HEADER.pack(sum(map(len, start)) + sum(map(len, pieces))), *start, *pieces))


# -- Arrow -----------------------------------------------------------------------------------------


def _arrow_frames(push: Push, types: tuple[str, ...], limit: int | None) -> Iterator[bytes]:
    assert push.data is not None
    rows = push.data.num_rows
    ats = None if push.ats is None else np.asarray(push.ats)
    first = 0
    while True:
        stop = rows if ats is None else end_of_instant(ats, first, first + ARROW_PIECE)
        if limit is None:
            yield _arrow_frame(push, types, first, stop, False)
        else:
            for start, end, more in fitting(push.data, ats, first, stop, limit):
                yield NOT_YET
                yield _arrow_frame(push, types, start, end, more)
        first = stop
        if first >= rows:
            return


def end_of_instant(ats: np.ndarray, first: int, wanted: int) -> int:
    """A row at about `wanted` at which another instant begins: the last one before, else the first
    one after."""
    if wanted >= len(ats):
        return len(ats)
    before = int(np.searchsorted(ats, ats[wanted], "left"))
    return before if before > first else int(np.searchsorted(ats, ats[wanted], "right"))


def fitting(
    data: pa.RecordBatch,
    ats: np.ndarray | None,
    first: int,
    stop: int,
    limit: int,
    more: bool = False,
) -> Iterator[tuple[int, int, bool]]:
    """(first, stop, more) of stretches that have at most `limit` bytes, or one row.  Instants are
    cut if need be."""
    if data.slice(first, stop - first).nbytes <= limit or stop - first <= 1:
        yield first, stop, more
        return
    middle = first + (stop - first) // 2
    between = (
        middle
        if ats is None
        else first + end_of_instant(ats[first:stop], 0, stop - first - (stop - middle))
    )
    cut = between if first < between < stop else middle
    inside = ats is None or ats[cut - 1] == ats[cut]
    yield from fitting(data, ats, first, cut, limit, bool(inside))
    yield from fitting(data, ats, cut, stop, limit, more)


def _arrow_frame(push: Push, types: tuple[str, ...], first: int, stop: int, more: bool) -> bytes:
    assert push.data is not None
    table = to_edge(push.data.slice(first, stop - first), types)
    at = push.at
    if push.ats is not None and stop > first:
        ats = push.ats.slice(first, stop - first)
        at = shown_instant(ats[-1].as_py())
        if ats[0].as_py() != ats[-1].as_py():
            table = table.append_column(AT, ats)
    return pack(_head(push, at, first, more) | {"data": columns.ipc(table)})
