"""Results and pushes -> frames, in the form the session asked for (`rows`, `arrow`, or `auto`: whichever is cheaper).

Rows: a push frame holds rows of one kind and one instant, so `at` is exact for each.  Arrow: a push frame holds rows of
one kind as an Arrow IPC stream; where their instants differ, a last int64 column named ``$at`` gives each row's own and
`at` is the last one's.  Big pushes are cut into several frames, numbered on.  TIMESTAMP and INTERVAL travel as integers
in rows, as Arrow timestamps (microseconds, UTC) and durations in Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import msgpack
import numpy as np
import pyarrow as pa

from dsms.api import Chunk, Done, Push, Result, Rows, kind_of, shown_instant
from dsms.errors import UsageError
from dsms_client import columns
from dsms_client.protocol import HEADER, pack

ROWS_PIECE = 1024  # rows encoded at a time: a millisecond or two on the event loop
ARROW_PIECE = 65536
WORTH_ARROW = 256  # rows of a push from which `auto` sends Arrow
AT = "$at"
UNNUMBERED = ("snapshot", "progress", "end")


def push_frames(item: Push | Chunk, query: str, types: tuple[str, ...], form: str) -> Iterator[bytes]:
    """The frames of what a subscription gave, each quick enough to be built between two turns of the event loop."""
    if form == "auto":
        form = "arrow" if _run_length(item) >= WORTH_ARROW else "rows"
    match item:
        case Push(data=None):
            yield pack(_head(item, item.at, None))
        case Push() if form == "arrow":
            yield from _arrow_frames(item, types)
        case Push():
            yield from _rows_frames(item)
        case Chunk() if form == "arrow":
            for push in item.pushes(query):
                yield from _arrow_frames(push, types)
        case Chunk():
            for first in range(0, len(item), ROWS_PIECE):
                yield _chunk_frame(item, first, query)


def _run_length(item: Push | Chunk) -> int:
    """Rows per push frame, on average, if sent as Arrow."""
    if isinstance(item, Push):
        return 0 if item.data is None else item.data.num_rows
    changes = item.sign[1:] != item.sign[:-1]
    if (item.sign == 0).any():
        changes = changes | (item.at[1:] != item.at[:-1])
    return len(item) // (1 + int(np.count_nonzero(changes)))


def _head(push: Push, at: int | None, data: Any, skip: int = 0) -> dict[str, Any]:
    seq = push.seq if push.kind in UNNUMBERED else push.seq + skip
    head = {"push": push.query, "seq": seq, "kind": push.kind, "at": at, "data": data}
    if push.message is not None:
        head["message"] = push.message
    if push.code is not None:
        head["code"] = push.code
    return head


def _arrow_frames(push: Push, types: tuple[str, ...]) -> Iterator[bytes]:
    assert push.data is not None
    for first in range(0, max(push.data.num_rows, 1), ARROW_PIECE):
        table = columns.to_edge(push.data.slice(first, ARROW_PIECE), types)
        at = push.at
        if push.ats is not None:
            ats = push.ats.slice(first, ARROW_PIECE)
            at = ats[-1].as_py()
            if ats[0].as_py() != at:
                table = table.append_column(AT, ats)
        yield pack(_head(push, at, columns.ipc(table), first))


def _rows_frames(push: Push) -> Iterator[bytes]:
    assert push.data is not None
    for first in range(0, max(push.data.num_rows, 1), ROWS_PIECE):
        rows = columns.batch_to_rows(push.data.slice(first, ROWS_PIECE))
        if push.ats is None:
            yield pack(_head(push, push.at, rows, first))
            continue
        ats = np.asarray(push.ats.slice(first, ROWS_PIECE))
        bodies = [
            pack(_head(push, shown_instant(int(ats[start])), rows[start:stop], first + start))
            for start, stop in _runs(ats[1:] != ats[:-1])
        ]
        yield b"".join(bodies)


def _chunk_frame(chunk: Chunk, first: int, query: str) -> bytes:
    """The frames of up to ROWS_PIECE rows, one for each run of the same kind and instant."""
    rows = columns.batch_to_rows(chunk.data.slice(first, ROWS_PIECE))
    sign, at = chunk.sign[first : first + ROWS_PIECE], chunk.at[first : first + ROWS_PIECE]
    runs = _runs((sign[1:] != sign[:-1]) | (at[1:] != at[:-1]))
    signs, ats = sign.tolist(), at.tolist()
    out: list[bytes] = []
    for start, stop in runs:
        head = {
            "push": query, "seq": chunk.seq + first + start, "kind": kind_of(signs[start]),
            "at": shown_instant(ats[start]), "data": rows[start:stop],
        }  # fmt: skip
        body = msgpack.packb(head)
        out += (HEADER.pack(len(body)), body)
    return b"".join(out)


def _runs(changes: np.ndarray) -> list[tuple[int, int]]:
    """(start, stop) of the runs between changes; `changes[i]` is true where row i + 1 differs from row i."""
    cuts = [0, *(np.flatnonzero(changes) + 1).tolist(), len(changes) + 1]
    return list(pairwise(cuts))


def result_reply(ident: Any, results: list[Result], form: str, limit: int, error: dict | None = None) -> bytes:
    """The reply frame of `execute`: a map per statement.  Raises DS623 if it would be longer than `limit`."""
    packer = msgpack.Packer()
    outcome = ("error", error) if error else ("ok", True)
    parts = [packer.pack_map_header(3), *map(packer.pack, ("id", ident, *outcome, "results"))]
    parts.append(packer.pack_array_header(len(results)))
    room = limit
    for result in results:
        for part in _result_parts(result, form, room):
            parts.append(part)
            room -= len(part)
            if room < 0:
                raise _too_large(limit)
    return b"".join((HEADER.pack(sum(map(len, parts))), *parts))


def _result_parts(result: Result, form: str, room: int) -> Iterator[bytes]:
    packer = msgpack.Packer()
    match result:
        case Done(message=message, warnings=warnings):
            yield packer.pack({"kind": "done", "message": message, **({"warnings": warnings} if warnings else {})})
        case Rows(data=data, types=types, as_of=as_of):
            head = {"kind": "rows", "columns": data.schema.names, "types": types, "as_of": as_of}
            yield packer.pack_map_header(len(head) + 1)
            for key, value in head.items():
                yield packer.pack(key) + packer.pack(value)
            if form == "auto":
                form = "arrow" if data.num_rows >= WORTH_ARROW else "rows"
            yield packer.pack(form)
            if form == "rows":
                yield from _row_parts(packer, data)
            elif data.nbytes > room:
                raise _too_large(room)
            else:
                yield packer.pack(columns.ipc(columns.to_edge(data, types)))


def _row_parts(packer: Any, data: pa.RecordBatch) -> Iterator[bytes]:
    yield packer.pack_array_header(data.num_rows)
    for first in range(0, data.num_rows, ROWS_PIECE):
        rows = columns.batch_to_rows(data.slice(first, ROWS_PIECE))
        yield packer.pack(rows)[1 if len(rows) < 16 else 3 :]  # the rows without the header of their own list


def _too_large(limit: int) -> UsageError:
    return UsageError(
        "DS623",
        f"the answer is larger than the {limit} bytes a reply may have",
        hint="select fewer rows or columns (LIMIT), or start the server with a larger max_reply",
    )
