"""Which of the rows that ORDER BY calls equal comes first where rows are ranked (`logical.TopN`).

The row that arrived first does: of a join, as its parts did, in FROM order.  Arrival numbers don't
depend on how rows were cut into batches, nor on when a row came into the window; and a row that was
there is not pushed out by one that is no better.  What is identified by value has no arrival of its
own: there the other columns decide, from the left, as in ORDER BY of an answer, and rows that are
equal in all of them are the same row to whoever looks.
"""

from __future__ import annotations

from dsms.plan.identity import by_value, order
from dsms.sql.expr import Col, Expr
from dsms.sql.logical import TopN

Key = tuple[Expr, bool, bool]


def keys_of(node: TopN) -> tuple[Key, ...]:
    """The keys by which rows are ranked, before their arrivals."""
    if not by_value(node.child):
        return node.keys
    named = {e.index for e, _, _ in node.keys if isinstance(e, Col)}
    others = [Col(i, f.type, f.name) for i, f in enumerate(node.child.schema) if i not in named]
    return (*node.keys, *((column, False, False) for column in others))


def arrivals_of(node: TopN) -> tuple[int, ...]:
    """Positions of the ids by which rows are ranked where the keys are equal."""
    return order(node.child)
