"""Small statements as text: what is shown, what is set, what streams are told."""

from __future__ import annotations

from collections.abc import Callable

from dsms.sql import ast
from dsms.sql.literals import duration_text
from dsms.sql.print_expressions import instant, name, option_value, string, type_name


def text(node: ast.Statement, part: Callable[[ast.Node], str]) -> str | None:
    """The statement, if it is one of these; `part` prints clauses and expressions."""
    match node:
        case ast.Describe(what, kind_or_none):
            return f"DESCRIBE {f'{kind_or_none} ' if kind_or_none else ''}{name(what)}"
        case ast.Show(shown, like, of, full, where):
            whose = f" FOR {name(of)}" if of is not None else ""
            named = f" LIKE {string(like)}" if like is not None else ""
            met = f" WHERE {part(where)}" if where is not None else ""
            return f"SHOW {shown}{' FULL' if full else ''}{whose}{named}{met}"
        case ast.ShowCreate(None, _):
            return "SHOW CREATE ALL"
        case ast.ShowCreate(made, ast.Ident() as what):
            return f"SHOW CREATE {made} {name(what)}"
        case ast.CreateFunction():
            return _create_function(node, part)
        case ast.DropFunction(dropped, what, if_exists):
            return f"DROP {dropped}{' IF EXISTS' if if_exists else ''} {name(what)}"
        case ast.Set(option):
            return f"SET {part(option)}"
        case ast.CancelSession(number, close):
            return f"{'CLOSE' if close else 'CANCEL'} SESSION {number}"
        case ast.AlterStream(what, clock):
            to = instant(clock) if clock is not None else "NOW"
            return f"ALTER STREAM {name(what)} SET CLOCK TO {to}"
        case ast.SetSince(what, since):
            to = instant(since) if since is not None else "NOW"
            return f"ALTER STREAM {name(what)} SET SINCE TO {to}"
        case ast.SetStream(what, options):
            said = ", ".join(f"{name(o.name)} = {option_value(o.value)}" for o in options)
            return f"ALTER STREAM {name(what)} SET ({said})"
        case ast.Reopen(what):
            return f"ALTER STREAM {name(what)} REOPEN"
        case ast.AddColumn(what, column):
            return f"ALTER STREAM {name(what)} ADD COLUMN {part(column)}"
        case ast.Rename(kind, what, to):
            return f"ALTER {kind} {name(what)} RENAME TO {name(to)}"
        case ast.RenameColumn(kind, what, column, to):
            return f"ALTER {kind} {name(what)} RENAME COLUMN {name(column)} TO {name(to)}"
        case ast.Heartbeat(what, moment):
            return f"HEARTBEAT {name(what)} AT {instant(moment)}"
        case ast.EndStream(what):
            return f"END STREAM {name(what)}"
        case ast.Punctuate(what, where, upto):
            until = f" UPTO {instant(upto)}" if upto is not None else ""
            return f"PUNCTUATE {name(what)} WHERE {part(where)}{until}"
        case ast.Lookup(what, given):
            values = f" ({', '.join(map(part, given))})" if given else ""
            return f"LOOKUP {name(what)}{values}"
        case _:
            return None


def _create_function(node: ast.CreateFunction, part: Callable[[ast.Node], str]) -> str:
    verb = "CREATE OR REPLACE" if node.or_replace else "CREATE"
    absent = " IF NOT EXISTS" if node.if_not_exists else ""
    takes = ", ".join(f"{name(p.name)} {type_name(p.type)}" for p in node.parameters)
    returns = f" RETURNS {type_name(node.returns)}" if node.returns is not None else ""
    head = f"{verb} {node.kind}{absent} {name(node.name)}({takes}){returns}"
    return f"{head} AS {part(node.body)}"


def episodes(node: ast.SessionWindow | ast.WhenWindow, text: Callable[[ast.Expr], str]) -> str:
    """Windows of episodes without their options; `text`: of expressions."""
    by = f" BY {', '.join(map(text, node.by))}" if node.by else ""
    match node:
        case ast.SessionWindow(gap):
            length = duration_text(gap) if isinstance(gap, ast.Duration) else f"({text(gap)})"
            return f"SESSION {length}{by}"
        case ast.WhenWindow(start, stop):
            return f"WHEN {text(start)} UNTIL {text(stop)}{by}"
