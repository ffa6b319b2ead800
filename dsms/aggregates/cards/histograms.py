"""APPROX_HISTOGRAM, APPROX_INTERSECT."""

from __future__ import annotations

from dsms.aggregates.card import Card
from dsms.sql.signatures import texts

NUMBERS = ("INT", "FLOAT", "TIMESTAMP", "INTERVAL")

CARDS = (
    Card(
        "approx_histogram",
        "approx_histogram(x, g [, scale]): at most g ranges (2 <= g <= 10000) that have values, "
        "with exact counts, as JSON; they have widths of powers of two, as narrow as g allows "
        "(scale 'linear', unsaid), or widths in proportion to their values (scale 'log').",
        texts(*(f"{t} -> STRING" for t in NUMBERS)),
        distinct=False,
        params=("g", "scale"),
        defaults=("linear",),
        sampled=True,
    ),
    Card(
        "approx_intersect",
        "approx_intersect(x, side, g): of at most g ranges (2 <= g <= 10000) of values those in "
        "which both rows with a true side and rows with a false one have values, with exact "
        "counts of either, as JSON; values that both sides have are in no other range.",
        texts(*(f"{t}, BOOL -> STRING" for t in NUMBERS)),
        distinct=False,
        params=("g",),
        sampled=True,
    ),
)
