"""MEDIAN, QUANTILE, QUANTILE_CONT."""

from __future__ import annotations

from dsms.aggregates.card import Card
from dsms.sql.signatures import texts

_MIDDLE = texts("FLOAT -> FLOAT", "TIMESTAMP -> TIMESTAMP", "INTERVAL -> INTERVAL")

CARDS = (
    Card(
        "median",
        "Middle value; between the two middle ones the midpoint (TIMESTAMP, INTERVAL: floored to "
        "the microsecond).",
        _MIDDLE,
        shared=True,
        ranked=True,
        warm=("MEDIAN(f)", "MEDIAN(i)"),
    ),
    Card(
        "quantile",
        "quantile(x, phi): the smallest value v such that at least the share phi of the values is "
        "<= v (phi = 0: the minimum).",
        texts("T -> T"),
        params=("phi",),
        aliases=("quantile_disc", "percentile_disc"),
        picks=True,
        shared=True,
        ranked=True,
        warm=("QUANTILE(i, 0.9)", "QUANTILE(k, 0.5)"),
    ),
    Card(
        "quantile_cont",
        "quantile_cont(x, phi): with n sorted values and h = (n - 1) * phi, the value at h, "
        "linear between its neighbours (TIMESTAMP, INTERVAL: floored to the microsecond).",
        _MIDDLE,
        params=("phi",),
        aliases=("percentile_cont",),
        shared=True,
        ranked=True,
        warm=("QUANTILE_CONT(f, 0.25)", "QUANTILE_CONT(t, 0.3)"),
    ),
)
