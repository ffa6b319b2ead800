"""What the oracle says of a story: which rows are accepted, how tables change, what every query
pushes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.binder.changes import Delete, Insert, Update, bind_table_statement
from dsms.sql.binder.promises import bind_promise
from dsms.sql.catalog import Catalog, StreamDef
from dsms.sql.expr import Expr
from dsms.sql.parser import parse_one, split_statements
from dsms.sql.types import ALWAYS, BEFORE_ROWS, FOREVER, MIN_INSTANT
from dsms.sql.window import Landmark, Lasting, Partitioned, Session, Throttled, Time, Unbounded
from tests.oracle import Change, Oracle, Periodic, Row, is_monotonic
from tests.oracle.boundaries import all_boundaries, boundary_after, range_start
from tests.oracle.episodes import gap_of
from tests.oracle.lasting import ends_of
from tests.oracle.scalar import evaluate
from tests.oracle.values import canon
from tests.stories.declared import Declared
from tests.stories.model import Arrival, Beat, Clock, End, Event, Line, Statement, Story
from tests.stories.text import expand

Values = tuple


@dataclass(slots=True)
class _Inlet:
    """One stream's rows as they are accepted, row by row (design page, "Time")."""

    stream: StreamDef
    rows: list[tuple[int, Values]] = field(default_factory=list)
    newest: int = ALWAYS
    promised: int = ALWAYS
    now: int = ALWAYS
    ended: bool = False
    # PUNCTUATE: by column the values that do not come together, up to which instant
    promises: list[tuple[dict[int, list], int]] = field(default_factory=list)

    @property
    def front(self) -> int:
        """The furthest instant that it got to."""
        return max(self.newest, self.promised, self.now)

    @property
    def completed(self) -> int:
        """Nothing at or before this instant can follow."""
        if self.ended:
            return FOREVER - 1
        if self.stream.timestamp is None:
            return max(self.now - 1, self.promised) if self.now > ALWAYS else self.promised
        seen = self.newest - self.stream.slack - 1 if self.newest > ALWAYS else ALWAYS
        return max(seen, self.promised)

    def take(self, row: Arrival) -> bool:
        """Whether the row is not late."""
        if self.stream.timestamp is None:
            self.now = max(self.now, row.at)
        if self._contradicts(row.at if self.stream.timestamp is not None else self.now, row):
            return False
        if self.stream.timestamp is None:
            self.rows.append((self.now, row.values))
        elif row.at <= self.completed:
            return False
        elif not self._too_far(row.at):
            self.newest = max(self.newest, row.at)
            self.rows.append((row.at, row.values))
        return True

    def take_late(self, row: Arrival) -> None:
        """A late row of another stream, taken as it comes: at the first instant that is open."""
        if self.ended or self._contradicts(max(row.at, self.now), row):
            return
        if self.stream.timestamp is None:
            self.rows.append((self.now, row.values))
            return
        self.rows.append((max(row.at, self.completed + 1), row.values))
        self.newest = max(self.newest, row.at)

    def _contradicts(self, at: int, row: Arrival) -> bool:
        """A row of which it was said that it would not come."""
        return any(
            at <= upto and all(canon(row.values[k]) in some for k, some in values.items())
            for values, upto in self.promises
        )

    def promise(self, said: ast.Punctuate, catalog: Catalog) -> None:
        """PUNCTUATE."""
        bound = bind_promise(said, self.stream, catalog)
        values = [[canon(evaluate(e, ())) for e in some] for some in bound.values]
        upto = FOREVER if bound.upto is None else bound.upto
        self.promises.append((dict(zip(bound.columns, values, strict=True)), upto))

    def _too_far(self, at: int) -> bool:
        known = max(self.newest, self.promised)
        return (
            self.stream.max_future is not None
            and known > ALWAYS
            and at > known + self.stream.max_future
        )

    def numbered(self) -> list[Row]:
        """In order of (timestamp, arrival), numbered in that order."""
        ordered = sorted(self.rows, key=lambda r: r[0])
        return [Row(at, number, values) for number, (at, values) in enumerate(ordered)]


