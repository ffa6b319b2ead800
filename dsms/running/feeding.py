"""Which queries feed which streams, and how far each of them has come.

What a query puts into a stream is handed on within the call that brought it about: streams are
gone through in an order in which each comes behind those that its queries read.  Nothing here is
state: it is made anew, from the registered queries, after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dsms.api import Cancel
from dsms.intake.clock import Clocks
from dsms.intake.fed import FedInput, Feed
from dsms.intake.outcome import Released
from dsms.intake.stream import StreamInput
from dsms.running.registered import ENDED, Registered


@dataclass(frozen=True, slots=True)
class Feeding:
    """The streams that queries feed.

    order  their keys, each behind those that its queries read
    reads  of each, the streams that its queries read
    """

    order: tuple[str, ...] = ()
    reads: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def over(cls, inputs: Mapping[str, StreamInput], queries: Mapping[str, Registered]) -> Feeding:
        """As the streams and queries are now."""
        reads = {
            key: frozenset(s for q in entry.feeds if q in queries for s in queries[q].reads)
            for key, entry in inputs.items()
            if isinstance(entry, FedInput)
        }
        order: list[str] = []

        def add(key: str) -> None:
            if key in reads and key not in order:
                for source in sorted(reads[key]):
                    add(source)
                order.append(key)

        for key in reads:
            add(key)
        return cls(tuple(order), reads)

    def sources(self, streams: Iterable[str]) -> tuple[str, ...]:
        """The streams from outside on which rows of these rest."""
        found: dict[str, None] = {}
        for key in streams:
            if key in self.reads:
                found.update(dict.fromkeys(self.sources(sorted(self.reads[key]))))
            else:
                found[key] = None
        return tuple(found)

    def path(self, start: Sequence[str], goal: str) -> list[str] | None:
        """By which streams rows of `goal` get into one of `start`: from there to `goal`; None: not
        at all."""
        for key in start:
            if key == goal:
                return [key]
            found = self.path(sorted(self.reads.get(key, ())), goal)
            if found is not None:
                return [key, *found]
        return None


class Surroundings(Protocol):
    """The runtime, as far as it is needed here (`dsms.running.runtime`)."""

    inputs: dict[str, StreamInput]
    queries: dict[str, Registered]
    clocks: Clocks
    feeding: Feeding

    def due(self, query: Registered) -> int: ...

    def clock_of(self, streams: Sequence[str]) -> int: ...

    def deliver(self, stream: str, released: Released) -> None: ...

    def run(self, stream: str | None, cancel: Cancel | None = None) -> None: ...


def follow(runtime: Surroundings, cancel: Cancel | None) -> None:
    """Hand on what queries have put into streams, and move the queries that read these."""
    for key in runtime.feeding.order:
        entry = runtime.inputs[key]
        assert isinstance(entry, FedInput)
        if entry.follow({name: _put_in(runtime, runtime.queries[name]) for name in entry.feeds}):
            runtime.deliver(key, entry.release())
            runtime.run(key, cancel)


def _put_in(runtime: Surroundings, query: Registered) -> tuple[int, bool]:
    clock = runtime.clocks.query_clock(query.reads)
    upto, ended = query.put_in(clock, lambda: runtime.due(query))
    # a selection that answers rows before their instants are over has no last instant of its own
    return (runtime.clock_of(query.reads) if upto >= ENDED else upto), ended


def feed_of(query: Registered, target: StreamInput) -> Feed:
    """What a query that is registered puts its results into."""
    definition = query.definition
    stream = target.definition
    return Feed(definition.name, stream.schema, stream.unit or "us", definition.places)
