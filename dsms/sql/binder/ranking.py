"""ORDER BY ... LIMIT n PER k: of each key the rows that come first, as a relation.

It stands at the end of a query, where LIMIT of one that is continuous means it of all rows
together, and of a subquery, where LIMIT never means anything else.  Rows of a relation have no
order: what is asked once or at boundaries is put in order besides.
"""

from __future__ import annotations

from dsms.sql import ast
from dsms.sql.binder.boundaries import at_boundaries
from dsms.sql.binder.context import Bound, project
from dsms.sql.binder.ordering import Ordering, sorted_
from dsms.sql.codes import error
from dsms.sql.expr import Col
from dsms.sql.logical import Node, Sort, TopN


def answered(bound: Bound, ordering: Ordering, query: ast.Query, continuous: bool) -> Node:
    """The rows of a whole query as its end says.  Raises DS318, DS368."""
    if query.per is not None:
        _check_per(bound, query)
    if continuous:
        return (
            bound.node if query.plain or _only_every(query) else _followed(bound, ordering, query)
        )
    if query.per is None:
        return bound.node if _only_every(query) else sorted_(bound, ordering, query)
    keys = tuple(ordering.keys)
    return Sort(_top(bound, ordering, query), keys, None, 0, bound.schema())


def of_subquery(bound: Bound, ordering: Ordering, query: ast.Query) -> Node:
    """The rows of a subquery as its end says.  Raises DS319, DS368."""
    if _only_every(query):
        return bound.node
    if query.per is not None:
        _check_per(bound, query)
    at = query.order_by[0] if query.order_by else query
    if not query.order_by or query.limit is None:
        message = "ORDER BY and LIMIT apply to the answer, not to a subquery"
        hint = "move ORDER BY and LIMIT to the end of the outermost query"
        if query.limit is not None:
            hint += "; with both, ORDER BY x LIMIT n, a subquery is the n first of its rows"
        raise error("DS319", message, at, hint)
    if query.offset is not None:
        message = "OFFSET applies to the answer, not to a subquery"
        raise error("DS319", message, at, "leave OFFSET out, or move it to the outermost query")
    _check_internal(bound, query)
    return _shown(bound, _top(bound, ordering, query))


def _only_every(query: ast.Query) -> bool:
    return not query.order_by and query.limit is None and query.offset is None


def _followed(bound: Bound, ordering: Ordering, query: ast.Query) -> Node:
    """The first rows of an answer that changes with each row."""
    if query.offset is not None or query.limit is None or not query.order_by:
        raise _no_order(query)
    _check_internal(bound, query)
    return _shown(bound, _top(bound, ordering, query))


def _no_order(query: ast.Query) -> Exception:
    at = query.order_by[0] if query.order_by else query
    what = "OFFSET" if query.offset is not None else "ORDER BY" if query.order_by else "LIMIT"
    message = (
        f"{what} needs an answer that is given as a whole: a continuous query reports "
        "changes, one by one"
    )
    hint = (
        f"say when it is answered: {at_boundaries(query)}; ask once (without CREATE QUERY), or "
        f"leave {what} out"
    )
    if query.offset is None:
        hint += "; ORDER BY x LIMIT n, both of them, are the n first rows as they change"
    return error("DS318", message, at, hint)


def _top(bound: Bound, ordering: Ordering, query: ast.Query) -> TopN:
    assert query.limit is not None
    by, keys = tuple(dict.fromkeys(ordering.by)), tuple(ordering.keys)
    return TopN(bound.node, by, keys, query.limit, bound.node.schema)


def _shown(bound: Bound, node: Node) -> Node:
    """Without the columns that only ORDER BY and PER need."""
    columns = [Col(i, f.type, f.name) for i, f in enumerate(node.schema[: len(bound.names)])]
    return project(node, columns, bound.names)


def _check_per(bound: Bound, query: ast.Query) -> None:
    assert query.per is not None
    if not query.order_by:
        message = "LIMIT n PER takes the first rows of each key, and nothing says which come first"
        hint = "add ORDER BY before LIMIT, as in ORDER BY x DESC LIMIT 3 PER k"
        raise error("DS368", message, query.per, hint)
    if query.offset is not None:
        message = "OFFSET leaves out rows of an answer, not of each key"
        hint = "leave OFFSET out, or leave PER out"
        raise error("DS368", message, query.per, hint)
    _check_internal(bound, query)


def _check_internal(bound: Bound, query: ast.Query) -> None:
    if bound.internal is None:
        return
    message = (
        "INTERNAL windows append results, which then stay: LIMIT takes rows back when others "
        "come before them"
    )
    raise error("DS368", message, bound.internal, "leave INTERNAL out")
