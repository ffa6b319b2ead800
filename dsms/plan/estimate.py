"""Estimates for every edge of a plan: rates, sizes, lifetimes, values.

Sizes follow from rates by Little's law, C = λ·T; those of joins from containment of value sets and
uniform values, φ = C1·C2 / max(v1, v2) (Golab 2006, §5.3.1).  Defaults for what has not been
measured: `dsms.plan.statistics`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from dsms.aggregates.cards import CARDS
from dsms.plan.physical import Strategy
from dsms.plan.statistics import HORIZON, ColumnStatistics, Statistics, column_of, selectivity
from dsms.plan.windows import partition
from dsms.sql import logical as lp
from dsms.sql.expr import AggCall, Call, Col, Expr, Lit, conjuncts
from dsms.sql.multi_joins import as_joins
from dsms.sql.window import (
    First,
    Landmark,
    Lasting,
    Latest,
    Now,
    Partitioned,
    Rows,
    Session,
    Throttled,
    Time,
    Unbounded,
    When,
)

SECOND = 1_000_000.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is expected of an edge.

    rate  rows born per second;  size  rows alive;  span  longest lifetime (s; inf: for ever)
    premature  share of deaths that their `exp` did not foretell;  columns  one per column of the
               schema
    """

    rate: float
    size: float
    span: float
    premature: float
    columns: tuple[ColumnStatistics, ...]

    @property
    def deaths(self) -> float:
        """Rows that die per second, however: all that are born, once windows are full, unless they
        live for ever."""
        return 0.0 if math.isinf(self.span) and not self.premature else self.rate

    def announced(self, strategy: Strategy) -> float:
        """Negative tuples per second on this edge."""
        return self.deaths * (1.0 if strategy == "nt" else self.premature)

    @property
    def life(self) -> float:
        """Mean lifetime in seconds."""
        return self.size / self.rate if self.rate else HORIZON


def estimate(
    node: lp.Node, inputs: Sequence[Estimate], stats: Statistics, variant: str = ""
) -> Estimate:
    """What to expect of the node's output, given that of its inputs."""
    match node:
        case lp.StreamScan():
            rate = stats.rate(node.stream)
            return Estimate(rate, rate * HORIZON, math.inf, 0.0, stats.columns(node.stream))
        case lp.TableScan():
            rows, changes = stats.table(node.table)
            return Estimate(changes, rows, math.inf, 1.0, stats.columns(node.table))
        case lp.Values():
            rows = float(len(node.rows))
            return Estimate(
                0.0,
                rows,
                math.inf,
                0.0,
                tuple(ColumnStatistics(max(1.0, rows)) for _ in node.schema),
            )
        case lp.Window():
            return _window(node, inputs[0])
        case lp.Select():
            return _selected(node.predicate, inputs[0])
        case lp.Project():
            return replace(
                inputs[0], columns=tuple(column_of(e, inputs[0].columns) for e in node.exprs)
            )
        case lp.Join():
            return _join(node, inputs[0], inputs[1])
        case lp.MultiJoin():
            return _multi_join(node, inputs)
        case lp.JoinNRR():
            return _join_nrr(node, inputs[0], stats)
        case lp.Unnest():
            return _opened(node, inputs[0])
        case lp.AsofJoin():
            return _asof_join(node, inputs[0], inputs[1], stats)
        case lp.Match():
            return _match(node, inputs)
        case lp.SemiJoin():
            return _semi_join(node, inputs[0], inputs[1], stats)
        case lp.Union():
            return _union(inputs)
        case lp.SetOp():
            return _set_op(node, inputs[0], inputs[1], stats)
        case lp.Distinct():
            return _distinct(inputs[0], variant)
        case lp.Over():
            own = (ColumnStatistics(),) * (len(node.schema) - len(inputs[0].columns))
            return replace(inputs[0], columns=(*inputs[0].columns, *own))
        case lp.GroupBy():
            return _group(node, inputs[0])
        case lp.TopN():
            return _top(node, inputs[0])
        case lp.Append():
            child = inputs[0]
            return (
                child
                if node.mixed
                else replace(child, size=child.rate * HORIZON, span=math.inf, premature=0.0)
            )
        case lp.Sort():
            size = inputs[0].size if node.limit is None else min(inputs[0].size, float(node.limit))
            return replace(inputs[0], size=size)
        case lp.Answer() | lp.Output():
            return inputs[0]
        case _:
            assert_never(node)


