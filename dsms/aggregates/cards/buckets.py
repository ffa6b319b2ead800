"""HISTOGRAM."""

from __future__ import annotations

from dsms.aggregates.card import Card
from dsms.aggregates.cards.histograms import NUMBERS
from dsms.sql.signatures import Match, Overload, Types, bends
from dsms.sql.types import INT, Kind, Type, list_of

COUNTS = list_of(INT)


def _of(name: str) -> Overload:
    wanted = Type(Kind(name))

    def match(args: Types) -> Match | None:
        cost = bends(args, (wanted,)) if len(args) == 1 else None
        return None if cost is None else Match((wanted,), COUNTS, cost)

    return Overload(f"({name}) -> LIST(INT)", match)


CARDS = (
    Card(
        "histogram",
        "histogram(x, [e1, e2, ...]): how many values are below e1, from e1 to below e2, ..., and "
        "from the last edge on (NaN is above all numbers), as a list of one more count than there "
        "are edges; these ascend, are of the type of x, and at most 10000.",
        tuple(map(_of, NUMBERS)),
        distinct=False,
        params=("edges",),
        invertible=True,
        warm=("HISTOGRAM(i, [1, 2])",),
    ),
)
