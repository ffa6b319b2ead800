"""What a rewrite rule is, and small builders that rules share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from dsms.plan.demand import Demand
from dsms.plan.exprs import identity_exprs, remap
from dsms.plan.options import PlanOptions
from dsms.plan.physical import Phys
from dsms.sql import logical as lp
from dsms.sql.expr import Col, Expr, conjunction, conjuncts
from dsms.sql.types import Schema


@dataclass(frozen=True, slots=True)
class Context:
    """What a rule may know of a node's surroundings.

    ordered  this is (part of) a branch of a union: the order of the id columns must not change
    asked    what those above ask of the rows beyond their values
    build    the physical plan that a logical (sub-)tree would get, with its cost
    """

    options: PlanOptions
    build: Callable[[lp.Node], Phys]
    ordered: bool = False
    asked: Demand = Demand.PLACE

    @property
    def free(self) -> bool:
        """No operator above depends on which of several equal rows stands for them, or which came
        first."""
        return self.asked is Demand.NOTHING


Apply = Callable[[lp.Node, Context], lp.Node]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rewrite, named like its function.  `apply` looks at one node and returns it, or a new one
    of equal schema.

    when  always: applied wherever it fits;  cost: tried, and kept if the whole plan gets cheaper;
          last: applied wherever it fits once the shape of the plan stands;  both: always and last
    """

    apply: Apply
    when: Literal["always", "cost", "last", "both"] = "always"

    @property
    def name(self) -> str:
        """What EXPLAIN calls it."""
        return self.apply.__name__


def select(child: lp.Node, parts: Sequence[Expr]) -> lp.Node:
    """The rows of `child` that meet all parts; itself if there are none."""
    predicate = conjunction(list(parts))
    return child if predicate is None else lp.Select(child, predicate, child.schema)


def both_hold(residual: Expr | None, parts: Sequence[Expr]) -> Expr | None:
    """A join condition and more parts, each said once: a rule that says again what is known must
    come to an end."""
    return conjunction(list(dict.fromkeys([*conjuncts(residual), *parts])))


def pick(child: lp.Node, columns: Sequence[int], schema: Schema | None = None) -> lp.Node:
    """The child's columns at these positions, in that order; itself if these are all, as they
    are."""
    wanted = tuple(child.schema[i] for i in columns) if schema is None else schema
    if list(columns) == list(range(len(child.schema))) and wanted == child.schema:
        return child
    return lp.Project(child, identity_exprs(child.schema, columns), wanted)


def narrow(child: lp.Node, needed: Iterable[int]) -> tuple[lp.Node, dict[int, int]]:
    """(the child reduced to the needed columns, old position -> new one).  At least one column
    stays."""
    kept = sorted(set(needed)) or [0] if child.schema else []
    if len(kept) == len(child.schema):
        return child, {i: i for i in kept}
    return pick(child, kept), {old: new for new, old in enumerate(kept)}


def narrows(child: lp.Node, needed: Iterable[int]) -> bool:
    """Whether `narrow` would drop a column."""
    return len(set(needed) or {0}) < len(child.schema)


def remap_keys(
    keys: Iterable[tuple[Expr, Expr]], left: dict[int, int], right: dict[int, int]
) -> tuple[tuple[Expr, Expr], ...]:
    """Join keys after columns have moved on both sides."""
    return tuple((remap(a, left), remap(b, right)) for a, b in keys)


def beside(left: dict[int, int], right: dict[int, int], old: int, new: int) -> dict[int, int]:
    """Column moves of left ++ right: `old` and `new` are the left widths before and after."""
    return {**left, **{old + i: new + j for i, j in right.items()}}


def column_positions(exprs: Sequence[Expr]) -> list[int] | None:
    """Positions if all expressions are bare columns."""
    found = [e.index for e in exprs if isinstance(e, Col)]
    return found if len(found) == len(exprs) else None
