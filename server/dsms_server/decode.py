"""Frame bodies -> requests.  Bulk rows become Arrow a few thousand rows at a time.

msgpack decoding holds the interpreter lock, so one call over a 64 MB frame would stall the event
loop for seconds even from another thread.  `decode` therefore walks a big frame with a streaming
unpacker: each step builds a few thousand rows in C, turns them into columns and lets other threads
run.  It also keeps the Python objects of one piece in memory at a time instead of the whole
frame's.  Rows that are just what their stream asks for need no Python objects at all: a kernel
reads them (`dsms.intake.packed`).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa

from dsms.errors import DsmsError, UsageError
from dsms.intake import packed
from dsms.intake.convert import Converted, to_batch
from dsms.intake.grouped import Cut, packed_together, together
from dsms.sql.types import Schema
from dsms.untrusted.contents import MAX_ROWS, check_size
from dsms.untrusted.stream import read_stream
from dsms_client import protocol
from dsms_client.values import Pairs, from_wire
from dsms_server.cursor import Bulk, Cursor, reader_of
from dsms_server.pieces import join
from dsms_server.worker import expected

PIECE = 4096  # rows built per step: about a millisecond
SMALL = 64 << 10  # bytes of a body that is decoded on the event loop
WHOLE = 4 << 10  # bytes of a body that is unpacked in one go
FEW = 256  # bytes of a body whose rows are not worth being left packed
PIECE_VALUES = 1 << 18  # values of the rows that are built per step
MOST_FIELDS = 64  # of a request
MOST_ITEMS = 1 << 16  # of one row


@dataclass(frozen=True, slots=True)
class StreamShape:
    """A stream as the engine has it: its name as declared, its columns, whether its rows are
    `stamped` on arrival and whether it is `watched` for going idle; or a `table`.  The schema is
    that of the columns that rows give; others are `computed`."""

    stream: str
    schema: Schema
    stamped: bool = False
    watched: bool = False
    table: bool = False
    computed: tuple[str, ...] = ()

    @property
    def what(self) -> str:
        """Its kind and name."""
        return f"{'table' if self.table else 'stream'} {self.stream}"


ShapeOf = Callable[[str], StreamShape | None]
Body = bytes | bytearray | memoryview


@dataclass(slots=True)
class Payload:
    """The rows of one ingest frame: converted for `shape`, or as they came if the shape was not
    known then."""

    kind: str  # arrow | rows | columns
    raw: Any = None
    converted: Converted | None = None
    shape: StreamShape | None = None
    error: DsmsError | None = None

    @property
    def size(self) -> int:
        """Rows, or for what is not converted yet, so many as there may be."""
        if self.converted is not None:
            return len(self.converted)
        if self.kind != "rows" or self.error is not None:
            return MAX_ROWS
        if isinstance(self.raw, Bulk):
            return packed.header(self.raw.data)[0]
        return len(self.raw) if _is_list(self.raw) else MAX_ROWS

    def convert(self, shape: StreamShape) -> None:
        """Fit the rows to `shape` now; a misfit is kept for `fitted` to raise."""
        self.shape = shape
        try:
            self.converted = self._converted(shape)
        except Exception as problem:
            self.error = expected(problem, f"rows for {shape.stream}")
        self.raw = None

    def _converted(self, shape: StreamShape) -> Converted:
        what, data = shape.what, self.raw
        if isinstance(data, Bulk):
            read = _rows if self.kind == "rows" else _columns
            try:
                data = read(data, shape)
            except DsmsError:
                raise
            except Exception as problem:
                data = _laxly(read, data, shape, problem)
            if self.kind == "rows":
                return data
        elif self.kind == "arrow":
            data = self._table(shape)
        return to_batch(data, shape.schema, what, shape.computed)

    def _table(self, shape: StreamShape) -> pa.Table:
        table = read_stream(self.raw)
        check_size(table.num_rows, len(shape.schema))
        return table

    def fitted(self, shape: StreamShape) -> Converted:
        """The rows in the physical types of `shape`, and those refused.  Raises DS501..DS510."""
        if self.shape is None:
            self.convert(shape)
        if self.error is not None:
            raise copy(self.error)  # a traceback would hold these rows, and be held by them
        assert self.converted is not None and self.shape is not None
        if self.shape != shape:  # the stream was declared anew while the frame was on its way
            names = [f.name for f in self.shape.schema]
            again = pa.RecordBatch.from_arrays(list(self.converted.columns), names)
            return to_batch(again, shape.schema, shape.what, shape.computed)
        return self.converted


def fitted(payloads: list[Payload], shape: StreamShape) -> list[Converted | Cut | DsmsError]:
    """`Payload.fitted` of each, or what it raises; lists of rows that are as they should be are
    converted together."""
    out: list[Any] = [None] * len(payloads)
    waiting = [k for k, p in enumerate(payloads) if p.shape is None and p.kind == "rows"]
    for kind, convert in ((_is_list, together), (_is_bulk, _unpacked_together)):
        these = [k for k in waiting if kind(payloads[k].raw)]
        found = convert([payloads[k].raw for k in these], shape.schema) if these[1:] else None
        for k, rows in zip(these, found or (), strict=False):
            out[k] = rows
    for k, payload in enumerate(payloads):
        if out[k] is None:
            try:
                out[k] = payload.fitted(shape)
            except Exception as problem:
                out[k] = expected(problem, f"rows for {shape.stream}")
        payload.converted = payload.raw = None
    return out


def _is_list(raw: Any) -> bool:
    return type(raw) in (list, tuple)


def _is_bulk(raw: Any) -> bool:
    return isinstance(raw, Bulk)


def _unpacked_together(raws: list[Bulk], schema: Schema) -> list[Cut] | None:
    return packed_together([raw.data for raw in raws], schema)


def decode(body: Body, shape_of: ShapeOf) -> dict[str, Any]:
    """The request in a frame body, checked against its op; an ingest's data stands in `payload`.

    Raises DS600..DS604; such an error has the request's id in `request_id` if that much could be
    read.
    """
    if len(body) <= WHOLE:
        message, walked = _parted(body) or _unpacked(body, shape_of)
    else:
        message, walked = walk(memoryview(body), shape_of)
    try:
        message["op"] = protocol.check_request(message)
        if message["op"] == "ingest":
            message["payload"] = _payload(message, walked, shape_of)
    except Exception as problem:
        raise _of_request(message, expected(problem, "a frame")) from None
    return message


def decoded(body: Body, shape_of: ShapeOf) -> dict[str, Any] | DsmsError:
    """As `decode`, for another thread: an exception that crosses a future stays alive in a circle
    of frames."""
    try:
        return decode(body, shape_of)
    except Exception as problem:
        return expected(problem, "a frame")


def _of_request(message: dict[str, Any], problem: DsmsError) -> DsmsError:
    ident = message.get("id")
    problem.request_id = ident if isinstance(ident, int | str) else None  # type: ignore[attr-defined]
    return problem


def _parted(body: Body) -> tuple[dict[str, Any], Payload | None] | None:
    """A request for rows that may go with others, these still packed; None: it is another one, or
    something is wrong with it."""
    if len(body) <= FEW:
        return None
    view = memoryview(body)
    reader = reader_of(view, protocol.no_extension)
    message: dict[str, Any] = {}
    rows = None
    try:
        for _ in range(reader.read_map_header()):
            key = reader.unpack()
            if type(key) is not str or key in message:
                return None
            start = reader.tell()
            if key == "rows" and (view[start] & 0xF0 == 0x90 or view[start] in (0xDC, 0xDD)):
                reader.skip()
                rows, message[key] = view[start : reader.tell()], ()
            else:
                message[key] = reader.unpack()
    except Exception:
        return None
    if rows is None or reader.tell() != len(body) or message.get("wait") is False:
        return None
    return message, Payload("rows", Bulk(rows, len(rows)))


def _unpacked(body: Body, shape_of: ShapeOf) -> tuple[dict[str, Any], Payload | None]:
    """A small frame's map; `walk` reads what extension types stand in rows, columns, parameters."""
    try:
        return protocol.unpack(body), None
    except UsageError as problem:
        try:
            return walk(memoryview(body), shape_of)
        except UsageError:
            raise problem from None


