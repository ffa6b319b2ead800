"""One-time SELECT: the plan run once over what windows hold now (`dsms.oneshot`), as of the clock
of what it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from dsms.api import Cancel, Result, Rows, shown_instant
from dsms.commands.index_reads import by_counts, by_keys
from dsms.commands.planning import Planner, foreseen, planned
from dsms.commands.slices import Ready
from dsms.errors import UsageError
from dsms.oneshot.cut import Cut, cut
from dsms.oneshot.now import as_of, asks_now
from dsms.oneshot.pushdown import OPS
from dsms.oneshot.reads import Read, reads
from dsms.operators.expressions import ErrorCounter
from dsms.operators.stamps import stamped
from dsms.python_functions.cutting import cuttable
from dsms.reads.access import access, relation, since
from dsms.reads.archives import Archives, reads_archives
from dsms.reads.leaves import batches, instant
from dsms.reads.stream_rows import in_ring, stream_of
from dsms.running.read_transaction import Access, ReadTransaction
from dsms.running.runtime import Runtime
from dsms.running.shed import told
from dsms.running.tallies import TallyRead
from dsms.sql import logical as lp
from dsms.sql.catalog import Catalog
from dsms.sql.expr import Call, Col, Lit, conjuncts
from dsms.sql.looking import looking
from dsms.sql.types import ALWAYS, FOREVER, arrow_schema
from dsms.storage.archive.job import OVERTAKEN, TRIES

LARGE = 1 << 15  # rows of a sub-window, on average


@dataclass(frozen=True, slots=True)
class _Plan:
    """As it is bound, and as it is run: what that reads, and what of it is done as that is read
    (nothing where even that may take long)."""

    bound: lp.Output
    plan: lp.Node
    reads: dict[int, Read]
    cut: Cut


class Selection:
    """A one-time query: a read transaction, then its plan over what that has read.

    Where updates of an archive overtake it, it begins anew, and answers as of a later instant."""

    waits = None

    def __init__(
        self,
        runtime: Runtime,
        bind: Callable[[Catalog], lp.Output],
        see: Callable[[], Catalog],
        priority: int = 0,
        cancel: Cancel | None = None,
        big: bool = False,
        check: Callable[[dict[int, Read]], None] = lambda needed: None,
        complete: bool = False,
        by: str = "auto",
    ) -> None:
        """`bind` binds it in a catalog, and touches nothing else; `see` gives the catalog as who
        asks sees it now; `big`: it may take long to plan.  Raises QueryError, and DS407 where
        nothing is kept of a stream, or not all that a window reaches back to and the answer must be
        `complete`, and what `check` raises of what it reads; a step does where it is `big`."""
        self.result: Result | None = None
        self._runtime, self._bind, self._see = runtime, bind, see
        self._priority, self._cancel, self._big = priority, cancel, big
        self._may_read, self._complete, self._by = check, complete, by
        self._tries = 0
        self._reading: ReadTransaction | None = None
        self._begin()

    def _begin(self) -> None:
        self._tries += 1
        self._outcome: Rows | Exception | None = None
        self._offered = False  # its caller has seen that it is ready
        self._task: Ready | None = None
        self._planning = planned(self._runtime, self._see, self._work, self._cancel, self._big)
        self._plan_on()

    def _work(self, catalog: Catalog, planner: Planner) -> _Plan:
        bound = self._bind(catalog)
        plan = optimized(planner, bound)
        if self._big:
            foreseen(plan)
        return _Plan(bound, plan, reads(plan), Cut(plan, {}) if self._big else cut(plan))

    def _plan_on(self) -> None:
        """Plan on; read, once that is done."""
        try:
            self._task = next(self._planning)
        except StopIteration as end:
            self._task = None
            self.bound = end.value.bound
            self._read_for(end.value)

    def _read_for(self, planned: _Plan) -> None:
        plan, all_reads, parts = planned.plan, planned.reads, planned.cut
        self._may_read(all_reads)
        self._reads = all_reads
        self._late = self._see().sees_late(_streams(self._runtime, plan))
        self._archives = (
            Archives(self._runtime, plan, all_reads, self._by)
            if reads_archives(all_reads)
            else None
        )
        if (parts.ops and self._large(all_reads)) or asks_now(plan):
            parts = Cut(plan, {})  # their work is for `run`: reading holds up, and knows no NOW()
        needed = all_reads
        if self._archives is not None:
            needed, parts = self._archives.live(), Cut(plan, {})
            _check_versions(self._runtime, plan)
        try:
            self._begin_to_read(plan, needed, parts)
        except BaseException:
            self._release()
            raise

    def _begin_to_read(self, plan: lp.Node, needed: Mapping[int, Read], parts: Cut) -> None:
        runtime, limit = self._runtime, self._runtime.settings.statement_bytes
        found = access(runtime, plan, self._reads, needed, self._cancel, self._complete)
        streams = self._in_rings(needed, found)
        live, tallies = self._archives is None, dict[int, TallyRead]()
        if len(streams) < sum(isinstance(r.node, lp.StreamScan) for r in needed.values()):
            parts = Cut(plan, {})
        if live:
            rest, tallies = by_counts(runtime, plan, streams)
            parts = (cut(rest) if parts.ops else Cut(rest, {})) if tallies else parts
        errors = ErrorCounter.once(limit)
        reading = ReadTransaction(parts, needed, streams, found, limit, self._priority, errors)
        reading.tallies = tallies
        if live:
            reading.picks = runtime.indices.picks(plan, streams, runtime.rings)
            others = {leaf: read for leaf, read in needed.items() if leaf not in tallies}
            reading.keyed = by_keys(runtime, plan, parts, others, streams)
        self._reading = reading
        runtime.transactions.begin(reading)

    def _in_rings(self, needed: Mapping[int, Read], found: Access) -> dict[int, str]:
        """The streams whose rows are read by sub-window, by leaf; those of others are as they came,
        and read in one go.  Raises DS407."""
        at = found.instant()
        found.since(at)
        return {
            k: stream_of(r.node)
            for k, r in needed.items()
            if isinstance(r.node, lp.StreamScan)
            and r.kind == "stream"
            and in_ring(self._runtime, r, at)
        }

    def _large(self, all_reads: Mapping[int, Read]) -> bool:
        """Whether sub-windows of a stream that it reads have more rows than a slice works on."""
        keys = {stream_of(r.node) for r in all_reads.values() if isinstance(r.node, lp.StreamScan)}
        rings = [ring for key, ring in self._runtime.rings.items() if key in keys]
        return any(ring.count > LARGE * (len(ring.closed) + 1) for ring in rings)

    @property
    def ready(self) -> bool:
        """Whether it is to be planned, or only the plan is left to be run.  Where transactions run
        one after the other, that is part of one (unless Spark does it: what it reads of an archive
        does not change)."""
        if self._reading is None:
            return self._task is not None and self._task.ready
        apart = self._archives is not None or not self._runtime.transactions.atomic
        return self._reading.given is not None and self._outcome is None and apart

    def tables(self) -> set[str] | None:
        """The keys of the tables that it reads, if only through queries that read nothing else;
        None: it is not planned yet."""
        if self._reading is None:
            return None
        queries, found = self._runtime.queries, set[str]()
        for read in self._reads.values():
            for key in (Catalog.key(relation(n)) for n in lp.leaves_of(read.node)):
                query = queries.get(key)
                found |= {key} if query is None else set(query.tables)
        return found & self._runtime.tables.keys()

    @property
    def reads_rows(self) -> bool:
        """Whether it reads nothing but rows of streams and tables (and is planned at all), which
        changes nothing."""
        if self._reading is None:
            return True
        queries = self._runtime.queries
        found = (relation(n) for r in self._reads.values() for n in lp.leaves_of(r.node))
        return not any(Catalog.key(name) in queries for name in found)

    @property
    def elsewhere(self) -> bool:
        """Whether Spark runs the plan."""
        return self._reading is not None and self._archives is not None

    def step(self) -> bool:
        """A sub-window is read, for this query or one that goes before it; or the plan is run."""
        try:
            if self._reading is None:
                self._check()
                self._plan_on()
                return False
            if self._outcome is None:  # what ended its plan says more than that it was cancelled
                if not self._read():
                    return False
                self.run()
            return self._settled()
        except BaseException:
            self.close()
            raise

    def _read(self) -> bool:
        """Read on; True once the plan is to be run here."""
        assert self._reading is not None
        self._check()
        if not self._reading.done:
            self._runtime.transactions.advance()
        if self._reading.done:
            self._release()
        if self.ready and not self._offered:  # perhaps others have read for it
            self._offered = True
            return False
        if self._reading.failure is not None:
            raise self._reading.failure
        return self._reading.done

    def _check(self) -> None:
        if self._cancel is not None:
            self._cancel.check()

    def _settled(self) -> bool:
        """Take what came of the plan; False: it begins anew."""
        outcome = self._outcome
        if isinstance(outcome, Exception):
            if getattr(outcome, "code", None) != OVERTAKEN or self._tries == TRIES:
                raise outcome
            self.close()
            self._reading = None
            self._begin()
            return False
        self.result = outcome
        return True

    def run(self) -> None:
        """Plan it, or run the plan over what has been read."""
        if self._reading is None:
            if self._task is not None:
                self._task.run()
            return
        try:
            with looking(self._check), cuttable(self._cancel):
                self._outcome = self._rows()
        except Exception as error:
            self._outcome = error

    def _rows(self) -> Rows:
        reading = self._reading
        assert reading is not None and reading.given is not None
        memory = partial(lent, self._runtime, self._cancel)
        if self._archives is not None:
            of = reading.given, reading.at
            found = self._archives.run(*of, reading.limit, self._cancel, memory)
        else:
            with memory() as limit, self._runtime.adhocs.lent(limit) as adhoc:
                run = as_of(reading.cut.rest, reading.at), reading.given, reading.at
                found = adhoc.run(*run, reading.errors, self._cancel)
        data = _answer(self.bound, found.columns, reading.at)
        clock = None if reading.at == FOREVER else shown_instant(reading.at)
        waiting = None if self._late else reading.waiting
        types = tuple(str(f.type) for f in self.bound.schema)
        lacks = told(self._runtime, self.bound, reading.at)
        return Rows(data, types, clock, waiting, reading.since, *lacks)

    def close(self) -> None:
        """Give up; nothing of it is left."""
        if self._reading is not None:
            self._release()
            self._runtime.transactions.close(self._reading)

    def _release(self) -> None:
        if self._archives is not None:
            self._archives.release()


def _check_versions(runtime: Runtime, plan: lp.Node) -> None:
    """A non-retroactive table beside archived rows must still know how it was when these came.
    Raises DS407."""
    for node in lp.nodes_of(plan):
        if isinstance(node, lp.JoinNRR) and any(
            r.kind == "archive" for r in reads(node.child).values()
        ):
            table = runtime.tables[node.table.table.home]
            if table.forgotten != ALWAYS:
                message = (
                    f"table {node.table.table.name} has forgotten how it was when the "
                    "archived rows came"
                )
                raise UsageError(
                    "DS407",
                    message,
                    hint="join the table as it stands: declare it without NON RETROACTIVE",
                )


def _streams(runtime: Runtime, plan: lp.Node) -> set[str]:
    """Keys of the streams that a plan reads, itself or by way of a query."""
    names = {relation(leaf) for leaf in lp.leaves_of(plan)}
    queries = [q for name in names if (q := runtime.queries.get(Catalog.key(name))) is not None]
    return {Catalog.key(n) for n in names} | {s for q in queries for s in q.reads}


def answer_of(
    runtime: Runtime, bound: lp.Output, cancel: Cancel | None = None
) -> tuple[pa.RecordBatch, int]:
    """Rows of a one-time query, read in one go, and the instant they hold at (ALWAYS: nothing it
    reads has a clock).

    A window that reaches back further than what is kept is an error, never a silent part: DS407.  A
    row that fails ends the query (DS7xx), as does what takes too much memory (DS633)."""
    plan = optimized(runtime.planner(), bound)
    needed = reads(plan)
    refuse_archives(needed)
    at = instant(runtime, needed.values())
    since(runtime, plan, needed.values(), at, complete=True)
    given = {leaf: batches(runtime, plan, read, at, cancel) for leaf, read in needed.items()}
    with lent(runtime, cancel) as limit:
        runtime.adhoc.limit(limit)
        rows = runtime.adhoc.run(as_of(plan, at), given, at, ErrorCounter.once(limit), cancel)
    clock = ALWAYS if at == FOREVER else at
    return _answer(bound, rows.columns, at), clock


def _answer(bound: lp.Output, cols: list[pa.Array], at: int) -> pa.RecordBatch:
    """What is answered as of `at` is what is answered at a boundary just behind it."""
    if bound.stamps:
        n = len(cols[0])
        cols = stamped(cols, bound.stamps, np.full(n, at + 1 if at < FOREVER else at, np.int64))
    return pa.RecordBatch.from_arrays(cols, schema=arrow_schema(bound.schema))


def refuse_archives(needed: dict[int, Read]) -> None:
    """Raise DS413 where an INSERT reads archives."""
    if reads_archives(needed):
        raise UsageError(
            "DS413",
            "INSERT can't read archives: Spark works for minutes, and the table changes meanwhile",
            hint="run the SELECT by itself, and insert what it answers",
        )


def is_simple(node: lp.Node) -> bool:
    """Columns of the rows of one window that compare so with constants: no rewrite would help."""
    while True:
        match node:
            case lp.Select():
                parts = conjuncts(node.predicate)
                if not all(isinstance(e, Call) and _compares(e) for e in parts):
                    return False
            case lp.Project():
                if not all(isinstance(e, Col) for e in node.exprs):
                    return False
            case lp.Window():
                return isinstance(node.child, lp.StreamScan) and node.child.live
            case _:
                return False
        node = node.child


def _compares(expr: Call) -> bool:
    return expr.fn in OPS and all(isinstance(e, Col | Lit) for e in expr.args)


def lent(runtime: Runtime, cancel: Cancel | None) -> AbstractContextManager[int]:
    """Bytes that a plan may take while it runs.  Raises DS625 where a server has none left."""
    memory, most = runtime.settings.memory, runtime.settings.statement_bytes
    return nullcontext(most) if memory is None else memory.lent(most, cancel)


def optimized(planner: Planner, bound: lp.Output) -> lp.Node:
    """The plan after the rewrites that persistent queries get; ORDER BY stays on top."""
    if is_simple(bound.child):
        return bound.child
    sort = bound.child if isinstance(bound.child, lp.Sort) else None
    core = bound.child if sort is None else sort.child
    once = lp.Output(core, "rstream", True, False, None, core.schema)
    root = planner(once, (("joins", "tree"),)).node
    assert isinstance(root, lp.Output)
    return root.child if sort is None else replace(sort, child=root.child)
