"""SELECT blocks, FROM items, set operations."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from lark import Token

from dsms.sql import ast, literals
from dsms.sql.ast import Pos
from dsms.sql.literals import bad
from dsms.sql.transform.grouping_sets import in_parentheses, short_for
from dsms.sql.transform.named_queries import Known, put_in
from dsms.sql.transform.over import Overs
from dsms.sql.transform.rules import (
    Clause,
    Parts,
    constant,
    listed,
    node,
    only,
    place_of,
    rule,
    token_rule,
    values,
)
from dsms.sql.transform.windows import once

Limit = tuple[int | None, int | None, ast.Per | None]  # LIMIT, OFFSET, PER


class Queries(Overs):
    """Everything from SELECT to LIMIT."""

    @token_rule("ALL", "DISTINCT")
    def quantifier(self, pos: Pos, token: Token) -> bool:
        return token.type == "DISTINCT"

    distinct_on = listed

    @token_rule("ALL", "DISTINCT")
    def all(self, pos: Pos, token: Token) -> bool:
        return token.type == "ALL"

    as_alias = only
    select_items = listed
    select_item = node(ast.SelectItem)
    star = table_star = node(ast.StarItem)

    def output_function(self, parts: Parts) -> ast.Output:
        kind, _, restore = parts[0].type.partition("_")
        return ast.Output(ast.OutputKind(kind.title()), bool(restore), pos=place_of(parts))

    where = having = qualify = only
    from_clause = order_by = listed
    no_keys = constant(())

    @rule
    def group_by(self, pos: Pos, *items: ast.Expr) -> tuple[ast.Expr, ...]:
        return tuple(short_for(item) or item for item in items)

    @rule
    def grouping_sets(self, pos: Pos, *sets: Any) -> ast.GroupingSets:
        return in_parentheses(pos, sets)

    @rule
    def output(
        self,
        pos: Pos,
        output: ast.Output,
        distinct: bool | None,
        items: tuple[Any, ...],
        window: Any,
    ) -> Any:
        if window is None and output.kind is ast.OutputKind.WSTREAM and not output.restore:
            raise bad(
                "DS108",
                pos,
                "Wstream is a window over the output, and its window is missing",
                "for example Wstream(*)[ROWS 10]",
            )
        if window is not None and output.kind is not ast.OutputKind.WSTREAM:
            raise bad(
                "DS108",
                window.pos,
                f"only Wstream takes a window, {output.kind} does not",
                "put the window behind the stream in FROM",
            )
        return replace(output, window=window), bool(distinct), items

    @rule
    def select(self, pos: Pos, distinct: Any, what: Any, from_: Any, *rest: Any) -> ast.Select:
        output, inner, items = what if isinstance(what[0], ast.Output) else (None, False, what)
        where, group_by, having, window, windows, qualify = rest
        return ast.Select(
            items,
            from_ or (),
            where,
            group_by or (),
            having,
            bool(inner or distinct is True),
            output,
            window,
            qualify,
            distinct if isinstance(distinct, tuple) else (),
            windows or (),
            pos=pos,
        )

    # FROM
    @rule
    def table_ref(self, pos: Pos, name: ast.Ident, window: ast.Window | None) -> ast.TableRef:
        return ast.TableRef(name, None, window, pos=pos)

    @rule
    def table_window_alias(
        self, pos: Pos, name: ast.Ident, window: ast.Window, alias: ast.Ident
    ) -> ast.TableRef:
        return ast.TableRef(name, alias, window, pos=pos)

    table_alias_window = node(ast.TableRef)

    @rule
    def archive_ref(self, pos: Pos, table: ast.TableRef) -> ast.TableRef:
        return replace(table, archive=True, pos=pos)

    @rule
    def subquery_ref(
        self, pos: Pos, query: ast.Query, window: ast.Window | None
    ) -> ast.SubqueryRef:
        return ast.SubqueryRef(query, None, window, pos=pos)

    @rule
    def subquery_window_alias(
        self, pos: Pos, query: ast.Query, window: ast.Window, alias: ast.Ident
    ) -> Any:
        return ast.SubqueryRef(query, alias, window, pos=pos)

    subquery_alias_window = node(ast.SubqueryRef)

    @rule
    def changes_ref(
        self, pos: Pos, output: ast.Output, name: ast.Ident, window: ast.Window | None
    ) -> ast.SubqueryRef:
        return _changes(pos, output, name, name, window)

    @rule
    def changes_window_alias(
        self, pos: Pos, output: ast.Output, name: ast.Ident, window: ast.Window, alias: ast.Ident
    ) -> ast.SubqueryRef:
        return _changes(pos, output, name, alias, window)

    @rule
    def changes_alias_window(
        self,
        pos: Pos,
        output: ast.Output,
        name: ast.Ident,
        alias: ast.Ident,
        window: ast.Window | None,
    ) -> ast.SubqueryRef:
        return _changes(pos, output, name, alias, window)

    @rule
    def unnest_ref(self, pos: Pos, *parts: Any) -> ast.UnnestRef:
        items, ordinality, alias, columns = parts[-4:]
        return ast.UnnestRef(items, bool(ordinality), alias, columns or (), pos=pos)

    @rule
    def lateral_ref(self, pos: Pos, query: ast.Query, alias: Any, columns: Any) -> ast.SubqueryRef:
        return ast.SubqueryRef(query, alias, None, None, True, columns or (), pos=pos)

    def with_ordinality(self, parts: Parts) -> bool:
        return True

    sample_by = listed

    @token_rule("INT", "FLOAT")
    def sample(self, pos: Pos, percent: Token, by: tuple[ast.ColumnRef, ...] | None) -> ast.Sample:
        return ast.Sample(Decimal(percent), by or (), pos=pos)

    @rule
    def sampled(self, pos: Pos, item: Any, sample: ast.Sample) -> ast.FromItem:
        return replace(item, sample=sample)

    def join_kind(self, parts: Parts) -> ast.JoinKind:
        kinds = [p.type for p in parts if p.type != "OUTER"]
        return ast.JoinKind(kinds[-1])  # LEFT SEMI is SEMI

    @rule
    def join_on(
        self, pos: Pos, left: Any, kind: ast.JoinKind | None, right: Any, on: ast.Expr
    ) -> ast.Join:
        return ast.Join(kind or ast.JoinKind.INNER, left, right, on, pos=pos)

    @rule
    def join_using(
        self, pos: Pos, left: Any, kind: ast.JoinKind | None, right: Any, names: Any
    ) -> ast.Join:
        return ast.Join(kind or ast.JoinKind.INNER, left, right, None, names, pos=pos)

    @rule
    def natural_join(self, pos: Pos, left: Any, kind: ast.JoinKind | None, right: Any) -> ast.Join:
        return ast.Join(kind or ast.JoinKind.INNER, left, right, natural=True, pos=pos)

    @rule
    def cross_join(self, pos: Pos, left: Any, right: Any) -> ast.Join:
        return ast.Join(ast.JoinKind.CROSS, left, right, pos=pos)

    @rule
    def asof_join(
        self, pos: Pos, left: Any, padded: bool | None, right: Any, on: Any, within: Any
    ) -> ast.Join:
        kind = ast.JoinKind.ASOF_LEFT if padded else ast.JoinKind.ASOF
        return ast.Join(kind, left, right, on, within=within, pos=pos)

    @rule
    def match_one(self, pos: Pos, name: ast.Ident, source: Any) -> ast.MatchStep:
        return _step(pos, ast.StepKind.ONE, name, source)

    @rule
    def match_many(self, pos: Pos, name: ast.Ident, source: Any) -> ast.MatchStep:
        return _step(pos, ast.StepKind.MANY, name, source)

    @rule
    def match_none(self, pos: Pos, name: ast.Ident, source: Any) -> ast.MatchStep:
        return _step(pos, ast.StepKind.NONE, name, source)

    match_per = listed

    @rule
    def match_ref(self, pos: Pos, *parts: Any) -> ast.Match:
        *steps, window, per, skip = parts
        return ast.Match(tuple(steps), window, per or (), bool(skip), pos=pos)

    def match_skip(self, parts: Parts) -> bool:
        return True

    def left_outer(self, parts: Parts) -> bool:
        return True

    def asof_within(self, parts: Parts) -> ast.Duration:
        return parts[-1]

    # whole queries
    @rule
    def union(self, pos: Pos, left: Any, keep_duplicates: bool | None, right: Any) -> ast.SetOp:
        return ast.SetOp(ast.SetOpKind.UNION, left, right, bool(keep_duplicates), pos=pos)

    @rule
    def except_(self, pos: Pos, left: Any, keep_duplicates: bool | None, right: Any) -> ast.SetOp:
        return ast.SetOp(ast.SetOpKind.EXCEPT, left, right, bool(keep_duplicates), pos=pos)

    @rule
    def intersect(self, pos: Pos, left: Any, keep_duplicates: bool | None, right: Any) -> ast.SetOp:
        return ast.SetOp(ast.SetOpKind.INTERSECT, left, right, bool(keep_duplicates), pos=pos)

    @rule
    def order_item(
        self, pos: Pos, expr: ast.Expr, descending: bool | None, nulls_first: bool | None
    ) -> Any:
        return ast.OrderItem(expr, bool(descending), nulls_first, pos=pos)

    @token_rule("ASC", "DESC")
    def direction(self, pos: Pos, token: Token) -> bool:
        return token.type == "DESC"

    @token_rule("FIRST", "LAST")
    def nulls(self, pos: Pos, token: Token) -> bool:
        return token.type == "FIRST"

    def limit(self, parts: Parts) -> Limit:
        return literals.count(parts[1], place_of(parts)), None, parts[2]

    def limit_offset(self, parts: Parts) -> Limit:
        count, offset = (literals.count(parts[k], place_of(parts)) for k in (1, 3))
        return count, offset, parts[4]

    def offset(self, parts: Parts) -> Limit:
        return None, literals.count(parts[1], place_of(parts)), None

    @rule
    def per(self, pos: Pos, *keys: Any) -> ast.Per:
        return ast.Per(() if keys == ((),) else keys, pos=pos)

    @rule
    def every(self, pos: Pos, length: ast.Duration, *options: Clause) -> ast.Slide:
        said = once(options)
        align, zone = (said[n].value if n in said else None for n in ("ALIGN TO", "TIME ZONE"))
        return ast.Slide(length, align, zone, pos=pos)

    def named_queries(self, parts: Parts) -> Known:
        known = Known()
        for name, columns, query in values(parts):
            known.add(name, columns or (), query)
        return known

    def named_query(self, parts: Parts) -> tuple[Any, ...]:
        return tuple(values(parts))

    @rule
    def query(
        self, pos: Pos, known: Any, body: Any, order_by: Any, limit: Any, every: Any
    ) -> ast.Query:
        if isinstance(body, ast.Query) and not order_by and not limit and not every:
            return put_in(body, known)[0] if known else body
        count, offset, per = limit or (None, None, None)
        found = ast.Query(body, order_by or (), count, offset, every, per, pos=pos)
        return put_in(found, known)[0] if known else found

    @rule
    def paren_query(self, pos: Pos, query: ast.Query) -> Any:
        return query.body if query.plain else query


def _step(
    pos: Pos, kind: ast.StepKind, name: ast.Ident, source: ast.Ident | ast.Query
) -> ast.MatchStep:
    if isinstance(source, ast.Query):
        return ast.MatchStep(kind, ast.SubqueryRef(source, name, pos=pos), pos=pos)
    return ast.MatchStep(kind, ast.TableRef(source, name, pos=pos), pos=pos)


def _changes(
    pos: Pos, output: ast.Output, name: ast.Ident, alias: ast.Ident, window: ast.Window | None
) -> ast.SubqueryRef:
    """Istream(q) in FROM is short for (SELECT Istream(*) FROM q) q."""
    if output.restore or output.kind not in (ast.OutputKind.ISTREAM, ast.OutputKind.DSTREAM):
        said = f"{output.kind.value}{'-restore' if output.restore else ''}({name.text})"
        hint = f"FROM {name.text} is its answer; what enters or leaves it are Istream and Dstream"
        raise bad("DS328", pos, f"{said} can't stand in FROM", hint)
    source = ast.TableRef(name, pos=name.pos)
    select = ast.Select((ast.StarItem(pos=pos),), (source,), output=output, pos=pos)
    return ast.SubqueryRef(ast.Query(select, pos=pos), alias, window, pos=pos)
