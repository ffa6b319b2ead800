"""Statements that speak of something by another name than before, and mean the same.

Trees are changed, never texts.  That what comes out means what went in is for the caller to see,
who can bind both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import TypeVar

from dsms.sql import ast
from dsms.sql.ast import Pos
from dsms.sql.printer import to_sql
from dsms.sql.rewriting import replaced

Owned = ast.CreateStream | ast.CreateTable
Statement = TypeVar("Statement", bound=Owned | ast.CreateQuery)
Stream = TypeVar("Stream", bound=ast.CreateStream)
Expr = TypeVar("Expr", bound=ast.Expr | None)
Block = ast.Select | ast.SetOp | ast.Query


def under(said: Statement, old: str, new: ast.Ident) -> Statement:
    """With what was declared as `old` called `new`: what the statement makes, reads, feeds, or
    sends late rows to.

    In FROM it keeps the old name as its alias where columns are qualified with that, or where
    something else there is called as it is now."""
    alias = ast.Ident(old) if _needed(said, old, new) else None

    def swap(node: ast.Node) -> ast.Node | None:
        match node:
            case ast.TableRef(name) if name.matches(old):
                return replace(node, name=new, alias=node.alias or alias)
            case ast.Into(stream) if stream.matches(old):
                return replace(node, stream=new)
            case ast.Late(into) if into is not None and into.matches(old):
                return replace(node, into=new)
        return None

    named = replace(said, name=new) if said.name.matches(old) else said
    found: Statement = replaced(named, swap, within_queries=True)
    if isinstance(found, ast.CreateStream):
        return requalified(found, old, new)
    return found


def _needed(said: Statement, old: str, new: ast.Ident) -> bool:
    """Whether something but a relation, or some alias, has one of the two names."""
    refs = {id(n.name) for n in ast.walk(said) if isinstance(n, ast.TableRef)}
    own = {id(said.name)} | {id(n.stream) for n in ast.walk(said) if isinstance(n, ast.Into)}
    names = (n for n in ast.walk(said) if isinstance(n, ast.Ident) and id(n) not in refs | own)
    return any(n.matches(old) or n.matches(new.text) for n in names)


def requalified(said: Stream, old: str, new: ast.Ident) -> Stream:
    """The stream's computed columns over its own, under its new name."""

    def made(expr: ast.Expr | None) -> ast.Expr | None:
        return over(expr, old, new)

    columns = tuple(replace(c, computed=made(c.computed)) for c in said.columns)
    by = said.timestamp
    timestamp = None if by is None else replace(by, computed=made(by.computed))
    return replace(said, columns=columns, timestamp=timestamp)


def over(expr: Expr, old: str, new: ast.Ident) -> Expr:
    """An expression over the columns of one object, which is called `new`."""

    def swap(node: ast.Node) -> ast.Node | None:
        if isinstance(node, ast.ColumnRef) and node.table is not None and node.table.matches(old):
            return replace(node, table=new)
        return None

    found: Expr = replaced(expr, swap)
    return found


def over_column(expr: Expr, old: str, new: ast.Ident) -> Expr:
    """An expression over the columns of one object, of which one is called `new`."""

    def swap(node: ast.Node) -> ast.Node | None:
        if isinstance(node, ast.ColumnRef) and node.name.matches(old):
            return replace(node, name=new)
        return None

    found: Expr = replaced(expr, swap)
    return found


def own_column(said: Owned, old: str, new: ast.Ident) -> Owned:
    """A stream or table that is declared with one of its columns called `new`."""

    def named(name: ast.Ident) -> ast.Ident:
        return new if name.matches(old) else name

    columns = tuple(
        replace(c, name=named(c.name), computed=over_column(c.computed, old, new))
        for c in said.columns
    )
    match said:
        case ast.CreateTable():
            return replace(said, columns=columns, primary_key=tuple(map(named, said.primary_key)))
        case ast.CreateStream(timestamp=by, archive=archive):
            if by is not None:
                made = over_column(by.computed, old, new)
                by = replace(by, column=named(by.column), computed=made)
            if archive is not None and archive.cluster_by is not None:
                archive = replace(archive, cluster_by=named(archive.cluster_by))
            index = tuple(map(named, said.index_by))
            return replace(said, columns=columns, timestamp=by, archive=archive, index_by=index)


# ---------------------------------------------------------------- columns that a query reads


def target_column(said: ast.CreateQuery, old: str, new: ast.Ident) -> ast.CreateQuery:
    """A query that feeds a stream of which one column is called `new`."""
    if said.into is None:
        return said
    columns = tuple(new if c.matches(old) else c for c in said.into.columns)
    return replace(said, into=replace(said.into, columns=columns))


