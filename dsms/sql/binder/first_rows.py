"""ROW_NUMBER() in an order of its own, where it asks for the first rows of each key.

A number in an order that is not that of the stream changes whenever a row comes before others.
What other systems ask with it is which rows come first, and that has a form of its own here:

    SELECT ... QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC) <= n
    SELECT a, b FROM (SELECT ..., ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC) AS rn FROM s)
        WHERE rn <= n
    SELECT DISTINCT ON (k) ... ORDER BY k, x DESC                     (of one row)

become ``SELECT ... ORDER BY x DESC LIMIT n PER k``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql.binder.over_calls import FIRST_ROWS, RANKS, ROW_NUMBER, is_call
from dsms.sql.catalog import Catalog, StreamDef
from dsms.sql.codes import error

_UPTO = {"<=": 0, "<": -1, "=": 0}
_TURNED = {">=": "<=", ">": "<", "=": "="}
NAMELESS = "name the columns that are wanted: the place of a row among the first is not one of them"


@dataclass(frozen=True, slots=True)
class _First:
    """The first `count` rows of each key."""

    over: ast.Over
    count: int

    def of(self, query: ast.Query) -> ast.Query:
        """These of a query's rows."""
        keys, order = self.over.partition_by, self.over.order_by
        for key in (*keys, *(item.expr for item in order)):
            if isinstance(key, ast.IntLit):
                message = "a number in OVER is the same of all rows, and no place of a column"
                raise error("DS382", message, key, "name the column")
        per = ast.Per(keys, True, pos=self.over.pos)
        return replace(query, order_by=order, limit=self.count, per=per)


def ranked(query: ast.Query, catalog: Catalog) -> ast.Query:
    """The query in its own form, if it asks for first rows in one of those.  Raises DS382 where it
    says more than that."""
    body = query.body
    if not isinstance(body, ast.Select):
        return query
    if body.distinct_on:
        return _distinct_on(query, body)
    if body.qualify is not None:
        return _qualified(query, body, body.qualify, catalog)
    return replace(query, body=_numbered(body, catalog))


# ---------------------------------------------------------------- DISTINCT ON


def _distinct_on(query: ast.Query, body: ast.Select) -> ast.Query:
    at = body.distinct_on[0]
    if not query.order_by:
        message = "DISTINCT ON takes the first row of each key, and nothing says which comes first"
        raise error("DS382", message, at, "add ORDER BY, as in ORDER BY x DESC")
    if query.limit is not None or query.offset is not None:
        message = "LIMIT counts rows of the answer, and DISTINCT ON takes one of each key"
        hint = "put it into a subquery: SELECT ... FROM (SELECT DISTINCT ON (k) ...) LIMIT n"
        raise error("DS382", message, at, hint)
    per = ast.Per(body.distinct_on, pos=at.pos)
    return replace(query, body=replace(body, distinct_on=()), limit=1, per=per)


# ---------------------------------------------------------------- QUALIFY


def _qualified(
    query: ast.Query, body: ast.Select, qualify: ast.Expr, catalog: Catalog
) -> ast.Query:
    times = _times(body.from_, catalog)
    first, rest = _first([_spelled(body, c) for c in _conditions(qualify)], times)
    if first is None:
        return query
    if body.distinct or rest:
        message = "QUALIFY ROW_NUMBER() takes the first rows of each key, and this says more"
        hint = (
            "take the first rows in a subquery: SELECT ... FROM (SELECT ... QUALIFY ...) WHERE ..."
        )
        raise error("DS382", message, rest[0] if rest else body, hint)
    found = first.of(ast.Query(replace(body, qualify=None), pos=query.pos))
    if query.plain or _only_every(query):
        return replace(found, every=query.every)
    star = ast.Select((ast.StarItem(),), (ast.SubqueryRef(found),), pos=body.pos)
    return replace(query, body=star)


def _only_every(query: ast.Query) -> bool:
    return not query.order_by and query.limit is None and query.offset is None


def _spelled(body: ast.Select, qualify: ast.Expr) -> ast.Expr:
    """QUALIFY rn <= n, where rn is an alias of ROW_NUMBER(), or of a rank."""
    if not isinstance(qualify, ast.Comparison) or not isinstance(qualify.left, ast.ColumnRef):
        return qualify
    name = qualify.left
    for item in body.items:
        if (
            isinstance(item, ast.SelectItem)
            and item.alias is not None
            and name.table is None
            and name.name.matches(item.alias.text)
            and isinstance(item.expr, ast.Over)
            and is_call(item.expr, ROW_NUMBER, *RANKS)
        ):
            return replace(qualify, left=item.expr)
    return qualify


def _conditions(expr: ast.Expr | None) -> list[ast.Expr]:
    if expr is None:
        return []
    return list(expr.operands) if isinstance(expr, ast.And) else [expr]


def _first(
    conditions: Sequence[ast.Expr], times: Sequence[ast.Ident]
) -> tuple[_First | None, list[ast.Expr]]:
    """What the conditions say of first rows, and the others."""
    for k, condition in enumerate(conditions):
        found = _upto(condition)
        if found is None or not isinstance(found[0], ast.Over) or not _own(found[0], times):
            continue
        over, count = found
        assert isinstance(over, ast.Over)
        if not is_call(over, ROW_NUMBER):
            raise _of_then(over, condition)
        return _First(over, count), [*conditions[:k], *conditions[k + 1 :]]
    return None, list(conditions)


