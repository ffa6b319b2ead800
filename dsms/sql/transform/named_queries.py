"""WITH: queries that have a name in the one that follows.

Each stands where it is named, in parentheses, as if it had been written there; so it means what a
subquery means, and is refused where that is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from dsms.sql import ast
from dsms.sql.ast import Pos
from dsms.sql.literals import bad
from dsms.sql.rewriting import replaced

MOST = 50_000  # nodes that a statement may gain by them: n names, each twice in the next, make 2^n
DEEPEST = 150  # nodes below each other; what is deeper would be refused in the end
_Body = TypeVar("_Body", bound=ast.Select | ast.SetOp | ast.Query)


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """`size` and `depth`: of its tree, with what stands in it by name."""

    name: ast.Ident
    query: ast.Query
    size: int
    depth: int


class Known:
    """What WITH has named so far, by name without regard to case."""

    def __init__(self) -> None:
        self._by_name: dict[str, list[NamedQuery]] = {}

    def find(self, name: ast.Ident) -> NamedQuery | None:
        """What a name means, if anything."""
        some = self._by_name.get(name.text.casefold(), ())
        return next((n for n in some if name.matches(n.name.text)), None)

    def add(self, name: ast.Ident, columns: tuple[ast.Ident, ...], query: ast.Query) -> None:
        """Another, which may name those before it; `columns`: what its columns are called, or none.
        Raises DS105, DS109, DS217."""
        if self.find(name) is not None:
            raise bad("DS109", name.pos, f"WITH gives the name {name.text} twice")
        found, gained, below = put_in(query, self)
        if columns:
            found = _called(found, columns, name.pos)
        size, depth = _measured(query)
        made = NamedQuery(name, found, size + gained, depth + below + 2 * bool(columns))
        self._by_name.setdefault(name.text.casefold(), []).append(made)


def put_in(query: _Body, known: Known) -> tuple[_Body, int, int]:
    """The query with those that it names in place of their names, by how many nodes it has grown,
    and how deep the deepest of them is.  Raises DS105 where that makes it too large or deep."""
    gained = deepest = 0

    def swap(node: ast.Node) -> ast.Node | None:
        nonlocal gained, deepest
        match node:
            case ast.TableRef(name, alias, window, False, sample):
                found = known.find(name)
                if found is None:
                    return None
                gained, deepest = gained + found.size, max(deepest, found.depth)
                if gained > MOST or deepest > DEEPEST:
                    what = "large" if gained > MOST else "deep"
                    raise bad("DS105", name.pos, f"with {name.text} put in, this is too {what}")
                shown = alias or ast.Ident(name.text, name.quoted)
                return ast.SubqueryRef(found.query, shown, window, sample, pos=node.pos)
        return None

    out: _Body = replaced(query, swap, within_queries=True)
    return out, gained, deepest


def _measured(query: ast.Query) -> tuple[int, int]:
    """Its nodes, and how many there are below each other."""
    level: list[ast.Node] = [query]
    size = depth = 0
    while level:
        size, depth = size + len(level), depth + 1
        level = [child for node in level for child in ast.children(node)]
    return size, depth


def _called(query: ast.Query, columns: tuple[ast.Ident, ...], pos: Pos) -> ast.Query:
    """``WITH x (a, b) AS (SELECT ...)``: its columns under these names."""
    body, names = _with_names(query)
    if None in names or len({n.text.casefold() for n in names if n}) < len(names):
        message = "its columns are called anew where each of them has one name of its own"
        raise bad("DS217", pos, message, "give the names in its SELECT: SELECT a AS x, ...")
    if len(names) != len(columns):
        message = f"there are {len(columns)} names for {len(names)} columns"
        raise bad("DS217", columns[0].pos, message)
    items = tuple(
        ast.SelectItem(ast.ColumnRef(n, pos=c.pos), c, pos=c.pos)
        for n, c in zip(names, columns, strict=True)
        if n is not None
    )
    outer = ast.Select(items, (ast.SubqueryRef(body, pos=query.pos),), pos=query.pos)
    return ast.Query(outer, pos=query.pos)


def _with_names(body: _Body) -> tuple[_Body, list[ast.Ident | None]]:
    """The query whose columns have names, and these; None for ``*``."""
    match body:
        case ast.Select(items):
            named = tuple(_with_name(item, n) for n, item in enumerate(items))
            return replace(body, items=named), [_name(item) for item in named]
        case ast.SetOp(left=left):
            left, names = _with_names(left)
            return replace(body, left=left), names
        case ast.Query(inner):
            inner, names = _with_names(inner)
            return replace(body, body=inner), names
    raise AssertionError(body)


def _with_name(item: ast.SelectItem | ast.StarItem, n: int) -> ast.SelectItem | ast.StarItem:
    if isinstance(item, ast.StarItem) or item.alias or isinstance(item.expr, ast.ColumnRef):
        return item
    return replace(item, alias=ast.Ident(f"${n}", True))


def _name(item: ast.SelectItem | ast.StarItem) -> ast.Ident | None:
    match item:
        case ast.SelectItem(_, ast.Ident() as alias):
            return replace(alias, pos=ast.NOWHERE)
        case ast.SelectItem(ast.ColumnRef(name)):
            return replace(name, pos=ast.NOWHERE)
    return None
