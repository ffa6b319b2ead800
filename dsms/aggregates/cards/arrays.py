"""ARRAY_AGG."""

from __future__ import annotations

from dsms.aggregates.card import Card, items
from dsms.sql.signatures import Match, Overload, Types


def _one(args: Types) -> Match | None:
    return Match(args, items(args)) if len(args) == 1 else None


CARDS = (
    Card(
        "array_agg",
        "array_agg(x, n [ORDER BY y, ...]): the first n values by (ts, arrival), or in that order, "
        "as a list (1 <= n <= 65536); NULLs are left out.",
        (Overload("(T) -> LIST(T)", _one),),
        aliases=("collect_list",),
        distinct=False,
        params=("n",),
        forms=("code", "word"),
        ordered=True,
        listing=True,
        warm=("ARRAY_AGG(i, 3)", "ARRAY_AGG(k, 3 ORDER BY f DESC, k)"),
    ),
)
