"""Events through an engine, and all that its queries have told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import dsms
from tests.nexmark.events import Events
from tests.nexmark.queries import DECLARE, side_input, statement

STREAMS = ("person", "auction", "bid")
ON_SYSTEM_TIME = "arrived_bid"
SILENCE = 60_000_000  # µs
Frame = list[tuple[str, pa.RecordBatch]]  # rows by stream


@dataclass(frozen=True, slots=True)
class Played:
    """told     by query: its columns, `$sign` and `$at` of each result row, in order
    arrived  int64[n], µs: when each bid came by the clock of the system; none where nobody asks
    """

    told: dict[str, pa.Table]
    arrived: np.ndarray


def played(
    names: Sequence[str], events: Events, frame: int, settings: dsms.Settings | None = None
) -> Played:
    """Those queries over those events, `frame` of them at once."""
    engine = ready(names, settings)
    readers = {name: engine.subscribe(name, 0, limit_bytes=1 << 40) for name in names}
    arrived = feed(engine, events.frames(frame), bids_for(names))
    told = {name: reader.take_changes().arrow() for name, reader in readers.items()}
    engine.close()
    return Played(told, arrived)


def ready(names: Sequence[str], settings: dsms.Settings | None = None) -> dsms.Engine:
    """An engine with the streams and these queries."""
    engine = dsms.Engine(settings=settings)
    engine.execute(DECLARE)
    engine.ingest("side_input", side_input())
    for name in names:
        engine.execute(statement(name))
    return engine


def bids_for(names: Sequence[str]) -> tuple[str, ...]:
    """The streams that bids must come to, for these queries."""
    on_system_time = [name for name in names if name == "q12"]
    others = () if len(on_system_time) == len(names) else ("bid",)
    return (*others, ON_SYSTEM_TIME) if on_system_time else others


def feed(
    engine: dsms.Engine,
    frames: Iterable[Frame],
    bids: Sequence[str] = ("bid",),
    each: Callable[[], object] = lambda: None,
) -> np.ndarray:
    """All frames, a minute of silence, then the ends of the streams, `each` behind every frame.

    When each bid came to the stream on system time, int64[n], by a clock that is the newest instant
    so far."""
    now, arrived = 0, [np.empty(0, np.int64)]
    for frame in frames:
        now = max(now, *(newest(rows) for _, rows in frame))
        if ON_SYSTEM_TIME in bids:
            engine.advance(now)
        for stream, rows in frame:
            for name in bids if stream == "bid" else (stream,):
                report = engine.ingest(name, rows)
                assert (report.accepted, report.late) == (rows.num_rows, 0), report
            if stream == "bid" and ON_SYSTEM_TIME in bids:
                arrived.append(np.full(rows.num_rows, now))
        each()
    for stream in STREAMS:
        engine.heartbeat(stream, now + SILENCE)  # ends what goes on until nothing has come for long
    for stream in {*STREAMS, *bids}:
        engine.end(stream)
    each()
    return np.concatenate(arrived)


def newest(rows: pa.RecordBatch) -> int:
    """The latest instant of rows, µs."""
    return int(rows.column("date_time").cast(pa.int64()).to_numpy().max())
