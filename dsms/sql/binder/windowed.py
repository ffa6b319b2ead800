"""Windows, put over what stands in FROM."""

from __future__ import annotations

from dataclasses import replace

from dsms.sql import ast
from dsms.sql.binder import archives, episodes
from dsms.sql.binder.appendable import appendable
from dsms.sql.binder.context import Context
from dsms.sql.binder.properties import append_only, why_not_append_only
from dsms.sql.binder.scope import Scope
from dsms.sql.binder.windows import window_spec
from dsms.sql.codes import error
from dsms.sql.logical import Node, Window
from dsms.sql.types import Schema


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
    extent = episodes.extent(ctx, window, scope)
    spec = window_spec(window, scope, ctx.every, extent)
    leaf = archives.leaf_of(child)
    if window.archive or (leaf is not None and leaf.archive is not None):
        archives.check_window(leaf, spec, window)
    spec = replace(spec, internal=spec.internal or internal)
    ctx.windows.append((spec, window))
    return Window(child, spec, schema)
