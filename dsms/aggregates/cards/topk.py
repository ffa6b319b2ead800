"""TOPK."""

from __future__ import annotations

from dsms.aggregates.card import Card, of_any
from dsms.sql.types import STRING

CARDS = (
    Card(
        "topk",
        "topk(x, k): the k most frequent values, the smaller value first among equally frequent "
        "ones, each cast to STRING, as the text [a, b, c].",
        (of_any("(any) -> STRING", STRING),),
        distinct=False,
        params=("k",),
        invertible=True,
        shared=True,
        tallied=True,
        warm=("TOPK(k, 3)",),
    ),
)
