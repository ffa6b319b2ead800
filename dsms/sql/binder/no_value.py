"""What is said of queries, rows of values and Wstream where a value is expected."""

from __future__ import annotations

from dsms.sql import ast
from dsms.sql.codes import error

_CHANGES = ("UPDATE", "DELETE")
_ASK_FIRST = (
    "a change of a table sees its own rows alone: ask with a SELECT first, and write what it "
    "answers, as in WHERE k IN (1, 2)"
)


def no_value(place: str, node: ast.Expr) -> Exception:
    """The error for a query, a row of values, Wstream or OVER at `place`: DS217, DS320, DS321,
    DS327, DS373."""
    match node:
        case ast.ScalarQuery():
            hint = (
                _ASK_FIRST
                if place in _CHANGES
                else (
                    "put the subquery into FROM and join it, for example FROM s [NOW], (SELECT "
                    "MAX(a) AS m FROM s) x"
                )
            )
            message = f"a subquery can't stand for a value in {place}"
            return error("DS321", message, node, hint)
        case ast.Over():
            return _over(place, node)
        case ast.RowExpr():
            return error(
                "DS217",
                "a row of values can only stand on the left of IN",
                node,
                "write its items apart",
            )
        case ast.WstreamArg():
            hint = "write SUM(Wstream(SUM(a))[ROWS 10]) in the select list"
            return error(
                "DS327",
                "Wstream can only stand directly in an aggregate of the select list",
                node,
                hint,
            )
    match node:
        case ast.Exists():
            what = "EXISTS"
        case ast.Quantified(all=every):
            what = f"{'ALL' if every else 'ANY'} (SELECT ...)"
        case _:
            what = "IN (SELECT ...)"
    if place in _CHANGES:
        return error("DS320", f"{what} can't be asked in {place}", node, _ASK_FIRST)
    if place == "WHERE":
        hint = "make it a part of WHERE joined by AND, OR and NOT"
        message = f"{what} inside of a CASE, a comparison or a function can't be evaluated"
    else:
        hint = "move it to WHERE as a condition joined by AND, OR and NOT"
        message = f"{what} can only stand in WHERE, not in {place}"
    return error("DS320", message, node, hint)


def _over(place: str, node: ast.Over) -> Exception:
    where = "inside of another OVER" if place == "OVER" else f"in {place}"
    hint = (
        "it stands in the select list, ORDER BY and QUALIFY; else compute it in a subquery: "
        "SELECT ... FROM (SELECT *, LAG(v) OVER (PARTITION BY k) AS before FROM s) WHERE v > before"
    )
    return error("DS373", f"OVER can't stand {where}", node, hint)