def _thinned(rows: Estimate, share: float, premature: float | None = None) -> Estimate:
    """The estimate when only a share of the rows passes."""
    kept = rows.premature if premature is None else premature
    return replace(rows, rate=rows.rate * share, size=rows.size * share, premature=kept)


def _selected(predicate: Expr, rows: Estimate) -> Estimate:
    """What passes; a column compared with a constant has that value only."""
    columns = list(rows.columns)
    for part in conjuncts(predicate):
        match part:
            case Call("eq", (Col() as column, Lit())) | Call("eq", (Lit(), Col() as column)):
                columns[column.index] = replace(columns[column.index], distinct=1.0, common=())
    return replace(_thinned(rows, selectivity(predicate, rows.columns)), columns=tuple(columns))


def _window(node: lp.Window, child: Estimate) -> Estimate:
    spec = node.spec
    match spec:
        case Time():
            span = (spec.length - spec.until) / SECOND
            return replace(child, size=child.rate * span, span=span)
        case Now():
            return replace(child, size=1.0, span=1 / SECOND)
        case Rows() | Partitioned():
            parts = _combinations([child.columns[i] for i in partition(spec)], HORIZON * child.rate)
            size, span = float(max(1, spec.count - spec.until)) * parts, child.span
            if isinstance(spec, Partitioned) and spec.age is not None:
                span = spec.age / SECOND
                size = min(size, max(1.0, child.rate * span))
            return replace(child, size=size, span=span, premature=1.0)
        case Latest():
            parts = _combinations([child.columns[i] for i in spec.by], max(1.0, child.size))
            return replace(child, size=parts, premature=1.0)
        case Session() | When():
            return _episodes(spec, child)
        case First():
            parts = _combinations([child.columns[i] for i in spec.by], HORIZON * child.rate)
            size = min(spec.count * parts, child.rate * HORIZON)
            return replace(child, rate=size / HORIZON, size=size)
        case Throttled():
            span = spec.length / SECOND
            parts = _combinations([child.columns[i] for i in spec.by], HORIZON * child.rate)
            rate = min(child.rate, parts / span)
            return replace(child, rate=rate, size=rate * span, span=span)
        case Lasting():
            return replace(child, size=child.rate * HORIZON, span=HORIZON)
        case Unbounded() | Landmark():
            return child
        case _:
            assert_never(spec)


def _episodes(spec: Session | When, child: Estimate) -> Estimate:
    """As if each key had one row in its episode, or as many as come while a gap passes."""
    if spec.at_close:
        return child
    parts = _combinations([child.columns[i] for i in spec.by], HORIZON * child.rate)
    span = spec.gap / SECOND if isinstance(spec, Session) and isinstance(spec.gap, int) else 0.0
    return replace(child, size=max(parts, child.rate * span), premature=1.0)


def _combinations(columns: Sequence[ColumnStatistics], size: float) -> float:
    """Different combinations of values in a set of `size` rows: the product, but no more than
    rows."""
    return max(1.0, min(size, math.prod(c.distinct for c in columns)))


def match_share(
    keys: Sequence[tuple[Expr, Expr]], left: Estimate, right: Sequence[ColumnStatistics]
) -> float:
    """Share of the cross product that meets the key equalities: 1 / max(v1, v2) each (§5.3.1)."""
    share = 1.0
    for a, b in keys:
        share /= max(column_of(a, left.columns).distinct, column_of(b, right).distinct)
    return share


