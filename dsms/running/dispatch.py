"""Which rows of a stream go to which queries, and which queries have to move when its clock does.

A query of one stream that begins with a selection whose predicate can be looked up
(`dsms.operators.predicate_index`) gets the rows that this finds, and moves when it has rows or when
something in it is due (`Operator.next_due`); in between nothing can happen in it, and its clock is
told the time when somebody asks (`told`).  All other queries get all rows, and move with each
call.  Neither changes an answer: an answer does not depend on how time is cut into steps.

Nothing here is state: it is made anew, from the registered queries, after a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from dsms.intake.outcome import Released
from dsms.operators.expressions import can_fail
from dsms.operators.predicate_index import Atom, Points, atom_of
from dsms.plan.parts import node_at
from dsms.plan.physical import Phys
from dsms.running.looked import Looked, Push, Sleepers
from dsms.running.part import Part, PartFeed, feeds_of, parts_below
from dsms.running.query import RunningQuery
from dsms.running.registered import Registered
from dsms.running.sources import StreamSource
from dsms.sql import logical as lp
from dsms.sql.window import Landmark, Lasting, Now, Time, Unbounded


def lookup_of(query: Registered) -> Atom | None:
    """By what the query's rows can be looked up; None if it has to see all of them."""
    if not isinstance(query, RunningQuery) or len(query.streams) != 1 or query.tables:
        return None
    if query.archived is not None or query.grouped or query.shares or query.feed is not None:
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
            case lp.Window(spec=Time() | Now() | Landmark() | Unbounded() | Lasting()):
                continue  # each of its rows for itself
            case _:
                return None
    return None


def slept_below(query: Registered) -> tuple[PartFeed, Atom | None] | None:
    """The only source of the query's rows, if that is a part, and by what its rows can be looked
    up; None if it has to move whenever its streams do."""
    if not isinstance(query, RunningQuery) or not query.shares or query.archived is not None:
        return None
    if query.feed is not None:  # what it has put in must be known at any time
        return None
    stages, feeds = query.pipeline.stages, query.feeds
    if sum(not s.inputs for s in stages) != 1 or len(feeds) != 1:
        return None
    (feed,) = feeds
    if set(query.tables) != set(feed.part.tables) or set(query.reads) != set(feed.part.reads):
        return None
    return feed, _atom_above(query.phys, feed)


def _atom_above(phys: Phys, feed: PartFeed) -> Atom | None:
    """What can be looked up of the selections right above a part; where one may fail, what comes
    behind it sees the rows that come to it."""
    path = feed.path[:-1]
    while isinstance(select := node_at(phys, path).node, lp.Select):
        atom = atom_of(select.predicate)
        if atom is not None or can_fail(select.predicate):
            return atom
        path = path[:-1]
    return None


def _to_the_scan(phys: Phys, above: tuple[lp.Node, ...]) -> Iterator[tuple[lp.Node, ...]]:
    """The nodes from the root to the stream's leaf; none where its timestamps are to be seen."""
    path = (*above, phys.node)
    if isinstance(phys.node, lp.StreamScan) and not phys.node.dated:
        yield path
    for child in phys.children:
        yield from _to_the_scan(child, path)


