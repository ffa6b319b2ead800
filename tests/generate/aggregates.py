"""Aggregate calls of a wanted type."""

from __future__ import annotations

import re

from dsms.sql.types import BOOL, DATE, FLOAT, INT, STRING, TIME, TIMESTAMP, UUID, Type
from tests.generate import own
from tests.generate.draws import Draws
from tests.generate.exprs import Scope, condition, scalar
from tests.generate.world import LISTED, MONEY, PAIR

# {t}: an expression of the wanted type, {i}: INT, {f}: FLOAT, {c}: any column, {o}: one with an
# order
PLAIN: dict[Type, tuple[str, ...]] = {
    INT: (
        "COUNT(*)", "SUM({i})", "COUNT({c})", "MIN({i})", "MAX({i})", "COUNT(DISTINCT {c})",
        "QUANTILE({i}, 0.5)",
        "SUM(DISTINCT {i})", "MODE({i})",
    ),
    FLOAT: (
        "SUM({f})", "AVG({i})", "MIN({f})", "MAX({f})", "AVG({f})", "MEDIAN({i})", "VAR({i})",
        "STDDEV_POP({i})",
        "QUANTILE_CONT({i}, 0.25)", "QUANTILE({f}, 0.9)", "VAR_POP({f})", "STDDEV({i})",
        "GEOMEAN({f})", "GEOMEAN({i})", "COVAR_POP({f}, {i})", "COVAR_SAMP({i}, {f})",
        "CORR({f}, {i})", "REGR_SLOPE({i}, {f})", "REGR_INTERCEPT({f}, {f})",
        "MODE({f})", "ENTROPY({c})",
    ),
    STRING: ("MIN({t})", "MAX({t})", "QUANTILE({t}, 0.3)", "TOPK({i}, 2)", "MODE({t})"),
    MONEY: ("MIN({t})", "MAX({t})"),
    BOOL: ("BOOL_AND({t})", "BOOL_OR({t})", "MAX({t})"),
    TIMESTAMP: ("MIN({t})", "MAX({t})"),
    DATE: ("MIN({t})", "MAX({t})", "QUANTILE({t}, 0.5)", "MODE({t})"),
    TIME: ("MIN({t})", "MAX({t})", "MODE({t})"),
    UUID: ("MIN({t})", "MAX({t})", "MODE({t})"),
    LISTED: ("HISTOGRAM({i}, [0, 2])", "HISTOGRAM({f}, [-0.5, 1.0])"),
}  # a table  # fmt: skip
BY_ARRIVAL = (
    "FIRST({t})", "LAST({t})", "ARGMAX({t}, {i})", "ARGMIN({t}, {f})", "RISE_START({t}, {i})",
    "RISE_END({t}, {f})", "FALL_START({t}, {f})", "FALL_END({t}, {i})",
)  # a table  # fmt: skip
# BY_ARRIVAL, of type LIST(INT), and of type STRING
ARRAYS = ("ARRAY_AGG({i}, 2)", "ARRAY_AGG({i}, 2 ORDER BY {f} DESC, {i})", "FIRST({t})")
LISTS = ("STRING_AGG({t}, '-')", "STRING_AGG({t})", "STRING_AGG({t} ORDER BY {i} NULLS FIRST)")
RUNS = ("LONGEST_RISE({o})", "LONGEST_FALL({f})", "LONGEST_RISE({i})")  # BY_ARRIVAL, of type INT
# those that follow no single rows, and answer by the values alone
BY_SUBWINDOW = (
    "APPROX_HISTOGRAM({i}, 3)", "APPROX_HISTOGRAM({f}, 2, 'log')", "APPROX_HISTOGRAM({f}, 4)",
    "APPROX_INTERSECT({i}, {b}, 3)", "SAMPLE({i}, HASH({c}), 2)", "SAMPLE({f}, {i}, 1)",
)  # a table  # fmt: skip


def aggregate(
    d: Draws, scope: Scope, type_: Type, ordered: bool = True, subwindows: bool = False
) -> str:
    """`ordered`: rows have an order of arrival, so that FIRST, LAST, ARGMAX, ARGMIN mean
    something; `subwindows`: it is answered from those."""
    if type_ in own.RESULTS and own.wanted(d, 70):
        text = own.aggregate(d, type_, lambda t: scalar(d, scope, t), ordered)
        return text + _filter(d, scope)
    by_arrival = BY_ARRIVAL + {INT: RUNS, STRING: LISTS, LISTED: ARRAYS}.get(type_, ())
    others = (by_arrival if ordered else ()) + (BY_SUBWINDOW if subwindows else ())
    template = d.pick(PLAIN[type_] + others)
    kinds = {"t": type_, "i": INT, "f": FLOAT, "b": BOOL}

    def part(found: re.Match[str]) -> str:
        if found[1] == "o":  # of any type with an order
            return d.pick([c.text for c in scope if c.type not in (LISTED, PAIR)])
        if found[1] == "c":
            return d.pick([c.text for c in scope])
        return scalar(d, scope, kinds[found[1]])

    text = re.sub(r"\{(\w)\}", part, template)
    return text + _filter(d, scope)


def _filter(d: Draws, scope: Scope) -> str:
    return f" FILTER (WHERE {condition(d, scope)})" if d.chance(12) else ""
