"""LATERAL (SELECT ...) in FROM: a subquery that depends on the rows before it, as a join with them.

What of the subquery's WHERE reads these rows goes into the condition of the join; the columns of
the subquery that it compares are shown besides, by names that nothing else has.  Where the subquery
puts rows together, it does so for each value of what it compares by =: an aggregate, GROUP BY and
DISTINCT become ones for each of these keys, and LIMIT n becomes LIMIT n PER key.  So a row finds by
the join what the subquery answers to it.  An aggregate of all rows answers to each row: COUNT is 0
and others are NULL where the join finds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from dsms.errors import QueryError
from dsms.sql import ast, functions
from dsms.sql.binder.aggregates import has_aggregate, is_aggregate_call
from dsms.sql.binder.context import Context
from dsms.sql.binder.expressions import Env, bind, bind_condition
from dsms.sql.binder.groups import Beside, Group
from dsms.sql.binder.over import of_select
from dsms.sql.binder.scope import Scope, VisibleColumn, star
from dsms.sql.codes import error
from dsms.sql.expr import Call, Col, Expr, conjuncts
from dsms.sql.printer import to_sql
from dsms.sql.rewriting import replaced

Subquery = Callable[[ast.SubqueryRef], tuple[Group, Scope]]
Names = Callable[[ast.Select], Scope]
UNKNOWN = ("DS201", "DS204", "DS322")  # names that may be those of the rows
TRUE = ast.BoolLit(True)
TABLE = ast.Ident("$lateral", True)


def of_rows(
    ctx: Context,
    bind_: Subquery,
    names: Names,
    ref: ast.SubqueryRef,
    left: Scope,
    join: ast.Join | None,
) -> Beside:
    """What the subquery answers to rows with the names `left`.  `bind_` binds a subquery that sees
    none of them, `names` says what a FROM calls its columns.  Raises DS217, DS395."""
    kept = _kept(join)
    seen = ctx.seen()
    try:
        group, shown = bind_(replace(ref, lateral=False, columns=()))
    except QueryError as failure:
        if failure.code not in UNKNOWN:
            raise
        ctx.go_back(seen)
        made = _Lateral(ctx, bind_, names, ref, left, kept)
        found, always = made.beside(), made.always
    else:
        found, always = Beside(group, shown, kept), False
    found = replace(found, names=_called(found.names, ref))
    if join is None or join.on is None or join.on == TRUE:
        return found
    if kept and always:
        message = "this subquery answers to each row, and LEFT JOIN would leave some answers out"
        raise error("DS395", message, join.on, "write ON TRUE, or JOIN with this condition")
    on = conjuncts(bind_condition(_env(ctx, left, found.names), join.on))
    return replace(found, on=[*found.on, *on]) if kept else replace(found, where=on)


def _env(ctx: Context, left: Scope, more: Scope) -> Env:
    return Env(ctx, left.joined(more), "LATERAL")


def _kept(join: ast.Join | None) -> bool:
    """Whether rows without an answer stay.  Raises DS395 for joins that need no such subquery."""
    if join is None or join.kind in (ast.JoinKind.INNER, ast.JoinKind.CROSS):
        kept = False
    elif join.kind is ast.JoinKind.LEFT:
        kept = True
    else:
        message = f"{join.kind} JOIN can't ask a subquery for each of its rows"
        hint = "write JOIN LATERAL (...) x ON TRUE, or LEFT JOIN LATERAL (...) x ON TRUE"
        raise error("DS395", message, join.right, hint)
    if join is not None and (join.using or join.natural):
        message = "what a LATERAL subquery is joined by stands in its WHERE"
        raise error("DS395", message, join.right, "write ON TRUE")
    return kept


def _called(names: Scope, ref: ast.SubqueryRef) -> Scope:
    """The columns under the names that stand behind the alias."""
    if not ref.columns:
        return names
    if len(ref.columns) > len(names.columns):
        message = f"the subquery has {len(names.columns)} columns, and these are more names"
        raise error("DS217", message, ref.columns[len(names.columns)])
    named = [replace(c, name=n.text) for c, n in zip(names.columns, ref.columns, strict=False)]
    return replace(names, columns=(*named, *names.columns[len(named) :]))


# ---------------------------------------------------------------- one that depends on the rows


@dataclass(slots=True)
class _Lateral:
    """shown  the columns of the subquery as a join finds it;  own  what of its WHERE stays there;
    keys  what it compares with the row by =, which `equal` says of the columns of `table`;  on  the
    rest of the condition of the join;  always  it answers to each row"""

    ctx: Context
    bind: Subquery
    names: Names
    ref: ast.SubqueryRef
    left: Scope
    kept: bool
    always: bool = False
    inner: Scope = field(default_factory=Scope)
    shown: list[ast.SelectItem] = field(default_factory=list)
    own: list[ast.Expr] = field(default_factory=list)
    keys: list[ast.Expr] = field(default_factory=list)
    equal: list[ast.Expr] = field(default_factory=list)
    on: list[ast.Expr] = field(default_factory=list)
    table: ast.Ident = TABLE

    def beside(self) -> Beside:
        query, body = self._block(self.ref.query)
        seen = self.ctx.seen()
        self.inner = self.names(body)
        self.ctx.go_back(seen)
        self.always = not body.group_by and any(map(has_aggregate, self._exprs(body)))
        simple = not (self.always or body.group_by or body.distinct or not query.plain)
        items, read = self._items(body), list[ast.Expr]()
        names = [name for name, _ in items]
        if not simple and not self.always:
            self._check_own(query, body)
            self.shown = _as_shown(body, [expr for _, expr in items])
        for condition in _parts(body.where):
            self._place(condition, simple)
        if simple or self.always:
            read = [self._outside(expr) for _, expr in items]
        if not body.from_:
            return self._alone(body, names, read)
        if self.kept and simple:
            there = self._exposed(TRUE)
            read = [_where_found(there, expr) for expr in read]
        return self._joined(query, body, simple, names, read)

    # ------------------------------------------------------------ what it is

    def _block(self, query: ast.Query) -> tuple[ast.Query, ast.Select]:
        """The one SELECT that it is, and what stands behind it."""
        body = query.body
        while query.plain and isinstance(body, ast.Query):
            query, body = body, body.body
        if not isinstance(body, ast.Select):
            raise self._refused("combines queries", query)
        order = [item.expr for item in query.order_by]
        if of_select(body, order) or body.qualify is not None or body.distinct_on:
            raise self._refused("has OVER, QUALIFY or DISTINCT ON", body)
        if body.output is not None and body.output.kind is not ast.OutputKind.RSTREAM:
            raise self._refused(f"is an {body.output.kind.value}", body.output)
        if any(isinstance(key, ast.GroupingSets) for key in body.group_by):
            raise self._refused("has several groupings", body)
        if query.offset is not None or query.every is not None:
            raise self._refused("has OFFSET or EVERY", query)
        if not body.group_by and (body.having is not None or self._sorted_one(query, body)):
            raise self._refused("picks among its one row by HAVING, ORDER BY or LIMIT", body)
        return query, body

    def _sorted_one(self, query: ast.Query, body: ast.Select) -> bool:
        return not query.plain and any(map(has_aggregate, self._exprs(body)))

    @staticmethod
    def _exprs(body: ast.Select) -> list[ast.Expr]:
        return [item.expr for item in body.items if isinstance(item, ast.SelectItem)]

    def _items(self, body: ast.Select) -> list[tuple[str, ast.Expr]]:
        """Its columns, by name."""
        found: list[tuple[str, ast.Expr]] = []
        for item in body.items:
            if isinstance(item, ast.StarItem):
                found += [(c.name, _named(c)) for c in star(self.inner, item)]
            elif item.alias is not None:
                found.append((item.alias.text, item.expr))
            elif isinstance(item.expr, ast.ColumnRef):
                found.append((item.expr.name.text, item.expr))
            else:
                found.append((to_sql(item.expr), item.expr))
        return found

    def _check_own(self, query: ast.Query, body: ast.Select) -> None:
        """Raise DS395 where what is put together is not the subquery's own."""
        having = () if body.having is None else (body.having,)
        order = [item.expr for item in query.order_by]
        keys = () if query.per is None else query.per.keys
        for expr in (*self._exprs(body), *body.group_by, *having, *order, *keys):
            if self._reads(expr)[1]:
                raise self._refused("shows, groups or orders by columns of the row", expr)

    # ------------------------------------------------------------ whose columns

    def _mine(self, ref: ast.ColumnRef) -> bool:
        known = ref.table is not None and self.inner.knows(ref.table)
        return known or bool(self.inner.matching(ref))

    def _reads(self, expr: ast.Node) -> tuple[bool, bool]:
        """Whether it reads the subquery's rows, and the rows before it."""
        refs = [self._mine(ref) for ref in _refs(expr)]
        asks = any(isinstance(part, ast.Query) for part in ast.walk(expr))
        return asks or any(refs), not all(refs)

    def _place(self, condition: ast.Expr, simple: bool) -> None:
        """A part of WHERE: the subquery's own, or one of the join."""
        mine, its = self._reads(condition)
        if not its:
            self.own.append(condition)
            return
        if mine and isinstance(condition, ast.Comparison) and condition.op == "=":
            for a, b in ((condition.left, condition.right), (condition.right, condition.left)):
                if self._reads(a) == (False, True) and self._reads(b) == (True, False):
                    self.keys.append(b)
                    self.equal.append(replace(condition, left=a, right=self._exposed(b)))
                    return
        if mine and not simple:
            raise self._refused("depends on the row by more than equalities", condition)
        self.on.append(self._outside(condition))

    def _exposed(self, expr: ast.Expr) -> ast.Expr:
        """The column of the subquery that has it."""
        for item in self.shown:
            if item.expr == expr and item.alias is not None and item.alias.text.startswith("$c"):
                return ast.ColumnRef(item.alias, self.table, pos=expr.pos)
        name = ast.Ident(f"$c{len(self.shown)}", True)
        self.shown.append(ast.SelectItem(expr, name, pos=expr.pos))
        return ast.ColumnRef(name, self.table, pos=expr.pos)

    def _outside(self, expr: ast.Expr) -> ast.Expr:
        """The expression over the rows and the columns of the subquery."""

        def swap(part: ast.Node) -> ast.Node | None:
            if self.always and is_aggregate_call(part):
                return self._aggregate(part)
            if isinstance(part, ast.ColumnRef) and self._mine(part):
                if self.always:
                    raise self._refused("shows a column beside aggregates", part)
                return self._exposed(part)
            return None

        made: ast.Expr = replaced(expr, swap)
        return made

    def _aggregate(self, call: ast.Node) -> ast.Expr:
        """Of no rows where the join finds none."""
        assert isinstance(call, ast.FuncCall)
        if self._reads(call)[1]:
            raise self._refused("aggregates columns of the row", call)
        found = self._exposed(call)
        if not functions.aggregate(call.name.text).total:
            return found
        return ast.FuncCall(ast.Ident("COALESCE"), (found, ast.IntLit(0)), pos=call.pos)

    # ------------------------------------------------------------ the join

    def _alone(self, body: ast.Select, names: list[str], read: list[ast.Expr]) -> Beside:
        """Without a FROM there is one row, of values of the row that asks."""
        if self.shown or (self.kept and (self.on or self.own)):
            raise self._refused("has no FROM", body)
        env = _env(self.ctx, self.left, Scope())
        found = self._scope(names, [bind(env, expr) for expr in read])
        return Beside(Group(), found, False, self._conditions(env, [*self.on, *self.own]))

    def _joined(
        self,
        query: ast.Query,
        body: ast.Select,
        simple: bool,
        names: list[str],
        read: list[ast.Expr],
    ) -> Beside:
        """`read`: its columns over those that are shown; none: they are the first of these."""
        group, hidden = self._bound(query, body, simple)
        env = _env(self.ctx, self.left, hidden)
        if read:
            found = self._scope(names, [bind(env, expr) for expr in read])
        else:
            found = self._scope(names, [c.expr for c in hidden.columns[: len(names)]])
        equal = self._conditions(env, self.equal)
        if not simple and any(not _by_column(c) for c in equal):
            raise self._refused("compares values of two types", self.ref)
        on = [*equal, *self._conditions(env, self.on)]
        return Beside(group, found, self.kept or self.always, on)

    def _conditions(self, env: Env, parts: Sequence[ast.Expr]) -> list[Expr]:
        return [c for part in parts for c in conjuncts(bind_condition(env, part))]

    def _bound(self, query: ast.Query, body: ast.Select, simple: bool) -> tuple[Group, Scope]:
        shown = tuple(self.shown) or (ast.SelectItem(TRUE, ast.Ident("$c", True)),)
        groups = () if simple else tuple(dict.fromkeys((*body.group_by, *self.keys)))
        grouped = bool(body.group_by) or self.always
        where = ast.And(tuple(self.own)) if len(self.own) > 1 else next(iter(self.own), None)
        select = replace(
            body, items=shown, where=where, group_by=groups if grouped else (), output=None
        )
        made = ast.Query(select, pos=query.pos)
        if not query.plain:
            per = () if query.per is None else query.per.keys
            found = ast.Per(tuple(dict.fromkeys((*per, *self.keys))), pos=query.pos)
            made = replace(made, order_by=query.order_by, limit=query.limit, per=found)
        return self.bind(ast.SubqueryRef(made, self.table, pos=self.ref.pos))

    def _scope(self, names: Sequence[str], exprs: Sequence[Expr]) -> Scope:
        alias = () if self.ref.alias is None else (self.ref.alias.text,)
        columns = zip(names, exprs, strict=True)
        return Scope(tuple(VisibleColumn(name, expr, alias) for name, expr in columns), alias)

    def _refused(self, why: str, at: ast.Node) -> QueryError:
        message = f"what a LATERAL subquery answers to a row is found by a join, and this one {why}"
        hint = (
            "let its WHERE compare its columns with those of the row, by = alone where it has "
            "aggregates, DISTINCT or LIMIT, and compute with the row outside of it, as in s.v - "
            "x.mean"
        )
        return error("DS395", message, at, hint)


