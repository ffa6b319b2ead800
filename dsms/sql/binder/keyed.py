"""Streams with KEY: their declaration, and what stands in FROM for them (`dsms.sql.keyed`)."""

from __future__ import annotations

from dataclasses import replace

from dsms.sql import ast
from dsms.sql.binder.context import Context
from dsms.sql.binder.objects import column_index
from dsms.sql.binder.scope import Scope
from dsms.sql.binder.windowed import put_window
from dsms.sql.catalog import StreamDef
from dsms.sql.codes import error
from dsms.sql.expr import Col
from dsms.sql.keyed import COLUMN, OPERATION
from dsms.sql.logical import Node, Project, StreamScan, Window
from dsms.sql.types import Schema
from dsms.sql.window import UNBOUNDED, Latest


def keyed(statement: ast.CreateStream, schema: Schema) -> tuple[tuple[int, ...], Schema]:
    """The columns of KEY, and all with that of the operation behind them; keys are NOT NULL.

    Raises DS233, DS236 for clauses that do not go with it."""
    key = [column_index(schema, name, "KEY") for name in statement.key]
    for at, name in enumerate(statement.key):
        if key[at] in key[:at]:
            message = f"KEY names `{name.text}` twice"
            raise error("DS233", message, name, "name each column once")
    for column in statement.columns:
        if column.name.text.casefold() == OPERATION:
            message = f"a stream with KEY has a column {OPERATION} of its own"
            raise error("DS233", message, column.name, "leave it out: rows may bring it")
    _check_clauses(statement)
    fields = [replace(f, nullable=f.nullable and i not in key) for i, f in enumerate(schema)]
    return tuple(key), (*fields, COLUMN)


def _check_clauses(statement: ast.CreateStream) -> None:
    clauses = (
        ("ARCHIVE", statement.archive, "archive a stream of its changes: AS SELECT Istream(*) ..."),
        ("CONFIDENTIAL", statement.confidential, "GRANT shows a part of it, with WHERE"),
        ("INDEX BY", next(iter(statement.index_by), None), "leave it out"),
    )
    for word, clause, hint in clauses:
        if clause is not None:
            raise error("DS236", f"{word} does not go with KEY", clause, hint)


def check_no_key(stream: StreamDef, at: ast.Node, what: str) -> None:
    """Raise DS236 where a stream has a KEY."""
    if stream.key:
        message = f"{what} can't go into {stream.name}, whose rows have keys"
        raise error("DS236", message, at, "declare a stream without KEY for them")


def put_latest(ctx: Context, scan: StreamScan, window: ast.Window | None, scope: Scope) -> Node:
    """What the stream holds of the rows in the window, with the columns that it shows.

    Raises DS237 for a window that counts rows, is INTERNAL or reaches into an archive."""
    stream, schema = scan.stream, scan.schema
    rows = Window(scan, UNBOUNDED, schema)
    if window is not None:
        check_window(stream, window)
        rows = put_window(ctx, scan, window, scope, schema, False)
    latest = Window(rows, Latest(by=stream.key, operation=stream.operation), schema)
    shown = schema[: stream.operation]
    columns = tuple(Col(i, f.type, f.name) for i, f in enumerate(shown))
    return Project(latest, columns, shown)


def check_window(stream: StreamDef, window: ast.Window) -> None:
    """Raise DS237 for a window that has no meaning over the stream."""
    name, hint = stream.name, "write [RANGE 10 SECONDS], [NOW], or no window"
    if isinstance(window, ast.RowsWindow | ast.ThrottledWindow | ast.FirstWindow):
        message = f"{name} has a KEY: it holds the last row of each, and windows that count rows"
        message += " or choose among them do not say of what"
    elif isinstance(window, ast.SessionWindow | ast.WhenWindow):
        message = f"{name} has a KEY: it holds the last row of each, and episodes are of many"
    elif isinstance(window, ast.LastingWindow):
        message = (
            f"{name} has a KEY: it holds the last row of each, which must not leave before others"
        )
    elif window.slide is not None and isinstance(window.slide.every, int):
        message = f"{name} has a KEY: its rows are changes, and this SLIDE counts rows"
        hint = "let SLIDE be a length of time, such as [RANGE 10 SECONDS SLIDE 5 SECONDS]"
    elif window.internal:
        message = f"{name} has a KEY: its rows are taken back, and INTERNAL windows keep results"
    elif window.archive:
        message, hint = f"{name} has a KEY, and so no archive", "leave ARCHIVE out"
    else:
        return
    raise error("DS237", message, window, hint)