def _payload(message: dict[str, Any], walked: Payload | None, shape_of: ShapeOf) -> Payload:
    kinds = [kind for kind in ("arrow", "rows", "columns") if kind in message]
    if len(kinds) != 1:
        raise UsageError(
            "DS603",
            "`ingest` needs exactly one of arrow, columns and rows, it has "
            f"{' and '.join(kinds) or 'none'}",
        )
    raw = message.pop(kinds[0])
    if walked is not None:
        return walked
    payload = Payload(kinds[0], raw)
    shape = shape_of(message["stream"])
    # rows of a frame that may go with others are converted with theirs; `wait: false` needs to know
    later = kinds[0] == "rows" and message.get("wait") is not False and _is_list(raw)
    if shape is not None and not later:
        payload.convert(shape)
    return payload


def walk(body: memoryview, shape_of: ShapeOf) -> tuple[dict[str, Any], Payload | None]:
    """A big frame's map: an Arrow blob is left where it is, rows are read piecewise (`rows` then is
    empty here)."""
    message: dict[str, Any] = {}
    try:
        cursor = Cursor(body)
        walked: Payload | None = None
        fields = cursor.map_header()
        if fields > MOST_FIELDS:
            raise ValueError(f"a request of {fields} fields")
        for _ in range(fields):
            key = cursor.value()
            if not isinstance(key, str):
                raise ValueError(f"a field name is text, not {type(key).__name__}")
            stream = message.get("stream")
            if key in ("rows", "columns"):
                shape = shape_of(stream) if isinstance(stream, str) else None
                walked = (
                    _walk_rows(cursor, shape) if key == "rows" else _walk_columns(cursor, shape)
                )
                bulk = (
                    walked.converted is not None
                    or walked.error is not None
                    or isinstance(walked.raw, Bulk)
                )
                message[key] = walked.raw if not bulk else () if key == "rows" else {}
            elif key in ("params", "where"):
                message[key] = cursor.value(from_wire)
            else:
                message[key] = cursor.blob() if key == "arrow" else cursor.value()
        if cursor.at != len(body):
            raise ValueError("bytes are left over after the map")
        return message, walked
    except Exception as problem:
        if not isinstance(problem, UsageError):
            problem = protocol.broken(problem)
        raise _of_request(message, problem) from None


