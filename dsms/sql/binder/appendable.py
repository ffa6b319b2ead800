"""What a query in FROM can be made to say, so that a window may be put over its result: for hints
(DS306)."""

from __future__ import annotations

from dataclasses import replace

from dsms.sql import ast
from dsms.sql.printer import to_sql
from dsms.sql.rewriting import replaced

LONGEST = 300  # characters of a form that is shown


def appendable(query: ast.Query, window: ast.Window) -> str:
    """Behind the words of a hint, the forms of that query; empty where there is none to show."""
    body = query.body
    if not isinstance(body, ast.Select) or not query.plain or body.output is not None:
        return ""
    entered = replace(body, output=ast.Output(ast.OutputKind.ISTREAM))
    shown = f": {_from(entered, window)}"
    periods = _periods(body)
    if periods is not None:
        shown += f"; for one result a period: {_from(periods, window)}"
    return shown if len(shown) <= 2 * LONGEST else ""


def _from(body: ast.Select, window: ast.Window) -> str:
    return f"FROM {to_sql(ast.SubqueryRef(ast.Query(body), None, window))}"


def _periods(body: ast.Select) -> ast.Select | None:
    """The aggregates of one stream over a RANGE, appended once in as long as that is."""
    refs = [r for r in body.from_ if isinstance(r, ast.TableRef)]
    if len(refs) != 1 or len(body.from_) != 1 or body.distinct or _tests(body):
        return None
    window = refs[0].window or body.window
    aggregates = body.group_by or any(
        isinstance(n, ast.FuncCall) for i in body.items for n in ast.walk(i)
    )
    if not aggregates or not isinstance(window, ast.RangeWindow) or window.until is not None:
        return None
    period = replace(window, internal=True, slide=window.slide or ast.Slide(window.length))
    found: ast.Select = replaced(body, lambda n: period if n == window else None)
    return found


def _tests(body: ast.Select) -> bool:
    """Whether subqueries in WHERE may take results back."""
    return body.where is not None and any(isinstance(n, ast.Query) for n in ast.walk(body.where))
