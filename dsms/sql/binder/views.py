"""What a user may see of a stream, table or query: a selection and a projection right above its
leaf.

Below every window, so that a window of n rows holds n rows that are seen, and below whatever the
user has written: rows that are hidden are gone before an expression could fail on them.  The
conditions and masks themselves can't fail (GRANT sees to that), and no rule of the planner moves
below them what can.
"""

from __future__ import annotations

from collections.abc import Sequence

from dsms.sql import ast
from dsms.sql.binder.calls import call, cast
from dsms.sql.binder.context import Context
from dsms.sql.binder.expressions import Env, bind, bind_condition
from dsms.sql.binder.scope import relation_scope
from dsms.sql.catalog import QueryDef, View
from dsms.sql.codes import error
from dsms.sql.expr import Call, Col, Expr, Lit
from dsms.sql.logical import Node, Project, Select
from dsms.sql.types import BOOL, Field

Bound = tuple[Expr | None, dict[str, Expr]]  # the condition, and what is shown of each column


def restricted(ctx: Context, scan: Node, declared: str, views: Sequence[View]) -> Node:
    """The leaf with what any of the views shows.  `declared`: the object's name, which conditions
    may use."""
    env = Env(ctx, relation_scope(scan.schema, declared), "WHERE")
    bound = [_bound(env, scan, view) for view in views]
    filters = [where for where, _ in bound]
    node: Node = scan
    if all(where is not None for where in filters):
        parts = tuple(where for where in filters if where is not None)
        node = Select(node, parts[0] if len(parts) == 1 else Call("or", parts, BOOL), scan.schema)
    shown = [
        (i, _column(bound, f.name))
        for i, f in enumerate(scan.schema)
        if any(f.name in c for _, c in bound)
    ]
    if [e for _, e in shown] == [Col(i, f.type, f.name) for i, f in enumerate(scan.schema)]:
        return node
    fields = [(scan.schema[i], e) for i, e in shown]
    schema = tuple(
        Field(f.name, f.type, f.qualifier, f.nullable or not isinstance(e, Col)) for f, e in fields
    )
    return Project(node, tuple(e for _, e in shown), schema)


def _bound(env: Env, scan: Node, view: View) -> Bound:
    masks = dict(view.columns)
    columns: dict[str, Expr] = {}
    for i, f in enumerate(scan.schema):
        if f.name in masks:
            mask = masks[f.name]
            columns[f.name] = (
                Col(i, f.type, f.name) if mask is None else cast(bind(env, mask), f.type)
            )
    return None if view.where is None else bind_condition(env, view.where), columns


def _column(bound: Sequence[Bound], name: str) -> Expr:
    """What is shown of a column: of several views what the first one shows that lets the row be
    seen, and rather the column itself than a mask of it; NULL in rows of which only views without
    the column let anything be seen."""
    variants = [(where, columns[name]) for where, columns in bound if name in columns]
    if len(variants) == len(bound) and all(e == variants[0][1] for _, e in variants):
        return variants[0][1]
    variants.sort(key=lambda v: not isinstance(v[1], Col))
    args: list[Expr] = []
    last: Expr = Lit(None, variants[0][1].type)
    for where, shown in variants:
        if where is None:
            last = shown
            break
        args += [where, shown]
    return call("case", [*args, last], ast.NullLit()) if args else last


def check_readable(query: QueryDef, ref: ast.TableRef) -> None:
    """DS329, DS391 for an answer that a one-time query can't read so."""
    if query.on_lookup:
        message = (
            f"{query.name} was registered ON LOOKUP: it has an answer when it is asked for one"
        )
        raise error("DS329", message, ref.name, f"LOOKUP {query.name}")
    if ref.window is not None and ref.window.archive:
        message = f"{query.name} is a query: what has left its answer is read on its own"
        raise error(
            "DS391",
            message,
            ref.window,
            f"write FROM ARCHIVE {query.name}, with a window or without",
        )
