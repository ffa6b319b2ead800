"""Which rows of a stream go to which queries, and which queries have to move when its clock does.

A query of one stream that begins with a selection whose predicate can be looked up
(`dsms.operators.predicate_index`) gets the rows that this finds, and moves when it has rows or when
something in it is due (`Operator.next_due`); in between nothing can happen in it, and its clock is
told the time when somebody asks (`told`).  All other queries get all rows, and move with each
call.  Neither changes an answer: an answer does not depend on how time is cut into steps.

Nothing here is state: it is made anew, from the registered queries, after a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from dsms.intake.outcome import Released
from dsms.operators.predicate_index import Atom, Points, PredicateIndex, atom_of
from dsms.plan.physical import Phys
from dsms.running.faults import stop
from dsms.running.query import RunningQuery
from dsms.running.registered import Registered
from dsms.running.sources import StreamSource
from dsms.sql import logical as lp
from dsms.sql.catalog import Catalog
from dsms.sql.types import ALWAYS, FOREVER
from dsms.sql.window import Landmark, Now, Time, Unbounded
from dsms.state.batch import Batch

Push = Callable[[Registered, str, Sequence[Batch]], None]


def lookup_of(query: Registered) -> Atom | None:
    """By what the query's rows can be looked up; None if it has to see all of them."""
    if not isinstance(query, RunningQuery) or len(query.streams) != 1 or query.tables:
        return None
    if query.archived is not None or query.grouped:
        return None
    if query.errors.mode == "stop":
        return None  # its clock stops at the last instant of the stream before the failing row
    chain = next(_to_the_scan(query.phys, ()), ())
    if not chain or not isinstance(query.pipeline.stages[0].operator, StreamSource):
        return None
    for node in chain[-2::-1]:
        match node:
            case lp.Select():
                return atom_of(node.predicate)
            case lp.Window(spec=Time() | Now() | Landmark() | Unbounded()):
                continue  # each of its rows for itself
            case _:
                return None
    return None


def _to_the_scan(phys: Phys, above: tuple[lp.Node, ...]) -> Iterator[tuple[lp.Node, ...]]:
    """The nodes from the root to the stream's leaf; none where its timestamps are to be seen."""
    path = (*above, phys.node)
    if isinstance(phys.node, lp.StreamScan) and not phys.node.dated:
        yield path
    for child in phys.children:
        yield from _to_the_scan(child, path)


