"""What the operators above ask of the rows of an edge, beyond their values.

It decides which form of DISTINCT may stand there (δ* hands a value on to a younger row), and which
rewrites are free to let another of several equal rows stand for them.
"""

from __future__ import annotations

from enum import IntEnum

from dsms.aggregates.cards import CARDS
from dsms.sql import logical as lp


class Demand(IntEnum):
    """Ordered: a node that meets one meets those below it."""

    NOTHING = 0  # only how many rows of each value there are
    # the order of rows that enter or leave at one instant; a value that changes hands keeps its
    # place
    PLACE = 1
    AGE = 2  # when each row was born, or which is older: a value must not change hands


def demand(node: lp.Node, child: int, above: Demand = Demand.PLACE) -> Demand:
    """What is asked of the rows of that child of the node, given what is asked of the node's own
    rows.

    A ⋈NRR reads its table at the row's birth, ASOF JOIN its other side, MATCH goes by births, OVER
    by the rows up to each one, Append takes a birth for a new result, and of rows that tie the
    older one comes first.  Groups, DISTINCT and set operations place their results by the oldest
    row, if an operator above asks for their place.  On the right of a semi-join or a set operation
    only values count.
    """
    match node:
        case lp.JoinNRR() | lp.Append() | lp.TopN() | lp.Over():
            return Demand.AGE
        case lp.GroupBy():
            aged = any(CARDS[a.fn].ordered for a in node.aggs) or (
                bool(node.keys) and above > Demand.NOTHING
            )
            return Demand.AGE if aged else Demand.NOTHING
        case lp.AsofJoin() | lp.Match():
            return Demand.AGE
        case lp.SemiJoin() | lp.SetOp() if child == 1:
            return Demand.NOTHING
        case lp.Distinct() | lp.SetOp():
            return Demand.AGE if above > Demand.NOTHING else Demand.NOTHING
        case _:
            return above
