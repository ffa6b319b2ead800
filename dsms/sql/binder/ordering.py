"""ORDER BY and LIMIT of a whole query: by columns of its answer, or by what its last block sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dsms.sql import ast
from dsms.sql.binder.aggregates import is_aggregate_call, position_error
from dsms.sql.binder.context import Bound, Context
from dsms.sql.binder.expressions import Env, bind
from dsms.sql.binder.lists import without_order
from dsms.sql.binder.scope import relation_scope
from dsms.sql.codes import error
from dsms.sql.expr import Col, Expr
from dsms.sql.logical import Sort
from dsms.sql.printer import to_sql

Order = tuple[Expr, bool, bool]


@dataclass(slots=True)
class Ordering:
    """ORDER BY of the whole query, handed to the block whose names it may use.  `keys` are filled
    in there."""

    items: Sequence[ast.OrderItem]
    keys: list[Order] = field(default_factory=list)


def output_column(item: ast.OrderItem, names: Sequence[str]) -> int | None:
    """The output column that ORDER BY names by position, alias or name."""
    node = item.expr
    if isinstance(node, ast.IntLit):
        if not 1 <= node.value <= len(names):
            raise position_error("ORDER BY", node, len(names))
        return node.value - 1
    if isinstance(node, ast.ColumnRef) and node.table is None:
        found = [i for i, n in enumerate(names) if node.name.matches(n)]
        return found[0] if len(found) == 1 else None
    if is_aggregate_call(node):
        text = to_sql(node)
        return names.index(text) if names.count(text) == 1 else None
    return None


def order_key(item: ast.OrderItem, expr: Expr) -> Order:
    return expr, item.descending, bool(item.nulls_first)


def order_columns(ctx: Context, bound: Bound, ordering: Ordering) -> None:
    """ORDER BY over a set operation: its output columns, and expressions over them."""
    env = Env(ctx, relation_scope(bound.schema(), None), "ORDER BY")
    for item in ordering.items:
        at = output_column(item, bound.names)
        if at is None:
            hint = "order by a column of the first SELECT, or by its position"
            if not isinstance(item.expr, ast.ColumnRef) or item.expr.table is not None:
                raise error(
                    "DS332", "ORDER BY over a set operation takes its output columns", item, hint
                )
            expr = bind(env, item.expr)
        else:
            expr = Col(at, bound.node.schema[at].type, bound.names[at])
        without_order("lt", [expr.type], item)
        ordering.keys.append(order_key(item, expr))


def sorted_(bound: Bound, ordering: Ordering, query: ast.Query) -> Sort:
    """The answer in order, cut to LIMIT.  Its schema is the first columns of its child's: the
    others, which only ORDER BY needs, are dropped."""
    return Sort(bound.node, tuple(ordering.keys), query.limit, query.offset or 0, bound.schema())
