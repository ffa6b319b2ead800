"""SAMPLE."""

from __future__ import annotations

from dsms.aggregates.card import Card, items
from dsms.sql.signatures import Match, Overload, Types
from dsms.sql.types import INT, NULL


def _drawn(args: Types) -> Match | None:
    if len(args) != 2 or args[1] not in (INT, NULL):
        return None
    return Match((args[0], INT), items(args))


CARDS = (
    Card(
        "sample",
        "sample(x [, id], k): values of the k rows whose ids have the smallest hashes (of equal "
        "ones those with the smaller text), as a list (1 <= k <= 65536); so all sets of k rows are "
        "drawn alike. Unsaid, the id is the hash of all columns of FROM. Rows where either is NULL "
        "do not take part.",
        (Overload("(T, INT) -> LIST(T)", _drawn),),
        distinct=False,
        params=("n",),
        drawn=True,
        sampled=True,
    ),
)
