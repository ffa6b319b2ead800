"""One query of the thesis under one strategy over one window: filled, then measured tuple by tuple.

Every tuple is processed by itself as in Golab 2006, §3.6.1: join and window kernels treat tuples
one after the other, and an operator that must react to expirations at once looks for them once per
inter-arrival time (`LiveInput.look_every`).  Only the Python around the kernels is batched.  State
that may be lazy is purged every twentieth of a window.  Not in the figures: intake of rows into the
engine, which is the same for all.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import dsms
from dsms.api import Chunk
from dsms.running.query import RunningQuery
from dsms.state.batch import Batch
from dsms.state.live import LiveInput
from tests.benchmarks.thesis_cases import Case
from tests.benchmarks.trace import SCHEMA, Trace


@dataclass(frozen=True, slots=True)
class Effort:
    """Steps of `step` tuples until a window's worth (at least `units`) has passed or `seconds` of
    CPU are spent; a query that takes less than `quick` seconds for a step gets bigger ones, up to a
    twentieth of a window: Python around them weighs less.  `repeats`: runs, of which the median
    counts, where one spends less than a fifth of `seconds`."""

    step: int = 2000
    seconds: float = 1.5
    quick: float = 0.02
    units: int = 10_000
    repeats: int = 3


@dataclass(frozen=True, slots=True)
class Measured:
    """ms CPU per 1000 tuples; CPU seconds of all measured; bytes of state; rows of the answer;
    digests of the answer's changes, by instant;  `premature`: share of deletions that had to be
    announced."""

    ms: float
    seconds: float
    state_bytes: int
    live: int
    digests: dict[int, Digest]
    premature: float


def run(case: Case, contender: str, window: int, trace: Trace, effort: Effort) -> Measured:
    """Fill the windows (`window`: time units), measure what follows; again if that is soon done."""
    runs = [_run(case, contender, window, trace, effort)]
    while len(runs) < effort.repeats and runs[0].seconds < effort.seconds / 5:
        runs.append(_run(case, contender, window, trace, effort))
    return sorted(runs, key=lambda m: m.ms)[len(runs) // 2]


def _run(case: Case, contender: str, window: int, trace: Trace, effort: Effort) -> Measured:
    query, subscription = _register(case, contender, window, trace)
    feed = Feed(trace, query)
    begin = round(1.02 * window) * trace.unit
    for k in range(1, 21):  # lazily and in big steps
        feed.advance(begin * k // 20)
    looks = list(live_inputs(query.pipeline.stages)) + list(live_inputs(query.sink))
    for live in looks:
        live.look_every = max(1, trace.unit // len(case.links))
    return _measure(case, query, feed, window, effort, subscription)


def _register(case: Case, contender: str, window: int, trace: Trace) -> tuple[RunningQuery, Any]:
    engine = dsms.Engine()
    for k in case.links:
        engine.execute(f"CREATE STREAM Link{k} ({SCHEMA}) TIMESTAMP BY ts")
    words = {
        "w": f"[RANGE {window * trace.unit} US]",
        "ftp": trace.selective,
        "telnet": trace.popular,
    }
    engine.execute(
        f"CREATE QUERY q AS {case.sql.format(**words)} WITH ({case.options(contender)}, "
        "result_log = 1)"
    )
    return engine.runtime.queries["q"], engine.subscribe("q", limit_bytes=1 << 40)


def _measure(
    case: Case, query: RunningQuery, feed: Feed, window: int, effort: Effort, subscription: Any
) -> Measured:
    unit, stage = feed.trace.unit, query.pipeline.stages[-1]
    step = max(1, effort.step // len(case.links)) * unit
    seen = {feed.upto: digest(subscription.take_chunks())}
    first = _timed(feed, feed.upto + step)  # allocates, so it does not count
    seen[feed.upto] = start = added(seen[feed.upto - step], digest(subscription.take_chunks()))
    if first < effort.quick:
        step *= max(1, window * unit // 20 // step)
    early, passed, spent, space = stage.negative, feed.pushed, 0.0, []
    end = min(feed.upto + max(window, effort.units) * unit, feed.trace.span - step)
    while not space or (feed.upto < end and spent < effort.seconds):
        spent += _timed(feed, feed.upto + step)
        seen[feed.upto] = added(seen[feed.upto - step], digest(subscription.take_chunks()))
        space.append(query.nbytes())
    deaths = seen[feed.upto][1] - start[1]
    share = (stage.negative - early) / max(1, deaths)
    ms = 1e6 * spent / max(1, feed.pushed - passed)
    return Measured(ms, spent, int(np.mean(space)), query.sink.live(), seen, share)


def _timed(feed: Feed, upto: int) -> float:
    """CPU seconds of the query for the tuples up to an instant."""
    feed.push(upto)
    began = time.thread_time()
    feed.query.advance(upto)
    spent = time.thread_time() - began
    if feed.query.failure is not None:
        raise feed.query.failure
    return spent


@dataclass(slots=True)
class Feed:
    """Hands the trace's tuples to a query's leaves, without the intake."""

    trace: Trace
    query: RunningQuery
    upto: int = -1
    pushed: int = 0

    def advance(self, upto: int) -> None:
        self.push(upto)
        self.query.advance(upto)

    def push(self, upto: int) -> None:
        """Queue the tuples up to an instant."""
        for leaf, name in self.query.streams.items():
            link = self.trace.links[int(name[-1]) - 1]
            ts = link.column("ts").to_numpy()
            start, stop = np.searchsorted(ts, [self.upto, upto], side="right")
            rows = link.slice(start, stop - start)
            ids = np.arange(start, stop, dtype=np.int64)
            self.query.pipeline.sources[leaf].push(
                Batch(ts[start:stop], None, None, (ids,), tuple(rows.columns))
            )
            self.pushed += len(ids)
        self.upto = upto


def live_inputs(thing: Any) -> Iterator[LiveInput]:
    """All structures of live rows inside an operator, a sink, or a list of such."""
    if isinstance(thing, LiveInput):
        yield thing
    elif isinstance(thing, list | tuple):
        for part in thing:
            yield from live_inputs(part)
    elif is_dataclass(thing) and type(thing).__module__.startswith("dsms."):
        for f in fields(thing):
            yield from live_inputs(getattr(thing, f.name, None))


Digest = tuple[int, int, int, int]


def digest(chunks: list[Any]) -> Digest:
    """(insertions, deletions, next seq, a sum over all values that depends on their order)."""
    born = died = seq = total = 0
    for chunk in chunks:
        if not isinstance(chunk, Chunk):
            continue
        arrivals = int((chunk.sign > 0).sum())
        born, died, seq = born + arrivals, died + len(chunk) - arrivals, chunk.seq + len(chunk)
        place = (2 * (chunk.seq + np.arange(len(chunk))) + 1) * chunk.sign
        total += int((chunk.at * place).sum())
        for k, column in enumerate(chunk.data.columns):
            total += (k + 1) * int((_words(column) * place).sum())
    return born, died, seq, total % (1 << 63)


def added(before: Digest, more: Digest) -> Digest:
    """The digest of one run of changes and the next."""
    return (
        before[0] + more[0],
        before[1] + more[1],
        max(before[2], more[2]),
        (before[3] + more[3]) % (1 << 63),
    )


def _words(column: pa.Array) -> np.ndarray:
    return column.to_numpy(zero_copy_only=False).view(np.int64)
