"""Subqueries that stand for a value: ``v > (SELECT AVG(v) FROM s [RANGE 1 min])``.

One that always answers one row is joined with the rows around it, and read as a column.  In a
grouped query those of the select list and HAVING are joined with the groups.  `correlated` makes
groups of one that depends on the row, and so an outer join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql.binder.context import Block, BlockInput, Context, Value
from dsms.sql.binder.from_clause import From
from dsms.sql.binder.groups import Group, Leaf, Outer, padded
from dsms.sql.binder.properties import append_only, reads_stream, strict
from dsms.sql.binder.scope import Scope
from dsms.sql.codes import error
from dsms.sql.expr import Call, Col, Expr, conjuncts, rewrite, shift
from dsms.sql.logical import GroupBy, Join, Node, Project, Values
from dsms.sql.types import BOOL


def scalar_queries(
    exprs: Iterable[ast.Node], beside: Callable[[ast.Node], bool] = lambda node: False
) -> list[ast.ScalarQuery]:
    """Those in the expressions, but not in their subqueries, nor in what is `beside` the point;
    equal ones once."""
    return list(dict.fromkeys(q for expr in exprs for q in _in(expr, beside)))


def _in(node: ast.Node, beside: Callable[[ast.Node], bool]) -> Iterator[ast.ScalarQuery]:
    if isinstance(node, ast.ScalarQuery):
        yield node
    elif not isinstance(node, ast.Query) and not beside(node):
        for child in ast.children(node):
            yield from _in(child, beside)


def bind_scalar(
    ctx: Context, block: Block, node: ast.ScalarQuery, beyond: tuple[Scope, ...]
) -> Node:
    """Its one row of one column.  Raises DS217 for more columns, DS321 where there might be more
    rows, or none, DS322 where it asks for columns of the query around it."""
    bound = ctx.bind_query(ctx, node.query, beyond=beyond)
    if len(bound.names) != 1:
        raise many_columns(node, len(bound.names))
    if not _one_row(bound.node):
        raise many_rows(node)
    found: Node = bound.node
    block.sources.append(
        BlockInput(node, False, not append_only(found), strict(found), reads_stream(found))
    )
    return found


def many_columns(node: ast.Node, count: int) -> QueryError:
    """DS217."""
    message = f"a subquery that stands for a value has one column, and this {count}"
    return error("DS217", message, node, "select the one that is meant")


def many_rows(node: ast.Node) -> QueryError:
    """DS321: it may answer more rows than one, or none."""
    message = "a subquery stands for a value where it always answers one row"
    hint = "aggregate it, without GROUP BY and HAVING: (SELECT MAX(x) FROM ...)"
    return error("DS321", message, node, hint)


def bound_value(
    ctx: Context,
    block: Block,
    query: ast.ScalarQuery,
    beyond: tuple[Scope, ...],
    scope: Scope,
    width: int,
) -> Value:
    """What the subquery answers to a row, whose `width` columns `scope` names."""
    assert ctx.bind_value is not None
    return ctx.bind_value(ctx, block, query, beyond, scope, width)


def with_values(
    ctx: Context,
    block: Block,
    from_: From,
    queries: Iterable[ast.ScalarQuery],
    beyond: tuple[Scope, ...],
) -> dict[ast.Expr, Expr]:
    """Put each of the queries into a FROM, whose names don't reach it; what reads their values, by
    virtual positions.  One whose answer depends on the row is found by its keys: it is the right
    side of an outer join."""
    values: dict[ast.Expr, Expr] = {}
    for query in dict.fromkeys(queries):
        first = from_.width
        value = bound_value(ctx, block, query, beyond, from_.scope, first)
        from_.width += len(value.node.schema)
        leaf = Leaf(value.node, tuple(range(first, from_.width)), query)
        if value.keys:
            equal = [_equal(mine, shift(theirs, first)) for mine, theirs in value.keys]
            on = [*equal, *conjuncts(value.only)]
            from_.group = Group([Outer("left", from_.group, Group([leaf]), on, query)])
        else:
            from_.group.items.append(leaf)
        values[query] = shift(value.read, first)
    return values


def _equal(mine: Expr, theirs: Expr) -> Expr:
    return Call("eq", (mine, theirs), BOOL)


def _one_row(node: Node) -> bool:
    match node:
        case Project(child=child):
            return _one_row(child)
        case GroupBy(keys=keys):
            return not keys
        case Values(rows=rows):
            return len(rows) == 1
    return False


_OPEN = (
    1 << 20
)  # columns from here on stand behind the groups, when it is known how many these have


def open_columns(values: Sequence[Value]) -> list[Expr]:
    """What reads the values that will be joined with the groups; `beside` says where they are."""
    found: list[Expr] = []
    first = _OPEN
    for value in values:
        found.append(shift(value.read, first))
        first += len(value.node.schema)
    return found


def beside(node: Node, values: Sequence[Value]) -> tuple[Node, Callable[[Expr], Expr]]:
    """Each row with the values behind its columns, and the function that puts `open_columns` of an
    expression in their place."""
    width = len(node.schema)
    for value in values:
        found = value.node.schema
        kind: Literal["inner", "left"] = "left" if value.keys else "inner"
        schema = node.schema + padded(found, bool(value.keys))
        node = Join(node, value.node, kind, value.keys, value.only, schema)

    def placed(column: Col) -> Col:
        if column.index < _OPEN:
            return column
        return Col(width + column.index - _OPEN, column.type, column.name)

    return node, lambda expr: rewrite(expr, placed)
