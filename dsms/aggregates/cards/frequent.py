"""FREQUENT."""

from __future__ import annotations

from dsms.aggregates.card import Card, of_any
from dsms.sql.types import STRING

CARDS = (
    Card(
        "frequent",
        "frequent(x, k): values that are certain to be frequent, from the k most frequent of each "
        "sub-window, as JSON with the threshold that their counts exceed (Golab 2006, Algorithm "
        "6).",
        (of_any("(any) -> STRING", STRING),),
        distinct=False,
        params=("k",),
        invertible=True,
        sampled=True,
        windowed=True,
    ),
)
