"""What names mean inside one query block, and the nearest known name when they mean nothing.

A scope lists the columns of a FROM clause in the order `*` shows them, each with the expression
that reads it from the plan node below (a commuted join stores them in another order; the column of
a full JOIN USING is computed).  A correlated subquery sees two scopes: its own, and its parent's,
whose columns stand before its own in the schema both are bound over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from dsms.sql import ast
from dsms.sql.codes import error, suggest
from dsms.sql.expr import Col, Expr, rewrite
from dsms.sql.foreign import instead
from dsms.sql.types import Schema, Type


@dataclass(frozen=True, slots=True)
class VisibleColumn:
    """A visible column.  `aliases`: the FROM name it may be qualified with, if any."""

    name: str
    expr: Expr
    aliases: tuple[str, ...] = ()
    hidden: bool = False  # a side's own copy of a USING column: only by its qualified name
    also: str | None = None  # a second name, where nothing bears it as its first

    @property
    def type(self) -> Type:
        return self.expr.type


@dataclass(frozen=True, slots=True)
class Scope:
    """Columns in `*` order; `relations` are the FROM names, also those without columns here.

    `declared` maps a declared name to the alias that hides it; `beyond` are columns of enclosing
    blocks that can't be reached from here, kept so that the error can say so.  `stamps`: of the
    streams of FROM, by their names there, the column of TIMESTAMP BY and its unit.
    """

    columns: tuple[VisibleColumn, ...] = ()
    relations: tuple[str, ...] = ()
    declared: tuple[tuple[str, str], ...] = ()
    parent: Scope | None = None
    beyond: tuple[Scope, ...] = ()
    stamps: tuple[tuple[str, str | None, str | None], ...] = ()

    def shifted(self, by: int) -> Scope:
        """The same names over a schema in which they stand `by` places further right."""
        return self.mapped(lambda c: Col(c.index + by, c.type, c.name))

    def mapped(self, leaf: Callable[[Col], Expr]) -> Scope:
        """The same names, every plan column replaced by `leaf(column)`."""
        return replace(
            self, columns=tuple(replace(c, expr=rewrite(c.expr, leaf)) for c in self.columns)
        )

    def joined(self, other: Scope) -> Scope:
        """Both sides' names; `other` already stands in its place."""
        return replace(
            self,
            columns=self.columns + other.columns,
            relations=self.relations + other.relations,
            declared=self.declared + other.declared,
            stamps=self.stamps + other.stamps,
        )

    def visible(self) -> list[VisibleColumn]:
        """What `*` shows."""
        return [c for c in self.columns if not c.hidden]

    def matching(self, ref: ast.ColumnRef) -> list[VisibleColumn]:
        """The columns of this scope (not its parent's) that the reference may mean."""
        table = ref.table
        if table is None:
            seen = [c for c in self.columns if not c.hidden]
        else:
            seen = [c for c in self.columns if any(table.matches(a) for a in c.aliases)]
        found = [c for c in seen if ref.name.matches(c.name)]
        return found or [c for c in seen if c.also is not None and ref.name.matches(c.also)]

    def knows(self, table: ast.Ident) -> bool:
        return any(table.matches(r) for r in self.relations)


def relation_scope(
    schema: Schema, alias: str | None, declared: str | None = None, also: Sequence[str | None] = ()
) -> Scope:
    """The scope of one FROM item; `also` are second names of its columns."""
    aliases = (alias,) if alias is not None else ()
    columns = tuple(
        VisibleColumn(
            f.name, Col(i, f.type, f.name), aliases, also=also[i] if i < len(also) else None
        )
        for i, f in enumerate(schema)
    )
    hides = (
        ((declared, alias),)
        if alias and declared and declared.casefold() != alias.casefold()
        else ()
    )
    return Scope(columns, aliases, hides)


def together(left: Scope, right: Scope, at: ast.FromItem) -> Scope:
    """Both sides' names; DS205 where one stands on both."""
    taken = {r.casefold() for r in left.relations}
    for name in right.relations:
        if name.casefold() in taken:
            place = at.alias or at.name if isinstance(at, ast.TableRef) else at
            raise error(
                "DS205",
                f"`{name}` stands in FROM twice",
                place,
                f"give one an alias: {name} AS {name}2",
            )
    return left.joined(right)


