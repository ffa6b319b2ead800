"""Results of statements -> reply frames, in the form the session asked for (`rows`, `arrow`, or
`auto`: whichever is cheaper).  TIMESTAMP and INTERVAL travel as integers in rows, as Arrow
timestamps (microseconds, UTC) and durations in Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgpack
import pyarrow as pa

from dsms.api import Done, Result, Rows
from dsms.errors import UsageError
from dsms.tabular.tables import to_edge
from dsms_client import columns
from dsms_client.protocol import HEADER
from dsms_server.pushes import ROWS_PIECE, WORTH_ARROW

LONGEST = (1 << 32) - 1  # bytes of a frame


class _NoRoom(Exception):
    """The reply would be longer than it may be."""


def result_reply(
    ident: Any, results: list[Result], form: str, limit: int, error: dict | None = None
) -> bytes:
    """The reply frame of `execute`: a map per statement.  Raises DS623 if it would be longer than
    `limit`."""
    packer = msgpack.Packer()
    outcome = ("error", error) if error else ("ok", True)
    parts = [packer.pack_map_header(3), *map(packer.pack, ("id", ident, *outcome, "results"))]
    parts.append(packer.pack_array_header(len(results)))
    room = limit = min(limit, LONGEST)
    try:
        for result in results:
            for part in _result_parts(result, form, room):
                parts.append(part)
                room -= len(part)
                if room < 0:
                    raise _NoRoom
    except _NoRoom:
        raise _too_large(limit, form) from None
    return b"".join((HEADER.pack(sum(map(len, parts))), *parts))


def _result_parts(result: Result, form: str, room: int) -> Iterator[bytes]:
    packer = msgpack.Packer()
    match result:
        case Done(message=message, warnings=warnings):
            yield packer.pack(
                {"kind": "done", "message": message, **({"warnings": warnings} if warnings else {})}
            )
        case Rows(data=data, types=types, as_of=as_of):
            head = {"kind": "rows", "columns": data.schema.names, "types": types, "as_of": as_of}
            for field in ("waiting", "since", "approximate", "share"):
                value = getattr(result, field)
                head |= {} if value is None else {field: value}
            yield packer.pack_map_header(len(head) + 1)
            for key, value in head.items():
                yield packer.pack(key) + packer.pack(value)
            if form == "auto":
                form = "arrow" if data.num_rows >= WORTH_ARROW else "rows"
            yield packer.pack(form)
            if form == "rows":
                yield from _row_parts(packer, data)
            elif data.nbytes <= room:
                yield packer.pack(columns.ipc(to_edge(data, types)))
            else:
                raise _NoRoom


def _row_parts(packer: Any, data: pa.RecordBatch) -> Iterator[bytes]:
    yield packer.pack_array_header(data.num_rows)
    for first in range(0, data.num_rows, ROWS_PIECE):
        rows = columns.batch_to_rows(data.slice(first, ROWS_PIECE))
        # the rows without the header of their own list
        yield packer.pack(rows)[1 if len(rows) < 16 else 3 :]


def _too_large(limit: int, form: str) -> UsageError:
    smaller = ", take Arrow, which is smaller (data = 'arrow')" if form == "rows" else ""
    return UsageError(
        "DS623",
        f"the answer is larger than the {limit} bytes a reply may have",
        hint=f"select fewer rows or columns (LIMIT){smaller}, or start the server with a larger "
        "max_reply",
    )
