"""Aggregates over a step of a MATCH that takes many rows: ``COUNT(b.v)`` where the step is ``b+``,
and ``COUNT(b)`` for its rows.

Each is a column of the match, and what a condition of a later step may name.  In the text its place
is taken by the name of a column that nobody can write, before anything else looks at the block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dsms.sql import ast
from dsms.sql.binder.aggregates import agg_call, is_aggregate_call
from dsms.sql.binder.context import Context
from dsms.sql.binder.expressions import Env
from dsms.sql.binder.from_clause import From
from dsms.sql.binder.match import patterns
from dsms.sql.binder.scope import Scope, VisibleColumn
from dsms.sql.codes import error
from dsms.sql.expr import Col
from dsms.sql.functions.aggregate import AGGREGATES
from dsms.sql.printer import to_sql
from dsms.sql.rewriting import replaced

FAMILIES = ("counts", "sums", "extremes", "ends")
KNOWN = {c.name for c in AGGREGATES if c.family in FAMILIES and len(c.forms) == 1} - {"count_star"}


def lifted(select: ast.Select) -> ast.Select:
    """The block with such aggregates at their steps, and names in their places."""
    many = [step for item in select.from_ for step in _many(item)]
    if not many:
        return select
    calls: dict[int, list[ast.FuncCall]] = {id(step): [] for step in many}

    def swap(node: ast.Node) -> ast.Node | None:
        if not is_aggregate_call(node):
            return None
        assert isinstance(node, ast.FuncCall)
        step = _over(node, many)
        if step is None:
            return None
        found = calls[id(step)]
        if node not in found:
            found.append(node)
        name = ast.Ident(_hidden(node), True, pos=node.pos)
        return ast.ColumnRef(name, step.source.alias, pos=node.pos)

    items = tuple(_named(item, replaced(item, swap)) for item in select.items)
    made = replace(
        select,
        items=items,
        where=None if select.where is None else replaced(select.where, swap),
        group_by=replaced(select.group_by, swap),
        having=None if select.having is None else replaced(select.having, swap),
    )
    return replace(made, from_=tuple(_with_calls(item, calls) for item in select.from_))


def _many(item: ast.FromItem) -> Iterator[ast.MatchStep]:
    match item:
        case ast.Match(steps=steps):
            yield from (s for s in steps if s.kind is ast.StepKind.MANY)
        case ast.Join(left=left, right=right):
            yield from _many(left)
            yield from _many(right)


def _over(call: ast.FuncCall, many: Sequence[ast.MatchStep]) -> ast.MatchStep | None:
    """The step whose columns, and no others, an aggregate reads, and no other aggregate."""
    if any(is_aggregate_call(part) for part in ast.walk(call) if part is not call):
        return None
    refs = [part for part in ast.walk(call) if isinstance(part, ast.ColumnRef)]
    for step in many:
        alias = step.source.alias
        assert alias is not None
        named = [r for r in refs if not (_counts_rows(call, step) and r is call.args[0])]
        if refs and all(r.table is not None and r.table.matches(alias.text) for r in named):
            return step
    return None


def _counts_rows(call: ast.FuncCall, step: ast.MatchStep) -> bool:
    """Is it ``COUNT(b)``?"""
    match call:
        case ast.FuncCall(args=(ast.ColumnRef(table=None, name=name),), distinct=False):
            alias = step.source.alias
            counts = call.name.text.casefold() == "count"
            return counts and alias is not None and name.matches(alias.text)
    return False


def _hidden(call: ast.FuncCall) -> str:
    """The name of its column."""
    return f"${to_sql(call)}"


def _named(
    item: ast.SelectItem | ast.StarItem, new: ast.SelectItem | ast.StarItem
) -> ast.SelectItem | ast.StarItem:
    """A column is called as it was written."""
    if isinstance(item, ast.StarItem) or item.alias is not None or item == new:
        return new
    assert isinstance(new, ast.SelectItem)
    return replace(new, alias=ast.Ident(to_sql(item.expr), True))


def _with_calls(item: ast.FromItem, calls: dict[int, list[ast.FuncCall]]) -> ast.FromItem:
    match item:
        case ast.Match(steps=steps):
            return replace(
                item, steps=tuple(replace(s, calls=tuple(calls.get(id(s), ()))) for s in steps)
            )
        case ast.Join(left=left, right=right):
            return replace(item, left=_with_calls(left, calls), right=_with_calls(right, calls))
    return item


def bind_aggregates(ctx: Context, from_: From) -> None:
    """Bind them, as columns behind those of FROM.  Raises DS377 for one that is not known here."""
    for pattern in patterns(from_.group):
        for k, (step, scope) in enumerate(zip(pattern.at.steps, pattern.scopes, strict=True)):
            for node in step.calls:
                _check(node)
                asked = node
                if _counts_rows(node, step):
                    asked = replace(node, args=(), star=True)
                call = agg_call(Env(ctx, scope, "the select list"), asked)
                call = replace(call, name=to_sql(node))
                pattern.aggs.append((k, call, from_.width))
                column = Col(from_.width, call.type, call.name)
                from_.width += 1
                from_.scope = _shown(from_.scope, step, _hidden(node), column)
                from_.inside = _shown(from_.inside, step, _hidden(node), column)


def _shown(scope: Scope, step: ast.MatchStep, name: str, column: Col) -> Scope:
    assert step.source.alias is not None
    alias = step.source.alias.text
    seen = VisibleColumn(name, column, (alias,), hidden=True)
    relations = scope.relations if alias in scope.relations else (*scope.relations, alias)
    return replace(scope, columns=(*scope.columns, seen), relations=relations)


def _check(node: ast.FuncCall) -> None:
    if node.name.text.casefold() not in KNOWN:
        hint = f"known there: {', '.join(sorted(k.upper() for k in KNOWN))}"
        message = f"{node.name.text.upper()} does not go over the rows of a step of MATCH"
        raise error("DS377", message, node, hint)
