"""SUM and AVG."""

from __future__ import annotations

from dsms.aggregates.card import Card, of_decimal
from dsms.sql.signatures import MAX_DIGITS, texts
from dsms.sql.types import FLOAT, decimal

_SUM_DECIMAL = of_decimal("(DECIMAL(p,s)) -> DECIMAL(38,s)", lambda a: decimal(MAX_DIGITS, a.scale))
_AVG_DECIMAL = of_decimal("(DECIMAL) -> FLOAT", lambda a: FLOAT)

CARDS = (
    Card(
        "sum",
        "Sum, exact for INT, DECIMAL and INTERVAL; a result outside the type is an error (running "
        "totals may leave it).  FLOAT: as close as compensated summation gets; NaN and infinities "
        "count while they are in.",
        texts("INT -> INT", _SUM_DECIMAL, "FLOAT -> FLOAT", "INTERVAL -> INTERVAL"),
        forms=("wide",),
        invertible=True,
        in_sql="wide",
        shared=True,
        counting=True,
        warm=("SUM(i)", "SUM(f)", "SUM(d)", "SUM(DISTINCT i)", "SUM(DISTINCT f)"),
    ),
    Card(
        "avg",
        "Mean: the exact sum divided, as FLOAT (DECIMAL too); never overflows.  INTERVAL: to the "
        "microsecond, ties to even.",
        texts("INT -> FLOAT", _AVG_DECIMAL, "FLOAT -> FLOAT", "INTERVAL -> INTERVAL"),
        aliases=("mean",),
        forms=("wide",),
        invertible=True,
        shared=True,
        counting=True,
        warm=("AVG(i)", "AVG(f)", "AVG(d)", "AVG(t - t)"),
    ),
)
