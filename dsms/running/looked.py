"""Queries that sleep until there are rows for them, or something in them is due."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from dsms.operators.predicate_index import Atom, PredicateIndex
from dsms.running.faults import stop
from dsms.running.part import Lows, Part
from dsms.running.query import RunningQuery
from dsms.running.registered import Registered
from dsms.sql.types import ALWAYS, FOREVER
from dsms.state.batch import Batch

Push = Callable[[Registered, str, Sequence[Batch]], None]


@dataclass(slots=True)
class Looked:
    """The queries of one stream, or part, whose rows are looked up; all answer up to the same
    instant.

    atoms    by slot: by what its rows are looked up; None: it gets all
    plain    slots of those that get all
    queries  by slot, in the order in which they were registered; None: dropped
    number   int64[slots]  of registration
    due      int64[slots]  when something may happen in it next
    awake    bool[slots]   it has rows, or has not been looked at since it got them
    upto     the instant up to which they have answered
    """

    stream: str
    index: PredicateIndex = field(default_factory=PredicateIndex)
    queries: list[RunningQuery | None] = field(default_factory=list)
    atoms: list[Atom | None] = field(default_factory=list)
    number: np.ndarray = field(default_factory=lambda: np.empty(64, np.int64))
    due: np.ndarray = field(default_factory=lambda: np.empty(64, np.int64))
    awake: np.ndarray = field(default_factory=lambda: np.zeros(64, np.bool_))
    upto: int = ALWAYS
    dropped: int = 0
    plain: dict[int, None] = field(default_factory=dict)
    looks: bool = False  # some are looked up

    def add(self, query: RunningQuery, atom: Atom | None, number: int) -> int:
        """Its slot."""
        slot = len(self.queries)
        if slot == len(self.due):
            for name in ("number", "due", "awake"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros_like(array)]))
        self.queries.append(query)
        self.atoms.append(atom)
        self.number[slot], self.due[slot], self.awake[slot] = number, FOREVER, True
        if atom is None:
            self.plain[slot] = None
        else:
            self.looks = True
            self.index.add(slot, atom)
        return slot

    def drop(self, slot: int) -> None:
        self.queries[slot] = None
        self.due[slot], self.awake[slot] = FOREVER, False
        self.dropped += 1
        self.plain.pop(slot, None)

    @property
    def sparse(self) -> bool:
        """Worth making anew; always where none is left, as its stream may go."""
        count = len(self.queries)
        return self.dropped == count or (self.dropped > 64 and 2 * self.dropped > count)

    def take(self, batches: Sequence[Batch], push: Push) -> None:
        """Each query gets what it wants of the rows; one that is alone gets all, as its selection
        looks at them just as fast.  A fault in what they share stops them all."""
        alone = len(self.queries) - self.dropped == 1
        for rows in batches:
            try:
                found = self._all(rows) if alone else self.index.match(rows) if self.looks else {}
            except Exception as fault:
                if not stop(self.queries, fault):
                    raise
                return
            for slot, own in (*found.items(), *((slot, rows) for slot in self.plain)):
                query = self.queries[slot]
                if query is not None and query.failure is None:
                    self.awake[slot] = True
                    push(query, self.stream, (own,))

    def _all(self, rows: Batch) -> dict[int, Batch]:
        """The rows, for each slot that is in use and does not get them anyway."""
        slots = enumerate(self.queries)
        return {k: rows for k, q in slots if q is not None and k not in self.plain}

    def move(self, upto: int) -> list[tuple[int, RunningQuery]]:
        """The instant up to which they may answer has come: those in which something may happen,
        with their numbers."""
        n, found = len(self.queries), []
        for slot in np.flatnonzero(self.awake[:n] | (self.due[:n] <= upto)).tolist():
            query = self.queries[slot]
            if query is None:
                continue
            if not self.awake[slot]:
                query.skip(self.upto)
                self.awake[slot] = True
            found.append((int(self.number[slot]), query))
        self.upto = upto
        return found

    def rest(self, slot: int, query: RunningQuery) -> None:
        """It has moved: nothing happens in it before its rows or its next instant come."""
        if query.failure is not None:
            self.due[slot], self.awake[slot] = FOREVER, False
        elif not query.beginning and query.clock >= self.upto and query.flow is None:
            self.due[slot], self.awake[slot] = query.next_due(), False


@dataclass(slots=True)
class Sleepers:
    """The queries that take all their rows from one part, and sleep in between."""

    part: Part
    looked: Looked

    @classmethod
    def of(cls, part: Part) -> Sleepers:
        return cls(part, Looked(part.name))

    def hand(self, rows: Batch, lows: Lows) -> None:
        """Give what has come out of the part to those that want it."""

        def push(query: Registered, _: str, given: Sequence[Batch]) -> None:
            assert isinstance(query, RunningQuery)
            for feed in query.feeds:
                feed.give(given[0], lows)

        self.looked.take((rows,), push)

    def woken(self) -> list[tuple[int, RunningQuery]]:
        """Those in which something may happen by the clock of the part, with their numbers."""
        if self.part.failure is not None:
            for slot, query in enumerate(self.looked.queries):
                self.looked.awake[slot] = query is not None and query.failure is None
        return self.looked.move(self.part.clock)
