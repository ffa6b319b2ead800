"""MODE and ENTROPY."""

from __future__ import annotations

from dsms.aggregates.card import Card, of_any
from dsms.sql.signatures import texts
from dsms.sql.types import FLOAT

CARDS = (
    Card(
        "mode",
        "The most frequent value, the smallest of equally frequent ones.",
        texts("T -> T"),
        distinct=False,
        picks=True,
        shared=True,
        tallied=True,
        warm=("MODE(k)", "MODE(i)"),
    ),
    Card(
        "entropy",
        "Shannon's entropy of the values in bits: of shares p the sum of -p LOG2(p); 0 while all "
        "values are equal.",
        (of_any("(any) -> FLOAT", FLOAT),),
        equal=True,
        distinct=False,
        invertible=True,
        shared=True,
        tallied=True,
        warm=("ENTROPY(k)",),
    ),
)
