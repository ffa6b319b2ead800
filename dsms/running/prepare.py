"""A query made ready to run: the operators and the sink of its plan, over what is declared."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dsms.operators.base import Operator
from dsms.operators.build import Builder
from dsms.operators.expressions import ErrorCounter, can_fail
from dsms.operators.sink import Sink, SinkSpec
from dsms.operators.timeline import Timeline
from dsms.periodic.timed import TimedRelation, TimedTable
from dsms.plan.ages import with_ages
from dsms.plan.physical import Phys
from dsms.running.assemble import Leaves, assemble, new_builder, sink_spec
from dsms.running.chosen import BLIND, REGISTERED
from dsms.running.current import past_rows
from dsms.running.letting_go import bytes_a_join, state_limit
from dsms.running.past import pasts
from dsms.running.query import RunningQuery
from dsms.running.results import ResultLog
from dsms.running.runtime import Runtime
from dsms.running.splitting import Unit
from dsms.running.table_source import TableSource
from dsms.sql import logical as lp
from dsms.sql.catalog import Option, QueryDef
from dsms.sql.types import ALWAYS, FOREVER, MIN_INSTANT
from dsms.sql.window import Slide
from dsms.tables.versioned import VersionedTable


def prepare(runtime: Runtime, definition: QueryDef, phys: Phys) -> RunningQuery:
    """A query over the declared streams and tables, not yet fed."""
    settings, options = runtime.settings, dict(definition.options)
    rows = int(options.get("result_log", settings.result_log_rows))
    return assembled(runtime, definition, phys, ResultLog(rows, settings.result_log_bytes))


def builder_for(runtime: Runtime, unit: Unit) -> Builder:
    """What makes operators in place of others that run; no leaves."""
    tables = _Tables(runtime, unit.since, None)
    leaves = Leaves(tables.changes, {}, {}, [])
    return _builder(runtime, leaves, tables, unit.errors, None)


def assembled(
    runtime: Runtime,
    definition: QueryDef,
    phys: Phys,
    log: ResultLog,
    slide: Slide | None = None,
    restore: bool = False,
    timeline: Timeline | None = None,
) -> RunningQuery:
    """The operators and the sink of a plan.

    slide, timeline  see `dsms.operators.build.Builder`
    restore         what lives between two boundaries is reported, too"""
    phys = with_ages(phys)
    options: dict[str, Option] = dict(definition.options)
    limit = state_limit(definition, runtime.settings.state_bytes)
    errors = ErrorCounter.of_query(limit, str(options.get("on_error", "null")))
    tables = _Tables(runtime, _tables_since(runtime, phys, timeline), timeline)
    leaves = Leaves(tables.changes, {}, {}, [])
    builder = _builder(runtime, leaves, tables, errors, slide)
    builder.shed_bytes = bytes_a_join(definition, phys, limit)
    pipeline = assemble(phys, builder, leaves, runtime.settings.timer)
    figures = (runtime.figures.get(stream) for stream in leaves.names.values())
    blind = any(known is None or known.rate is None for known in figures)
    return RunningQuery(
        definition,
        phys,
        log,
        errors,
        leaves.names,
        (*leaves.tables, *_probed(phys)),
        limit,
        pipeline=pipeline,
        sink=Sink(_sink_spec(runtime, phys, restore or (errors.mode == "stop" and fails(phys)))),
        since=tables.since,
        chosen=BLIND if blind else REGISTERED,
    )


@dataclass(frozen=True, slots=True)
class _Tables:
    """Tables as a query reads them: as they change from `since` on, at points of the timeline if it
    has one."""

    runtime: Runtime
    since: int
    timeline: Timeline | None

    def changes(self, node: lp.TableScan) -> Operator:
        source = TableSource(self.runtime.table(node), self.since)
        return source if self.timeline is None else TimedTable(source, self.timeline)

    def relation(self, node: lp.TableScan) -> VersionedTable | TimedRelation:
        table = self.runtime.table(node)
        return table if self.timeline is None else TimedRelation(table, self.timeline)


def _builder(
    runtime: Runtime, leaves: Leaves, tables: _Tables, errors: ErrorCounter, slide: Slide | None
) -> Builder:
    builder = new_builder(leaves, tables.relation, errors, runtime.settings.eager_instants)
    builder.step_rows, builder.slide = runtime.settings.step_rows, slide
    builder.timeline = tables.timeline
    return builder


def _sink_spec(runtime: Runtime, phys: Phys, kept: bool) -> SinkSpec:
    spec = sink_spec(phys, runtime.settings.eager_instants)
    return replace(spec, view=True) if kept and spec.kind == "rstream" else spec


def fails(phys: Phys) -> bool:
    """Whether a selection above a GROUP BY may fail: where that stops the query, what the GROUP BY
    stands by is no answer."""
    node = phys.node
    while isinstance(node, lp.Output | lp.Select | lp.Project | lp.Answer):
        if isinstance(node, lp.Select) and can_fail(node.predicate):
            return True
        node = node.child
    return False


def _tables_since(runtime: Runtime, phys: Phys, timeline: Timeline | None) -> int:
    """The instant from which on a new query sees tables change: before the first row that it begins
    with."""
    scans = (n for n in lp.leaves_of(phys.node) if isinstance(n, lp.StreamScan))
    reads = sorted({scan.stream.home for scan in scans if scan.live})
    if not reads:
        return FOREVER
    clock = runtime.clock_of(reads)
    first = clock
    if timeline is None and clock > ALWAYS:  # before the first row that is held
        found = (past_rows(runtime, p, clock) for p in pasts(phys.node))
        first = min((int(rows[0].ts[0]) - 1 for rows in found if rows), default=clock)
    return max(first, MIN_INSTANT - 1)  # tables can change before every row


def _probed(phys: Phys) -> list[str]:
    """Tables that joins look into, whose changes do not flow."""
    joins = (n for n in lp.nodes_of(phys.node) if isinstance(n, lp.JoinNRR))
    return [join.table.table.home for join in joins]