def _join(node: lp.Join, left: Estimate, right: Estimate) -> Estimate:
    both = left.columns + right.columns
    share = match_share(node.keys, left, right.columns) * selectivity(node.residual, both)
    rate = (left.rate * right.size + right.rate * left.size) * share
    size = left.size * right.size * share
    premature = 1 - (1 - left.premature) * (1 - right.premature)
    if node.kind != "inner":
        padded = (left, right, left)[("left", "right", "full").index(node.kind)]
        rate, size = max(rate, padded.rate), max(size, padded.size)
        premature = max(premature, min(1.0, share * right.size))
    return Estimate(
        rate, size, min(left.span, right.span), premature, _after_keys(node.keys, left, right)
    )


def _multi_join(node: lp.MultiJoin, inputs: Sequence[Estimate]) -> Estimate:
    """Of Joins of two: in whatever order, the same comes of them."""
    joins: list[lp.Node] = [as_joins(node)]
    while isinstance(join := joins[-1], lp.Join) and len(joins) < len(inputs) - 1:
        joins.append(join.left)
    found = inputs[0]
    for join, right in zip(reversed(joins), inputs[1:], strict=True):
        assert isinstance(join, lp.Join)
        found = _join(join, found, right)
    return found


def _after_keys(
    keys: Sequence[tuple[Expr, Expr]], left: Estimate, right: Estimate
) -> tuple[ColumnStatistics, ...]:
    """Columns of both sides; a joined pair of columns has min(v1, v2) values left."""
    columns = [*left.columns, *right.columns]
    for a, b in keys:
        fewer = min(column_of(a, left.columns).distinct, column_of(b, right.columns).distinct)
        for expr, at in ((a, 0), (b, len(left.columns))):
            index = getattr(expr, "index", None)
            if index is not None:
                columns[at + index] = replace(columns[at + index], distinct=fewer)
    return tuple(columns)


ITEMS = 4.0  # of a list of which nothing is known


def _opened(node: lp.Unnest, child: Estimate) -> Estimate:
    """Rows times ITEMS."""
    made = len(node.schema) - len(node.child.schema)
    more = tuple(ColumnStatistics(max(1.0, child.size)) for _ in range(made))
    return replace(
        child, rate=child.rate * ITEMS, size=child.size * ITEMS, columns=(*child.columns, *more)
    )


def _join_nrr(node: lp.JoinNRR, child: Estimate, stats: Statistics) -> Estimate:
    rows, _ = stats.table(node.table.table)
    columns = stats.columns(node.table.table)
    share = match_share(node.keys, child, columns) * selectivity(
        node.residual, child.columns + columns
    )
    each = max(rows * share, 1.0 if node.kind == "left" else 0.0)
    both = replace(child, columns=child.columns + columns)
    return _thinned(both, each)


def _asof_join(node: lp.AsofJoin, left: Estimate, right: Estimate, stats: Statistics) -> Estimate:
    """One result a row at most: those for whose key a row has come."""
    both = replace(left, columns=_after_keys(node.keys, left, right))
    return both if node.kind == "left" else _thinned(both, partners(node.keys, left, right, stats))


def _match(node: lp.Match, inputs: Sequence[Estimate]) -> Estimate:
    """One match of each first row at most: where a row of its key comes in time at each step, and
    none where none may come (1 - exp(-C2/v2), exp(-C2/v2))."""
    both = zip(inputs, node.kinds, strict=True)
    columns = tuple(c for rows, kind in both if kind == "one" for c in rows.columns)
    aggs = tuple(ColumnStatistics() for _ in node.aggs)
    share, read = 1.0, (*(c for rows in inputs for c in rows.columns), *aggs)
    for k, (rows, condition) in enumerate(zip(inputs, node.conditions, strict=True)):
        values = math.prod(column_of(same[k], rows.columns).distinct for same in node.keys)
        none = math.exp(-rows.size / values * selectivity(condition, read))
        share *= 1.0 if k == 0 else none if node.kinds[k] == "none" else 1 - none
    return replace(_thinned(inputs[0], min(0.95, max(0.05, share))), columns=(*columns, *aggs))


