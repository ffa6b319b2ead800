"""NOW(), or CURRENT_TIMESTAMP: in one-time queries the instant that the answer holds at.

In persistent ones it stands in conditions that are windows (`temporal`), and nowhere else."""

from __future__ import annotations

from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql.binder.context import Context
from dsms.sql.catalog import Catalog
from dsms.sql.codes import error
from dsms.sql.expr import NOW, Call
from dsms.sql.rewriting import replaced
from dsms.sql.types import TIMESTAMP

BARE = "current_timestamp"  # stands without ( ), too
WORDS = (NOW, BARE)
_HINT = (
    "time is that of the stream, and the window reaches back from it: FROM s [NOW], "
    "FROM s [RANGE 5 min]; alone on one side of a condition of WHERE NOW() is such a window: ts > "
    "NOW() - INTERVAL '5' MINUTE; a periodic answer tells its instant as WINDOW_END()"
)


def now_call(ctx: Context, node: ast.FuncCall) -> Call:
    """What the call is in the plan; DS207 with arguments, DS337 elsewhere than in a one-time
    query."""
    name = node.name.text.upper()
    if node.args or node.star or node.distinct or node.filter is not None:
        raise error("DS207", f"{name} takes no arguments", node, f"write {name}()")
    if not ctx.now:
        raise misplaced(node)
    return Call(NOW, (), TIMESTAMP)


def misplaced(node: ast.FuncCall, hint: str = _HINT) -> QueryError:
    """DS337."""
    name = node.name.text.upper()
    message = f"{name} is the instant that a one-time query answers as of, and this is none"
    return error("DS337", message, node, hint)


def called(query: ast.Query, catalog: Catalog) -> ast.Query:
    """The query with a call in place of each bare CURRENT_TIMESTAMP, unless something that it reads
    or names has a column of that name."""
    parts = list(ast.walk(query))
    if not any(isinstance(part, ast.ColumnRef) and _bare(part) for part in parts):
        return query
    if any(_names(part, catalog) for part in parts):
        return query

    def swap(part: ast.Node) -> ast.Node | None:
        if not isinstance(part, ast.ColumnRef) or not _bare(part):
            return None
        return ast.FuncCall(ast.Ident(BARE.upper(), pos=part.pos), pos=part.pos)

    made: ast.Query = replaced(query, swap, within_queries=True)
    return made


def _bare(ref: ast.ColumnRef) -> bool:
    return ref.table is None and not ref.name.quoted and ref.name.text.casefold() == BARE


def _names(part: ast.Node, catalog: Catalog) -> bool:
    """Whether a relation has a column of that name, or something is called so."""
    match part:
        case ast.SelectItem(alias=ast.Ident() as alias):
            return alias.matches(BARE)
        case ast.TableRef(name=name):
            found = catalog.find(name.text, name.quoted)
            schema = getattr(found, "schema", ())
            return any(f.name.casefold() == BARE for f in schema)
    return False
