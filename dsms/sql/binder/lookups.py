"""ON LOOKUP and LOOKUP: queries that are kept ready and answered when asked (Arasu and Widom 2004,
§2)."""

from __future__ import annotations

from dsms.sql import ast
from dsms.sql.binder import open_values
from dsms.sql.binder.context import Context
from dsms.sql.catalog import Catalog, QueryDef, StreamDef
from dsms.sql.codes import error, suggest
from dsms.sql.logical import Node, StreamScan, children


def check(ctx: Context, node: Node, output: ast.Output | None, query: ast.Query) -> None:
    """ON LOOKUP has no evaluations of its own, so nothing can follow them or differ between two of
    them; DS329."""
    if query.every is not None:
        hint = (
            "leave out EVERY (LOOKUP answers as of now), or ON LOOKUP (the query then runs at each "
            "boundary)"
        )
        message = "ON LOOKUP and EVERY contradict: a query is answered when asked or when due"
        raise error("DS329", message, query.every, hint)
    for spec, at in ctx.windows:
        if spec.slide is not None:
            place = getattr(at, "slide", None) or at
            hint = (
                "leave out SLIDE (LOOKUP answers as of now), or ON LOOKUP (the query then runs "
                "at each boundary)"
            )
            raise error(
                "DS329",
                "ON LOOKUP and SLIDE contradict: a query is answered when asked or when due",
                place,
                hint,
            )
    if output is not None and output.kind in (ast.OutputKind.ISTREAM, ast.OutputKind.DSTREAM):
        name = output.kind.value
        message = f"{name} reports changes, and a query ON LOOKUP gives its whole answer when asked"
        raise error("DS329", message, output, f"leave {name} out, or ON LOOKUP")
    if not _reads_stream(node):
        message = "ON LOOKUP keeps windows over streams ready, and this query reads none"
        raise error(
            "DS329", message, query, "leave ON LOOKUP out, or run the SELECT when it is needed"
        )
    open_values.check(node, query)


def _reads_stream(node: Node) -> bool:
    return isinstance(node, StreamScan) or any(map(_reads_stream, children(node)))


def bind_lookup(statement: ast.Lookup, catalog: Catalog) -> QueryDef:
    """The query that LOOKUP names.  QueryError DS203 unknown, DS216 a stream or table, DS329 not ON
    LOOKUP."""
    name = statement.name
    found = catalog.find(name.text, name.quoted)
    ready = [q.name for q in catalog.queries.values() if q.on_lookup]
    if found is None:
        hint = (
            suggest(name.text, ready, "queries ON LOOKUP")
            or "register it: CREATE QUERY name AS SELECT ... ON LOOKUP"
        )
        raise error("DS203", f"there is no query {name.text}", name, hint)
    if not isinstance(found, QueryDef):
        what = "stream" if isinstance(found, StreamDef) else "table"
        raise error(
            "DS216",
            f"LOOKUP asks a query, and {found.name} is a {what}",
            name,
            f"SELECT * FROM {found.name}",
        )
    if not found.on_lookup:
        hint = "SELECT * FROM it, subscribe to it, or register it with ON LOOKUP"
        raise error(
            "DS329",
            f"query {found.name} was not registered ON LOOKUP: it is answered all the time",
            name,
            hint,
        )
    return found