def _by_column(condition: Expr) -> bool:
    """Whether it compares a column of the subquery as it is: then one of its groups is found."""
    return isinstance(condition, Call) and isinstance(condition.args[1], Col)


def _as_shown(body: ast.Select, exprs: Sequence[ast.Expr]) -> list[ast.SelectItem]:
    """The select list without stars, with the aliases that GROUP BY and ORDER BY may name."""
    if len(exprs) > len(body.items) or any(isinstance(i, ast.StarItem) for i in body.items):
        return [ast.SelectItem(expr, pos=expr.pos) for expr in exprs]
    return [item for item in body.items if isinstance(item, ast.SelectItem)]


def _parts(where: ast.Expr | None) -> Iterator[ast.Expr]:
    match where:
        case None:
            return
        case ast.And(operands):
            for operand in operands:
                yield from _parts(operand)
        case _:
            yield where


def _refs(node: ast.Node) -> Iterator[ast.ColumnRef]:
    """The columns that it names, other than in its subqueries."""
    if isinstance(node, ast.ColumnRef):
        yield node
    elif not isinstance(node, ast.Query):
        for child in ast.children(node):
            yield from _refs(child)


def _named(column: VisibleColumn) -> ast.ColumnRef:
    table = ast.Ident(column.aliases[0], True) if column.aliases else None
    return ast.ColumnRef(ast.Ident(column.name, True), table)


def _where_found(there: ast.Expr, expr: ast.Expr) -> ast.Expr:
    """The same, but NULL for rows that find nothing."""
    assert isinstance(there, ast.ColumnRef)
    if isinstance(expr, ast.ColumnRef) and expr.table == there.table:
        return expr
    return ast.Case((ast.When(there, expr),))
