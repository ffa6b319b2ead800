"""COUNT."""

from __future__ import annotations

from dsms.aggregates.card import Card
from dsms.sql.signatures import texts

CARDS = (
    Card(
        "count_star",
        "COUNT(*): number of rows.",
        texts("-> INT"),
        distinct=False,
        forms=("valid",),
        total=True,
        invertible=True,
        in_sql="same",
        warm=("COUNT(*)",),
    ),
    Card(
        "count",
        "Number of values that are not NULL; COUNT(DISTINCT x): of different ones.",
        texts("T -> INT"),
        equal=True,
        forms=("valid",),
        total=True,
        invertible=True,
        in_sql="same",
        warm=("COUNT(k)", "COUNT(f)", "COUNT(DISTINCT k)"),
    ),
)
