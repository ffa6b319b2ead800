"""Statements that change queries while they run, and comments, as text."""

from __future__ import annotations

from dsms.sql import ast
from dsms.sql.print_expressions import name, option_value, string


def text(node: ast.Statement) -> str:
    """The statement."""
    match node:
        case ast.PauseQuery(what):
            return f"PAUSE QUERY {name(what)}"
        case ast.ResumeQuery(what):
            return f"RESUME QUERY {name(what)}"
        case ast.RenameQuery(what, to):
            return f"ALTER QUERY {name(what)} RENAME TO {name(to)}"
        case ast.SetQuery(what, options):
            shown = ", ".join(f"{name(o.name)} = {option_value(o.value)}" for o in options)
            return f"ALTER QUERY {name(what)} SET ({shown})"
        case ast.Comment(kind, what, said):
            shown = "NULL" if said is None else string(said)
            return f"COMMENT ON {kind} {name(what)} IS {shown}"
        case _:
            raise TypeError(f"unknown statement {type(node).__name__}")