@dataclass(slots=True)
class Dispatch:
    """All registered queries by what they read.

    parts    what several of them share of their plans, by name; those that stand on others come
             behind them
    queries  all of them, by key
    on      rows are looked up; else each query sees all of them
    others  by stream, those that see all rows, by number of registration
    places  where a query is looked up, and its slot there
    fresh   registered since the last look at them
    found   how often parts have been made, joined or left
    above   of each part that reads tables the queries that stand on it, by what they read
    told_all  keys of those that sleep, whose streams have ended, and that have been looked at since
    """

    queries: dict[str, Registered] = field(default_factory=dict)
    on: bool = True
    others: dict[str, dict[int, Registered]] = field(default_factory=dict)
    looked: dict[tuple[str, bool], Looked] = field(default_factory=dict)
    places: dict[str, tuple[Looked, int]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    fresh: dict[str, Registered] = field(default_factory=dict)
    count: int = 0
    parts: dict[str, Part] = field(default_factory=dict)
    found: int = 0
    above: dict[str, dict[tuple[str, ...], list[RunningQuery]]] = field(default_factory=dict)
    told_all: set[str] = field(default_factory=set)

    @classmethod
    def over(cls, queries: dict[str, Registered], on: bool) -> Dispatch:
        """Of queries that are there already."""
        made = cls(queries, on)
        made.find_parts()
        for part in made.parts.values():
            part.sleepers = None
            for feed in part.feeds:
                feed.sleeps = False
        for key, query in queries.items():
            made._add(key, query)
        return made

    def find_parts(self) -> None:
        """The parts of all queries."""
        self.found += 1
        found: dict[str, Part] = {}
        units: list[RunningQuery | Part] = [
            q for q in self.queries.values() if isinstance(q, RunningQuery) and q.shares
        ]
        while units:
            for feed in feeds_of(units.pop().pipeline):
                if feed.part.name not in found:
                    found[feed.part.name] = feed.part
                    units.append(feed.part)
        self.parts = dict(sorted(found.items(), key=lambda item: (item[1].depth, item[1].number)))
        self.above = {name: {} for name, part in found.items() if part.tables}
        for query in self.queries.values() if self.above else ():
            if isinstance(query, RunningQuery) and query.shares:
                for part in parts_below(query.pipeline):
                    if part.tables:
                        self.above[part.name].setdefault(query.reads, []).append(query)

    def far(self, part: Part) -> list[tuple[str, ...]]:
        """Streams by whose clocks the part goes: it is as far as the furthest of the queries that
        stand on it.  One that reads tables must not be further, or else changes of these would be
        dated by it, and not by the answers that have been given over them."""
        if part.name not in self.above:
            return [part.reads]
        queries = self.above[part.name].items()
        return [reads for reads, some in queries if any(q.failure is None for q in some)]

    def parts_of(self, stream: str | None) -> list[Part]:
        """Those that read the stream (None: any), each behind those that it stands on."""
        return [p for p in self.parts.values() if stream is None or stream in p.reads]

    def anew(self, key: str) -> None:
        """A query gets its rows from elsewhere now."""
        query, number = self.queries[key], self.numbers[key]
        self._remove(key, query)
        self.fresh[key], self.numbers[key] = query, number

    def register(self, key: str, query: Registered) -> None:
        """From now on the query gets rows."""
        self.queries[key] = query
        self._add(key, query)

    def rename(self, key: str, to: str) -> None:
        """The query has another key, at its place among the others."""
        query, number = self.queries[key], self.numbers[key]
        self._remove(key, query)
        all_of_them = [(to if k == key else k, q) for k, q in self.queries.items()]
        self.queries.clear()
        self.queries.update(all_of_them)
        self.fresh[to], self.numbers[to] = query, number

    def replace(self, key: str, query: Registered) -> Registered:
        """The query comes in the place of the one that has this key, which gets no more rows."""
        old = self.queries[key]
        self._remove(key, old)
        self.queries[key] = query
        self._add(key, query)
        return old

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
        self.told_all.discard(key)
        if self.fresh.pop(key, None) is not None:
            return
        if key not in self.places:
            for stream in query.reads:
                own = self.others.get(stream, {})
                own.pop(number, None)
                if not own:
                    self.others.pop(stream, None)
            return
        looked, slot = self.places.pop(key)
        looked.drop(slot)
        for feed in query.feeds if isinstance(query, RunningQuery) else ():
            feed.sleeps = False
        if looked.sparse:
            self._pack(looked)

    def _pack(self, old: Looked) -> None:
        """Forget those that are gone."""
        where = next((key for key, looked in self.looked.items() if looked is old), None)
        if old.dropped == len(old.queries):
            if where is None:
                self._sleepers(old.stream).part.sleepers = None
            else:
                del self.looked[where]
            return
        new = Looked(old.stream, upto=old.upto)
        if where is None:
            self._sleepers(old.stream).looked = new
        else:
            self.looked[where] = new
        for slot, query in enumerate(old.queries):
            if query is not None:
                to = new.add(query, old.atoms[slot], int(old.number[slot]))
                new.due[to], new.awake[to] = old.due[slot], old.awake[slot]
                self.places[query.home] = new, to

    def _sleepers(self, part: str) -> Sleepers:
        """Those that sleep below it."""
        sleepers = self.parts[part].sleepers
        assert isinstance(sleepers, Sleepers)
        return sleepers

    def _below(self, key: str, query: RunningQuery, feed: PartFeed, atom: Atom | None) -> None:
        """The query sleeps until the part has something for it."""
        if feed.part.sleepers is None:
            feed.part.sleepers = Sleepers.of(feed.part)
        looked = self._sleepers(feed.part.name).looked
        looked.upto = max(looked.upto, query.clock)
        feed.sleeps = True
        self.places[key] = looked, looked.add(query, atom, self.numbers[key])

    def _settle_in(self) -> None:
        """Where those belong that have been registered."""
        for key, query in self.fresh.items():
            if (below := slept_below(query)) is not None:
                assert isinstance(query, RunningQuery)
                self._below(key, query, *below)
                continue
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
        for part in self.parts_of(stream) if released.complete else ():
            part.push(stream, released.complete)
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

    def woken(self, parts: Iterable[Part]) -> list[Registered]:
        """Queries that sleep below these parts, and in which something may happen by now."""
        if self.fresh:
            self._settle_in()
        found: dict[int, Registered] = {}
        for part in parts:
            if isinstance(part.sleepers, Sleepers):
                found.update(part.sleepers.woken())
        return [found[number] for number in sorted(found)]

    def lookup(self, key: str) -> tuple[str, Atom] | None:
        """The stream (or part) of which a query's rows are looked up, and by what; None: it sees
        all."""
        if self.fresh:
            self._settle_in()
        if key not in self.places:
            return None
        looked, slot = self.places[key]
        atom = looked.atoms[slot]
        return None if atom is None else (looked.stream, atom)

    def looked_up(self, key: str) -> tuple[str, int, str] | None:
        """By which column of which stream a query's rows are looked up, and how its values are:
        `constants` or `ranges`; None: they are not, or are those of a part."""
        lookup = self.lookup(key)
        if lookup is None or lookup[0] in self.parts:
            return None
        stream, atom = lookup
        return stream, atom.column, "constants" if isinstance(atom, Points) else "ranges"

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