def _walk_rows(cursor: Cursor, shape: StreamShape | None) -> Payload:
    out = Payload("rows", shape=shape)
    whole = None if shape is None else packed.unpack(cursor.rest(), shape.schema)
    if whole is not None:
        out.converted, size = whole
        cursor.at += size
        return out
    out.raw = cursor.bulk("rows", 0x90, (0xDC, 0xDD), MOST_ITEMS)
    if shape is not None and isinstance(out.raw, Bulk):
        out.convert(shape)
    return out


def _laxly(read: Callable[..., Any], bulk: Bulk, shape: StreamShape, problem: Exception) -> Any:
    """Once more, for maps with any keys: rows with these alone are refused.  Raises DS600 with what
    the first time ended with."""
    try:
        return read(bulk, shape, lax=True)
    except DsmsError:
        raise
    except Exception:
        raise protocol.broken(problem) from None


def _rows(bulk: Bulk, shape: StreamShape, lax: bool = False) -> Converted:
    pieces: list[Converted] = []
    reader = bulk.reader(lax)
    left, most = (
        reader.read_array_header(),
        max(min(PIECE, PIECE_VALUES // max(bulk.longest, 1)), 1),
    )
    while left:
        piece = list(islice(reader, min(most, left)))
        if not piece:
            raise ValueError("the frame ends inside `rows`")
        if lax:
            piece = [row.row() if isinstance(row, Pairs) else row for row in piece]
        pieces.append(to_batch(piece, shape.schema, shape.what, shape.computed))
        left -= len(piece)
    return join(pieces, shape.schema)


def _walk_columns(cursor: Cursor, shape: StreamShape | None) -> Payload:
    out = Payload("columns", shape=shape)
    out.raw = cursor.bulk("columns", 0x80, (0xDE, 0xDF), MAX_ROWS)
    if shape is not None and isinstance(out.raw, Bulk):
        out.convert(shape)
    return out


def _columns(bulk: Bulk, shape: StreamShape, lax: bool = False) -> dict[str, list[Any]]:
    out: dict[str, list[Any]] = {}
    reader = bulk.reader(lax)
    for _ in range(reader.read_map_header()):
        name = reader.unpack()
        left = reader.read_array_header()
        values: list[Any] = []
        while left:
            piece = list(islice(reader, min(8 * PIECE, left)))
            if not piece:
                raise ValueError("the frame ends inside `columns`")
            values.extend(piece)
            left -= len(piece)
        out[name] = values
    return out