@dataclass(slots=True)
class Input:
    """Everything that came: rows by stream, changes by table; how far each stream is complete, and
    how far it got.  `ages`: how old rows are when who asks sees them (`tests.oracle.Oracle`)."""

    streams: dict[str, list[Row]]
    tables: dict[str, list[Change]]
    completed: dict[str, int]
    fronts: dict[str, int]
    ages: dict[str, int] = field(default_factory=dict)


def take_in(declared: Declared, story: Story) -> Input:
    """Play the story's input row by row."""
    inlets = {s.name: _Inlet(s) for s in declared.catalog.streams.values()}
    tables: dict[str, list[Change]] = {t.name: [] for t in declared.catalog.tables.values()}
    running: dict[str, lp.Output] = {}
    for event in _all_events(story):
        match event:
            case str():
                running[event] = declared.queries[event]
            case Arrival():
                source = inlets[event.stream]
                if not source.take(event) and source.stream.late_into is not None:
                    inlets[source.stream.late_into].take_late(event)
            case Beat() | End():
                named = (
                    [inlets[declared.stream(event.stream).name]]
                    if event.stream
                    else list(inlets.values())
                )
                for inlet in named:
                    inlet.ended = inlet.ended or isinstance(event, End)
                    inlet.promised = max(
                        inlet.promised, event.upto if isinstance(event, Beat) else ALWAYS
                    )
            case Clock():
                for inlet in inlets.values():
                    inlet.now = max(inlet.now, event.now)
            case Statement() if isinstance(said := parse_one(event.sql), ast.Punctuate):
                inlets[declared.stream(said.name.text).name].promise(said, declared.catalog)
            case Statement():
                change_table(declared, event.sql, _Readers(inlets, list(running.values())), tables)
    return Input(
        {n: i.numbered() for n, i in inlets.items()},
        tables,
        {n: i.completed for n, i in inlets.items()},
        {n: i.front for n, i in inlets.items()},
    )


def _all_events(story: Story) -> Iterator[Event | str]:
    """The events, the names of queries as they are registered, and the changes of tables among the
    statements."""
    for section in story.sections:
        yield from section.events
        if section.kind == "query":
            yield section.name
        if section.kind == "sql":
            yield from (Statement(sql) for sql in split_statements(expand(section.body)))


@dataclass(frozen=True, slots=True)
class _Readers:
    """What dates a change without AT: the streams as they are, and the queries that are
    registered."""

    inlets: dict[str, _Inlet]
    queries: list[lp.Output]

    def instant(self, table: str, log: list[Change]) -> int:
        """The newest timestamp on streams whose queries read the table, behind the answers given
        over it."""
        readers = [q for q in self.queries if table in _tables_of(q)]
        going = [q for q in readers if not self._ended(q)]
        streams = {name for q in going or readers for name in streams_of(q)} or set(self.inlets)
        newest = (
            max((self.inlets[name].newest for name in streams), default=ALWAYS) if log else ALWAYS
        )
        after = [
            at + 1 for q in going if (at := self._answered(q, log)) > ALWAYS or q.slide is None
        ]
        return max([newest, *(c.at for c in log), *(max(at, BEFORE_ROWS) for at in after)])

    def _ended(self, query: lp.Output) -> bool:
        names = streams_of(query)
        return bool(names) and all(self.inlets[name].ended for name in names)

    def _answered(self, query: lp.Output, log: list[Change]) -> int:
        """The instant up to which it has answered: a periodic one up to its last boundary, one over
        tables alone up to their last change, as any other that waits for the first row."""
        names = streams_of(query)
        clock = min((self.inlets[name].completed for name in names), default=ALWAYS)
        if query.slide is None:
            return max([clock, *(c.at for c in log if c.at < MIN_INSTANT or not names)])
        assert not query.slide.by_rows, "when changes happen under a SLIDE of rows must be said"
        first = min(
            (at for name in names for at, _ in self.inlets[name].rows if at <= clock), default=clock
        )
        return max(
            [
                ALWAYS,
                *(b - 1 for b in all_boundaries(query.slide, first, clock + 1) if first < clock),
            ]
        )


def _tables_of(node: lp.Node) -> set[str]:
    own = {node.table.name} if isinstance(node, lp.TableScan) else set()
    own |= {node.table.table.name} if isinstance(node, lp.JoinNRR) else set()
    return own.union(*(_tables_of(child) for child in lp.children(node)))


