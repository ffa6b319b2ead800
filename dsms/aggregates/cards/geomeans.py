"""GEOMEAN."""

from __future__ import annotations

from dsms.aggregates.card import Card
from dsms.sql.signatures import texts

CARDS = (
    Card(
        "geomean",
        "Geometric mean: EXP(AVG(LN(x))) over the values; NULL while one is in that is not above "
        "0 (0, negative, NaN).",
        texts("FLOAT -> FLOAT"),
        aliases=("geometric_mean",),
        invertible=True,
        counting=True,
        warm=("GEOMEAN(f)",),
    ),
)
