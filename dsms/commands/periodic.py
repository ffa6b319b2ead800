"""Registering a query with SLIDE: which access path it takes, and what it can have of the past."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from dsms.api import Cancel
from dsms.commands.periodic_plan import Plan, periodic_plan
from dsms.oneshot.cut import Cut, cut
from dsms.oneshot.reads import Read, reads
from dsms.operators.expressions import ErrorCounter
from dsms.operators.timeline import Timeline
from dsms.periodic.counted import Numbers
from dsms.periodic.evaluated import EvaluatedQuery, Evaluator
from dsms.periodic.incremental import Collected, Incremental, lazily
from dsms.periodic.query import PeriodicQuery
from dsms.periodic.scan import Scan, Sliced, need_of
from dsms.periodic.timed import Timed
from dsms.plan.boundaries import next_boundary
from dsms.plan.identity import by_value, width
from dsms.plan.planner import notes
from dsms.reads.leaves import batches
from dsms.reads.stream_rows import last_of, stream_of
from dsms.running.beginning import GONE, look_back, partial
from dsms.running.past import Past, pasts, rows_of
from dsms.running.prepare import assembled
from dsms.running.read_transaction import Access, ReadTransaction
from dsms.running.results import ResultLog
from dsms.running.runtime import Handle, Runtime
from dsms.running.transactions import Transactions
from dsms.schedulers.tasks import Task
from dsms.sharing import ungrouped
from dsms.sharing.incremental import Answers
from dsms.sharing.join_request import JoinRequest
from dsms.sharing.member import Member
from dsms.sql import logical as lp
from dsms.sql.catalog import Catalog, QueryDef
from dsms.sql.types import ALWAYS, FOREVER
from dsms.sql.window import Slide, WindowSpec
from dsms.state.batch import Batch
from dsms.state.ring import SubWindow

NO_LEAF = 1 << 30


def periodic_query(runtime: Runtime, definition: QueryDef, bound: lp.Output) -> PeriodicQuery:
    """The query, planned and assembled, with what the rings still hold of its past; not yet among
    the others."""
    plan = periodic_plan(runtime, bound, dict(definition.options))
    query = _evaluated(runtime, definition, bound, plan)
    query.why = plan.path.why
    _hear(runtime, query)
    return query


def _hear(runtime: Runtime, query: PeriodicQuery) -> None:
    """What is there already and later than the query's clock ends a silence, as what comes does."""
    for stream, ring in ((s, r) for s in query.reads if (r := runtime.rings.get(s)) is not None):
        for rows in ring.rows(query.clock):
            query.heard(stream, rows.ts)
    for table in dict.fromkeys(query.tables):
        query.heard(f"table {table}", runtime.tables[table].changed(query.clock))


def _evaluated(
    runtime: Runtime, definition: QueryDef, bound: lp.Output, plan: Plan
) -> PeriodicQuery:
    match plan.path.kind:
        case "SS" | "ISS":
            return _shared(runtime, definition, bound, plan)
        case "WS":
            return _scanned(runtime, definition, bound, plan)
    return _alone(runtime, definition, bound, plan)


def _limit(runtime: Runtime, definition: QueryDef) -> int:
    """Bytes that the query may keep."""
    return int(dict(definition.options).get("max_state", runtime.settings.state_bytes))


def _query(
    runtime: Runtime,
    definition: QueryDef,
    bound: lp.Output,
    plan: Plan,
    evaluator: Evaluator,
    errors: ErrorCounter,
    streams: dict[int, str],
    tables: tuple[str, ...],
) -> PeriodicQuery:
    settings, options = runtime.settings, dict(definition.options)
    log = ResultLog(
        int(options.get("result_log", settings.result_log_rows)), settings.result_log_bytes
    )
    sort = bound.child if isinstance(bound.child, lp.Sort) else None
    ids = 0 if by_value(bound.child) else width(plan.core.child)
    limit = _limit(runtime, definition)
    query = PeriodicQuery(
        definition,
        plan.phys,
        log,
        errors,
        streams,
        tables,
        limit,
        evaluator=evaluator,
        sort=sort,
        width=ids,
    )
    query.notes = notes(plan.phys)
    return query


# ---------------------------------------------------------------- from shared synopses