def change_table(
    declared: Declared, sql: str, readers: _Readers, tables: dict[str, list[Change]]
) -> None:
    """Run INSERT, UPDATE or DELETE on the log of its table."""
    statement = parse_one(sql)
    if not isinstance(statement, ast.Insert | ast.Update | ast.Delete):
        return
    bound = bind_table_statement(statement, declared.catalog)
    log = tables[bound.table.name]
    at = readers.instant(bound.table.name, log) if bound.at is None else bound.at
    match bound:
        case Insert():
            for row in bound.rows:
                _insert(log, at, tuple(evaluate(e, ()) for e in row))
        case Delete():
            for old in _picked(log, bound.predicate):
                log.append(Change(at, "delete", old.values, old.version))
        case Update():
            for old in _picked(log, bound.predicate):
                new = dict(enumerate(old.values)) | {
                    i: evaluate(e, old.values) for i, e in bound.assignments
                }
                log.append(Change(at, "delete", old.values, old.version))
                _insert(log, at, tuple(new.values()))


def _insert(log: list[Change], at: int, values: Values) -> None:
    log.append(Change(at, "insert", values, sum(c.kind == "insert" for c in log)))


def _picked(log: list[Change], predicate: Expr | None) -> list[Change]:
    gone = {c.version for c in log if c.kind == "delete"}
    live = [c for c in log if c.kind == "insert" and c.version not in gone]
    return [c for c in live if predicate is None or evaluate(predicate, c.values) is True]


def expected(output: lp.Output, given: Input, registered: int = ALWAYS) -> list[Line]:
    """Everything that the query pushes, up to its clock.  `registered`: its clock when it began,
    over streams that had kept all their rows."""
    if output.slide is not None:
        pushes = periodic(output, given, registered).pushes()
        return [Line(p.at, "=", values) for p in pushes for values in p.rows]
    oracle = Oracle(output, given.streams, given.tables, given.ages)
    begun = registered if streams_of(output) else ALWAYS
    changes = [d for d in oracle.deltas(followed(output, given)) if begun == ALWAYS or d.at > begun]
    lines = [Line(_shown(d.at), "+" if d.kind == "insert" else "-", d.values) for d in changes]
    if begun == ALWAYS or oracle.kind != "rstream":
        return lines
    return [*(Line(begun, "+", f.values) for f in oracle.answer(begun)), *lines]


def _shown(at: int) -> int:
    """Instants before all rows count as one."""
    return ALWAYS if at < MIN_INSTANT else at


def registered(story: Story, declared: Declared, name: str) -> int:
    """The clock of a query when it is registered: ALWAYS where no input comes before."""
    place = next(k for k, s in enumerate(story.sections) if s.kind == "query" and s.name == name)
    before = story.sections[:place]
    if not any(s.events for s in before):
        return ALWAYS
    return clock(declared.queries[name], take_in(declared, replace(story, sections=before)))


def periodic(output: lp.Output, given: Input, registered: int = ALWAYS) -> Periodic:
    """The oracle of a query with SLIDE, up to the query's clock."""
    upto = answered_until(output, given, registered)
    return Periodic(output, given.streams, given.tables, upto, registered, given.ages)


def answered_until(output: lp.Output, given: Input, registered: int = ALWAYS) -> int:
    """The query's clock; once all its streams have ended, at least up to the first boundary at
    which their rows have left its windows."""
    slide, upto, names = output.slide, clock(output, given), streams_of(output)
    ended = all(given.completed[name] == FOREVER - 1 for name in names)
    if slide is None or slide.by_rows or not ended or registered >= upto:
        return upto
    empty = _empty_from(output, given)
    return upto if empty == ALWAYS else max(upto, boundary_after(slide, empty) - 1)


