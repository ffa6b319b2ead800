"""SELECT blocks, set operations and whole queries.

A block is bound from the inside out: FROM, WHERE, tests by subquery, grouping, HAVING, select list,
DISTINCT; then `Append` if its windows are INTERNAL.  Wstream is rewritten first: its argument
becomes a subquery whose windows are INTERNAL, and the window is put on that subquery (Golab 2006,
§3.4).  Istream and Dstream in FROM are an `Append` above whatever stands inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql.binder import match, match_aggregates, over, stamps, wstream
from dsms.sql.binder.aggregates import (
    Grouping,
    aggregate_calls,
    grouping,
    has_aggregate,
    is_aggregate_call,
    without_aliases,
)
from dsms.sql.binder.answers import answers_at_boundaries, appending
from dsms.sql.binder.calls import cast
from dsms.sql.binder.closing import closing
from dsms.sql.binder.conditions import parts, values_in
from dsms.sql.binder.context import Block, Bound, Context, Value, project
from dsms.sql.binder.correlated import of_groups
from dsms.sql.binder.expressions import Env, bind, bind_condition
from dsms.sql.binder.first_rows import ranked
from dsms.sql.binder.from_clause import bind_from
from dsms.sql.binder.internal import appended, entries
from dsms.sql.binder.joins import build, select_over, settle_tables
from dsms.sql.binder.lists import without_order
from dsms.sql.binder.ordering import (
    Ordering,
    order_columns,
    order_key,
    ordering_of,
    output_column,
)
from dsms.sql.binder.outputs import output_of
from dsms.sql.binder.ranking import of_subquery
from dsms.sql.binder.scalar_queries import (
    beside,
    open_columns,
    scalar_queries,
    with_values,
)
from dsms.sql.binder.scope import Scope, star
from dsms.sql.binder.set_operations import combined
from dsms.sql.binder.structs import column_name
from dsms.sql.binder.subqueries import bind_tests
from dsms.sql.binder.typenames import default_type
from dsms.sql.codes import error
from dsms.sql.expr import Col, Expr, conjuncts, rewrite
from dsms.sql.logical import Append, Distinct, Node, Select
from dsms.sql.printer import to_sql

# ---------------------------------------------------------------- queries


def bind_nested(
    ctx: Context, query: ast.Query, beyond: tuple[Scope, ...] = (), every: ast.Slide | None = None
) -> Bound:
    """A query in FROM, or in IN/EXISTS where it can't be absorbed.  `every`: it is answered at
    these boundaries."""
    if query.every is not None:
        hint = "move EVERY to the end of the outermost query"
        message = "EVERY says when a whole query is answered, or a part of FROM, not a subquery"
        raise error("DS344", message, query.every, hint)
    query = ranked(query, ctx.catalog)
    body, ordering = wstream.rewrite_body(query.body), ordering_of(query, nested=True)
    output = output_of(body)
    first = len(ctx.windows)
    internal = output is not None and output.kind is ast.OutputKind.WSTREAM
    bound = bind_body(ctx, body, beyond, internal, None if query.plain else ordering)
    bound = replace(bound, node=of_subquery(bound, ordering, query))
    if output is None or internal or output.kind is ast.OutputKind.RSTREAM:
        return bound
    if output.restore:
        name = f"{output.kind.value}-restore"
        hint = (
            "in FROM use Istream or Dstream (what enters or leaves is appended) or nothing, or "
            f"read a stream of it: CREATE STREAM name AS SELECT {name}(...) ..."
        )
        raise error(
            "DS328",
            f"{name} describes the output of a whole query, not of a subquery",
            output,
            hint,
        )
    sampled = every is not None or answers_at_boundaries(ctx, bound.node)
    node = entries(bound.node, output, sampled)
    if isinstance(node, Append) and node is not bound.node:
        node = appending(ctx, node, first)
    return replace(bound, node=node, internal=None)


def bind_body(
    ctx: Context,
    body: ast.Select | ast.SetOp | ast.Query,
    beyond: tuple[Scope, ...] = (),
    internal: bool = False,
    ordering: Ordering | None = None,
    open_nulls: bool = False,
) -> Bound:
    """A SELECT block or a set operation, below its output.  `open_nulls`: a column of bare NULLs
    has no type yet."""
    match body:
        case ast.Query():
            bound = bind_nested(ctx, body, beyond)
        case ast.SetOp():
            bound = _set_op(ctx, body, beyond)
        case ast.Select():
            return _Block(ctx, body, beyond, internal, open_nulls).bind(ordering)
        case _:
            raise AssertionError(body)
    if ordering is not None:
        order_columns(ctx, bound, ordering)
    return bound


# ---------------------------------------------------------------- one block

Read = dict[ast.Expr, Expr]  # what reads the value of each


class _Block:
    """Binds one SELECT block."""

    def __init__(
        self,
        ctx: Context,
        select: ast.Select,
        beyond: tuple[Scope, ...],
        internal: bool,
        open_nulls: bool,
    ) -> None:
        self.ctx, self.beyond, self.open_nulls = ctx, beyond, open_nulls
        self.select = match_aggregates.lifted(select)
        self.block = Block(internal)

    def bind(self, ordering: Ordering | None) -> Bound:
        first = len(self.ctx.windows)
        inside, above = self._scalar_queries(ordering)
        node, scope, values = self._rows(inside)
        node, values = self._framed(node, scope, values, ordering)
        more: list[Node] = []
        joined: list[Value] = []
        env = Env(self.ctx, scope, "the select list", values=values)
        groups = self._grouping(env)
        if groups is not None:
            more = [self._rows(inside)[0] for _ in (groups.sets or ())[1:]]
            asking = node, scope, groups
            joined = [of_groups(self.ctx, self.block, q, self.beyond, asking) for q in above]
            groups.values = values
            found: Read = dict(zip(above, open_columns(joined), strict=True))
            env = replace(env, before=groups.before, values=found)
        exprs, names = self._items(env, ordering is not None and not ordering.nested)
        having = self._having(env)
        hidden, called = ([], []) if ordering is None else self._order(env, ordering, exprs, names)
        if groups is not None:
            inputs = closing(self.block, groups, [node, *more], joined)
            node, place = beside(groups.node(inputs), joined)
            exprs, hidden = [place(e) for e in exprs], [place(e) for e in hidden]
            having = None if having is None else place(having)
        for condition in (having, self._qualify(env)):
            if condition is not None:
                node = Select(node, condition, node.schema)
        node = project(node, exprs + hidden, names + called)
        if self.select.distinct:
            node = Distinct(node, node.schema)
        sampled = answers_at_boundaries(self.ctx, node)
        node = appended(self.block, node, self.select, sampled)
        if isinstance(node, Append) and not node.mixed:
            node = appending(self.ctx, node, first)
        return Bound(
            node, tuple(names), self._internal_at(), tuple(map(_argument_name, self.select.items))
        )

    def _scalar_queries(
        self, ordering: Ordering | None
    ) -> tuple[list[ast.ScalarQuery], list[ast.ScalarQuery]]:
        """Those that are joined with the rows, and those that are joined with the groups."""
        select, order = self.select, () if ordering is None else ordering.exprs
        items = [i.expr for i in select.items if isinstance(i, ast.SelectItem)]
        exprs = [e for e in (*items, select.having, *order) if e is not None]
        if not self._is_grouped():
            return scalar_queries(exprs), []
        return scalar_queries(c for e in exprs for c in aggregate_calls(e)), scalar_queries(
            exprs, is_aggregate_call
        )

    def _rows(self, queries: Sequence[ast.ScalarQuery]) -> tuple[Node, Scope, Read]:
        """FROM and WHERE, and what reads the value of each of these queries."""
        from_ = bind_from(self.ctx, self.block, self.select, self.beyond)
        match_aggregates.bind_aggregates(self.ctx, from_)
        plain, tests = parts(self.select.where)
        queries = [*values_in(plain, tests), *queries]
        values = with_values(self.ctx, self.block, from_, queries, (from_.scope, *self.beyond))
        settle_tables(self.ctx, from_.group)
        env = Env(self.ctx, from_.inside, "WHERE", values=values)
        conditions = [(c, node) for node in plain for c in conjuncts(self._condition(env, node))]
        left = match.share_out(from_.group, conditions, not (tests or self._is_grouped()))
        built = select_over(*build(from_.group, left))
        place = built.place()

        def placed(c: Col) -> Col:
            return Col(place[c.index], c.type, c.name)

        scope = from_.scope.mapped(placed)
        read = {key: rewrite(value, placed) for key, value in values.items()}
        return bind_tests(self.ctx, self.block, built.node, scope, tests, read), scope, read

    def _framed(
        self, node: Node, scope: Scope, values: Read, ordering: Ordering | None
    ) -> tuple[Node, Read]:
        """The rows with the values of OVER, and what reads these, too."""
        select = self.select
        calls = over.of_select(select, () if ordering is None else ordering.exprs)
        more = bool(values or parts(select.where)[1])
        over.check_block(select, calls, self._is_grouped(), more)
        if not calls:
            return node, values
        found = over.framed(Env(self.ctx, scope, "OVER"), node, calls)
        return found.node, values | found.values

    def _qualify(self, env: Env) -> Expr | None:
        qualify = self.select.qualify
        if qualify is None:
            return None
        seen = without_aliases(env, self.select, qualify)
        return bind_condition(replace(env, place="QUALIFY"), seen)

    def _is_grouped(self) -> bool:
        select = self.select
        items = [i.expr for i in select.items if isinstance(i, ast.SelectItem)]
        return bool(
            select.group_by or select.having is not None or any(has_aggregate(e) for e in items)
        )

    def _condition(self, env: Env, node: ast.Expr) -> Expr:
        """A condition of WHERE; the error for one that names an alias of the select list says
        so."""
        try:
            return bind_condition(env, node)
        except QueryError as failure:
            aliases = [
                i.alias.text for i in self.select.items if isinstance(i, ast.SelectItem) and i.alias
            ]
            for alias in aliases:
                if (
                    failure.code == "DS201"
                    and f"`{alias.casefold()}`" in failure.message.casefold()
                ):
                    failure.hint = (
                        f"{alias} is an alias of the select list, which WHERE does not "
                        "see: repeat what it means"
                    )
            raise

    def _grouping(self, env: Env) -> Grouping | None:
        if not self._is_grouped():
            return None
        return grouping(replace(env, place="GROUP BY"), self.select)

    def _items(self, env: Env, outermost: bool) -> tuple[list[Expr], list[str]]:
        exprs: list[Expr] = []
        names: list[str] = []
        for item in self.select.items:
            if isinstance(item, ast.StarItem):
                self._star(env, item, exprs, names)
                continue
            if outermost and stamps.is_stamp(item.expr):
                expr: Expr = stamps.note(self.ctx, len(exprs), item.expr)
            else:
                expr = bind(env, item.expr)
            exprs.append(expr if self.open_nulls else cast(expr, default_type(expr.type)))
            names.append(self._name(env, item))
        return exprs, names

    def _star(self, env: Env, item: ast.StarItem, exprs: list[Expr], names: list[str]) -> None:
        if not self.select.from_:
            raise error(
                "DS304",
                "* needs a FROM clause to take columns from",
                item,
                "add FROM, or name a value",
            )
        for column in star(env.scope, item):
            if env.before is None:
                exprs.append(column.expr)
            else:
                owner = ast.Ident(column.aliases[0], True) if column.aliases else None
                name = ast.Ident(column.name, True, pos=item.pos)
                exprs.append(bind(env, ast.ColumnRef(name, owner, pos=item.pos)))
            names.append(column.name)

    def _name(self, env: Env, item: ast.SelectItem) -> str:
        if item.alias is not None:
            return item.alias.text
        return column_name(env.scope, item.expr) or to_sql(item.expr)

    def _having(self, env: Env) -> Expr | None:
        having = self.select.having
        if having is None:
            return None
        return bind_condition(
            replace(env, place="HAVING"), without_aliases(env, self.select, having)
        )

    def _order(
        self, env: Env, ordering: Ordering, exprs: list[Expr], names: list[str]
    ) -> tuple[list[Expr], list[str]]:
        """Fills in the ordering's keys over the select list; columns that it needs besides are
        returned, named."""
        found, called = list(exprs), ordering.known(env.scope, exprs, names)
        env = replace(env, place="ORDER BY")
        for item in ordering.items:
            column = self._order_column(env, item.expr, item, found, called, len(exprs))
            without_order("lt", [column.type], item)
            ordering.keys.append(order_key(item, column))
        env = replace(env, place="PER")
        for key in ordering.per:
            ordering.by.append(self._order_column(env, key, key, found, called, len(exprs)))
        return found[len(exprs) :], called[len(names) :]

    def _order_column(
        self,
        env: Env,
        node: ast.Expr,
        at: ast.Node,
        found: list[Expr],
        called: list[str],
        shown: int,
    ) -> Col:
        """The column of `found` that ORDER BY or PER means, of which the first are `shown`; one
        that is not there is added, and named."""
        place = output_column(node, called[:shown], env.place)
        if place is None:
            if env.before is None and has_aggregate(node):
                message = f"{env.place} an aggregate needs a grouped query"
                raise error("DS301", message, at, "add GROUP BY")
            expr = bind(env, without_aliases(env, self.select, node))
            if expr not in found[:shown] and self.select.distinct:
                hint = "add it to the select list"
                message = f"with DISTINCT, {env.place} can only use the select list"
                raise error("DS332", message, at, hint)
            place = _position(found, expr)
            if place == len(found):
                found.append(expr)
                called.append(to_sql(node))
        return Col(place, found[place].type, called[place])

    def _internal_at(self) -> ast.Node | None:
        found = [s.at for s in self.block.sources if s.internal]
        return found[0] if found else None


def _argument_name(item: ast.SelectItem | ast.StarItem) -> str | None:
    """The column in an unnamed aggregate: the thesis calls the column of (SELECT SUM(a) ...) simply
    a (§3.4)."""
    if (
        not isinstance(item, ast.SelectItem)
        or item.alias is not None
        or not is_aggregate_call(item.expr)
    ):
        return None
    columns = {part.name.text for part in ast.walk(item.expr) if isinstance(part, ast.ColumnRef)}
    return columns.pop() if len(columns) == 1 else None


def _position(exprs: list[Expr], expr: Expr) -> int:
    return exprs.index(expr) if expr in exprs else len(exprs)


# ---------------------------------------------------------------- set operations


def _set_op(ctx: Context, op: ast.SetOp, beyond: tuple[Scope, ...]) -> Bound:
    return combined(op, _operand(ctx, op.left, beyond), _operand(ctx, op.right, beyond))


def _operand(
    ctx: Context, operand: ast.Select | ast.SetOp | ast.Query, beyond: tuple[Scope, ...]
) -> Bound:
    """One side of a set operation.  Output functions of operands are judged by the caller of the
    whole query."""
    if isinstance(operand, ast.Select) and wstream.uses(operand):
        hint = (
            "put the SELECT with Wstream into FROM: SELECT * FROM (SELECT Wstream(...) ...) "
            "UNION ALL ..."
        )
        raise error("DS327", "Wstream can't stand in an operand of a set operation", operand, hint)
    nulls = isinstance(operand, ast.Select) and not operand.distinct
    return bind_body(ctx, operand, beyond, open_nulls=nulls)
