"""Queries ON LOOKUP that read rings when they are asked, by an index where there is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dsms.api import Cancel
from dsms.commands.index_reads import by_keys
from dsms.commands.periodic_scan import subwindows_there, there
from dsms.oneshot.cut import Cut
from dsms.oneshot.keyed import drives
from dsms.oneshot.pushdown import conditions
from dsms.oneshot.reads import Read, reads
from dsms.operators.expressions import ErrorCounter, can_fail
from dsms.periodic.lookup import LookupQuery
from dsms.periodic.probed import Probed
from dsms.periodic.scan import need_of
from dsms.plan.parts import expressions_of
from dsms.plan.paths import UNFOLLOWED, from_past, unfollowed
from dsms.plan.physical import Phys
from dsms.reads.stream_rows import stream_of
from dsms.running.beginning import look_back
from dsms.running.past import pasts
from dsms.running.read_transaction import Access, ReadTransaction
from dsms.running.results import ResultLog
from dsms.running.runtime import Handle, Runtime
from dsms.sql import logical as lp
from dsms.sql.catalog import QueryDef
from dsms.sql.window import Now, Rows, Time
from dsms.state.batch import Batch


def readable(plan: lp.Node) -> bool:
    """Whether the plan's answer can be found from what its windows hold when it is asked, and no
    row fails in it (which would count each time)."""
    return (
        from_past(plan) is None
        and not any(map(can_fail, expressions_of(plan)))
        and all(
            isinstance(r.spec, Time | Now | Rows)
            for r in reads(plan).values()
            if isinstance(r.node, lp.StreamScan)
        )
    )


def indexed(plan: lp.Node) -> str | None:
    """The columns of INDEX BY by which each stream of the plan is found, which keeps all that its
    window reaches; None where one is not."""
    met, keyed = conditions(plan), drives(plan)
    found = []
    for leaf, read in reads(plan).items():
        if isinstance(read.node, lp.StreamScan):
            stream = read.node.stream
            asked = {c.column for c in met.get(leaf, ()) if c.op in ("eq", "in")}
            asked |= {d.column for d in keyed if d.leaf == leaf}
            by = [k for k in stream.index_by if k in asked]
            if not by or not _kept(read):
                return None
            found.append(f"{stream.name}.{stream.schema[by[0]].name}")
    return ", ".join(found)


def _kept(read: Read) -> bool:
    """Whether the RETAIN of the stream covers the window."""
    assert isinstance(read.node, lp.StreamScan)
    retain = read.node.stream.retain
    match read.spec:
        case Time(length=length, until=until):
            return retain is not None and retain >= length + until + read.ago
        case Now():
            return retain is not None and retain >= read.ago
        case _:
            return False


def probed(
    runtime: Runtime,
    definition: QueryDef,
    phys: Phys,
    core: lp.Output,
    sort: lp.Sort | None,
) -> LookupQuery:
    """The query; `core`: its plan without ORDER BY."""
    limit = int(dict(definition.options).get("max_state", runtime.settings.state_bytes))
    root = runtime.plan(core, definition.options).node
    assert isinstance(root, lp.Output)
    plan, errors = root.child, ErrorCounter.of_query(limit)
    needed, leaves = reads(plan), list(lp.leaves_of(plan))
    streams = {n.leaf: n.stream.home for n in leaves if isinstance(n, lp.StreamScan)}
    tables = tuple(n.table.home for n in leaves if isinstance(n, lp.TableScan))
    prepared = runtime.adhoc.prepare(plan)
    evaluator = Probed(prepared, needed, IndexFetcher(runtime.handle), errors)
    query = LookupQuery(
        definition,
        phys,
        ResultLog(0),
        errors,
        streams,
        tables,
        limit,
        evaluator=evaluator,
        sort=sort,
    )
    query.why = why(plan)
    query.registered = query.clock = runtime.clock_of(query.reads)
    for leaf, stream in streams.items():
        need = need_of(needed[leaf], 0, query.looked)
        runtime.keep(stream, f"query {definition.name} ({leaf})", need)
    look_back(runtime, query, list(pasts(core.child)), query.clock)
    return query


def why(plan: lp.Node) -> str:
    """Why it is answered so."""
    by = indexed(plan)
    if by is not None:
        return f"read when it is asked, by an index over {by}"
    return UNFOLLOWED if unfollowed(plan) else "asked for"


@dataclass(frozen=True, slots=True)
class IndexFetcher:
    """Gets what a plan reads, by indices.  (No closure: it is part of checkpoints.)"""

    here: Handle

    def __call__(
        self, plan: lp.Node, needed: Mapping[int, Read], at: int, cancel: Cancel | None
    ) -> Mapping[int, Sequence[Batch]]:
        """The rows as of that instant, by leaf.  Raises DsmsError."""
        runtime, whole = self.here.runtime, Cut(plan, {})
        access = Access(
            lambda: at,
            lambda read, upto: subwindows_there(runtime, read, upto),
            lambda read, upto: there(runtime, read, upto, cancel),
            lambda: None,
        )
        streams = {
            k: stream_of(r.node) for k, r in needed.items() if isinstance(r.node, lp.StreamScan)
        }
        limit = runtime.settings.statement_bytes
        reading = ReadTransaction(whole, needed, streams, access, limit)
        reading.picks = runtime.indices.picks(plan, streams, runtime.rings)
        reading.keyed = by_keys(runtime, plan, whole, needed, streams)
        reading.settle()
        reading.commit()
        assert reading.given is not None
        return reading.given