def in_blocks(said: ast.CreateQuery, relation: str, old: str, new: ast.Ident) -> ast.CreateQuery:
    """With the column called `new` in the blocks that have its relation in FROM, where nothing but
    columns of FROM can be meant: in the select list, WHERE and ON."""

    def swap(node: ast.Node) -> ast.Node | None:
        if not isinstance(node, ast.Select):
            return None
        names = [_called(ref) for ref in _relations(node.from_) if _is(ref, relation)]
        if names:
            node = _in_block(node, names, old, new)
        return replace(
            node,
            **{
                f.name: replaced(getattr(node, f.name), swap, within_queries=True)
                for f in fields(node)
                if f.name != "pos"
            },
        )

    found: ast.CreateQuery = replaced(said, swap, within_queries=True)
    return found


def _in_block(
    node: ast.Select, names: Sequence[ast.Ident | None], old: str, new: ast.Ident
) -> ast.Select:
    def swap(part: ast.Node) -> ast.Node | None:
        match part:
            case ast.SelectItem(expr, None) if (made := replaced(expr, swap)) != expr:
                return replace(part, expr=made, alias=_kept(expr, old))
            case ast.ColumnRef(name, table) if name.matches(old):
                return replace(part, name=new) if table is None or _in(table, names) else None
        return None

    parts = {f: replaced(getattr(node, f), swap) for f in ("items", "from_", "where")}
    return replace(node, **parts)


def _kept(expr: ast.Expr, old: str) -> ast.Ident:
    """What a column of the select list is called without AS."""
    return ast.Ident(old if isinstance(expr, ast.ColumnRef) else to_sql(expr))


def at(said: ast.CreateQuery, place: Pos, old: str, new: ast.Ident) -> ast.CreateQuery:
    """With the column that is named at that place of the text, `old`, called `new`.  What it is
    selected as without AS keeps its name."""

    def swap(node: ast.Node) -> ast.Node | None:
        match node:
            case ast.SelectItem(expr, None) if any(n.pos == place for n in _names(expr)):
                return replace(node, expr=replaced(expr, swap, True), alias=_kept(expr, old))
            case ast.Ident() if node.pos == place and node.matches(old):
                return replace(node, text=new.text, quoted=new.quoted)
        return None

    found: ast.CreateQuery = replaced(said, swap, within_queries=True)
    return found


def _names(expr: ast.Node) -> Iterator[ast.Ident]:
    return (n for n in ast.walk(expr) if isinstance(n, ast.Ident))


def spelled_out(
    said: ast.CreateQuery, relation: str, columns: Sequence[str], old: str, new: ast.Ident
) -> ast.CreateQuery:
    """With `*` over the relation, where it gives the query's columns their names, written as the
    columns that it means, and that which is called `new` selected as `old`."""

    def block(node: Block) -> Block:
        match node:
            case ast.Query(body):
                return replace(node, body=block(body))
            case ast.SetOp(left=left):
                return replace(node, left=block(left))
        return replace(node, items=tuple(_items(node, relation, columns, old, new)))

    query = block(said.query)
    assert isinstance(query, ast.Query)
    return replace(said, query=query)


def _items(
    node: ast.Select, relation: str, columns: Sequence[str], old: str, new: ast.Ident
) -> Iterator[ast.SelectItem | ast.StarItem]:
    here = list(_shown(node.from_))
    meant = [_called(ref) for ref in here if _is(ref, relation)]
    for item in node.items:
        match item:
            case ast.StarItem(table) if table is not None and _in(table, meant):
                yield from _columns(table, columns, old, new)
            case ast.StarItem(None) if meant and len(here) == 1:
                yield from _columns(None, columns, old, new)
            case ast.StarItem(None) if meant and all(map(_called, here)):
                for ref in here:
                    name = _called(ref)
                    if _is(ref, relation):
                        yield from _columns(name, columns, old, new)
                    else:
                        yield ast.StarItem(name)
            case _:
                yield item


def _relations(items: Sequence[ast.FromItem]) -> Iterator[ast.FromItem]:
    for item in items:
        match item:
            case ast.Join():
                yield from _relations((item.left, item.right))
            case _:
                yield item


def _shown(items: Sequence[ast.FromItem]) -> Iterator[ast.FromItem]:
    """Those whose columns `*` shows."""
    for item in items:
        match item:
            case ast.Join(kind=ast.JoinKind.SEMI | ast.JoinKind.ANTI):
                yield from _shown((item.left,))
            case ast.Join():
                yield from _shown((item.left, item.right))
            case _:
                yield item


def _is(ref: ast.FromItem, relation: str) -> bool:
    return isinstance(ref, ast.TableRef) and ref.name.matches(relation)


def _called(ref: ast.FromItem) -> ast.Ident | None:
    if isinstance(ref, ast.TableRef):
        return ref.alias or ref.name
    return ref.alias if isinstance(ref, ast.SubqueryRef | ast.UnnestRef) else None


def _in(table: ast.Ident, names: Sequence[ast.Ident | None]) -> bool:
    return any(name is not None and table.matches(name.text) for name in names)


def _columns(
    table: ast.Ident | None, columns: Sequence[str], old: str, new: ast.Ident
) -> Iterator[ast.SelectItem]:
    for column in columns:
        renamed = column == old
        name = new if renamed else ast.Ident(column)
        alias = ast.Ident(old) if renamed else None
        yield ast.SelectItem(ast.ColumnRef(name, table), alias)
