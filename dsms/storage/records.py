"""What the journal's records hold: the inputs of an engine, as they were before they were
applied."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dsms.errors import InternalError
from dsms.intake.convert import Refusal
from dsms.intake.shedding import Shed
from dsms.storage.gather import ipc_buffers

ROWS, LATE, HEARTBEAT, MOVED, ENDED, ADVANCE, GROUP, PUNCTUATION = range(1, 9)


@dataclass(frozen=True, slots=True)
class StreamRows:
    """Converted rows of a stream: what `Engine.take` is given.  `client`, `seq`, `done`, `last`,
    `position`: see `dsms.running.writers.FramePart`."""

    columns: tuple[pa.Array, ...]
    now: int | None = None
    kept: np.ndarray | None = None
    client: str | None = None
    seq: int | None = None
    done: int = 0
    last: bool = True
    refusals: tuple[Refusal, ...] = ()
    shed: Shed | None = None
    position: str | None = None


@dataclass(frozen=True, slots=True)
class StreamGroup:
    """Rows of several frames that are applied as one, none of which was refused.  `parts`: writer,
    number and size of those frames that are numbered."""

    columns: tuple[pa.Array, ...]
    now: int | None = None
    parts: tuple[tuple[str, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Late:
    """Late rows of another stream."""

    columns: tuple[pa.Array, ...]
    now: int | None = None


@dataclass(frozen=True, slots=True)
class Heartbeat:
    ts: int


@dataclass(frozen=True, slots=True)
class Moved:
    """An idle stream moved on with the others."""

    upto: int


@dataclass(frozen=True, slots=True)
class Ended:
    pass


@dataclass(frozen=True, slots=True)
class Punctuation:
    """Combinations of values of columns that no row up to an instant has any more."""

    columns: tuple[int, ...]
    values: tuple[pa.Array, ...]
    upto: int


@dataclass(frozen=True, slots=True)
class Advance:
    """The system time."""

    now: int


def encode(record: Any) -> list[Any]:
    """A record's payload, as buffers to be written one after the other."""
    match record:
        case StreamRows():
            refusals = [(r.reason, r.count, r.first, r.detail) for r in record.refusals]
            head = [
                record.now,
                record.client,
                record.seq,
                record.done,
                record.last,
                refusals,
                record.kept is not None,
                record.shed,
                *([] if record.position is None else [record.position]),
            ]
            columns = (
                record.columns if record.kept is None else (*record.columns, pa.array(record.kept))
            )
            return _columns(head, columns)
        case StreamGroup():
            return _columns([record.now, record.parts], record.columns)
        case Late():
            return _columns([record.now], record.columns)
        case Punctuation():
            return _columns([record.columns, record.upto], record.values)
        case Heartbeat(value) | Moved(value) | Advance(value):
            return [value.to_bytes(8, "little", signed=True)]
        case Ended():
            return [b""]
    raise InternalError("DS931", f"no record for {type(record).__name__}; please report this")


def decode(kind: int, payload: memoryview) -> Any:
    """The record again.  Its columns are copies: a log may be written over while they are still in
    use."""
    if kind in _NUMBERS:
        return _NUMBERS[kind](int.from_bytes(payload, "little", signed=True))
    if kind == ENDED:
        return Ended()
    head, columns = _uncolumns(payload)
    if kind == LATE:
        return Late(columns, *head)
    if kind == PUNCTUATION:
        return Punctuation(tuple(head[0]), columns, head[1])
    if kind == GROUP:
        return StreamGroup(columns, head[0], tuple(map(tuple, head[1])))
    now, client, seq, done, last, refusals, some, *more = head
    # records of before had none, and those of most writers have no position
    shed, position, *_ = [*more, None, None]
    kept = columns[-1].to_numpy() if some else None
    return StreamRows(
        columns[:-1] if some else columns,
        now,
        kept,
        client,
        seq,
        done,
        last,
        tuple(Refusal(*t) for t in refusals),
        None if shed is None else Shed(*shed),
        position,
    )


_NUMBERS: dict[int, Callable[[int], Any]] = {HEARTBEAT: Heartbeat, MOVED: Moved, ADVANCE: Advance}


def _columns(head: list[Any], columns: tuple[pa.Array, ...]) -> list[Any]:
    batch = pa.record_batch(list(columns), names=[str(i) for i in range(len(columns))])
    text = json.dumps(head).encode()
    return [len(text).to_bytes(4, "little") + text, *ipc_buffers(batch)]


def _uncolumns(payload: memoryview) -> tuple[list[Any], tuple[pa.Array, ...]]:
    size = 4 + int.from_bytes(payload[:4], "little")
    room = pa.allocate_buffer(len(payload) - size)  # aligned, which the payload is not
    memoryview(room).cast("B")[:] = payload[size:].cast("B")
    with pa.ipc.open_stream(room) as found:
        return json.loads(bytes(payload[4:size])), tuple(found.read_next_batch().columns)
