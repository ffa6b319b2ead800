"""Which columns a feed needs for a query: each aggregate once, AVG with the SUM and COUNT that are there (SS2, CS3)."""

from __future__ import annotations

from dsms.sql.expr import AggCall
from dsms.sql.types import INT

ROWS = AggCall("count_star", (), INT)  # says which groups have rows at all


def needed(aggs: tuple[AggCall, ...], grouped: bool) -> tuple[AggCall, ...]:
    """The columns that answer these aggregates."""
    return tuple(dict.fromkeys([*([ROWS] if grouped else []), *aggs]))
