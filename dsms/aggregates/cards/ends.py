"""FIRST and LAST."""

from __future__ import annotations

from dsms.aggregates.card import Card
from dsms.sql.signatures import texts

CARDS = (
    Card(
        "first",
        "Value of the earliest row by (ts, arrival) whose value is not NULL.",
        texts("T -> T"),
        equal=True,
        distinct=False,
        aliases=("first_value", "any_value"),
        forms=("code",),
        ordered=True,
        picks=True,
        warm=("FIRST(k)", "FIRST(i)"),
    ),
    Card(
        "last",
        "Value of the latest row by (ts, arrival) whose value is not NULL.",
        texts("T -> T"),
        equal=True,
        distinct=False,
        aliases=("last_value",),
        forms=("code",),
        ordered=True,
        picks=True,
        warm=("LAST(i)", "LAST(k)"),
    ),
)
