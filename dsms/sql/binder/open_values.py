"""Parameters of queries ON LOOKUP: ``HAVING COUNT(*) > ?``, whose value LOOKUP gives.

They stand in HAVING of the query itself, above all that is kept for it: so one state answers for
every value.
"""

from __future__ import annotations

from dsms.sql import ast
from dsms.sql.codes import error
from dsms.sql.expr import PARAMETER, Call, Expr
from dsms.sql.logical import GroupBy, Node
from dsms.sql.open_values import expressions, parts, types_of
from dsms.sql.types import Type

WHERE_ELSE = "compare it in HAVING with a key or an aggregate, as in HAVING COUNT(*) > ?"


def open_value(node: ast.Expr, place: str, type_: Type | None) -> Expr:
    """The parameter, of that type.  DS350 outside of HAVING, DS351 without a type."""
    assert isinstance(node, ast.Parameter)
    if place != "HAVING":
        message = (
            f"a parameter of LOOKUP can't stand in {place}: what is kept is kept for all values"
        )
        raise error("DS350", message, node, WHERE_ELSE)
    if type_ is None:
        hint = "compare it with a key or an aggregate, or write its type: ?::INT"
        raise error("DS351", "nothing tells the type of this parameter", node, hint)
    return Call(PARAMETER, (), type_, (node.number,))


def check(node: Node, query: ast.Query) -> tuple[Type, ...]:
    """The types of the parameters of a plan without its ORDER BY.  DS350 where one stands in a
    subquery, or something is done to the answer that HAVING lets through."""
    below, above = parts(node)
    types = types_of(expressions(above))
    marks = [part for part in ast.walk(query) if isinstance(part, ast.Parameter)]
    if len(types) == len(marks) and (not marks or isinstance(below, GroupBy)):
        return types
    known = set(range(1, len(types) + 1))
    at = next((m for m in marks if m.number not in known), marks[0])
    message = "a parameter of LOOKUP stands in HAVING of the query itself, of which there is one"
    hint = "leave out DISTINCT, UNION and the like, or group in the query that has the parameter"
    raise error("DS350", message, at, hint)
