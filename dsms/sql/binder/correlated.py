"""Subqueries for a value that depends on the row that asks: ``(SELECT AVG(v) FROM u WHERE u.k =
s.k)``.

Such an aggregate over the rows that are equal to the row in some columns is the row's own group in
the subquery grouped by them.  So the subquery becomes groups, and the row finds its own by an outer
join: where there is none, COUNT is 0 and other aggregates are NULL, as over no rows.  A NULL is
equal to nothing, and finds none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dsms.errors import QueryError
from dsms.sql import ast, functions
from dsms.sql.binder import match
from dsms.sql.binder.aggregates import (
    Grouping,
    aggregate_calls,
    has_aggregate,
    is_aggregate_call,
)
from dsms.sql.binder.calls import cast
from dsms.sql.binder.conditions import parts, values_in
from dsms.sql.binder.context import Block, BlockInput, Context, Value
from dsms.sql.binder.expressions import Env, bind, bind_condition
from dsms.sql.binder.from_clause import From, bind_from
from dsms.sql.binder.groups import split
from dsms.sql.binder.joins import build, select_over, settle_tables
from dsms.sql.binder.over import of_select
from dsms.sql.binder.properties import append_only, reads_stream, strict
from dsms.sql.binder.scalar_queries import (
    bind_scalar,
    many_columns,
    many_rows,
    scalar_queries,
    with_values,
)
from dsms.sql.binder.scope import Scope
from dsms.sql.binder.subqueries import bind_tests
from dsms.sql.binder.typenames import default_type
from dsms.sql.codes import error
from dsms.sql.expr import (
    AggCall,
    Call,
    Col,
    Expr,
    Lit,
    columns,
    conjunction,
    conjuncts,
    rewrite,
    shift,
)
from dsms.sql.logical import Node
from dsms.sql.types import INT


def bind_value(
    ctx: Context,
    block: Block,
    node: ast.ScalarQuery,
    beyond: tuple[Scope, ...],
    scope: Scope,
    width: int,
) -> Value:
    """What a subquery answers to a row, whose `width` columns `scope` names; `beyond` are names
    that it can't reach.  Raises DS217 and DS321 as `bind_scalar`, DS379 where it depends on the row
    in a way that no grouping gives, DS322 for columns of queries further out."""
    seen = ctx.seen()
    try:
        found = bind_scalar(ctx, block, node, (scope, *beyond))
        return Value(found, Col(0, found.schema[0].type, found.schema[0].name))
    except QueryError as failure:
        if failure.code != "DS322":
            raise
        ctx.go_back(seen)
    outer = replace(scope, parent=None, beyond=beyond)
    return _Correlated(ctx, block, node, outer, width).value()


def of_groups(
    ctx: Context,
    block: Block,
    node: ast.ScalarQuery,
    beyond: tuple[Scope, ...],
    asking: tuple[Node, Scope, Grouping],
) -> Value:
    """What a subquery answers to each group of `asking`: rows, the names over them, and how they
    are grouped.  It may depend on the keys; DS303."""
    rows, scope, groups = asking
    found = bind_value(ctx, block, node, beyond, scope, len(rows.schema))
    keys = tuple((groups.above(mine, node), theirs) for mine, theirs in found.keys)
    only = None if found.only is None else groups.above(found.only, node)
    return replace(found, keys=keys, only=only)


@dataclass(frozen=True, slots=True)
class _Correlated:
    """One such subquery; `outer` names the columns of the row that asks."""

    ctx: Context
    block: Block
    node: ast.ScalarQuery
    outer: Scope
    width: int

    def value(self) -> Value:
        select, item = self._block_of(self.node.query)
        inner = Block()
        from_ = self._from(inner, select)
        rows, scope, keys, only, values = self._rows(inner, select, item, from_)
        groups = Grouping([], [], values=values)
        read = self._read(groups, scope, item)
        groups.keys = list(dict.fromkeys(theirs for _, theirs in keys))
        groups.names = [
            k.name if isinstance(k, Col) else f"k{n}" for n, k in enumerate(groups.keys)
        ]
        found = groups.node([rows])
        self._inputs(inner, select, found)
        places = {key: Col(n, key.type, groups.names[n]) for n, key in enumerate(groups.keys)}
        return Value(
            found,
            rewrite(read, lambda c: _or_zero(c, groups.aggs, len(groups.keys))),
            tuple((mine, places[theirs]) for mine, theirs in keys),
            only,
        )

    def _block_of(self, query: ast.Query) -> tuple[ast.Select, ast.Expr]:
        """The SELECT of one aggregate that the subquery is."""
        body = query.body
        while query.plain and isinstance(body, ast.Query):
            query, body = body, body.body
        if not isinstance(body, ast.Select):
            raise self._refused("combines queries", query)
        if len(body.items) != 1 or not isinstance(body.items[0], ast.SelectItem):
            raise many_columns(self.node, len(body.items))
        item = body.items[0].expr
        if body.group_by or body.having is not None or not has_aggregate(item):
            raise many_rows(self.node)
        if of_select(body, ()) or body.qualify is not None or body.distinct_on:
            raise self._refused("has OVER, QUALIFY or DISTINCT ON", body)
        if not query.plain:
            raise self._refused("has ORDER BY, LIMIT or EVERY", query)
        if body.output is not None and body.output.kind is not ast.OutputKind.RSTREAM:
            raise self._refused(f"is an {body.output.kind.value}", body.output)
        if scalar_queries([item], is_aggregate_call):
            raise self._refused("computes with the value of another subquery", item)
        return body, item

    def _from(self, inner: Block, select: ast.Select) -> From:
        try:
            return bind_from(self.ctx, inner, select, (self.outer, *self.outer.beyond))
        except QueryError as failure:
            raise self._closer(failure) from None

    def _rows(
        self, inner: Block, select: ast.Select, item: ast.Expr, from_: From
    ) -> tuple[Node, Scope, Sequence[tuple[Expr, Expr]], Expr | None, dict[ast.Expr, Expr]]:
        """FROM and WHERE without what depends on the row that asks; the names over it, the
        equalities with that row, what else is asked of that row, and what reads the values of
        further subqueries."""
        ctx, width, outer = self.ctx, self.width, self.outer
        plain, tests = parts(select.where)
        names = replace(from_.scope.shifted(width), parent=outer, beyond=outer.beyond)
        hidden = (outer, *outer.beyond)
        queries = [*values_in(plain, tests), *scalar_queries(aggregate_calls(item))]
        values = with_values(ctx, inner, from_, queries, hidden)
        settle_tables(ctx, from_.group)
        inside = replace(names, columns=from_.inside.shifted(width).columns)
        env = Env(ctx, inside, "WHERE", values={q: shift(v, width) for q, v in values.items()})
        own: list[tuple[Expr, ast.Expr]] = []
        keys: list[tuple[Expr, Expr]] = []
        only: list[Expr] = []
        for node in plain:
            try:
                bound = conjuncts(bind_condition(env, node))
            except QueryError as failure:
                raise self._closer(failure) from None
            for condition in bound:
                self._sorted(condition, node, own, keys, only)
                if columns(condition) and min(columns(condition)) < width:
                    used = {k - width for k in columns(condition)}
                    match.check_outside(from_.group, used, node)
        built = select_over(*build(from_.group, match.share_out(from_.group, own, False)))
        place = built.place()

        def placed(c: Col) -> Col:
            return Col(place[c.index], c.type, c.name)

        scope = replace(from_.scope.mapped(placed), parent=None, beyond=hidden)
        read = {query: rewrite(value, placed) for query, value in values.items()}
        try:
            rows = bind_tests(ctx, inner, built.node, scope, tests, read)
        except QueryError as failure:
            raise self._closer(failure) from None
        if not keys:
            raise self._refused("is equal to the row in nothing", self.node)
        equal = [(mine, rewrite(theirs, placed)) for mine, theirs in keys]
        return rows, scope, equal, conjunction(only), read

    def _sorted(
        self,
        condition: Expr,
        at: ast.Expr,
        own: list[tuple[Expr, ast.Expr]],
        keys: list[tuple[Expr, Expr]],
        only: list[Expr],
    ) -> None:
        """A conjunct of WHERE: over the subquery's own rows, an equality with the row that asks, or
        over that row alone."""
        read = columns(condition)
        if not read or min(read) >= self.width:
            own.append((shift(condition, -self.width), at))
        elif max(read) < self.width:
            only.append(condition)
        elif found := split([condition], self.width)[0]:
            keys += found
        else:
            raise self._refused("depends on the row by more than equalities", at)

    def _read(self, groups: Grouping, scope: Scope, item: ast.Expr) -> Expr:
        env = Env(self.ctx, scope, "the select list", groups.before, groups.values)
        try:
            bound = bind(env, item)
        except QueryError as failure:
            if failure.code == "DS322":
                raise self._refused("shows columns of the row that asks", item) from None
            raise
        return cast(bound, default_type(bound.type))

    def _inputs(self, inner: Block, select: ast.Select, found: Node) -> None:
        """What the block around it has to know of it: it is an outer join with groups."""
        for source in inner.sources:
            if source.internal:
                raise self._refused("has an INTERNAL window", source.at)
        self.block.sources.append(
            BlockInput(self.node, False, not append_only(found), strict(found), reads_stream(found))
        )
        self.block.negations.append(self.node)

    def _refused(self, why: str, at: ast.Node) -> QueryError:
        message = f"the answer to a row is that of its group, and this subquery {why}"
        hint = (
            "let its WHERE compare its columns with those of the row by = alone, and compute with "
            "the row outside of it: s.x - (SELECT AVG(v) FROM u WHERE u.k = s.k)"
        )
        return error("DS379", message, at, hint)

    def _closer(self, failure: QueryError) -> QueryError:
        """DS322 says what such a subquery does see."""
        if failure.code == "DS322":
            failure.hint = (
                "a subquery for a value sees its own FROM, and, in WHERE, that of the query "
                "directly around it"
            )
        return failure


def _or_zero(column: Col, aggs: Sequence[AggCall], first: int) -> Expr:
    """An aggregate behind the keys of its group, or, without a group, as it is over no rows."""
    placed = Col(first + column.index, column.type, column.name)
    if not functions.aggregate(aggs[column.index].fn).total:
        return placed
    return Call("coalesce", (placed, Lit(0, INT)), INT)
