"""From a physical plan to running operators: one arm per logical node, the planner's variant and
state inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dsms.errors import InternalError
from dsms.operators.ages import Age, DateMortalOp, DateOp
from dsms.operators.base import Operator
from dsms.operators.expressions import ErrorCounter, compile_expr, compile_predicate
from dsms.operators.passing import Piped, Through
from dsms.plan.ages import dated, numbers, reads_late, timestamps
from dsms.plan.identity import order, places, timed, width
from dsms.plan.physical import Phys, State
from dsms.plan.variants import SHEDDING, block_slide
from dsms.sql import logical as lp
from dsms.sql.expr import Expr
from dsms.sql.window import Slide

if TYPE_CHECKING:
    from dsms.operators.timeline import Timeline

Sources = Callable[[lp.StreamScan | lp.TableScan], Operator]
Relation = Callable[[lp.TableScan], Any]


@dataclass(frozen=True, slots=True)
class Counted:
    """An evaluator whose failing rows are counted in `errors`: (cols, n) -> array."""

    run: Callable[..., Any]
    errors: ErrorCounter

    def __call__(self, cols: Sequence[pa.Array], n: int) -> Any:
        return self.run(cols, n, self.errors)


@dataclass(slots=True)
class Builder:
    """Makes operators.  `source` gives the operator of a leaf, `relation` the versioned table of a
    JoinNRR."""

    source: Sources
    relation: Relation
    errors: ErrorCounter = field(default_factory=ErrorCounter)
    eager_instants: bool = False
    step_rows: int = 1 << 22  # results of a join at one instant, at most
    shed_bytes: int = 1 << 62  # what a join that may let go of rows holds of them, at most
    slide: Slide | None = None  # rows are looked at on its boundaries only
    mixed: bool = False  # inside a block whose windows are partly INTERNAL
    timeline: Timeline | None = None  # instants are points of it; strategy `nt` throughout

    def operator(self, phys: Phys) -> Operator:
        """The operator of this node alone; its inputs are built apart."""
        node = phys.node
        match node:
            case lp.StreamScan():
                return Piped(self.source(node), DateOp()) if node.dated else self.source(node)
            case lp.TableScan():
                return Piped(self.source(node), DateMortalOp()) if node.dated else self.source(node)
            case lp.Values():
                return self._values(node)
            case lp.Window():
                from dsms.operators.build_windows import window_op

                life = ("internal" if node.spec.internal else "external") if self.mixed else None
                return window_op(self, phys, node, life, self.slide, self.timeline)
            case lp.Select() | lp.Project() | lp.Union() | lp.Answer() | lp.Output():
                return self._simple(phys, node)
            case lp.Append():
                made = self._append(phys, node)
                mortal = node.mixed and phys.strategy == "nt"
                return Piped(made, DateMortalOp() if mortal else DateOp()) if node.dated else made
            case lp.Join():
                return self._join(phys, node)
            case lp.MultiJoin():
                return self._multi_join(phys, node)
            case lp.Unnest():
                from dsms.operators.unnest import unnest_op

                return unnest_op(self, node)
            case lp.JoinNRR():
                return self._nrr(phys, node)
            case lp.AsofJoin():
                return self._asof(phys, node)
            case lp.Match():
                return self._match(phys, node)
            case lp.SemiJoin():
                return self._semijoin(phys, node)
            case lp.SetOp():
                return self._setop(phys, node)
            case lp.Distinct():
                return self._distinct(phys, node)
            case lp.GroupBy():
                return self._group(phys, node)
            case lp.Over():
                from dsms.operators.over import over_op

                return over_op(self, node)
            case lp.TopN():
                from dsms.operators.top import top_op

                return top_op(self, phys, node)
        raise InternalError(
            "DS901", f"no continuous operator for {type(node).__name__}; please report this"
        )

    def expr(self, expr: Expr) -> Callable[..., pa.Array]:
        """(cols, n) -> array."""
        return Counted(compile_expr(expr), self.errors)

    def predicate(self, expr: Expr) -> Callable[..., pa.BooleanArray]:
        """(cols, n) -> bool array."""
        return Counted(compile_predicate(expr), self.errors)

    def _values(self, node: lp.Values) -> Operator:
        from dsms.operators.values import ValuesSource

        columns = []
        for k, f in enumerate(node.schema):
            parts = [self.expr(row[k])([], 1) for row in node.rows]
            columns.append(pa.concat_arrays(parts) if parts else pa.array([], f.type.arrow))
        return ValuesSource(tuple(columns), len(node.rows))

    def _simple(
        self, phys: Phys, node: lp.Select | lp.Project | lp.Union | lp.Answer | lp.Output
    ) -> Operator:
        from dsms.operators import basic

        match node:
            case lp.Select():
                return basic.SelectOp(self.predicate(node.predicate))
            case lp.Project():
                return basic.ProjectOp([self.expr(e) for e in node.exprs], node.ids)
            case lp.Union():
                return basic.MergeOp(places(node))
            case lp.Answer() | lp.Output():
                return Through()

    def _append(self, phys: Phys, node: lp.Append) -> Operator:
        from dsms.operators import basic, periodic
        from dsms.operators.append import NettedAppendOp

        match phys.variant:
            case "periodic":
                slide = block_slide(node.child)
                assert slide is not None
                return periodic.PeriodicAppendOp(
                    phys.children[0], slide, self.timeline, node.entries, node.departures
                )
            case "netted":
                return NettedAppendOp(phys.children[0], self.eager_instants, node.departures)
            case "append":
                return basic.AppendOp(order(node.child), node.mixed)
            case "append-negative":
                return Piped(basic.AppendOp(order(node.child), True), self._announced(node))
        raise unknown(phys)

    def _announced(self, node: lp.Append) -> Operator:
        """Deletions at the deaths of a mixed block's rows."""
        from dsms.operators import timeline, window

        if self.timeline is not None:
            return timeline.TimedDeathsOp(self.timeline, node.schema)
        return window.NegativeOp(node.schema, 1, State("calendar"))

    def _join(self, phys: Phys, node: lp.Join) -> Operator:
        from dsms.operators import join, outer

        if phys.variant in SHEDDING:
            from dsms.operators.shedding_join import shedding_join

            return shedding_join(self, phys, node, self.shed_bytes)
        if phys.variant == "hash-each":
            from dsms.operators.either_join import either_join

            return either_join(self, phys, node)
        inner = join.inner_join(self, phys, node.keys, node.residual)
        return (
            inner
            if node.kind == "inner"
            else outer.outer_join(node, inner, phys, self.eager_instants)
        )

    def _multi_join(self, phys: Phys, node: lp.MultiJoin) -> Operator:
        if phys.variant in SHEDDING:
            from dsms.operators.shedding_join import shedding_join

            return shedding_join(self, phys, node, self.shed_bytes)
        if phys.variant == "adaptive":
            from dsms.operators.adaptive_join import adaptive_join_op

            return adaptive_join_op(self, phys, node)
        from dsms.operators.multi_join import multi_join_op

        return multi_join_op(self, phys, node)

    def _nrr(self, phys: Phys, node: lp.JoinNRR) -> Operator:
        from dsms.operators import nrr

        keys = [self.expr(left) for left, right in node.keys if nrr.is_column(right)]
        conditions = [
            self.predicate(e) for e in (nrr.computed_keys(node), node.residual) if e is not None
        ]
        table = self.relation(node.table)
        probe = nrr.Probe(
            table,
            nrr.key_columns(node),
            keys,
            conditions,
            node.kind,
            node.table.schema,
            age_of(node.child) if reads_late(node) else None,
        )
        match phys.variant:
            case "probe":
                return nrr.JoinNRROp(probe, self.step_rows)
            case "probe-stored":
                return nrr.StoredJoinNRROp(probe, node, phys.state(0), self.step_rows)
        raise unknown(phys)

    def _asof(self, phys: Phys, node: lp.AsofJoin) -> Operator:
        from dsms.operators import asof

        probe = asof.probe_of(node, self)
        match phys.variant:
            case "merge":
                return asof.AsofJoinOp(probe)
            case "merge-stored":
                return asof.StoredAsofJoinOp(probe, node, phys.state(1), self.step_rows)
        raise unknown(phys)

    def _match(self, phys: Phys, node: lp.Match) -> Operator:
        from dsms.operators import match as patterns
        from dsms.operators import window

        made = patterns.MatchOp(patterns.automaton(node, self))
        match phys.variant:
            case "automaton":
                return made
            case "automaton-negative":
                negative = window.NegativeOp(node.schema, width(node), State("calendar"))
                return Piped(made, negative)
        raise unknown(phys)

    def _semijoin(self, phys: Phys, node: lp.SemiJoin) -> Operator:
        from dsms.operators import matching, semijoin

        match phys.variant:
            case "counting":
                return semijoin.keyed_semijoin(self, phys, node)
            case "matching":
                return matching.matching_semijoin(self, phys, node)
        raise unknown(phys)

    def _setop(self, phys: Phys, node: lp.SetOp) -> Operator:
        from dsms.operators import setops

        states = (phys.state(0), phys.state(1))
        stricts = (phys.children[0].strict, phys.children[1].strict)
        return setops.SetOpOp(node, states, stricts, order(node.left), self.eager_instants)

    def _distinct(self, phys: Phys, node: lp.Distinct) -> Operator:
        from dsms.operators.distinct_counting import CountingDistinctOp
        from dsms.operators.distinct_delta_star import DeltaStarOp
        from dsms.operators.distinct_input_storing import InputStoringOp

        strict = phys.children[0].strict
        match phys.variant:
            case "delta-star":
                return DeltaStarOp(node)
            case "counting":
                return CountingDistinctOp(node, phys.state(0), strict, self.eager_instants)
            case "input-storing":
                return InputStoringOp(node, phys.state(0), strict, self.eager_instants)
        raise unknown(phys)

    def _group(self, phys: Phys, node: lp.GroupBy) -> Operator:
        from dsms.operators import group, group_extreme

        child = phys.children[0]
        args = [[self.expr(a) for a in agg.args] for agg in node.aggs]
        filters = [None if agg.filter is None else self.predicate(agg.filter) for agg in node.aggs]
        match phys.variant:
            case "closing":
                from dsms.operators.group_closing import ClosingGroupOp

                keys = [self.expr(k) for k in node.keys]
                wide, by = width(child.node), order(child.node)
                return ClosingGroupOp(node, wide, by, keys, args, filters)
            case "deque":
                return group_extreme.extreme_op(
                    node, width(child.node), order(child.node), args[0][0], filters[0]
                )
            case "array":
                return group.GroupByOp(
                    node,
                    width(child.node),
                    phys.state(0),
                    child.strict,
                    [self.expr(k) for k in node.keys],
                    args,
                    filters,
                    order(child.node),
                    self.eager_instants,
                    age_of(child.node),
                    timed(node),
                )
        raise unknown(phys)


def age_of(node: lp.Node) -> Age | None:
    """How the rows of a dated edge tell their ages; None: they come in that order."""
    if not dated(node):
        return None
    at = tuple(i for i, is_timestamp in enumerate(timestamps(node)) if is_timestamp)
    return Age(at, numbers(node)) if at else None


def unknown(phys: Phys) -> InternalError:
    """For a variant that no operator answers to."""
    what = f"{type(phys.node).__name__} has no variant {phys.variant!r}"
    return InternalError("DS901", f"{what}; please report this")


def inside(builder: Builder, node: lp.Node) -> Builder:
    """The builder for the inputs of a node: an Append opens (or closes) a mixed block."""
    if isinstance(node, lp.Append) and node.mixed != builder.mixed:
        return replace(builder, mixed=node.mixed)
    return builder
