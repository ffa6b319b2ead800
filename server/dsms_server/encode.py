"""Results and pushes -> frames, in the form the session asked for (`rows` or `arrow`).

Rows: a push frame holds rows of one kind and one instant, so `at` is exact for each.  Arrow: a push frame holds rows of
one kind as an Arrow IPC stream; where their instants differ, a last int64 column named ``$at`` gives each row's own and
`at` is the last one's.  Big pushes are cut into several frames, numbered on.  TIMESTAMP and INTERVAL travel as Arrow
timestamps (microseconds, UTC) and durations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgpack
import numpy as np
import pyarrow as pa

from dsms.api import Done, Push, Result, Rows
from dsms.errors import UsageError
from dsms_client import columns
from dsms_client.protocol import HEADER, pack

ROWS_PIECE = 1024  # rows encoded at a time: a millisecond or two on the event loop
ARROW_PIECE = 65536
AT = "$at"
UNNUMBERED = ("snapshot", "progress", "end")


def push_frames(push: Push, types: tuple[str, ...], form: str) -> Iterator[bytes]:
    """The frames of one push, each small enough to be built between two turns of the event loop."""
    if push.data is None:
        yield pack(_head(push, push.seq, push.at, None))
        return
    size = ARROW_PIECE if form == "arrow" else ROWS_PIECE
    for first in range(0, max(push.data.num_rows, 1), size):
        data = push.data.slice(first, size)
        ats = None if push.ats is None else np.asarray(push.ats.slice(first, size))
        seq = push.seq if push.kind in UNNUMBERED else push.seq + first
        if form == "arrow":
            yield _arrow_frame(push, seq, data, ats, types)
        else:
            yield _rows_frames(push, seq, data, ats)


def _head(push: Push, seq: int, at: int | None, data: Any) -> dict[str, Any]:
    head = {"push": push.query, "seq": seq, "kind": push.kind, "at": at, "data": data}
    if push.message is not None:
        head["message"] = push.message
    if push.code is not None:
        head["code"] = push.code
    return head


def _arrow_frame(push: Push, seq: int, data: pa.RecordBatch, ats: np.ndarray | None, types: tuple[str, ...]) -> bytes:
    table = columns.to_edge(data, types)
    at = push.at
    if ats is not None and len(ats):
        at = int(ats[-1])
        if ats[0] != ats[-1]:
            table = table.append_column(AT, pa.array(ats))
    return pack(_head(push, seq, at, columns.ipc(table)))


def _rows_frames(push: Push, seq: int, data: pa.RecordBatch, ats: np.ndarray | None) -> bytes:
    rows = columns.batch_to_rows(data)
    if ats is None or not len(ats):
        return pack(_head(push, seq, push.at, rows))
    cuts = np.flatnonzero(ats[1:] != ats[:-1]) + 1
    starts, stops = [0, *cuts.tolist()], [*cuts.tolist(), len(rows)]
    instants = ats[starts].tolist()
    numbered = push.kind not in UNNUMBERED
    head = _head(push, seq, None, None)
    out = []
    for start, stop, at in zip(starts, stops, instants, strict=True):
        head["at"], head["data"] = at, rows[start:stop]
        head["seq"] = seq + start if numbered else seq
        body = msgpack.packb(head)
        out.append(HEADER.pack(len(body)))
        out.append(body)
    return b"".join(out)


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
