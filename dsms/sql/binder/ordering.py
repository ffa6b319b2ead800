"""ORDER BY and LIMIT of a whole query: by columns of its answer, or by what its last block sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dsms.sql import ast
from dsms.sql.binder.aggregates import is_aggregate_call, position_error
from dsms.sql.binder.context import Bound, Context
from dsms.sql.binder.expressions import Env, bind
from dsms.sql.binder.lists import without_order
from dsms.sql.binder.scope import Scope, relation_scope
from dsms.sql.codes import error
from dsms.sql.expr import Col, Expr
from dsms.sql.logical import Sort
from dsms.sql.printer import to_sql

Order = tuple[Expr, bool, bool]


@dataclass(slots=True)
class Ordering:
    """ORDER BY of a query and the keys of its PER, handed to the block whose names they may use.
    `keys` and `by` are filled in there.  `nested`: it is that of a subquery; `of_rows`: names are
    columns of FROM first (`ast.Per`)."""

    items: Sequence[ast.OrderItem]
    per: Sequence[ast.Expr]
    nested: bool
    of_rows: bool = False
    keys: list[Order] = field(default_factory=list)
    by: list[Expr] = field(default_factory=list)

    @property
    def exprs(self) -> list[ast.Expr]:
        """All that it names."""
        return [*(item.expr for item in self.items), *self.per]

    def known(self, scope: Scope, exprs: Sequence[Expr], names: Sequence[str]) -> list[str]:
        """By which names it knows the columns of the select list; "": by none, since the name is
        that of another column of FROM."""
        if not self.of_rows:
            return list(names)
        return ["" if _hidden(scope, e, n) else n for e, n in zip(exprs, names, strict=True)]


def _hidden(scope: Scope, expr: Expr, name: str) -> bool:
    return any(c.expr != expr for c in scope.matching(ast.ColumnRef(ast.Ident(name))))


def ordering_of(query: ast.Query, nested: bool = False) -> Ordering:
    """What is said of the order of a query."""
    per = query.per or ast.Per()
    return Ordering(query.order_by, per.keys, nested, per.of_rows)


def output_column(node: ast.Expr, names: Sequence[str], word: str = "ORDER BY") -> int | None:
    """The output column that ORDER BY or PER names by position, alias or name."""
    if isinstance(node, ast.IntLit):
        if not 1 <= node.value <= len(names):
            raise position_error(word, node, len(names))
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
    """ORDER BY and PER over a set operation: its output columns, and expressions over them."""
    for item in ordering.items:
        expr = _of_output(ctx, bound, item.expr, item, "ORDER BY")
        without_order("lt", [expr.type], item)
        ordering.keys.append(order_key(item, expr))
    ordering.by += [_of_output(ctx, bound, key, key, "PER") for key in ordering.per]


def _of_output(ctx: Context, bound: Bound, node: ast.Expr, at: ast.Node, word: str) -> Expr:
    place = output_column(node, bound.names, word)
    if place is not None:
        return Col(place, bound.node.schema[place].type, bound.names[place])
    if not isinstance(node, ast.ColumnRef) or node.table is not None:
        hint = "order by a column of the first SELECT, or by its position"
        message = f"{word} over a set operation takes its output columns"
        raise error("DS332", message, at, hint if word == "ORDER BY" else "name such a column")
    return bind(Env(ctx, relation_scope(bound.schema(), None), word), node)


def sorted_(bound: Bound, ordering: Ordering, query: ast.Query) -> Sort:
    """The answer in order, cut to LIMIT.  Its schema is the first columns of its child's: the
    others, which only ORDER BY needs, are dropped."""
    return Sort(bound.node, tuple(ordering.keys), query.limit, query.offset or 0, bound.schema())