def _empty_from(node: lp.Node, given: Input) -> int:
    """The first instant at which no row is left in a window in time; where there is no such window,
    at which the last row came; ALWAYS where none came."""
    if isinstance(node, lp.StreamScan):
        return max((row.ts for row in given.streams[node.stream.name]), default=ALWAYS)
    below = max((_empty_from(child, given) for child in lp.children(node)), default=ALWAYS)
    match node:
        case lp.Window(spec=Time(calendar=(_, _)) as spec) if below > ALWAYS:
            assert spec.slide is not None
            bound = boundary_after(spec.slide, below)
            while range_start(spec, bound) <= below:
                bound = boundary_after(spec.slide, bound)
            return bound - 1
        case lp.Window(spec=Time() | Throttled() as spec) if below > ALWAYS:
            return below + spec.length
        case lp.Window(spec=Session(gap=int() as gap)) if below > ALWAYS:
            return below + gap
        case lp.Window(spec=Partitioned(age=int(age))) if below > ALWAYS:
            return below + age
        case lp.Window(spec=Lasting() as spec) if below > ALWAYS:
            return max(below + spec.until, *ends_of(node, given.streams, given.tables, given.ages))
        case lp.Window(spec=Unbounded() | Landmark() as spec) if below > ALWAYS:
            return below + spec.until
        case _:
            return below


def answer(output: lp.Output, given: Input) -> list[Values] | None:
    """The answer as it stands at the query's clock; None where a periodic query has not answered
    yet."""
    if output.slide is not None:
        last = periodic(output, given).answer()
        return None if last is None else list(last.rows)
    oracle = Oracle(output, given.streams, given.tables, given.ages)
    return [f.values for f in oracle.answer(followed(output, given))]


def kind(output: lp.Output) -> str:
    """What is reported: as the query says or, where it leaves that open, by its pattern."""
    return (
        output.kind if output.explicit else "istream" if is_monotonic(output.child) else "rstream"
    )


def clock(output: lp.Output, given: Input) -> int:
    """The instant up to which a query is answered: the minimum over the streams it reads, as far as
    any of them got once all have ended; tables alone are followed at once."""
    names = streams_of(output)
    least = min((given.completed[s] for s in names), default=FOREVER - 1)
    return least if least < FOREVER - 1 or not names else max(given.fronts[s] for s in names)


def followed(output: lp.Output, given: Input) -> int:
    """The clock of a continuous query: no stream can hold back what happens before every row.  Once
    all have ended, it goes on to the instant by which nothing is left to be told."""
    names = streams_of(output)
    ended = bool(names) and all(given.completed[name] == FOREVER - 1 for name in names)
    told = told_by(output, given) if ended else ALWAYS
    return max(clock(output, given), MIN_INSTANT - 1, told)


def told_by(node: lp.Node, given: Input) -> int:
    """The instant by which a plan over streams that have ended has told all rows: sessions that are
    told at their close, matches that end with NOT, rows that enter late.  ALWAYS: none came."""
    if isinstance(node, lp.StreamScan):
        return max((row.ts for row in given.streams[node.stream.name]), default=ALWAYS)
    below = max((told_by(child, given) for child in lp.children(node)), default=ALWAYS)
    if below == ALWAYS:
        return below
    match node:
        case lp.Window(spec=Session() as spec) if spec.at_close:
            if isinstance(spec.gap, int):
                return below + spec.gap
            return max(below, *(ts + gap_of(spec, row) for ts, row in _rows_of(node.child, given)))
        case lp.Window(spec=Time() | Unbounded() | Landmark() | Lasting() | Throttled() as spec):
            return below + spec.until
        case lp.Match() if node.kinds[-1] == "none":
            return below + node.span
        case _:
            return below


def _rows_of(node: lp.Node, given: Input) -> list[tuple[int, Values]]:
    """Timestamps and values of the rows of a stream, of which some may be left out."""
    match node:
        case lp.StreamScan():
            return [(row.ts, row.values) for row in given.streams[node.stream.name]]
        case lp.Select():
            rows = _rows_of(node.child, given)
            return [r for r in rows if evaluate(node.predicate, r[1]) is True]
        case lp.Project():
            rows = _rows_of(node.child, given)
            return [(ts, tuple(evaluate(e, row) for e in node.exprs)) for ts, row in rows]
        case lp.Window(spec=Unbounded()):
            return _rows_of(node.child, given)
        case lp.Union():
            return [row for child in node.inputs for row in _rows_of(child, given)]
        case _:
            raise AssertionError(node)


def streams_of(node: lp.Node) -> set[str]:
    if isinstance(node, lp.StreamScan):
        return {node.stream.name}
    return {name for child in lp.children(node) for name in streams_of(child)}
