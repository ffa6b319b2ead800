"""BOOL_AND and BOOL_OR."""

from __future__ import annotations

from dsms.aggregates.card import Card
from dsms.sql.signatures import texts

CARDS = (
    Card(
        "bool_and",
        "True if no value is false.",
        texts("BOOL -> BOOL"),
        aliases=("every",),
        blind=True,
        invertible=True,
        in_sql="same",
        shared=True,
    ),
    Card(
        "bool_or",
        "True if a value is true.",
        texts("BOOL -> BOOL"),
        aliases=("some",),
        blind=True,
        invertible=True,
        in_sql="same",
        shared=True,
        warm=("BOOL_OR(o)",),
    ),
)
