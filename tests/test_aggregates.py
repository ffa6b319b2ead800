"""Every aggregate over every type, input pattern and structure, against its definition."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.grouping import COL, STATES, call, check, histories, node_of

PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # shrinking would take minutes
ORDERED = ("s", "i", "f", "d", "w", "t", "p", "b")

FAMILIES = {
    "counts": [call("count", c) for c in "sfb"] + [call("count_star", filter_="b"), call("count", "f", filter_="b")],
    "distinct": [call("count", c, distinct=True) for c in ("s", "f", "w", "b")]
    + [call("sum", "f", distinct=True), call("avg", "w", distinct=True), call("var", "f", distinct=True)],
    "sum int": [call("sum", "i"), call("sum", "p", filter_="b")],
    "sums": [call("sum", "f"), call("sum", "d"), call("sum", "w"), call("sum", "f", filter_="b")],
    "means": [call("avg", c) for c in ("i", "f", "d", "w")] + [call("avg", "f", filter_="b")],
    "spread": [call(fn, "f") for fn in ("var", "var_pop", "stddev", "stddev_pop")],
    "bools": [call("bool_and", "b"), call("bool_or", "b"), call("bool_or", "b", filter_="b")],
    "min": [call("min", c) for c in ORDERED] + [call("min", "f", filter_="b")],
    "max": [call("max", c) for c in ORDERED] + [call("max", "s", filter_="b", distinct=True)],
    "first": [call("first", c) for c in ORDERED],
    "last": [call("last", c) for c in ORDERED] + [call("last", "i", filter_="b")],
    "argmax": [call("argmax", "i", c) for c in ORDERED] + [call("argmax", "s", "w", filter_="b")],
    "argmin": [call("argmin", c, "f") for c in ORDERED] + [call("argmin", "s", "s")],
    "median": [call("median", "f"), call("median", "t"), call("median", "f", distinct=True)],
    "quantile": [call("quantile", c, params=(p,)) for c, p in (("f", 0.1), ("s", 0.5), ("w", 0.9), ("i", 0), ("d", 1))],
    "quantile_cont": [call("quantile_cont", "f", params=(p,)) for p in (0.1, 0.3, 0.123456789012, 1e-17, 1)]
    + [call("quantile_cont", "t", params=(0.7,))],
}


def columns(calls):
    """Names of the columns that the calls read."""
    used = {e.index for c in calls for e in (*c.args, *([c.filter] if c.filter else []))}
    return {n for n, c in COL.items() if c.index in used}


@pytest.mark.parametrize("pattern", STATES)
@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
@settings(max_examples=12, deadline=None, phases=PHASES)
def test_aggregates_answer_what_they_mean(family, pattern, data):
    calls = FAMILIES[family]
    keys = data.draw(st.sampled_from([[], [COL["k"]]]))
    log = data.draw(histories(pattern, {"k", *columns(calls)}, 16))
    check(node_of(keys, calls), pattern, log, data.draw(st.lists(st.integers(-8, 150), max_size=6)))
