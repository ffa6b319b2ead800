"""APPROX_COUNT_DISTINCT, APPROX_QUANTILE, APPROX_TOPK: near the exact ones."""

from __future__ import annotations

from dsms.aggregates.card import Card, of_any
from dsms.sql.signatures import texts
from dsms.sql.types import STRING

CARDS = (
    Card(
        "approx_count_distinct",
        "approx_count_distinct(x [, lg_k]): number of different values, from CPC sketches of "
        "2^lg_k rows (4 <= lg_k <= 21, unsaid 11); standard error 0.6931 / sqrt(2^lg_k), so 1.5 % "
        "unsaid.",
        texts("T -> INT"),
        equal=True,
        distinct=False,
        params=("lg_k",),
        defaults=(11,),
        total=True,
        sampled=True,
    ),
    Card(
        "approx_quantile",
        "approx_quantile(x, phi [, size]): a value whose rank is near that of quantile(x, phi), "
        "from KLL sketches (8 <= size <= 65535, unsaid 200); with 99 % confidence the rank is off "
        "by 2.296 / size^0.9723 at most, 1.33 % unsaid.",
        texts("INT -> INT", "FLOAT -> FLOAT", "TIMESTAMP -> TIMESTAMP", "INTERVAL -> INTERVAL"),
        distinct=False,
        params=("phi", "size"),
        defaults=(200,),
        sampled=True,
    ),
    Card(
        "approx_topk",
        "approx_topk(x, k): as topk, from frequent-items sketches of m >= 64 * k counters: each "
        "value that occurs more than 3.5 / m of all times is counted; counts are off by that much "
        "at most.",
        (of_any("(any) -> STRING", STRING),),
        distinct=False,
        params=("k",),
        sampled=True,
    ),
)
