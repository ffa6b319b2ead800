"""From a typed logical plan to steps: as much as possible in one SQL text, and our own kernels
where SQL is not exact.

A relation under construction (`relation.Rel`) is either text not run yet or rows under a name with
filters and projections still to be done.  A node extends it in SQL if everything it needs is exact
there; if not, what is there so far is run, and a step of ours goes on from its rows.  So each
expression of ours sees exactly the rows that the algebra sends it, and fails for those alone.

`aged` says whether an operator above asks for the rows' ages and identities: FIRST and LAST,
windows over results, non-retroactive joins, and the order of the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dsms.aggregates.cards import CARDS
from dsms.errors import InternalError
from dsms.oneshot import joins
from dsms.oneshot.aggregates import exact_aggregate
from dsms.oneshot.asof import AsofStep
from dsms.oneshot.dialect import DUCKDB, Dialect
from dsms.oneshot.match import MatchStep
from dsms.oneshot.over import OverStep
from dsms.oneshot.ranked import TopStep
from dsms.oneshot.relation import (
    Bound,
    Op,
    Pick,
    Rel,
    Where,
    applied,
    column_names,
    listed,
    selected,
    stored,
)
from dsms.oneshot.scalars import all_exact, literal
from dsms.oneshot.steps import (
    LeafStep,
    Map,
    MapStep,
    SqlStep,
    Step,
    UnionStep,
    ValuesStep,
    WindowStep,
)
from dsms.oneshot.unnest import UnnestStep
from dsms.oneshot.valued import DistinctStep, GroupStep, SetOpStep
from dsms.plan.identity import by_value, order, places, timed, width
from dsms.sql import logical as lp
from dsms.sql.expr import Lit
from dsms.sql.multi_joins import as_joins
from dsms.sql.plan_reads import unwindowed
from dsms.sql.types import FLOAT, Kind, Schema

NO_ID = "CAST(-1 AS BIGINT)"


@dataclass(slots=True)
class Renderer:
    """Makes the steps of one plan, in order.

    arrival  aggregates that get their rows in the order in which these came"""

    dialect: Dialect = DUCKDB
    arrival: frozenset[str] = frozenset(name for name, card in CARDS.items() if card.ordered)
    steps: list[Step] = field(default_factory=list)

    # ------------------------------------------------------------ relations

    def name(self) -> str:
        """A new name."""
        return f"r{len(self.steps)}"

    def step(self, step: Step, schema: Schema, wide: int, aged: bool) -> Rel:
        """The relation that a new step leaves."""
        self.steps.append(step)
        return stored(step.target, schema, wide, aged)

    def materialized(self, rel: Rel, then: Sequence[Op] = (), schema: Schema | None = None) -> Rel:
        """The relation under a name, with nothing left to do: `then` is done too, which makes it of
        `schema`."""
        made = rel.schema if schema is None else schema
        if rel.text:
            step = SqlStep(
                self.name(), rel.text, rel.inputs, rel.schema, rel.width, rel.aged, Map(then)
            )
            return self.step(step, made, rel.width, rel.aged)
        ops = (*rel.ops, *then)
        if not ops:
            return rel
        return self.step(MapStep(self.name(), rel.name, Map(ops)), made, rel.width, rel.aged)

    def sql(self, rel: Rel) -> Rel:
        """The relation as SQL text."""
        if rel.text:
            return rel
        bound = Bound(rel.name, rel.base, rel.width, rel.aged)
        text = selected(bound)
        for op in rel.ops:
            more = applied(text, op, rel, self.dialect)
            if more is None:
                return self.sql(self.materialized(rel))
            text = more
        return replace(rel, name="", ops=(), base=(), text=text, inputs=(bound,))

    # ------------------------------------------------------------ nodes

    def rel(self, node: lp.Node, aged: bool) -> Rel:
        """The rows of a node."""
        match node:
            case lp.StreamScan() | lp.TableScan():
                return self.step(LeafStep(self.name(), node.leaf), node.schema, 1, aged)
            case lp.Values():
                return self.step(
                    ValuesStep(self.name(), node.rows, node.schema), node.schema, 1, aged
                )
            case lp.Window():
                return self._window(node, aged)
            case lp.Select():
                return self.done(self.rel(node.child, aged), Where(node.predicate), node.schema)
            case lp.Project():
                return self.done(self.rel(node.child, aged), Pick(node.exprs), node.schema)
            case lp.Join():
                return joins.join(self, node, aged)
            case lp.MultiJoin():
                return joins.join(self, as_joins(node), aged)
            case lp.JoinNRR():
                return joins.join_nrr(self, node, aged)
            case lp.AsofJoin():
                return self._asof(node, aged)
            case lp.Match():
                return self._match(node, aged)
            case lp.Unnest():
                return self._unnest(node, aged)
            case lp.SemiJoin():
                return joins.semi_join(self, node, aged)
            case lp.Union():
                return self._union(node, aged)
            case lp.SetOp():
                return self._set_op(node, aged)
            case lp.Distinct():
                return self._distinct(node, aged)
            case lp.GroupBy():
                return self._group(node, aged)
            case lp.Over():
                return self._over(node, aged)
            case lp.TopN():
                return self._top(node, aged)
            case lp.Append():
                return self._appended(node, aged)
            case lp.Output():
                return self.rel(node.child, aged)
        raise InternalError("DS901", f"{type(node).__name__} can't be run once; please report this")

    def done(self, rel: Rel, op: Op, schema: Schema) -> Rel:
        """The relation with a filter or a projection."""
        if not rel.text:
            return rel.then(op, schema)
        text = applied(rel.text, op, rel, self.dialect)
        return (
            replace(rel, text=text, schema=schema)
            if text is not None
            else self.materialized(rel, (op,), schema)
        )

    def _window(self, node: lp.Window, aged: bool) -> Rel:
        rel = self.materialized(self.rel(node.child, True))
        wide = width(node.child)
        step = WindowStep(self.name(), rel.name, node.spec, node.schema, wide, order(node.child))
        return self.step(step, node.schema, wide, aged)

    def _appended(self, node: lp.Append, aged: bool) -> Rel:
        """What a block over INTERNAL windows has appended depends on the past: it is given, like a
        leaf."""
        return self.step(LeafStep(self.name(), appended_leaf(node)), node.schema, 1, aged)

    def _asof(self, node: lp.AsofJoin, aged: bool) -> Rel:
        left, right = (self.materialized(self.rel(n, True)).name for n in lp.children(node))
        step = AsofStep(self.name(), left, right, node, aged)
        return self.step(step, node.schema, width(node), aged)

    def _match(self, node: lp.Match, aged: bool) -> Rel:
        inputs = map(unwindowed, node.inputs) if node.skip else node.inputs
        rows = tuple(self.materialized(self.rel(n, True)).name for n in inputs)
        step = MatchStep(self.name(), rows, node, aged)
        return self.step(step, node.schema, width(node), aged)

    def _unnest(self, node: lp.Unnest, aged: bool) -> Rel:
        child = self.materialized(self.rel(node.child, aged))
        step = UnnestStep(self.name(), child.name, node, aged)
        return self.step(step, node.schema, width(node), aged)

    def _union(self, node: lp.Union, aged: bool) -> Rel:
        rels = [self.rel(child, aged) for child in node.inputs]
        wide = width(node)
        if not any(r.text for r in rels):
            names = tuple(self.materialized(r).name for r in rels)
            return self.step(
                UnionStep(self.name(), names, places(node), aged), node.schema, wide, aged
            )
        rels = [self.sql(r) for r in rels]
        texts = [
            f"({_branch(k, r, places(node)[k]) if aged else r.text})" for k, r in enumerate(rels)
        ]
        inputs = tuple(dict.fromkeys(b for r in rels for b in r.inputs))
        return Rel(node.schema, wide, aged, text=" UNION ALL ".join(texts), inputs=inputs)

    def _set_op(self, node: lp.SetOp, aged: bool) -> Rel:
        by_hand = aged or has_floats(node.schema)
        left, right = self.rel(node.left, by_hand), self.rel(node.right, False)
        wide = width(node)
        if by_hand:
            names = self.materialized(left).name, self.materialized(right).name
            step = SetOpStep(self.name(), *names, node, width(node.left), order(node.left))
            return self.step(step, node.schema, wide, aged)
        left, right = self.sql(left), self.sql(right)
        text = (
            f"SELECT * FROM (({left.text}) {node.op.upper()}{' ALL' if node.all else ''} "
            f"({right.text})) AS x"
        )
        return Rel(node.schema, wide, False, text=text, inputs=_inputs(left, right))

    def _distinct(self, node: lp.Distinct, aged: bool) -> Rel:
        by_hand = aged or has_floats(node.schema)
        rel = self.rel(node.child, by_hand)
        if by_hand:
            kept = self.materialized(rel).name
            more = aged and timed(node)
            step = DistinctStep(self.name(), kept, node.schema, rel.width, order(node.child), more)
            return self.step(step, node.schema, rel.width + more, aged)
        rel = self.sql(rel)
        text = (
            f"SELECT DISTINCT * FROM ({rel.text}) AS x"
            if node.schema
            else f"SELECT * FROM ({rel.text}) AS x LIMIT 1"
        )
        return replace(rel, text=text, schema=node.schema)

    def _group(self, node: lp.GroupBy, aged: bool) -> Rel:
        needs_age = aged or any(a.fn in self.arrival for a in node.aggs)
        rel = self.rel(node.child, needs_age)
        text = None if aged else self._grouped(node)
        if text is not None:
            rel = self.sql(rel)
            return Rel(node.schema, 0, False, text=text.replace("\0", rel.text), inputs=rel.inputs)
        kept = self.materialized(rel).name
        step = GroupStep(self.name(), kept, node, rel.width, needs_age, aged, order(node.child))
        return self.step(step, node.schema, rel.width + timed(node), aged)

    def _over(self, node: lp.Over, aged: bool) -> Rel:
        source = self.materialized(self.rel(node.child, True)).name
        step = OverStep(self.name(), source, node, aged)
        return self.step(step, node.schema, width(node), aged)

    def _top(self, node: lp.TopN, aged: bool) -> Rel:
        by_arrival = not by_value(node.child)
        kept = self.materialized(self.rel(node.child, aged or by_arrival))
        step = TopStep(self.name(), kept.name, node, width(node.child), aged or by_arrival)
        return self.step(step, node.schema, width(node), aged)

    def _grouped(self, node: lp.GroupBy) -> str | None:
        """The text of a GROUP BY over the relation \\0, if all of it is exact."""
        keys = all_exact(node.keys, column_names(), self.dialect)
        if keys is None or any(k.type.kind is Kind.NULL for k in node.keys):
            return None
        aggs = [exact_aggregate(a, column_names(), self.dialect) for a in node.aggs]
        if any(a is None for a in aggs):
            return None
        zero = literal(Lit(0.0, FLOAT), self.dialect)
        keys = [
            f"CASE WHEN {k} = {zero} THEN {zero} ELSE {k} END" if e.type == FLOAT else k
            for k, e in zip(keys, node.keys, strict=True)
        ]
        by = f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else ""
        if not keys and not aggs:
            return "SELECT 0 AS z"
        return f"SELECT {listed([*keys, *map(str, aggs)])} FROM (\0) AS x{by}"


def _branch(number: int, rel: Rel, at: tuple[int, ...]) -> str:
    """One branch of UNION ALL with its number as the first id."""
    ids = branch_ids(number, at)
    return (
        f"SELECT {listed([f'c{i}' for i in range(len(rel.schema))], ['t', 'b', *ids])} FROM "
        f"({rel.text}) AS x"
    )


def branch_ids(number: int, at: Sequence[int]) -> list[str]:
    """The id columns of a branch of UNION ALL: its number, then its own and padding
    (`plan.identity.places`)."""
    return [
        f"CAST({number} AS BIGINT) AS i0",
        *(f"{NO_ID if p < 0 else f'i{p}'} AS i{k}" for k, p in enumerate(at, 1)),
    ]


def _inputs(*rels: Rel) -> tuple[Bound, ...]:
    return tuple(dict.fromkeys(b for r in rels for b in r.inputs))


def has_floats(schema: Schema) -> bool:
    """Whether equal values may differ (-0.0 and 0.0), so that it matters which row stands for
    them."""
    return any(f.type == FLOAT for f in schema)


def appended_leaf(node: lp.Append) -> int:
    """The number under which the rows of an Append are given: that of the first leaf below."""
    from dsms.plan.identity import leaves

    return min(leaves(node))
