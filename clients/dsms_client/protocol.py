"""The wire protocol, shared by client and server: frames, request shapes, errors as maps.

A frame is a 4-byte big-endian length and one msgpack map.  Nothing here touches a socket, Arrow or
the engine.

A push is a map {push: query, seq, kind, at, data}.  As rows it holds those of one kind and one
instant (a boundary of a periodic query); as Arrow those of one kind, whole instants, with a column
`$at` where they differ.  An instant that is longer than a frame may be comes in parts: all but the
last have `more: true`, and the next push goes on with it.  Who asks for `changes` gets rows of all
kinds and instants in one push, each with its sign and instant.

Refusals that the protocol itself makes (the engine's own codes pass through unchanged):

    DS600 the frame is not one msgpack map          DS610 the statement was cancelled
    DS601 the frame is longer than the limit        DS611 the connection was lost
    DS602 unknown request                           DS612 no server answers at this address
    DS603 a field is missing or not known           DS620 the reader was too slow, its buffer was dropped
    DS604 a field has the wrong type                DS621 too many sessions
    DS605 who is there: not shown, or wrongly       DS622 too many requests wait in this session
    DS606 this protocol version is not spoken       DS623 the answer is larger than the limit
    DS607 the peer speaks another protocol          DS641 the server is stopping
    DS613 no statement answered with rows           DS642 another session has taken over this writer's name
    DS619 a URL that is no address                  DS617, DS618 parameters and values do not fit
    DS614 the server was lost over one request      DS640 an option of the server makes no sense
    DS643, DS644 subscribed already, or not at all  DS645 the server would be open to others without a token
    DS646 conflate, and no Rstream
"""  # noqa: E501

from __future__ import annotations

import difflib
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgpack

from dsms.errors import DsmsError, InternalError, QueryError, UsageError

VERSION = 1
DEFAULT_PORT = 7654
HEADER = struct.Struct(">I")
# items of one array inside a frame (bulk `rows` are read piecewise and may be longer)
MAX_NESTED = 1 << 20
_TOO_LONG = re.compile(r"(\d+) exceeds max_\w+_len\((\d+)\)")
LONG_NAME = 200  # characters of a name that may be a slip of another
MAX_DEATHS = 2  # of a server over the same request, until a client gives it up
# of the connection to a server that lives, or may be started again a few times without being at
# fault
MAX_LOSSES = 5
PUSH_KINDS = ("snapshot", "insert", "delete", "result", "changes", "progress", "end")

_TEXT, _BLOB, _LIST, _MAP, _INT, _BOOL = (
    (str,),
    (bytes, memoryview),
    (list, tuple),
    (dict,),
    (int,),
    (bool,),
)
_SECONDS = (int, float)
_VALUES = (list, tuple, dict)
_NAMES: dict[tuple[type, ...], str] = {
    _TEXT: "text",
    _BLOB: "bytes",
    _LIST: "a list",
    _MAP: "a map",
    _INT: "an integer",
    _BOOL: "true or false",
    _SECONDS: "a number",
    _VALUES: "a list or a map",
}


