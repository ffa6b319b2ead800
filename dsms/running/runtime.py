"""What a query runs in: declared streams with their entries and clocks, versioned tables, running
queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from dsms.api import Cancel
from dsms.archiving import Archiving, tidy
from dsms.errors import DsmsError
from dsms.intake.clock import Clocks
from dsms.intake.outcome import Released
from dsms.intake.stream import StreamInput
from dsms.oneshot.pool import OneShotPool
from dsms.oneshot.run import OneShot
from dsms.periodic.elastic import Backlog
from dsms.periodic.query import PeriodicQuery
from dsms.plan.physical import Phys
from dsms.plan.statistics import Statistics
from dsms.python_functions.cutting import uncut
from dsms.rights import Rights
from dsms.running.answers import Answers
from dsms.running.dispatch import Dispatch
from dsms.running.due import asleep, by_clock, ended, furthest, told_by
from dsms.running.faults import set_aside, stop
from dsms.running.feeding import Feeding, follow
from dsms.running.first_answers import arriving
from dsms.running.forgetting import forget
from dsms.running.holds import Holds
from dsms.running.indices import Indices
from dsms.running.measure import StreamFigures, statistics
from dsms.running.part import Part
from dsms.running.plans import Planner, planner
from dsms.running.promised import Promising
from dsms.running.pushing import push
from dsms.running.query import RunningQuery
from dsms.running.recents import Recents
from dsms.running.registered import ENDED, Registered
from dsms.running.shared_parts import SharedParts
from dsms.running.transactions import Transactions
from dsms.running.turns import Turn
from dsms.settings import Settings
from dsms.sharing.group import Group
from dsms.sharing.registry import Registry
from dsms.sharing.stopping import stop_group, take_in
from dsms.sql import logical as lp
from dsms.sql.catalog import Catalog, Option, StreamDef
from dsms.sql.types import ALWAYS
from dsms.state.ring import Need, Ring
from dsms.storage.durable import Durable
from dsms.tables.versioned import VersionedTable

Unit = Group | Part | Registered  # what moves by itself


@dataclass(slots=True, eq=False)
class Handle:
    """Where the runtime is, for what is part of its state, also after a restart."""

    runtime: Runtime = field(init=False)


@dataclass(slots=True)
class Runtime:
    """Everything declared, and what runs on it, by key (`Catalog.key`)."""

    settings: Settings
    catalog: Catalog = field(default_factory=Catalog)
    inputs: dict[str, StreamInput] = field(default_factory=dict)
    tables: dict[str, VersionedTable] = field(default_factory=dict)
    queries: dict[str, Registered] = field(default_factory=dict)
    rings: dict[str, Ring] = field(default_factory=dict)
    backlog: Backlog = field(init=False)
    shared: Registry = field(default_factory=Registry)
    first_rows: dict[str, int] = field(default_factory=dict)  # of streams, once one is complete
    clocks: Clocks = field(default_factory=Clocks)
    figures: dict[str, StreamFigures] = field(default_factory=dict)
    adhoc: OneShot = field(init=False)  # runs one-time plans, in the engine's thread
    adhocs: OneShotPool = field(default_factory=OneShotPool)  # ... and in others
    transactions: Transactions = field(init=False)
    indices: Indices = field(init=False)  # over what rings hold; not stored
    durable: Durable | None = None  # what is on the disk, if anything is
    archivings: dict[str, Archiving] = field(default_factory=dict)  # of streams and queries
    beginnings: dict[str, Iterator[object]] = field(default_factory=dict)  # what is left of these
    handle: Handle = field(default_factory=Handle)
    rights: Rights = field(default_factory=Rights)
    comments: dict[str, str] = field(default_factory=dict)  # on streams, tables and queries
    dispatch: Dispatch = field(default_factory=Dispatch, init=False)  # who gets which rows
    parts: SharedParts = field(default_factory=lambda: SharedParts(Dispatch()), init=False)
    answers: Answers = field(init=False)  # what queries read of others
    feeding: Feeding = field(default_factory=Feeding, init=False)  # of streams
    recents: Recents = field(default_factory=Recents, init=False)
    holds: Holds = field(default_factory=Holds, init=False)
    promising: Promising = field(default_factory=Promising, init=False)  # these 7: not stored

    def __post_init__(self) -> None:
        self.handle.runtime = self
        self.backlog = Backlog(self.settings)
        self.adhoc = OneShot(self.settings.statement_bytes)
        self.transactions = Transactions(self.rings, self.settings)
        self.kept_anew()
        self.dispatch_anew()

    def dispatch_anew(self) -> None:
        """Find out again which rows go to which queries."""
        settings, lazy = self.settings, not self.settings.eager_instants
        self.dispatch = Dispatch.over(self.queries, settings.predicate_index and lazy)
        self.parts = SharedParts.over(self.dispatch, settings.shared_parts and lazy)
        self.answers = Answers.over(self.dispatch, self.parts, lazy, self.catalog)
        self.feeding = Feeding.over(self.inputs, self.queries)
        self.promising = Promising()

    def kept_anew(self) -> None:
        """Indices that are declared, and the newest rows of streams, with nothing in them yet."""
        self.indices = Indices.over(self.settings, self.catalog.streams)
        self.recents = Recents.over(self.settings, self.queries, self.inputs, self.first_rows)

    def declare(self, definition: StreamDef) -> None:
        """A new stream."""
        key = definition.home
        self.catalog.streams[key] = definition
        self.inputs[key] = StreamInput(definition)
        self.figures[key] = StreamFigures(definition)
        self.clocks.add(key, self.inputs[key])
        if self.durable is not None:
            self.durable.declare(key, definition.schema, definition.durability)
        self.indices.declare(definition)
        if definition.retain is not None:
            self.keep(key, "RETAIN", Need(definition.retain))
        self.recents.begin(definition, ALWAYS)

    def redeclare(self, definition: StreamDef) -> None:
        """A stream says something else of its late rows."""
        key = definition.home
        self.catalog.streams[key] = self.inputs[key].definition = definition

    def remove(self, key: str) -> None:
        """The stream is dropped; no query reads it."""
        del self.catalog.streams[key], self.inputs[key], self.figures[key]
        self.rings.pop(key, None)
        self.indices.forget(key)
        self.recents.forget(key)
        self.archivings.pop(key, None)
        self.first_rows.pop(key, None)
        self.clocks.remove(key)
        if self.durable is not None:
            self.durable.forget(key)

    def statistics(self) -> Statistics:
        """Measured figures for the planner."""
        sizes = {t.definition.address: float(len(t)) for t in self.tables.values()}
        return statistics(self.figures.values(), sizes)

    def plan(
        self, bound: lp.Output, options: Iterable[tuple[str, Option]] = (), shared: bool = False
    ) -> Phys:
        """The physical plan of a bound query, under the measured figures."""
        return self.planner(shared)(bound, options)

    def planner(self, shared: bool = False) -> Planner:
        """`plan` under the figures of this moment; any thread may call it.

        shared  of a continuous query, which may have parts in common with others, and read them"""
        offered = self.parts.offered() if shared else None
        at_work = self.answers.plans(shared)
        return planner(self.statistics(), self.settings.optimize, offered, at_work)

    def keep(self, stream: str, who: str, need: Need) -> Ring:
        """The stream's ring, which from now on holds what `who` needs."""
        if (ring := self.rings.get(stream)) is None:
            ring = Ring(self.inputs[stream].definition.subwindow, self.handed_on(stream))
            ring.seal = None if self.durable is None else self.durable.sealer(stream)
            self.rings[stream] = ring
        ring.keep(who, need)
        return ring

    def release(self, stream: str, who: str) -> None:
        """`who` needs no rows of the stream any more."""
        ring = self.rings.get(stream)
        if ring is not None:
            ring.release(who)
            if not ring.needs:
                del self.rings[stream]

    @property
    def replaying(self) -> bool:
        """Whether what happens now happened before, and comes out of the journal."""
        return self.durable is not None and self.durable.journal.muted

    def handed_on(self, stream: str) -> int:
        """The instant up to which readers have the stream's rows; ALWAYS if there were none."""
        return self.inputs[stream].completed if stream in self.first_rows else ALWAYS

    def table(self, node: lp.TableScan) -> VersionedTable:
        return self.tables[node.table.home]

    def clock_of(self, streams: Sequence[str]) -> int:
        """The query clock over those streams: where all have ended, the furthest instant that any
        of them got to."""
        clock = self.clocks.query_clock(streams)
        return clock if clock < ENDED else furthest(self.inputs[s] for s in streams)

    def pump(self, stream: str, cancel: Cancel | None = None) -> None:
        """Hand on what a stream has released, and move the clocks of the queries that read it."""
        self.deliver(stream, self.inputs[stream].release())
        self.run(stream, cancel)
        self.follow(cancel)
        self._tidy()

    def pump_all(self, cancel: Cancel | None = None) -> None:
        """Hand on what any stream has released (idle ones move with the others)."""
        for key, entry in self.inputs.items():
            self.deliver(key, entry.release())
        self.run(None, cancel)
        self.follow(cancel)
        self._tidy()

    def follow(self, cancel: Cancel | None = None) -> None:
        """Hand on what queries have put into streams, and move the queries that read these."""
        follow(self, cancel)

    @uncut()
    def go_on(self, cancel: Cancel | None = None) -> None:
        """What `pump` or `pump_all` left when the turn was over."""
        if isinstance(cancel, Turn):
            first: list[Unit] = [*self.shared.of(None), *self.dispatch.parts.values()]
            self._in_turn(cancel.turns.remaining(first), cancel)
            woken = [*self.dispatch.woken(self.dispatch.parts.values()), *asleep(self, None)]
            then = [*cancel.turns.remaining([*self.queries.values()]), *woken]
            self._in_turn(list({id(q): q for q in then}.values()), cancel)
            cancel.turns.left.clear()
            self.parts.again()
        self.follow(cancel)
        self._tidy()

    def begin_all(self) -> None:
        """No query is on the way to its first answer any more."""
        for _ in arriving(self):
            pass

    def _tidy(self) -> None:
        self.promising.follow(self.inputs, self.dispatch)
        if self.durable is not None:
            self.durable.adopt(self.rings)
        for ring in (r for key, r in self.rings.items() if key not in self.archivings):
            ring.drop()
        if self.archivings:
            tidy(self)

    @uncut()
    def deliver(self, stream: str, released: Released) -> None:
        if stream not in self.first_rows and released.complete:
            self.first_rows[stream] = int(released.complete[0].ts[0])
        for batch in released.complete:
            self.figures[stream].see(batch)
        if (ring := self.rings.get(stream)) is not None:
            for batch in released.complete:
                ring.add(batch)
            ring.move(released.upto)
            self.indices.follow(stream, ring)
        self.recents.take(stream, released, self.inputs[stream])
        for group in list(self.shared.of(stream)):
            try:
                take_in(group, stream, released, self.first_rows.get(stream))
            except Exception as fault:
                if not stop_group(self.shared, self.backlog, group, fault):
                    raise
        self.dispatch.deliver(stream, released, push)

    @uncut()
    def run(self, stream: str | None, cancel: Cancel | None = None) -> None:
        """Advance the queries that read `stream` (None: all) to their clocks."""
        if self.settings.safe_mode:
            return
        parts, queries = self.dispatch.parts_of(stream), self.dispatch.movers(stream, self._due)
        try:
            self._run([*self.shared.of(stream), *parts], cancel)
        except DsmsError:
            if isinstance(cancel, Turn):
                cancel.turns.done(queries, 0)
            raise
        self._run([*queries, *self.dispatch.woken(parts), *asleep(self, stream)], cancel)
        self.parts.again()

    def _run(self, units: Sequence[Unit], cancel: Cancel | None) -> None:
        if isinstance(cancel, Turn):
            self._in_turn(cancel.turns.order(units), cancel)
            return
        for unit in units:
            if cancel is not None:
                cancel.check()
            self.run_unit(unit, cancel)
        if self.settings.at_work is not None:
            self.settings.at_work.rest()

    def _in_turn(self, units: Sequence[Unit], turn: Turn) -> None:
        count = 0
        try:
            for unit in units:
                turn.turns.at = unit.name
                self.run_unit(unit, turn)
                count += 1
                if count < len(units):
                    turn.between()
        finally:
            turn.turns.done(units, count)
        if self.settings.at_work is not None:
            self.settings.at_work.rest()

    def run_unit(self, unit: Unit, cancel: Cancel | None) -> None:
        at_work = self.settings.at_work
        if at_work is not None:
            at_work.query(unit.name)
            if unit.name in at_work.queries:
                at_work.queries.discard(unit.name)  # one that is registered anew may run
                self._set_aside(unit)
                return
        if isinstance(unit, Group):
            try:
                unit.advance(self.due_of(unit), cancel)
            except Exception as fault:
                if not stop_group(self.shared, self.backlog, unit, fault):
                    raise
        elif isinstance(unit, Part):
            unit.advance(self.due(unit), cancel)
        elif unit.failure is None and not unit.beginning and not unit.left_to_group:
            try:
                self._advance(unit, cancel)
            except Exception as fault:
                if not stop([unit], fault):
                    raise
        if isinstance(unit, RunningQuery):
            self.dispatch.moved(unit.home)

    def _set_aside(self, unit: Unit) -> None:
        """It has killed the server twice at the same place."""
        why = set_aside(unit.name)
        if isinstance(unit, Group):
            stop_group(self.shared, self.backlog, unit, why)
        elif unit.failure is None:
            unit.fail(why)

    def _advance(self, query: Registered, cancel: Cancel | None) -> None:
        due = self.due(query)
        query.advance(due, cancel)
        while query.clock == due and ended(self, query) and (more := self.due(query)) > due:
            query.advance(due := more, cancel)  # what it has told is followed by more
        if isinstance(query, PeriodicQuery) and query.elastic and not query.evaluator.together:
            self.backlog.updated(query.name, query.behind(due))

    @uncut()
    def work(self) -> bool:
        """Evaluate the elastic queries whose deadline is nearest; False if none is due."""
        try:
            return self.backlog.work(self.settings.timer)
        except Exception as fault:
            if not stop([self.queries.get(name) for name in self.backlog.began], fault):
                raise
            return True

    def due(self, query: Registered | Part) -> int:
        """The instant up to which a query may answer now; of ended streams that of its last row."""
        return max(self._due(query), told_by(self, query) if ended(self, query) else ALWAYS)

    def _due(self, query: Registered | Part) -> int:
        """The instant that the clocks of its streams have come to."""
        if isinstance(query, RunningQuery | Part):
            return by_clock(self, query)
        clock = self.clock_of(query.reads)
        if not isinstance(query, PeriodicQuery):
            return clock
        if query.due is None:
            firsts = [self.first_rows[s] for s in query.reads if s in self.first_rows]
            if firsts and min(firsts) <= clock:
                query.begin(min(firsts))
        return self._closed(query, clock)

    def due_of(self, group: Group) -> int:
        """The instant up to which the members of a group may be answered now."""
        clock = self.clock_of(group.streams)
        ended = any(self.clocks.completed(s) >= ENDED for s in group.streams)
        sliding = [q for m in group.members if (q := m.sliding) is not None] if ended else []
        return max([clock, *(self._closed(query, clock) for query in sliding)])

    def came_late(self, query: PeriodicQuery) -> None:
        """A query that is registered when all its streams have ended has no boundaries to come."""
        if ended(self, query):
            query.no_more(lambda _: ALWAYS, self.clock_of(query.reads))

    def _closed(self, query: PeriodicQuery, clock: int) -> int:
        """Where all its streams have ended, a query is answered until its windows are empty."""
        if ended(self, query):
            query.no_more(lambda key: self.inputs[key].newest, clock)
            clock = max(clock, query.closed)
        return clock

    def forget(self) -> None:
        """Let tables drop versions that no clock, also of queries to come, can ask for again."""
        forget(self.tables, self.inputs.values(), self.rings.values(), self.dispatch)
