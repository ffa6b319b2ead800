"""Subqueries that stand for a value: ``v > (SELECT AVG(v) FROM s [RANGE 1 min])``.

One that always answers one row, and sees nothing of the query around it, is joined with its rows,
and read as a column.  In a grouped query those of the select list and HAVING are joined with the
groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql.binder.context import Block, BlockInput, Context
from dsms.sql.binder.from_clause import From
from dsms.sql.binder.groups import Leaf
from dsms.sql.binder.properties import append_only, reads_stream, strict
from dsms.sql.binder.scope import Scope
from dsms.sql.codes import error
from dsms.sql.expr import Col, Expr, rewrite
from dsms.sql.logical import GroupBy, Join, Node, Project, Values


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
    rows, or none."""
    try:
        bound = ctx.bind_query(ctx, node.query, beyond=beyond)
    except QueryError as failure:
        if failure.code == "DS322":
            failure.hint = (
                "a subquery for a value sees its own FROM alone: group it by the column, and "
                "join it, as in LEFT JOIN (SELECT k, MAX(x) AS m FROM r GROUP BY k) q ON q.k = s.k"
            )
        raise
    if len(bound.names) != 1:
        message = f"a subquery that stands for a value has one column, and this {len(bound.names)}"
        raise error("DS217", message, node, "select the one that is meant")
    if not _one_row(bound.node):
        message = "a subquery stands for a value where it always answers one row"
        hint = "aggregate it, without GROUP BY and HAVING: (SELECT MAX(x) FROM ...)"
        raise error("DS321", message, node, hint)
    found: Node = bound.node
    block.sources.append(
        BlockInput(node, False, not append_only(found), strict(found), reads_stream(found))
    )
    return found


def with_values(
    ctx: Context,
    block: Block,
    from_: From,
    queries: Iterable[ast.ScalarQuery],
    beyond: tuple[Scope, ...],
) -> dict[ast.ScalarQuery, Expr]:
    """Put each of the queries into a FROM, whose names don't reach it; what reads their values, by
    virtual positions."""
    values: dict[ast.ScalarQuery, Expr] = {}
    for query in dict.fromkeys(queries):
        value = bind_scalar(ctx, block, query, beyond)
        from_.group.items.append(Leaf(value, (from_.width,), query))
        values[query] = Col(from_.width, value.schema[0].type, value.schema[0].name)
        from_.width += 1
    return values


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


def open_columns(values: Sequence[Node]) -> list[Col]:
    """What reads the values that will be joined with the groups; `beside` says where they are."""
    fields = [value.schema[0] for value in values]
    return [Col(_OPEN + n, f.type, f.name) for n, f in enumerate(fields)]


def beside(node: Node, values: Sequence[Node]) -> tuple[Node, Callable[[Expr], Expr]]:
    """Each row with the values behind its columns, and the function that puts `open_columns` of an
    expression in their place."""
    width = len(node.schema)
    for value in values:
        node = Join(node, value, "inner", (), None, node.schema + value.schema)

    def placed(column: Col) -> Col:
        if column.index < _OPEN:
            return column
        return Col(width + column.index - _OPEN, column.type, column.name)

    return node, lambda expr: rewrite(expr, placed)
