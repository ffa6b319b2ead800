"""COVAR_POP, COVAR_SAMP, CORR, REGR_SLOPE, REGR_INTERCEPT."""

from __future__ import annotations

from dsms.aggregates.card import Card
from dsms.sql.signatures import texts


def _pair(name: str, doc: str, warm: str, aliases: tuple[str, ...] = ()) -> Card:
    types = texts("FLOAT, FLOAT -> FLOAT")
    doc = f"{name}(y, x): {doc}; rows where either is NULL do not take part."
    return Card(name, doc, types, aliases, distinct=False, invertible=True, warm=(warm,))


CARDS = (
    _pair("covar_pop", "covariance of the population (n)", "COVAR_POP(f, f)"),
    _pair("covar_samp", "covariance of the sample (n - 1); NULL for fewer than two rows",
          "COVAR_SAMP(i, f)"),
    _pair("corr", "coefficient of correlation, from -1 to 1; NULL where y or x does not vary",
          "CORR(f, i)"),
    _pair("regr_slope", "slope of the line of least squares; NULL where x does not vary",
          "REGR_SLOPE(f, i)"),
    _pair("regr_intercept", "where that line crosses x = 0; NULL where x does not vary",
          "REGR_INTERCEPT(f, i)"),
)  # a table  # fmt: skip