def partners(
    keys: Sequence[tuple[Expr, Expr]], left: Estimate, right: Estimate, stats: Statistics
) -> float:
    """Share of left rows that find a partner on the right, kept off 0 and 1 because estimates are
    rough.

    Its value must be among those that come on the right, and one of the C2 rows there must have it:
    1 - exp(-C2/v2).
    """
    share, values = 1.0, 1.0
    for a, b in keys:
        share = min(share, stats.overlap(column_of(a, left.columns), column_of(b, right.columns)))
        values *= column_of(b, right.columns).distinct
    return min(0.95, max(0.05, share * -math.expm1(-right.size / values)))


def interrupted(
    keys: Sequence[tuple[Expr, Expr]], left: Estimate, right: Estimate, stats: Statistics
) -> float:
    """Share of results without a partner to whom one comes before they die (premature expirations,
    §3.5.2).

    Partners of one key value come at rate λ2/v2, for the share of values that both sides have.
    """
    share, per_value = 1.0, right.rate
    for a, b in keys:
        share = min(share, stats.overlap(column_of(a, left.columns), column_of(b, right.columns)))
        per_value /= column_of(b, right.columns).distinct
    return share * -math.expm1(-per_value * min(left.life, HORIZON))


def _semi_join(node: lp.SemiJoin, left: Estimate, right: Estimate, stats: Statistics) -> Estimate:
    met = partners(node.keys, left, right, stats) * selectivity(
        node.residual, left.columns + right.columns
    )
    cut = (
        interrupted(node.keys, left, right, stats)
        if node.anti or not math.isinf(right.span)
        else 0.0
    )
    return _thinned(left, 1 - met if node.anti else met, 1 - (1 - left.premature) * (1 - cut))


def _union(inputs: Sequence[Estimate]) -> Estimate:
    rate, size = sum(e.rate for e in inputs), sum(e.size for e in inputs)
    premature = sum(e.premature * e.rate for e in inputs) / rate if rate else 0.0
    columns = [
        replace(max(same, key=lambda c: c.distinct), origin=None, common=())
        for same in zip(*(e.columns for e in inputs), strict=True)
    ]
    return Estimate(rate, size, max(e.span for e in inputs), premature, tuple(columns))


def _set_op(node: lp.SetOp, left: Estimate, right: Estimate, stats: Statistics) -> Estimate:
    mine = _combinations(left.columns, left.size)
    met = min(0.9, max(0.1, _combinations(right.columns, right.size) / mine))
    share = (1 - met if node.op == "except" else met) * (
        1.0 if node.all else mine / max(left.size, 1.0)
    )
    return _thinned(left, min(1.0, share), 1 - (1 - left.premature) * (1 - met))


def _distinct(child: Estimate, variant: str) -> Estimate:
    """d values; each comes anew about once a lifetime, under counting only if it was away for a
    while."""
    values = _combinations(child.columns, child.size)
    rate = min(child.rate, values / child.life) if child.life else child.rate
    premature = child.premature
    if variant == "counting":
        rate, premature = rate * math.exp(-child.size / values), 1.0 if child.deaths else 0.0
    return Estimate(rate, values, child.span, premature, child.columns)


def _group(node: lp.GroupBy, child: Estimate) -> Estimate:
    """Every arrival and every death replaces the row of its group."""
    keys = [column_of(k, child.columns) for k in node.keys]
    groups = _combinations(keys, child.size)
    columns = (*keys, *(_aggregate(a, groups) for a in node.aggs))
    return Estimate(child.rate + child.deaths, groups, math.inf, 1.0, columns)


def _top(node: lp.TopN, child: Estimate) -> Estimate:
    """Values as if drawn: a row comes in with the share of the first among the rows of its key, and
    another one, that was there, where one of them leaves."""
    groups = _combinations([column_of(k, child.columns) for k in node.by], child.size)
    size = min(child.size, groups * node.limit)
    share = size / child.size if child.size else 1.0
    if share >= 1.0:
        return child
    premature = 1 - (1 - child.premature) / 2
    return replace(child, rate=child.rate * min(1.0, 2 * share), size=size, premature=premature)


def _aggregate(call: AggCall, groups: float) -> ColumnStatistics:
    return ColumnStatistics(groups, nulls=0.0 if CARDS[call.fn].total else 0.05)
