"""Refusals of a query that parses: DS2xx names and types, DS3xx rules of the language.

`tests/rules` holds a snippet that produces each of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from dsms.codes import CODES as ALL
from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql.suggest import hint as nearest_hint

CODES = {code: meaning for code, meaning in ALL.items() if code[2] in "23"}


def error(
    code: str, message: str, at: ast.Node | ast.Pos | None, hint: str | None = None
) -> QueryError:
    """The error of that code at a node's place."""
    assert code in CODES, code
    pos = at if isinstance(at, ast.Pos) else None if at is None else at.pos
    if isinstance(pos, ast.Within):
        place = f"column {pos.inside.column} of its text {pos.text}"
        message = f"{message} ({pos.name}, {place})"
    if pos is None or pos.line == 0:
        return QueryError(code, message, hint=hint)
    return QueryError(code, message, pos.line, pos.column, hint)


def suggest(name: str, known: Iterable[str], what: str) -> str | None:
    """A hint: the nearest known name, and all of them when they are few.  `what` names them, e.g.
    "columns"."""
    return nearest_hint(name, list(dict.fromkeys(known)), what)