def _upto(condition: ast.Expr) -> tuple[ast.Expr, int] | None:
    """What is compared, and up to which number it is asked for."""
    match condition:
        case ast.Comparison(op, left, ast.IntLit(value)) if op in _UPTO:
            count = value + _UPTO[op]
        case ast.Comparison(op, ast.IntLit(value), left) if op in _TURNED:
            op, count = _TURNED[op], value + _UPTO[_TURNED[op]]
        case _:
            return None
    if count < 0 or (op == "=" and count != 1):
        return None
    return left, count


def _of_then(over: ast.Over, at: ast.Expr) -> QueryError:
    """DS382."""
    name = over.call.name.text.upper()
    message = (
        f"{name}() is the place that a row had when it came, which does not say whether it is "
        "among the first now"
    )
    hint = (
        "ROW_NUMBER() in its place takes the first rows as they change; for those that were among "
        f"the first when they came look at what a subquery appends: FROM (SELECT Istream(*, {name}"
        "() OVER (...) AS place) FROM s [RANGE 1 min]) q WHERE place <= 3"
    )
    return error("DS382", message, at, hint)


def _own(over: ast.Over, times: Sequence[ast.Ident]) -> bool:
    """Whether it numbers or ranks rows in an order other than that of the stream."""
    if not is_call(over, ROW_NUMBER, *RANKS) or not over.order_by or over.frame is not None:
        return False
    first = over.order_by[0]
    timely = isinstance(first.expr, ast.ColumnRef) and any(
        first.expr.name.matches(name.text) for name in times
    )
    return len(over.order_by) > 1 or first.descending or not timely


def _times(from_: Sequence[ast.FromItem], catalog: Catalog) -> list[ast.Ident]:
    """Names of columns that are the timestamps of the rows of FROM."""
    found: list[ast.Ident] = []
    for item in from_:
        match item:
            case ast.TableRef(name=name):
                stream = catalog.find(name.text, name.quoted)
                if isinstance(stream, StreamDef) and stream.timestamp is not None:
                    found.append(ast.Ident(stream.schema[stream.timestamp].name, True))
            case ast.SubqueryRef(query=ast.Query(body=ast.Select() as inner)):
                found += _shown(inner, _times(inner.from_, catalog))
    return found


def _shown(body: ast.Select, times: Sequence[ast.Ident]) -> list[ast.Ident]:
    """What these columns are called in the select list."""
    found: list[ast.Ident] = []
    for item in body.items:
        if isinstance(item, ast.StarItem):
            found += times
        elif isinstance(item.expr, ast.ColumnRef):
            name = item.expr.name
            found += [item.alias or t for t in times if name.matches(t.text)]
    return found


# ---------------------------------------------------------------- WHERE rn <= n


def _numbered(body: ast.Select, catalog: Catalog) -> ast.Select:
    """The form of a subquery that numbers rows, and a condition on the number."""
    match body.from_:
        case (ast.SubqueryRef(query=ast.Query(body=ast.Select() as inner) as query) as ref,):
            if not query.plain or ref.window is not None or inner.output is not None:
                return body
        case _:
            return body
    times = _times(inner.from_, catalog)
    for item in inner.items:
        if not isinstance(item, ast.SelectItem) or item.alias is None:
            continue
        if not isinstance(item.expr, ast.Over) or not _own(item.expr, times):
            continue
        if is_call(item.expr, ROW_NUMBER):
            return _without(body, ref, query, inner, item)
        for condition in _conditions(body.where):
            if _asks(condition, item.alias):
                raise _of_then(item.expr, condition)
    return body


def _without(
    body: ast.Select,
    ref: ast.SubqueryRef,
    query: ast.Query,
    inner: ast.Select,
    item: ast.SelectItem,
) -> ast.Select:
    """The outer SELECT over the first rows, without the column that numbers them."""
    assert item.alias is not None and isinstance(item.expr, ast.Over)
    conditions = _conditions(body.where)
    at = next((k for k, c in enumerate(conditions) if _asks(c, item.alias)), None)
    if at is None:
        return body
    found = _upto(conditions[at])
    assert found is not None
    rest = [*conditions[:at], *conditions[at + 1 :]]
    where = ast.And(tuple(rest)) if len(rest) > 1 else rest[0] if rest else None
    outer = replace(body, where=where)
    _check_unused(outer, item.alias)
    kept = tuple(i for i in inner.items if i is not item)
    if not kept or inner.distinct:
        message = "the subquery has no columns but the number, or leaves out equal rows by it"
        raise error("DS382", message, item, FIRST_ROWS)
    if inner.qualify is not None:
        message = "QUALIFY leaves out rows of the subquery that have been numbered"
        hint = "let the condition on the number, or that of QUALIFY, stand in a subquery of its own"
        raise error("DS382", message, inner.qualify, hint)
    first = _First(item.expr, found[1]).of(replace(query, body=replace(inner, items=kept)))
    return replace(outer, from_=(replace(ref, query=first),))


def _asks(condition: ast.Expr, name: ast.Ident) -> bool:
    found = _upto(condition)
    return (
        found is not None
        and isinstance(found[0], ast.ColumnRef)
        and found[0].name.matches(name.text)
    )


def _check_unused(outer: ast.Select, name: ast.Ident) -> None:
    """Raise DS382 where the number is shown, or used for something else."""
    for item in outer.items:
        if isinstance(item, ast.StarItem):
            message = f"* shows {name.text}, and the number of a row changes as others come"
            raise error("DS382", message, item, NAMELESS)
    used = [
        part
        for field in (outer.items, outer.where, outer.group_by, outer.having)
        for node in (field if isinstance(field, tuple) else (field,))
        if node is not None
        for part in ast.walk(node)
        if isinstance(part, ast.ColumnRef) and part.name.matches(name.text)
    ]
    if used:
        message = f"{name.text} changes whenever a row comes before others"
        raise error("DS382", message, used[0], NAMELESS)
