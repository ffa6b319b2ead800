"""Every aggregate over every type, input pattern and structure, against its definition."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.aggregates.parts import limbs
from dsms.aggregates.parts.limbs import mean
from dsms.aggregates.parts.ranked import scaled
from dsms.aggregates.parts.words import Codes, float_words
from dsms.operators import group, group_fifo, group_rows
from dsms.sql.types import STRING, decimal
from dsms.state import rows
from dsms.state.intern import Intern
from tests.effort import examples, thinned
from tests.grouping import COL, STATES, call, check, histories, in_order, node_of

ORDERED = ("s", "i", "f", "d", "w", "t", "p", "b")

FAMILIES = {
    "counts": [call("count", c) for c in "sfb"]
    + [call("count_star", filter_="b"), call("count", "f", filter_="b")],
    "distinct": [call("count", c, distinct=True) for c in ("s", "f", "w", "b")]
    + [
        call("sum", "f", distinct=True),
        call("avg", "w", distinct=True),
        call("var", "f", distinct=True),
    ],
    "sum int": [call("sum", "i"), call("sum", "p", filter_="b"), call("sum", "i", distinct=True)],
    "sum distinct": [call("sum", "i", distinct=True)],
    "sums": [call("sum", "f"), call("sum", "d"), call("sum", "w"), call("sum", "f", filter_="b")],
    "means": [call("avg", c) for c in ("i", "f", "d", "w")]
    + [call("geomean", "f")]
    + [call("avg", "f", filter_="b")],
    "spread": [call(fn, "f") for fn in ("var", "var_pop", "stddev", "stddev_pop")],
    "pairs": [
        call(fn, *xy)
        for fn in ("covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept")
        for xy in (("y", "y"), ("y", "f"))
    ]
    + [call("regr_slope", "kf", "y", filter_="b"), call("corr", "y", "kf")],
    "bools": [call("bool_and", "b"), call("bool_or", "b"), call("bool_or", "b", filter_="b")],
    "min": [call("min", c) for c in ORDERED] + [call("min", "f", filter_="b")],
    "max": [call("max", c) for c in ORDERED] + [call("max", "s", filter_="b", distinct=True)],
    "first": [call("first", c) for c in ORDERED],
    "last": [call("last", c) for c in ORDERED] + [call("last", "i", filter_="b")],
    "argmax": [call("argmax", "i", c) for c in ORDERED] + [call("argmax", "s", "w", filter_="b")],
    "argmin": [call("argmin", c, "f") for c in ORDERED] + [call("argmin", "s", "s")],
    "rises": [
        *(call("longest_rise", c) for c in ORDERED),
        call("rise_start", "s", "i"),
        call("rise_end", "i", "s", filter_="b"),
        call("rise_end", "f", "f"),
    ],
    "falls": [
        call("longest_fall", "f"),
        call("longest_fall", "i", filter_="b"),
        call("fall_start", "i", "f"),
        call("fall_end", "w", "d"),
    ],
    "strings": [
        call("string_agg", "s", params=(sep,), filter_=f) for sep, f in (("-", None), ("", "b"))
    ]
    + [
        in_order(call("string_agg", "s", params=("-",)), i="desc nulls first"),
        in_order(call("string_agg", "s", params=("",), filter_="b"), s="asc", f="desc"),
    ],
    "arrays": [call("array_agg", c, params=(2,)) for c in ORDERED]
    + [call("array_agg", "i", params=(1,), filter_="b"), call("array_agg", "f", params=(65536,))]
    + [in_order(call("array_agg", "i", params=(2,)), **{c: "desc"}) for c in ORDERED]
    + [in_order(call("array_agg", "w", params=(3,), filter_="b"), s="asc nulls first", t="asc")],
    "histogram": [
        call("histogram", "i", params=("[-1, 0, 4]",)),
        call("histogram", "f", params=("[-2.5, 0.0, 1e+100]",), filter_="b"),
        call("histogram", "t", params=('["1970-01-01 00:00:00"]',)),
    ],
    "mode": [call("mode", c) for c in ORDERED] + [call("mode", "s", filter_="b")],
    "entropy": [call("entropy", c) for c in ORDERED] + [call("entropy", "i", filter_="b")],
    "median": [call("median", "f"), call("median", "t"), call("median", "f", distinct=True)],
    "quantile": [
        call("quantile", c, params=(p,))
        for c, p in (("f", 0.1), ("s", 0.5), ("w", 0.9), ("i", 0), ("d", 1))
    ],
    "quantile_cont": [
        call("quantile_cont", "f", params=(p,)) for p in (0.1, 0.3, 0.123456789012, 1e-17, 1)
    ]
    + [call("quantile_cont", "t", params=(0.7,))],
}


def columns(calls):
    """Names of the columns that the calls read."""
    used = {e.index for c in calls for e in (*c.args, *([c.filter] if c.filter else []))}
    return {n for n, c in COL.items() if c.index in used}


@pytest.fixture(scope="module", params=["roomy", "tight"])
def limits(request):
    """Tight: everything that is otherwise done now and then, for many rows, is done all the
    time."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "tight":
            patch.setattr(group, "SLICE", 3)
            patch.setattr(group_fifo, "DROP_FROM", 1)
            patch.setattr(group_rows, "LONG", 1)
            patch.setattr(rows, "COMPACT_FROM", 1)
            patch.setattr(limbs, "CARRY_EVERY", 1)
            patch.setattr(Intern, "wants_purge", lambda self, alive: self.size > alive)
            patch.setattr(Codes, "crowded", lambda self, live: True)
        yield


