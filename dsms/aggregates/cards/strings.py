"""STRING_AGG."""

from __future__ import annotations

from dsms.aggregates.card import Card
from dsms.sql.signatures import texts

CARDS = (
    Card(
        "string_agg",
        "string_agg(x [, sep] [ORDER BY y, ...]): the texts one after the other, by (ts, arrival) "
        "or in that order, with sep (unsaid ',') between them; NULLs are left out.",
        texts("STRING -> STRING"),
        aliases=("listagg",),
        distinct=False,
        params=("sep",),
        defaults=(",",),
        forms=("code", "word"),
        ordered=True,
        listing=True,
        warm=("STRING_AGG(k)", "STRING_AGG(k ORDER BY i)"),
    ),
)