@dataclass(slots=True)
class Looked:
    """The queries of one stream whose rows are looked up; all answer up to the same instant.

    queries  by slot, in the order in which they were registered; None: dropped
    number   int64[slots]  of registration
    due      int64[slots]  when something may happen in it next
    awake    bool[slots]   it has rows, or has not been looked at since it got them
    upto     the instant up to which they have answered
    """

    stream: str
    index: PredicateIndex = field(default_factory=PredicateIndex)
    queries: list[RunningQuery | None] = field(default_factory=list)
    atoms: list[Atom] = field(default_factory=list)
    number: np.ndarray = field(default_factory=lambda: np.empty(64, np.int64))
    due: np.ndarray = field(default_factory=lambda: np.empty(64, np.int64))
    awake: np.ndarray = field(default_factory=lambda: np.zeros(64, np.bool_))
    upto: int = ALWAYS
    dropped: int = 0

    def add(self, query: RunningQuery, atom: Atom, number: int) -> int:
        """Its slot."""
        slot = len(self.queries)
        if slot == len(self.due):
            for name in ("number", "due", "awake"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros_like(array)]))
        self.queries.append(query)
        self.atoms.append(atom)
        self.number[slot], self.due[slot], self.awake[slot] = number, FOREVER, True
        self.index.add(slot, atom)
        return slot

    def drop(self, slot: int) -> None:
        self.queries[slot] = None
        self.due[slot], self.awake[slot] = FOREVER, False
        self.dropped += 1

    @property
    def sparse(self) -> bool:
        """Worth making anew; always where none is left, as its stream may go."""
        count = len(self.queries)
        return self.dropped == count or (self.dropped > 64 and 2 * self.dropped > count)

    def take(self, batches: Sequence[Batch], push: Push) -> None:
        """Each query gets what it wants of the rows.  A fault in what they share stops them all."""
        for rows in batches:
            try:
                found = self.index.match(rows)
            except Exception as fault:
                stop(self.queries, fault)
                return
            for slot, own in found.items():
                query = self.queries[slot]
                if query is not None and query.failure is None:
                    self.awake[slot] = True
                    push(query, self.stream, (own,))

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
class Dispatch:
    """All registered queries by what they read.

    queries  all of them, by key
    on      rows are looked up; else each query sees all of them
    others  by stream, those that see all rows, by number of registration
    places  where a query is looked up, and its slot there
    fresh   registered since the last look at them
    """

    queries: dict[str, Registered] = field(default_factory=dict)
    on: bool = True
    others: dict[str, dict[int, Registered]] = field(default_factory=dict)
    looked: dict[tuple[str, bool], Looked] = field(default_factory=dict)
    places: dict[str, tuple[Looked, int]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    fresh: dict[str, Registered] = field(default_factory=dict)
    count: int = 0

    @classmethod
    def over(cls, queries: dict[str, Registered], on: bool) -> Dispatch:
        """Of queries that are there already."""
        made = cls(queries, on)
        for key, query in queries.items():
            made._add(key, query)
        return made

    def register(self, key: str, query: Registered) -> None:
        """From now on the query gets rows."""
        self.queries[key] = query
        self._add(key, query)

    def unregister(self, key: str) -> Registered:
        """It gets none any more."""
        query = self.queries.pop(key)
        self._remove(key, query)
        return query

    def _add(self, key: str, query: Registered) -> None:
        self.fresh[key] = query
        self.numbers[key] = self.count
        self.count += 1

    def _remove(self, key: str, query: Registered) -> None:
        number = self.numbers.pop(key)
        if self.fresh.pop(key, None) is not None:
            return
        if key not in self.places:
            for stream in query.reads:
                self.others.get(stream, {}).pop(number, None)
            return
        looked, slot = self.places.pop(key)
        looked.drop(slot)
        if looked.sparse:
            self._pack(looked)

    def _pack(self, old: Looked) -> None:
        """Forget those that are gone."""
        where = next(key for key, looked in self.looked.items() if looked is old)
        if old.dropped == len(old.queries):
            del self.looked[where]
            return
        new = Looked(old.stream, upto=old.upto)
        self.looked[where] = new
        for slot, query in enumerate(old.queries):
            if query is not None:
                to = new.add(query, old.atoms[slot], int(old.number[slot]))
                new.due[to], new.awake[to] = old.due[slot], old.awake[slot]
                self.places[Catalog.key(query.name)] = new, to

    def _settle_in(self) -> None:
        """Where those belong that have been registered."""
        for key, query in self.fresh.items():
            atom = lookup_of(query) if self.on else None
            if atom is None:
                for stream in query.reads:
                    self.others.setdefault(stream, {})[self.numbers[key]] = query
                continue
            assert isinstance(query, RunningQuery)
            where = query.reads[0], query.early
            looked = self.looked.setdefault(where, Looked(query.reads[0]))
            self.places[key] = looked, looked.add(query, atom, self.numbers[key])
        self.fresh.clear()

    def deliver(self, stream: str, released: Released, push: Push) -> None:
        """Hand on what a stream has released; `push` gives it to a query."""
        if self.fresh:
            self._settle_in()
        for early, rows in ((False, released.complete), (True, released.fresh)):
            looked = self.looked.get((stream, early))
            if looked is not None and rows:
                looked.take(rows, push)
        for query in self.others.get(stream, {}).values():
            if query.failure is None and not query.grouped:
                push(query, stream, released.fresh if query.early else released.complete)

    def movers(self, stream: str | None, due: Callable[[Registered], int]) -> list[Registered]:
        """Queries that read the stream (None: any) in which something may happen by now, in the
        order of their registration."""
        if self.fresh:
            self._settle_in()
        found: dict[int, Registered] = {}
        for name in self.others if stream is None else (stream,):
            found.update(self.others.get(name, {}))
        for looked in self._of(stream):
            one = next(filter(None, looked.queries), None)
            if one is not None:
                found.update(looked.move(due(one)))
        return [found[number] for number in sorted(found)]

    def lookup(self, key: str) -> tuple[str, Atom] | None:
        """The stream of which a query's rows are looked up, and by what; None: it sees all."""
        if self.fresh:
            self._settle_in()
        if key not in self.places:
            return None
        looked, slot = self.places[key]
        return looked.stream, looked.atoms[slot]

    def lookups(self) -> dict[tuple[str, int, str], list[str]]:
        """Names of queries by stream, column and how its values are looked up: `constants` or
        `ranges`."""
        found: dict[tuple[str, int, str], list[str]] = {}
        for key, query in self.queries.items():
            if (lookup := self.lookup(key)) is not None:
                stream, atom = lookup
                how = "constants" if isinstance(atom, Points) else "ranges"
                found.setdefault((stream, atom.column, how), []).append(query.name)
        return found

    def _of(self, stream: str | None) -> Iterable[Looked]:
        if stream is None:
            return list(self.looked.values())
        both = (self.looked.get((stream, early)) for early in (False, True))
        return [looked for looked in both if looked is not None]

    def moved(self, key: str) -> None:
        """A query has been moved as far as it may."""
        if key in self.places:
            looked, slot = self.places[key]
            query = looked.queries[slot]
            if query is not None:
                looked.rest(slot, query)

    def told(self, key: str) -> Registered | None:
        """A query that stands where its clock is; None if there is none of that name."""
        self._caught_up(key)
        return self.queries.get(key)

    def all_told(self) -> None:
        """All queries stand where their clocks are, for who asks for those."""
        for key in self.places:
            self._caught_up(key)

    def _caught_up(self, key: str) -> None:
        """Tell a query the time, if nothing has happened in it since."""
        if key in self.places:
            looked, slot = self.places[key]
            query = looked.queries[slot]
            if query is not None and not looked.awake[slot] and query.failure is None:
                query.skip(looked.upto)