@thinned()
@pytest.mark.parametrize("pattern", STATES)
@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
@settings(max_examples=examples(5))
def test_aggregates_answer_what_they_mean(limits, family, pattern, data):
    calls = FAMILIES[family]
    keys = data.draw(st.sampled_from([[], [COL["k"]], [COL["s"]]]))
    log = data.draw(histories(pattern, {"k", "s", *columns(calls)}, 16))
    check(node_of(keys, calls), pattern, log, data.draw(st.lists(st.integers(-8, 150), max_size=6)))


def _nearest(exact):
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


DOUBLES = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [5e-324, -5e-324, 1e308, 2.0**-1022, 1.0]
)


@given(
    st.lists(DOUBLES, min_size=1, max_size=9),
    st.sampled_from([1, 3, 7, 10**9, 2**31 - 1, 2**40 + 1]),
)
@settings(max_examples=examples(200))
def test_limbs_hold_sums_exactly_and_round_quotients_once(values, divisor):
    words = float_words(np.array(values))
    slots = np.arange(len(words))
    low, high = limbs.exponents(words, np.zeros(0, np.bool_), np.ones(len(words), np.int8), slots)
    base = int(low) >> 5 << 5
    acc = np.zeros((1, (int(high) - base >> 5) + 3 if low <= high else 3), np.int64)
    for w in words:
        m, e, sign = limbs.parts(w)
        if m:
            limbs.add(acc, 0, e - base, m, sign)
    exact = sum(map(Fraction, values))
    wider = limbs.relaid(acc, 2, acc.shape[1] + 4)
    for numbers, start in ((acc, base), (wider, base - 64)):
        held = sum(
            Fraction(int(limb)) * Fraction(2) ** (start + 32 * j)
            for j, limb in enumerate(numbers[0])
        )
        assert held == exact
        if divisor < 2**31:
            assert limbs.nearest(numbers, 0, start, divisor) == _nearest(exact / divisor)
        else:
            scratch = np.zeros(numbers.shape[1] + 4, np.int64)
            assert mean(numbers, 0, start, divisor, np.zeros(0, np.int64), scratch) == _nearest(
                exact / divisor
            )


@given(st.integers(0, 2**64 - 1), st.integers(1, 10**18), st.data())
@settings(max_examples=examples(200))
def test_ranks_are_scaled_exactly(m, q, data):
    p = data.draw(st.integers(0, q))
    whole, rest = scaled(np.uint64(m).astype(np.int64), np.int64(p), np.int64(q))
    assert (int(whole) % 2**64, int(rest)) == divmod(m * p, q)


@pytest.mark.parametrize(
    "type_,values",
    [(STRING, list("bdfhjl")), (decimal(30, 2), [Decimal(n) for n in range(0, 60, 10)])],
)
def test_ranks_of_codes_follow_the_values(type_, values):
    codes = Codes(type_)
    rng = np.random.default_rng(3)
    for _ in range(400):
        new = [v + v if isinstance(v, str) else v + 1 for v in values] if len(values) < 40 else []
        values = list(dict.fromkeys([*values, *new]))
        some = [values[k] for k in rng.integers(0, len(values), 3)]
        words, _ = codes.encode(pa.array(some, type_.arrow))
        assert (
            codes.decode(words, words[:0], np.ones(3, np.bool_), np.arange(3)).to_pylist() == some
        )
        if rng.random() < 0.1:
            codes.purge([words])
        known = sorted(codes.code)
        ranks = codes.rank[[codes.code[v] for v in known]]
        assert (np.diff(ranks) > 0).all()


def test_ranks_of_codes_that_come_together_follow_the_values():
    codes, rng = Codes(STRING), np.random.default_rng(4)
    for count in rng.integers(1, 80, 120).tolist():
        some = [f"{n:x}"[::-1] for n in rng.integers(0, 4000, count)]
        words, _ = codes.encode(pa.array(some))
        assert [codes.value[w] for w in words.tolist()] == some
        if rng.random() < 0.1:
            codes.purge([words])
        assert codes.order == sorted(codes.code)
        assert (np.diff(codes.rank[[codes.code[v] for v in codes.order]]) > 0).all()


def test_ranks_are_dealt_anew_when_there_is_no_room_between_neighbours():
    codes = Codes(STRING)
    codes.encode(pa.array([f"{n:03}" for n in range(100)]))
    for n in range(100):
        codes.encode(pa.array(["0" * n + "1"]))  # always between the smallest two
        codes.encode(pa.array(["9" * (n + 4)]))  # always the greatest
    ranks = codes.rank[[codes.code[v] for v in sorted(codes.code)]]
    assert len(ranks) > 250 and (np.diff(ranks) > 0).all()
