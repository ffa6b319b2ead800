"""Queries with subqueries in their conditions and values, from the definition: for each row, each
subquery is asked anew, with the values of the row in the place of its columns.

It works on syntax, so it knows nothing of how such a query is planned.  Columns of the row are
those that are qualified with a name of its FROM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dsms.sql import ast
from dsms.sql.binder import bind_query
from dsms.sql.binder.aggregates import has_aggregate
from dsms.sql.catalog import Catalog
from dsms.sql.expr import Lit
from dsms.sql.logical import Output
from dsms.sql.rewriting import replaced
from dsms.sql.types import Schema
from dsms.sql.unbind import literal
from tests.oracle.facts import Row, Values
from tests.oracle.oracle import Oracle

Asking = ast.ScalarQuery | ast.Exists | ast.InQuery | ast.Quantified


@dataclass
class Nested:
    """What queries over these rows answer at an instant."""

    catalog: Catalog
    streams: Mapping[str, Sequence[Row]]
    known: dict[tuple[ast.Query, int], tuple[Schema, list[Values]]] = field(default_factory=dict)

    def answer(self, query: ast.Query, at: int) -> list[Values]:
        """The rows, in no order."""
        return self._rows(query, at)[1]

    def _rows(self, query: ast.Query, at: int) -> tuple[Schema, list[Values]]:
        key = (query, at)
        if key not in self.known:
            body = query.body
            assert isinstance(body, ast.Select)
            asks = any(map(_asks, (*body.items, body.where, body.having, *body.from_)))
            self.known[key] = self._asked(body, at) if asks else self._plain(query, at)
        return self.known[key]

    def _plain(self, query: ast.Query, at: int) -> tuple[Schema, list[Values]]:
        bound = bind_query(query, self.catalog, persistent=False)
        assert isinstance(bound, Output)
        return bound.schema, [f.values for f in Oracle(bound, self.streams).answer(at)]

    def _asked(self, select: ast.Select, at: int) -> tuple[Schema, list[Values]]:
        if _lateral(select) is not None:
            return self._beside(select, at)
        if _aggregates(select) and _asks(select.where):
            return self._rows(ast.Query(self._over_constants(select, at)), at)
        if select.group_by:
            return self._grouped(select, at)
        stars = tuple(ast.StarItem(ast.Ident(name)) for name in _names(select))
        star = replace(select, items=stars or (ast.StarItem(),), where=None)
        schema = tuple(replace(f, qualifier=None) for f in self._columns(select))
        out: list[Values] = []
        for columns, row in self._scopes(select, star, at):
            alone = ast.Select(_spelled(select.items, columns), (), select.where)
            known = self._known(replaced(alone, _put(columns, row), True), at)
            schema, found = self._plain(ast.Query(known), at)
            out += found
        return schema, list(dict.fromkeys(out)) if select.distinct else out

    def _beside(self, select: ast.Select, at: int) -> tuple[Schema, list[Values]]:
        """FROM an item and a LATERAL subquery, which is asked anew for each row of that."""
        found = _lateral(select)
        assert found is not None
        first, ref, kept, on = found
        assert ref.alias is not None
        own = replace(select, from_=(first,), where=None)
        star = replace(own, items=(ast.StarItem(ast.Ident(_names(own)[0])),))
        out: list[Values] = []
        schema: Schema = ()
        for columns, row in self._scopes(own, star, at):
            inner = replaced(ref.query, _put(columns, row), True)
            theirs, answers = self._rows(inner, at)
            shown = [(ref.alias.text, f.name) for f in theirs]
            rows = [
                [literal(Lit(v, f.type)) for v, f in zip(r, theirs, strict=True)] for r in answers
            ]
            passed = [r for r in rows if self._passes(on, [*columns, *shown], [*row, *r], at)]
            if kept and not passed:
                passed = [[literal(Lit(None, f.type)) for f in theirs]]
            for values in passed:
                alone = ast.Select(select.items, (), select.where)
                known = replaced(alone, _put([*columns, *shown], [*row, *values]), True)
                schema, more = self._plain(ast.Query(known), at)
                out += more
        return schema, out

    def _passes(
        self,
        on: ast.Expr | None,
        names: Sequence[tuple[str, str]],
        row: Sequence[ast.Expr],
        at: int,
    ) -> bool:
        if on is None:
            return True
        alone = ast.Select((ast.SelectItem(ast.IntLit(1)),), (), replaced(on, _put(names, row)))
        return bool(self._plain(ast.Query(alone), at)[1])

    def _scopes(
        self, select: ast.Select, star: ast.Select, at: int
    ) -> list[tuple[list[tuple[str, str]], list[ast.Expr]]]:
        """The rows of FROM, as the names of columns and the constants that they hold."""
        schema, rows = self._plain(ast.Query(star), at)
        names = [(str(f.qualifier), f.name) for f in self._columns(select)]
        types = [f.type for f in schema]
        return [
            (names, [literal(Lit(v, t)) for v, t in zip(row, types, strict=True)]) for row in rows
        ]

    def _over_constants(self, select: ast.Select, at: int) -> ast.Select:
        """The same over the rows that WHERE lets pass, written out; FROM has one item."""
        (name,) = _names(select)
        star = replace(select, items=(ast.StarItem(),), group_by=(), having=None)
        schema, rows = self._asked(star, at)
        nulls = (None,) * len(schema)
        made: ast.Select | ast.SetOp | None = None
        for row in rows or [nulls]:
            items = tuple(
                ast.SelectItem(literal(Lit(v, f.type)), ast.Ident(f.name))
                for v, f in zip(row, self._columns(select), strict=True)
            )
            one = ast.Select(items, (), None if rows else ast.BoolLit(False))
            made = one if made is None else ast.SetOp(ast.SetOpKind.UNION, made, one, True)
        assert made is not None
        source = ast.SubqueryRef(ast.Query(made), ast.Ident(name))
        return replace(select, from_=(source,), where=None)

    def _columns(self, select: ast.Select) -> Schema:
        out: Schema = ()
        for name in _names(select):
            star = replace(select, items=(ast.StarItem(ast.Ident(name)),), where=None)
            found = bind_query(ast.Query(star), self.catalog, persistent=False).schema
            out += tuple(replace(f, qualifier=name) for f in found)
        return out

    def _grouped(self, select: ast.Select, at: int) -> tuple[Schema, list[Values]]:
        """Each group as if its rows were all; keys are columns, and WHERE asks nothing."""
        keys = select.group_by
        refs = [k for k in keys if isinstance(k, ast.ColumnRef)]
        names = [(k.table.text, k.name.text) for k in refs if k.table]
        items = tuple(ast.SelectItem(k) for k in keys)
        shown = ast.Select(items, select.from_, select.where, distinct=True)
        types, groups = self._plain(ast.Query(shown), at)
        schema: Schema = ()
        out: list[Values] = []
        for group in groups:
            row = [literal(Lit(v, f.type)) for v, f in zip(group, types, strict=True)]
            mine = [ast.IsDistinct(key, value, True) for key, value in zip(keys, row, strict=True)]
            known = self._known(_in_queries(select, _put(names, row)), at)
            where = ast.And(tuple(c for c in (known.where, *mine) if c is not None))
            schema, found = self._plain(
                ast.Query(replace(known, where=where if len(where.operands) > 1 else mine[0])), at
            )
            out += found
        return schema, out

    def _known(self, select: ast.Select, at: int) -> ast.Select:
        """The same with what its subqueries answer."""

        def swap(node: ast.Node) -> ast.Node | None:
            return self._value(node, at) if isinstance(node, Asking) else None

        found = replaced(select, swap)
        assert isinstance(found, ast.Select)
        return found

    def _value(self, node: Asking, at: int) -> ast.Expr:
        schema, rows = self._rows(node.query, at)
        items = [[literal(Lit(v, f.type)) for v, f in zip(r, schema, strict=True)] for r in rows]
        match node:
            case ast.ScalarQuery():
                ((value,),) = items
                return value
            case ast.Exists():
                return ast.BoolLit(bool(items))
            case ast.InQuery(operand=operand, negated=negated):
                if not items:
                    return ast.BoolLit(negated)
                of = tuple(i[0] if len(i) == 1 else ast.RowExpr(tuple(i)) for i in items)
                return ast.InList(operand, of, negated)
            case ast.Quantified(op=op, operand=operand, all=every):
                tests = tuple(ast.Comparison(op, operand, i[0]) for i in items)
                if len(tests) < 2:
                    return tests[0] if tests else ast.BoolLit(every)
                return ast.And(tests) if every else ast.Or(tests)


def _asks(node: ast.Node | None) -> bool:
    if node is None or isinstance(node, Asking):
        return node is not None
    if isinstance(node, ast.SubqueryRef):
        return node.lateral
    return any(map(_asks, ast.children(node)))


def _lateral(
    select: ast.Select,
) -> tuple[ast.FromItem, ast.SubqueryRef, bool, ast.Expr | None] | None:
    """What stands before LATERAL, the subquery, whether rows without stay, and the condition."""
    match select.from_:
        case (first, ast.SubqueryRef(lateral=True) as ref):
            return first, ref, False, None
        case (ast.Join(kind, first, ast.SubqueryRef(lateral=True) as ref, on),):
            return first, ref, kind is ast.JoinKind.LEFT, on
    return None


def _aggregates(select: ast.Select) -> bool:
    items = [i.expr for i in select.items if isinstance(i, ast.SelectItem)]
    return bool(select.group_by or any(map(has_aggregate, items)))


def _spelled(
    items: Sequence[ast.SelectItem | ast.StarItem], columns: Sequence[tuple[str, str]]
) -> tuple[ast.SelectItem, ...]:
    """A select list without stars."""
    out: list[ast.SelectItem] = []
    for item in items:
        if isinstance(item, ast.SelectItem):
            out.append(item)
        else:
            out += [ast.SelectItem(ast.ColumnRef(ast.Ident(c), ast.Ident(t))) for t, c in columns]
    return tuple(out)


def _put(names: Sequence[tuple[str, str]], row: Sequence[ast.Expr]):  # type: ignore[no-untyped-def]
    """What puts a row's values in the place of its columns."""
    values = dict(zip(names, row, strict=True))

    def swap(node: ast.Node) -> ast.Node | None:
        if isinstance(node, ast.ColumnRef) and node.table is not None:
            return values.get((node.table.text, node.name.text))
        return None

    return swap


def _in_queries(node: ast.Node, swap) -> ast.Select:  # type: ignore[no-untyped-def]
    """The same, but only inside of subqueries."""

    def inside(part: ast.Node) -> ast.Node | None:
        return replaced(part, swap, True) if isinstance(part, Asking) else None

    found = replaced(node, inside)
    assert isinstance(found, ast.Select)
    return found


def _names(select: ast.Select) -> list[str]:
    """What the items of FROM are called."""
    out: list[str] = []
    todo: list[ast.Node] = list(select.from_)
    while todo:
        item = todo.pop(0)
        match item:
            case ast.Join(left=left, right=right):
                todo = [left, right, *todo]
            case ast.TableRef(name=name, alias=alias):
                out.append((alias or name).text)
            case (
                ast.SubqueryRef(alias=ast.Ident(text=text))
                | ast.UnnestRef(alias=ast.Ident(text=text))
            ):
                out.append(text)
    return out