def find(scope: Scope, ref: ast.ColumnRef) -> VisibleColumn:
    """The column that a reference means; DS201, DS202, DS204 or DS322 otherwise."""
    level: Scope | None = scope
    while level is not None:
        found = level.matching(ref)
        if len(found) == 1:
            return found[0]
        if found:
            raise _ambiguous(ref, found)
        if ref.table is not None and level.knows(ref.table):
            break
        level = level.parent
    raise _unknown(scope, ref)


def star(scope: Scope, item: ast.StarItem) -> list[VisibleColumn]:
    """The columns of ``*`` or ``t.*``."""
    if item.table is None:
        return scope.visible()
    table = item.table
    if not scope.knows(table):
        raise _unknown_relation(scope, table)
    return [
        c
        for c in scope.columns
        if any(table.matches(a) for a in c.aliases)
        and not (c.hidden and c.name.startswith("$"))  # only INSTANT names it
    ]


def unknown_source(name: ast.Ident, known: Sequence[str]) -> Exception:
    """DS203: nothing of these is called so."""
    hint = instead(name.text, "relation") or (
        suggest(name.text, known, "names") if known else "declare it first: CREATE STREAM ..."
    )
    return error("DS203", f"unknown stream or table `{name.text}`", name, hint)


def _ambiguous(ref: ast.ColumnRef, found: Sequence[VisibleColumn]) -> Exception:
    owners = [f"{c.aliases[0]}.{c.name}" for c in found if c.aliases]
    hint = f"write {' or '.join(owners)}" if owners else "give the columns different names with AS"
    message = f"column {_quote(ref.name.text)} is ambiguous: {len(found)} columns have that name"
    return error("DS202", message, ref.name, hint)


def _unknown(scope: Scope, ref: ast.ColumnRef) -> Exception:
    all_ = (*_levels(scope), *scope.beyond)
    if ref.table is not None and not any(s.knows(ref.table) for s in all_):
        return _unknown_relation(scope, ref.table)
    if any(s.matching(ref) for s in scope.beyond):
        return _out_of_reach(ref)
    known = _names(_levels(scope), ref.table) or _names(scope.beyond, ref.table)
    shown = ref.name.text if ref.table is None else f"{ref.table.text}.{ref.name.text}"
    hint = suggest(ref.name.text, known, "columns")
    if not known and ref.table is None:
        hint = "there is no FROM clause; text is written 'in single quotes'"
    elif ref.table is None and (hint is None or "did you mean" not in hint):
        hint = "; ".join(p for p in (hint, f"for text write '{ref.name.text}'") if p)
    if ref.table is None and not (hint and "did you mean" in hint):
        hint = instead(ref.name.text, "bare") or hint
    return error("DS201", f"unknown column {_quote(shown)}", ref.name, hint)


def _out_of_reach(ref: ast.ColumnRef) -> Exception:
    message = (
        f"column {_quote(ref.name.text)} belongs to an enclosing query that can't be "
        "reached from here"
    )
    hint = (
        "a subquery in FROM sees its own FROM, and behind LATERAL what stands before it; EXISTS "
        "and IN see the query directly around them, in WHERE"
    )
    return error("DS322", message, ref, hint)


def _unknown_relation(scope: Scope, table: ast.Ident) -> Exception:
    for level in _levels(scope):
        for declared, alias in level.declared:
            if table.matches(declared):
                message = f"{_quote(table.text)} is called {alias} in this query"
                return error(
                    "DS204", message, table, f"write {alias}, the alias it was given in FROM"
                )
    known = [r for s in _levels(scope) for r in s.relations]
    message = f"nothing in FROM is called {_quote(table.text)}"
    return error("DS204", message, table, suggest(table.text, known, "in FROM"))


def _names(scopes: Iterable[Scope], table: ast.Ident | None) -> list[str]:
    out: list[str] = []
    for level in scopes:
        for c in level.columns:
            if table is None or any(table.matches(a) for a in c.aliases):
                out.append(c.name)
    return out


def _levels(scope: Scope) -> Iterable[Scope]:
    level: Scope | None = scope
    while level is not None:
        yield level
        level = level.parent


def _quote(name: str) -> str:
    return f"`{name}`"
