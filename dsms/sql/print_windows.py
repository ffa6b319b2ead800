"""Windows as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dsms.sql import ast, print_small
from dsms.sql.literals import duration_text
from dsms.sql.print_expressions import instant, reach

Text = Callable[[ast.Expr], str]


def core(node: ast.Window, text: Text) -> str:
    """What stands between the brackets before its options; `text`: how an expression is written."""
    match node:
        case ast.RangeWindow(length, until):
            return reach(f"RANGE {duration_text(length)}", _ago(until))
        case ast.RowsWindow(rows, until_rows, keys, age):
            by = f"{_by(keys, text)} " if keys else ""
            ago = None if until_rows is None else str(until_rows)
            within = "" if age is None else f" RANGE {duration_text(age)}"
            return f"{by}{reach(f'ROWS {rows}', ago)}{within}"
        case ast.NowWindow():
            return "NOW"
        case ast.UnboundedWindow(until):
            return reach("RANGE UNBOUNDED", _ago(until))
        case ast.LandmarkWindow(since, until):
            return reach(f"SINCE {instant(since)}", _ago(until))
        case ast.SessionWindow() | ast.WhenWindow():
            return print_small.episodes(node, text)
        case ast.FirstWindow(rows, keys):
            return f"{_by(keys, text)} FIRST {rows}"
        case ast.ThrottledWindow(length, until, keys):
            return reach(f"{_by(keys, text)} EVERY {duration_text(length)}", _ago(until))
        case ast.LastingWindow(end, spans, until):
            said = f"RANGE ({text(end)})" if spans else f"VALID UNTIL {text(end)}"
            return reach(said, _ago(until))
        case _:
            raise TypeError(f"unknown window {type(node).__name__}")


def _ago(until: ast.Duration | None) -> str | None:
    return None if until is None else duration_text(until)


def _by(keys: Sequence[ast.Expr], text: Text) -> str:
    return f"PARTITION BY {', '.join(map(text, keys))}"
