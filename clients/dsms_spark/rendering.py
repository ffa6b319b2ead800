"""Plans rendered for Spark: the same steps as for DuckDB (`dsms.oneshot.render`), in Spark's
dialect.

What GROUP BY aggregates is worked out first, by our own expressions where SQL is not exact: so
Spark can add up itself whatever it adds up exactly, and only what is left is grouped by our own
kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dsms.aggregates.cards import CARDS
from dsms.oneshot.dialect import SPARK, Dialect
from dsms.oneshot.relation import Rel
from dsms.oneshot.render import Renderer
from dsms.oneshot.steps import Step
from dsms.operators.expressions import can_fail
from dsms.sql import logical as lp
from dsms.sql.expr import AggCall, Call, Col, Expr, Lit
from dsms.sql.types import Field, Kind, Schema


@dataclass(frozen=True, slots=True)
class RelationShape:
    """Of a relation that a step leaves: its columns, and whether there are ages and arrival numbers
    (how many)."""

    schema: Schema
    width: int
    aged: bool


@dataclass(slots=True)
class SparkRenderer(Renderer):
    """prefix  of the names of relations, which are views of one Spark session.

    Sketches get their rows in order, too: elsewhere these come so by themselves."""

    dialect: Dialect = SPARK
    arrival: frozenset[str] = frozenset(
        name for name, card in CARDS.items() if card.ordered or card.sampled
    )
    prefix: str = "r"
    shapes: dict[str, RelationShape] = field(default_factory=dict)

    def name(self) -> str:
        return f"{self.prefix}{len(self.steps)}"

    def step(self, step: Step, schema: Schema, wide: int, aged: bool) -> Rel:
        self.shapes[step.target] = RelationShape(schema, wide, aged)
        # the decorator makes a new class with slots, which `super()` without arguments does not
        # know of
        return Renderer.step(self, step, schema, wide, aged)

    def _group(self, node: lp.GroupBy, aged: bool) -> Rel:
        return Renderer._group(self, slim(node), aged)


def slim(node: lp.GroupBy) -> lp.GroupBy:
    """The same GROUP BY over a projection to what it groups by and aggregates.

    An argument that may fail is not tried on rows that its FILTER leaves out, here as there."""
    exprs: list[Expr] = []
    keys = tuple(_placed(k, exprs) for k in node.keys)
    aggs = tuple(_slim(a, exprs) for a in node.aggs)
    fields = tuple(Field(f"x{k}", e.type) for k, e in enumerate(exprs))
    return replace(node, child=lp.Project(node.child, tuple(exprs), fields), keys=keys, aggs=aggs)


def _slim(call: AggCall, exprs: list[Expr]) -> AggCall:
    only = None if call.filter is None else _placed(call.filter, exprs)
    args = [_guarded(a, call.filter) for a in call.args]
    return replace(call, args=tuple(_placed(a, exprs) for a in args), filter=only)


def _guarded(arg: Expr, only: Expr | None) -> Expr:
    if only is None or not can_fail(arg):
        return arg
    return Call("case", (only, arg, Lit(None, arg.type)), arg.type)


def _placed(expr: Expr, exprs: list[Expr]) -> Expr:
    """The expression as a column of the projection; constants stay what they are."""
    if isinstance(expr, Lit) or expr.type.kind is Kind.NULL:
        return expr if isinstance(expr, Lit) else Lit(None, expr.type)
    if expr not in exprs:
        exprs.append(expr)
    return Col(exprs.index(expr), expr.type)
