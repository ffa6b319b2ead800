"""ARRAY_AGG(x, n ORDER BY y): the order of what an aggregate lists."""

from __future__ import annotations

from dsms.sql import ast, functions
from dsms.sql.binder.calls import cast
from dsms.sql.binder.expressions import Env, bind
from dsms.sql.binder.lists import without_order
from dsms.sql.binder.typenames import default_type
from dsms.sql.codes import error
from dsms.sql.expr import Expr

_BY_AGE = (
    "it goes by age, whatever the query says: ARGMIN(x, y) is the x of the least y, ARGMAX(x, y) "
    "that of the largest"
)
_NO_ORDER = "leave ORDER BY out: it says in which order ARRAY_AGG and STRING_AGG list values"


def aggregate_order(env: Env, node: ast.FuncCall) -> tuple[list[Expr], list[str]]:
    """The keys, which are arguments behind the others, and how each goes, as parameters.  Raises
    DS396 for aggregates that list nothing."""
    keys, how = list[Expr](), list[str]()
    for item in node.order_by:
        assert isinstance(item, ast.OrderItem)
        card = functions.aggregate(node.name.text)
        if not card.listing:
            name = card.name
            message = f"{name.upper()} lists no values, so they have no order in it"
            hint = _BY_AGE if card.picks and card.ordered else _NO_ORDER
            raise error("DS396", message, item, hint)
        key = bind(env, item.expr)
        without_order("lt", [key.type], item)
        keys.append(cast(key, default_type(key.type)))
        how.append(
            f"{'desc' if item.descending else 'asc'}{' nulls first' * bool(item.nulls_first)}"
        )
    return keys, how