def _shared(runtime: Runtime, definition: QueryDef, bound: lp.Output, plan: Plan) -> PeriodicQuery:
    errors = ErrorCounter.of_query(_limit(runtime, definition))
    wanted = plan.wanted
    if isinstance(wanted, JoinRequest):
        return _joined(runtime, definition, bound, plan, wanted)
    assert wanted is not None
    stream, entry = wanted.stream, runtime.inputs[wanted.stream]
    own = dict(definition.options).get("synopsis") == "own"
    member = runtime.shared.join(wanted, errors, plan.counted, entry.definition.subwindow, not own)
    query = _query(runtime, definition, bound, plan, member, errors, {0: stream}, ())
    settle(runtime, member, query, plan.core, plan.counted)
    query.clock = query.registered
    if plan.path.kind == "ISS":
        member.path, member.kept = "ISS", Answers()
    member.plain = ungrouped.kind(member)
    if stream in runtime.first_rows:
        query.begin(runtime.first_rows[stream])
    return query


def settle(
    runtime: Runtime, member: Member, query: EvaluatedQuery, core: lp.Output, counted: bool
) -> None:
    """The query is answered from synopses of its stream from now on."""
    (stream,) = query.reads
    first, clock = runtime.inputs[stream].next_complete, runtime.clock_of((stream,))
    query.registered = first if counted else clock
    if counted:
        look_back(runtime, query, [_in_rows(p) for p in pasts(core.child)], clock)
    whole = runtime.shared.settle(
        member, query, runtime.rings.get(stream), runtime.handed_on(stream), first
    )
    query.numbers = member.numbers
    if not counted:
        query.partial_until = whole
    else:  # the synopses may have more than the ring
        query.full_at = tuple((s, min(at, max(whole + 1, first))) for s, at in query.full_at)


def _in_rows(past: Past) -> Past:
    """A length over arrival numbers (`over_numbers`) as the number of rows that it is."""
    if past.rows is not None or past.length is None:
        return past
    return replace(past, rows=past.length, length=None)


def _joined(
    runtime: Runtime, definition: QueryDef, bound: lp.Output, plan: Plan, wanted: JoinRequest
) -> PeriodicQuery:
    errors = ErrorCounter.of_query(_limit(runtime, definition))
    member = runtime.shared.joins.join(
        wanted, errors, runtime, str(dict(definition.options).get("synopsis", "auto"))
    )
    streams = {p.leaf: p.stream for p in pasts(plan.core.child)}
    query = _query(runtime, definition, bound, plan, member, errors, streams, ())
    query.registered = query.clock = runtime.clock_of(query.reads)
    query.partial_until = runtime.shared.joins.settle(member, query, runtime)
    return query