@dataclass(frozen=True, slots=True)
class Op:
    """The shape of one request: field name -> accepted Python types."""

    required: Mapping[str, tuple[type, ...]] = field(default_factory=dict)
    optional: Mapping[str, tuple[type, ...]] = field(default_factory=dict)

    fields: Mapping[str, tuple[type, ...]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", {**self.required, **self.optional})

    def types(self, name: str) -> tuple[type, ...] | None:
        return self.fields.get(name)


_DATA = {"arrow": _BLOB, "columns": _MAP, "rows": _LIST}
OPS: dict[str, Op] = {
    "hello": Op(
        {"version": _INT},
        {
            "token": _TEXT,
            "user": _TEXT,
            "password": _TEXT,
            "client": _TEXT,
            "data": _TEXT,
            "changes": _BOOL,
        },
    ),
    "execute": Op({"sql": _TEXT}, {"params": _VALUES}),
    "ingest": Op(
        {"stream": _TEXT},
        {"seq": _INT, "wait": _BOOL, "positions": _BOOL, "upsert": _BOOL, **_DATA},
    ),
    "heartbeat": Op({"stream": _TEXT}, {"ts": _INT, "where": _MAP}),  # one of the two
    "end": Op({"stream": _TEXT}),
    "subscribe": Op({"query": _TEXT}, {"from": _INT, "changes": _BOOL, "conflate": _BOOL}),
    "unsubscribe": Op({"query": _TEXT}),
    "cancel": Op({"request": (int, str)}),
    # something will come so often, in seconds; else the peer is dead
    "ping": Op({}, {"every": _SECONDS}),
    "names": Op(),  # streams, tables and queries with their columns, for completion
}


def pack(message: Mapping[str, Any]) -> bytes:
    """One whole frame, header included."""
    body = msgpack.packb(message)
    return HEADER.pack(len(body)) + body


def unpack(body: bytes | bytearray | memoryview, longest: int = MAX_NESTED) -> dict[str, Any]:
    """The map of one frame's body, in which no array has more than `longest` items.  Raises DS600
    if it is anything else."""
    if not len(body):
        raise broken(ValueError("it is empty"))
    try:
        message = msgpack.unpackb(
            body, use_list=False, max_array_len=longest, ext_hook=no_extension
        )
    except Exception as problem:
        raise broken(problem) from None
    if not isinstance(message, dict):
        raise UsageError(
            "DS600", f"a frame holds one msgpack map, this one holds {type(message).__name__}"
        )
    return message


def broken(problem: Exception) -> UsageError:
    """DS600 for whatever the msgpack decoder complained of."""
    return UsageError(
        "DS600",
        f"the frame is not valid msgpack: {_complaint(problem)}",
        hint="a frame is one map with text keys",
    )


def _complaint(problem: Exception) -> str:
    """What is wrong, in words that need no knowledge of the decoder."""
    said = str(problem)
    match problem:
        case msgpack.FormatError():
            return "no value begins with the byte 0xc1"
        case msgpack.StackError() | RecursionError():
            return "it is nested too deep"
        case msgpack.ExtraData():
            return "bytes are left over after the map"
        case msgpack.OutOfData():
            return "it ends too early"
        case UnicodeDecodeError():
            return "it has a text that is not UTF-8"
    if "incomplete input" in said:
        return "it ends too early"
    if "map header" in said or "type header" in said:
        return "it has something else where a map or a list should begin"
    if " is not allowed for map key" in said:
        return "a map in it has a key that is no text"
    if (found := _TOO_LONG.match(said)) is not None:
        return f"it has {int(found[1]):,} items in one place, and {int(found[2]):,} are the most"
    return said or type(problem).__name__


def no_extension(code: int, data: bytes) -> Any:
    """Extension types have a meaning in rows and columns of `ingest` only
    (`dsms_client.values`)."""
    raise ValueError(f"msgpack extension type {code} has no meaning here")


def check_request(message: Mapping[str, Any]) -> str:
    """The name of a well-formed request.  Raises DS602, DS603 or DS604 that says what was
    expected."""
    name = message.get("op")
    if not isinstance(name, str) or name not in OPS:
        raise UsageError(
            "DS602",
            f"unknown request {name!r}" if "op" in message else "the frame has no `op`",
            hint=nearest(name, OPS) or "requests are " + ", ".join(OPS),
        )
    op = OPS[name]
    fields = op.fields
    for key in op.required:
        if key not in message:
            raise UsageError("DS603", f"`{name}` needs the field `{key}`")
    for key, value in message.items():
        if key in ("op", "id"):
            continue
        types = fields.get(key)
        if types is None:
            known = [*op.required, *op.optional]
            raise UsageError(
                "DS603",
                f"`{name}` has no field `{key}`",
                hint=nearest(key, known) or f"its fields are {', '.join(known) or 'none'}",
            )
        if type(value) not in types:
            expected = _NAMES.get(types, " or ".join(t.__name__ for t in types))
            raise UsageError(
                "DS604", f"`{key}` of `{name}` must be {expected}, not {type(value).__name__}"
            )
    if name == "heartbeat" and message.keys().isdisjoint(("ts", "where")):
        raise UsageError("DS603", "`heartbeat` needs the field `ts`")
    return name


def given_up(server: str, what: str, times: int) -> UsageError:
    """DS614: the server has died, or dropped the connection, over the same request too often."""
    return UsageError(
        "DS614",
        f"{server} was lost {times} times while it was at work on {what}, which is not sent again",
        hint="the server's log says why; rows sent in smaller pieces show which of them it is",
    )


def nearest(word: object, known: Any) -> str | None:
    """A hint that names the known word closest to `word`, or None."""
    if len(text := str(word)[:LONG_NAME]) == LONG_NAME:
        return None  # it is near to nothing, and difflib would build a table of it
    close = difflib.get_close_matches(text, list(known), n=1)
    return f"did you mean `{close[0]}`?" if close else None


_FAMILIES: dict[str, type[DsmsError]] = {
    "1": QueryError,
    "2": QueryError,
    "3": QueryError,
    "4": UsageError,
    "5": UsageError,
    "6": UsageError,
    "7": QueryError,  # values: a zero divisor, an overflow, a failing cast
    "95": UsageError,  # an archive that can't be read or written
    "96": UsageError,
}


def error_from_map(fields: Mapping[str, Any]) -> DsmsError:
    """The exception that an error map stands for; its family follows from its code."""
    code = str(fields.get("code", "DS999"))
    family = _FAMILIES.get(code[2:4]) or _FAMILIES.get(code[2:3], InternalError)
    return family(
        code,
        str(fields.get("message", "")),
        fields.get("line"),
        fields.get("column"),
        fields.get("hint"),
        fields.get("statement"),
    )
