"""Windows, put over what stands in FROM.

A window whose rows say how long they are in it ([VALID UNTIL column], [RANGE (expression)]) goes by
a column.  What is no column yet becomes one, behind those that can be named: it is made of a row
when that comes, once, and counted where it fails.
"""

from __future__ import annotations

from dataclasses import replace

from dsms.sql import ast
from dsms.sql.binder import archives, episodes
from dsms.sql.binder.appendable import appendable
from dsms.sql.binder.context import Context
from dsms.sql.binder.expressions import Env, bind
from dsms.sql.binder.properties import append_only, why_not_append_only
from dsms.sql.binder.scope import Scope
from dsms.sql.binder.windows import until_of, window_spec
from dsms.sql.codes import error
from dsms.sql.expr import Col, Expr
from dsms.sql.logical import Node, Project, Window
from dsms.sql.printer import to_sql
from dsms.sql.types import Field, Kind, Schema
from dsms.sql.window import Lasting, WindowSpec


def put_window(
    ctx: Context,
    child: Node,
    window: ast.Window,
    scope: Scope,
    schema: Schema,
    internal: bool,
    inside: ast.Query | None = None,
) -> Window:
    """A window over a stream or an append-only result; DS306 for any other.  `internal`: Wstream
    says so; `inside`: the query whose result it is."""
    if not append_only(child):
        reason = why_not_append_only(child)
        hint = (
            "write Istream(...) around the select list inside: what enters its answer is "
            "appended, and stays"
        )
        if inside is not None:
            hint += appendable(inside, window)
        raise error(
            "DS306",
            f"a window needs an append-only input, and this result is not: {reason}",
            window,
            hint,
        )
    leaf = archives.leaf_of(child)
    extent: WindowSpec | None = episodes.extent(ctx, window, scope)
    if isinstance(window, ast.LastingWindow):
        child, extent = _lasting(ctx, child, window, scope)
        schema = child.schema
    spec = window_spec(window, scope, ctx.every, extent)
    if window.archive or (leaf is not None and leaf.archive is not None):
        archives.check_window(leaf, spec, window)
    spec = replace(spec, internal=spec.internal or internal)
    ctx.windows.append((spec, window))
    return Window(child, spec, schema)


def _lasting(
    ctx: Context, child: Node, window: ast.LastingWindow, scope: Scope
) -> tuple[Node, Lasting]:
    """The input, with the column that says how long a row is in the window, and the window."""
    place = "RANGE" if window.spans else "VALID UNTIL"
    end = bind(Env(ctx, replace(scope, parent=None), place), window.end)
    _check(end, window)
    if isinstance(end, Col):
        return child, Lasting(end.index, window.spans, until_of(window.until))
    columns = tuple(Col(i, f.type, f.name) for i, f in enumerate(child.schema))
    field = Field(to_sql(window.end), end.type, child.schema[0].qualifier)
    schema = (*child.schema, field)
    lasting = Lasting(len(columns), window.spans, until_of(window.until))
    return Project(child, (*columns, end), schema), lasting


def _check(end: Expr, window: ast.LastingWindow) -> None:
    """Raise DS356 for what is no INTERVAL, or no TIMESTAMP."""
    found, wanted = end.type.kind, Kind.INTERVAL if window.spans else Kind.TIMESTAMP
    if found is wanted:
        return
    text = to_sql(window.end)
    if window.spans:
        message = f"RANGE (...) is how long a row stays, an INTERVAL, and this is {end.type}"
        if end.type.numeric:
            hint = f"give it a unit: [RANGE ({text} * INTERVAL '1' SECOND)]"
        elif found is Kind.TIMESTAMP:
            hint = "write [VALID UNTIL column] for the instant at which a row leaves"
        else:
            hint = "write [RANGE t], or an expression that is an INTERVAL"
        raise error("DS356", message, window.end, hint)
    message = f"VALID UNTIL names the instant at which a row leaves, and {text} is {end.type}"
    hint = (
        f"write [RANGE ({text})] for how long a row stays"
        if found is Kind.INTERVAL
        else "name a TIMESTAMP; a subquery in FROM can make one: (SELECT *, expression AS ends "
        "FROM s) [VALID UNTIL ends]"
    )
    raise error("DS356", message, window.end, hint)