def schedule(runtime: Runtime, query: PeriodicQuery) -> None:
    """An elastic query waits for its turn, if `Engine.work` is called."""
    options = dict(query.definition.options)
    stamped = any(runtime.inputs[s].definition.timestamp is None for s in query.reads)
    wanted = options.get("boundaries", "elastic" if stamped else "every")
    if not runtime.settings.deferred or wanted != "elastic":
        return
    query.elastic, priority = True, int(options.get("priority", 0))
    if isinstance(query.evaluator, Member):
        member = query.evaluator
        member.group.backlog = runtime.backlog
        span = member.group.feed.span
        task = Task(
            query.name,
            max(1, query.slide.every // span),
            max(1, member.request.length // span),
            priority,
            same=str(member.same) if member.same else None,
        )
        runtime.backlog.add(member.group.name, member.group, task)
    else:
        runtime.backlog.add(query.name, query, Task(query.name, 1, 1, priority))


def forget(runtime: Runtime, query: EvaluatedQuery) -> None:
    """The query is dropped: what it alone used goes with it."""
    unit = query.evaluator.group.name if isinstance(query.evaluator, Member) else query.name
    runtime.backlog.remove(unit, query.name)
    if isinstance(query.evaluator, Member):
        runtime.shared.leave(query.evaluator)
    for leaf, stream in query.streams.items():
        runtime.release(stream, f"query {query.name} ({leaf})")


# ---------------------------------------------------------------- by scanning


def _scanned(runtime: Runtime, definition: QueryDef, bound: lp.Output, plan: Plan) -> PeriodicQuery:
    """The rings keep what its windows reach from now on, and what they hold already is its past."""
    errors = ErrorCounter.of_query(_limit(runtime, definition))
    root, slide = plan.inner.node, bound.slide
    assert isinstance(root, lp.Output) and slide is not None
    needed = reads(root.child)
    streams = {
        n.leaf: Catalog.key(n.stream.name)
        for n in lp.leaves_of(root)
        if isinstance(n, lp.StreamScan)
    }
    tables = tuple(
        Catalog.key(n.table.name) for n in lp.leaves_of(root) if isinstance(n, lp.TableScan)
    )
    span = 0 if plan.counted else slide.every
    past = list(pasts(plan.core.child))
    clock = runtime.clock_of(sorted(set(streams.values())))
    governing = _governing(root, bound) if plan.counted else None
    counted = (
        () if governing is None else tuple(k for k, s in streams.items() if s == streams[governing])
    )
    prepared = runtime.adhoc.prepare(root.child, identity=True)
    scan = Scan(
        prepared,
        needed,
        Fetcher(runtime.handle),
        errors,
        runtime.rings,
        counted,
        "" if governing is None else streams[governing],
    )
    query = _query(runtime, definition, bound, plan, scan, errors, streams, tables)
    query.registered = query.clock = clock
    if governing is not None:
        rows = _come(runtime, streams[governing], clock)
        query.numbers = scan.numbers = Numbers(rows.next)
        query.registered = query.clock = rows.next
        for batch in rows.later:
            query.numbers.see(batch)
    else:
        scan.sliced = _sliced(runtime, root.child, needed)
    for leaf, read in needed.items():
        if leaf in streams:
            need = need_of(read, span, query.looked)
            runtime.keep(streams[leaf], f"query {definition.name} ({leaf})", need)
    look_back(runtime, query, past, clock)
    return query


def _sliced(runtime: Runtime, plan: lp.Node, needed: dict[int, Read]) -> Sliced:
    """The scan as a transaction of less priority than one-time queries have."""
    parts = cut(plan)
    streams = {k: stream_of(r.node) for k, r in needed.items() if isinstance(r.node, lp.StreamScan)}

    reader = ScanReader(runtime.handle, parts, needed, streams)
    return Sliced(runtime.adhoc.prepare(parts.rest, identity=True), reader)


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Gets what a scan reads.  (No closure: it is part of checkpoints.)"""

    here: Handle

    def __call__(self, read: Read, at: int, cancel: Cancel | None) -> list[Batch]:
        return _there(self.here.runtime, read, at, cancel)


@dataclass(frozen=True, slots=True)
class ScanReader:
    """See `dsms.periodic.scan.Reader`."""

    here: Handle
    parts: Cut
    needed: dict[int, Read]
    streams: dict[int, str]

    @property
    def transactions(self) -> Transactions:
        return self.here.runtime.transactions

    def begin(self, instant: Callable[[], int], errors: ErrorCounter) -> ReadTransaction:
        runtime = self.here.runtime
        access = Access(
            instant,
            lambda read, at: _subwindows(runtime, read, at),
            lambda read, at: _there(runtime, read, at, None),
            lambda: None,
        )
        limit = runtime.settings.statement_bytes
        reading = ReadTransaction(self.parts, self.needed, self.streams, access, limit, -1, errors)
        self.transactions.begin(reading)
        return reading


def _subwindows(runtime: Runtime, read: Read, at: int) -> list[SubWindow]:
    """Those that there are of a leaf."""
    assert isinstance(read.node, lp.StreamScan)
    ring = runtime.rings[stream_of(read.node)]
    if read.rows is not None:
        return last_of(list(ring.subwindows(ALWAYS, at)), read.rows, at)
    return list(ring.subwindows(read.since(at), at))


def _there(runtime: Runtime, read: Read, at: int, cancel: Cancel | None) -> list[Batch]:
    """What there is of a leaf: of a stream the part that its ring holds (`partial_until` tells
    until when)."""
    if not isinstance(read.node, lp.StreamScan):
        return batches(runtime, read, at, cancel)
    ring, since = runtime.rings[Catalog.key(read.node.stream.name)], read.since(at)
    return (
        ring.last(read.rows, at)
        if read.rows is not None and since == ALWAYS
        else ring.rows(since, at)
    )


def _governing(plan: lp.Node, bound: lp.Output) -> int:
    """The stream leaf whose rows the SLIDE counts: that of the first window that says it."""
    first = next(w.spec for w in _as_bound(bound) if w.spec.slide is not None)
    return _leaf_of(plan, type(first), first.slide)


def _as_bound(node: lp.Node) -> Iterator[lp.Window]:
    """Its windows, in the order in which they were bound."""
    for child in lp.children(node):
        yield from _as_bound(child)
    if isinstance(node, lp.Window):
        yield node


def _leaf_of(node: lp.Node, kind: type[WindowSpec], slide: Slide | None) -> int:
    """The first leaf below a window of that kind with that SLIDE."""
    if isinstance(node, lp.Window) and type(node.spec) is kind and node.spec.slide == slide:
        return min(n.leaf for n in lp.leaves_of(node) if isinstance(n, lp.StreamScan))
    return min(
        (k for c in lp.children(node) if (k := _leaf_of(c, kind, slide)) < NO_LEAF), default=NO_LEAF
    )


# ---------------------------------------------------------------- by itself


def _alone(runtime: Runtime, definition: QueryDef, bound: lp.Output, plan: Plan) -> PeriodicQuery:
    output = plan.phys.node
    assert isinstance(output, lp.Output)
    slide = bound.slide if not plan.timed and lazily(plan.inner, output) else None
    timeline = Timeline() if plan.timed else None
    inner = assembled(runtime, definition, plan.inner, Collected(0), slide, bound.restore, timeline)
    evaluator = Incremental(inner, bound.restore)
    if timeline is not None:
        counted = inner.streams[_governing(plan.inner.node, bound)]
        evaluator = Timed(inner, bound.restore, timeline=timeline, counted=counted)
    query = _query(
        runtime, definition, bound, plan, evaluator, inner.errors, inner.streams, inner.tables
    )
    recall(runtime, query, bound, plan.counted)
    return query


def recall(runtime: Runtime, query: EvaluatedQuery, core: lp.Output, counted: bool) -> None:
    """What the rings hold of its past goes in; what they lack is reported."""
    clock = runtime.clock_of(query.reads) if query.reads else ALWAYS
    past = list(pasts(core.child))
    query.registered = clock
    if isinstance(query.evaluator, Timed):
        _count(runtime, query, query.evaluator, clock)
    elif counted:
        (stream,) = query.reads
        entry = runtime.inputs[stream]
        query.numbers = Numbers(entry.next_complete)
        query.evaluator.numbers = query.numbers
        query.registered = query.numbers.first
    for p in past:
        rows = rows_of(p, runtime.rings.get(p.stream), clock)
        for source in query.evaluator.leaf_sources(p.leaf):
            for batch in rows:
                source.push(batch)
    query.evaluator.seed(ALWAYS if counted else query.registered)
    query.clock = query.registered
    look_back(runtime, query, past, clock)


def _count(runtime: Runtime, query: EvaluatedQuery, evaluator: Timed, clock: int) -> None:
    """Rows later than the clock are counted; those up to it that the ring has kept are known."""
    rows = _come(runtime, evaluator.counted, clock)
    query.numbers = Numbers(rows.next)
    evaluator.count(query.numbers, rows.next - len(rows.earlier), rows.earlier)
    query.registered = rows.next


@dataclass(frozen=True, slots=True)
class _Come:
    """Rows of a stream that its ring still has, before and after the clock of a query that begins.

    next  the arrival number of the first row after it;  earlier: int64[k], timestamps of those
          before"""

    next: int
    earlier: np.ndarray
    later: list[Batch]


def _come(runtime: Runtime, stream: str, clock: int) -> _Come:
    ring = runtime.rings.get(stream)
    earlier: list[np.ndarray] = [np.empty(0, np.int64)]
    later: list[Batch] = []
    for rows in () if ring is None else ring.rows(ALWAYS):
        stop = int(np.searchsorted(rows.ts, clock, side="right"))
        earlier.append(rows.ts[:stop])
        if stop < len(rows):
            later.append(rows.slice(stop, len(rows)))
    first = int(later[0].ids[0][0]) if later else runtime.inputs[stream].next_complete
    return _Come(first, np.concatenate(earlier), later)


def announce(runtime: Runtime, query: EvaluatedQuery) -> tuple[str, ...]:
    """What a user should know of a query just registered."""
    slide = query.output.slide
    if slide is not None and query.partial_until < FOREVER:
        first = next_boundary(slide, query.registered)
        if query.numbers is None and query.partial_until < first:
            query.partial_until = ALWAYS  # its first answer is whole
        if query.numbers is not None:
            query.full_at = tuple((s, at) for s, at in query.full_at if at > first)
    shown = partial(runtime, query)
    return query.notes if shown is None else (*query.notes, f"{GONE} {shown}")
