"""Algebras alone: what cells answer is what the oracle and the continuous engine answer, bit for
bit."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.parts.fold import Folds, Plain, chained, folds, gathered
from dsms.aggregates.ranks import RankCells
from dsms.aggregates.registry import algebra
from dsms.errors import InternalError, QueryError
from dsms.sql.expr import AggCall
from dsms.sql.functions.aggregate import AGGREGATES
from dsms.sql.types import INT, STRING
from tests.effort import examples
from tests.grouping import COL, SCHEMA, call
from tests.oracle.values import canon
from tests.synopsis_model import (
    CALLS,
    Values,
    continuous,
    exact,
    expected,
    lifted,
    tame,
    value,
    with_error,
)

DISTINCT_ONLY = [call("sum", "d", distinct=True), call("stddev", "f", distinct=True)]


def drawn(rng: Random, cells: int, wild: bool) -> list[list[Values]]:
    """Lists of rows, some of them empty, some of NULLs alone."""
    draw = value if wild else tame
    sizes = [rng.choice([0, 1, 2, 5, 30]) for _ in range(cells)]
    return [[tuple(draw(rng, f.name) for f in SCHEMA) for _ in range(size)] for size in sizes]


@pytest.mark.parametrize("family", CALLS)
@given(seed=st.integers(0, 2**32), wild=st.booleans())
@settings(max_examples=examples(15), deadline=None)
def test_cells_answer_what_the_continuous_engine_does(family, seed, wild):
    rng = Random(seed)
    wanted = rng.choice(CALLS[family])
    cells = drawn(rng, rng.randint(0, 5), wild)
    how, want = algebra(wanted), expected(wanted, cells)
    state = lifted(how, wanted, cells)
    if want is None:
        with_error(how, state)
        with pytest.raises(QueryError):
            continuous(wanted, cells)
        return
    answer = how.lower(state)
    assert answer.type == wanted.type.arrow and len(answer) == len(cells)
    assert [canon(v) for v in answer.to_pylist()] == want
    told = [x for x, cell in zip(exact(answer), cells, strict=True) if cell]
    assert told == continuous(wanted, cells)


@pytest.mark.parametrize("family", CALLS)
@given(seed=st.integers(0, 2**32), wild=st.booleans())
@settings(max_examples=examples(10), deadline=None)
def test_however_rows_are_cut_cells_add_up(family, seed, wild):
    """Three pieces combined either way round, and taken out again, are what their rows together
    are."""
    rng = Random(seed)
    wanted = rng.choice(CALLS[family])
    how, parts = algebra(wanted), [drawn(rng, 4, wild) for _ in range(3)]
    whole = [[v for p in parts for v in p[k]] for k in range(4)]
    if expected(wanted, whole) is None:
        return
    a, b, c = (lifted(how, wanted, p) for p in parts)
    left = how.combine(how.combine(a, b), c)
    right = how.combine(a, how.combine(b, c))
    want = exact(how.lower(lifted(how, wanted, whole)))
    assert exact(how.lower(left)) == exact(how.lower(right)) == want
    if how.duplicate_insensitive:
        assert exact(how.lower(how.combine(left, left))) == want
    if how.subtractable and all(expected(wanted, p) is not None for p in parts):
        assert exact(how.lower(how.subtract(left, how.combine(a, b)))) == exact(how.lower(c))
        assert exact(how.lower(how.subtract(left, left))) == exact(how.lower(how.empty(4)))


@pytest.mark.parametrize("family", CALLS)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(10), deadline=None)
def test_verbs_over_many_cells_are_what_combining_two_by_two_makes(family, seed):
    rng = Random(seed)
    wanted = rng.choice(CALLS[family])
    how = algebra(wanted)
    assert isinstance(how, Folds)
    n = rng.randint(1, 12)
    cells = drawn(rng, n, False)
    state = lifted(how, wanted, cells)
    prev = np.array([rng.randint(-1, i - 1) for i in range(n)])
    for older in (False, True):
        _same(how, how.chain(state, prev, older), chained(how, state, prev, older))
    lows = sorted(rng.randint(0, n) for _ in range(4))
    low, high, base = np.array(lows[:-1]), np.array(lows[1:]), np.array([0, 0, n])
    group = np.array([rng.randrange(n) for _ in range(n)])
    index = np.arange(lows[0], lows[-1])
    target = np.repeat(base, high - low) + group[index]
    kept = how.settled(state)
    _same(
        how,
        how.merge(kept, group, low, high, base, 2 * n),
        gathered(how, state, index, target, 2 * n),
    )
    written = how.write(how.empty(2 * n), 0, kept)
    _same(how, how.take(written, np.arange(n)), state)
    some = np.array([rng.randint(-1, n - 1) for _ in range(5)])
    if expected(wanted, cells) is not None:
        told = exact(how.lower(how.concat([state, how.empty(1)])))
        assert exact(how.lower(how.take(state, some))) == [told[k] for k in some]
    there = how.present(state)
    assert there.dtype == np.bool_
    empty = np.where(there, np.arange(n), -1)
    _same(how, how.take(state, empty), state)


def _same(how: Folds, a: object, b: object) -> None:
    try:
        want = exact(how.lower(b))
    except QueryError:
        with pytest.raises(QueryError):
            how.lower(a)
        return
    assert exact(how.lower(a)) == want


def test_every_aggregate_of_the_language_has_an_algebra():
    params = {"phi": 0.5, "k": 3, "lg_k": 11, "size": 200, "g": 4, "scale": "log", "sep": ",",
              "n": 2, "edges": "[0.5, 1]"}  # a table  # fmt: skip
    for spec in (card for card in AGGREGATES if card.family != "python"):
        column = COL["b"] if spec.name.startswith("bool") else COL["f"]
        arity = 0 if spec.name == "count_star" else 2 if spec.name.startswith("arg") else 1
        given_ = tuple(params[p] for p in spec.params)
        for distinct in (False, True) if spec.distinct else (False,):
            type_ = (
                STRING if spec.params == ("k",) else INT if "count" in spec.name else column.type
            )
            how = algebra(AggCall(spec.name, (column,) * arity, type_, distinct, params=given_))
            empty = how.lower(how.empty(2)).to_pylist()
            assert empty[0] == empty[1]
            assert (
                empty[0] in ((0,) if "count" in spec.name else (None,)) or spec.name == "frequent"
            )
    with pytest.raises(InternalError, match="no algebra"):
        algebra(AggCall("nothing", (), INT))


@pytest.mark.parametrize("wanted", DISTINCT_ONLY)
def test_distinct_goes_through_counters(wanted):
    cells = drawn(Random(3), 6, True)
    assert expected(wanted, cells) is not None
    how = algebra(wanted)
    assert how.duplicate_insensitive
    assert [canon(v) for v in how.lower(lifted(how, wanted, cells)).to_pylist()] == expected(
        wanted, cells
    )


def test_sums_out_of_range_name_the_way_out():
    how = algebra(call("sum", "i"))
    order = np.zeros(2, np.int64)
    state = how.lift(CellRows(order, order, order, (pa.array([2**63 - 1, 1]),)), 1)
    with pytest.raises(QueryError, match="left the range of INT") as caught:
        how.lower(state)
    assert caught.value.code == "DS706" and "DECIMAL(38,0)" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "wanted", [call("max", "s"), call("last", "s"), call("count", "s", distinct=True)]
)
def test_dictionaries_forget_what_no_cell_holds(wanted):
    how = algebra(wanted)
    words = getattr(how, "told", None) or how.words
    kept = None
    for k in range(40):
        order = np.arange(500)
        column = pa.array([f"{k}-{i:03}" for i in range(500)])
        state = how.lift(CellRows(order, order, order, (column,)), 500)
        kept = kept or state
        del state
    assert len(words.coding.code) < 4096
    first = how.lower(kept).to_pylist()
    assert first == ([1] * 500 if wanted.fn == "count" else [f"0-{i:03}" for i in range(500)])


def test_floats_of_a_moderate_range_take_three_limbs():
    how = algebra(call("sum", "f"))
    order = np.zeros(1000, np.int64)
    column = pa.array(np.random.default_rng(1).uniform(1, 1000, 1000))
    state = how.lift(CellRows(order, order, order, (column,)), 1)
    assert how.nbytes(state) == 32
    wide = how.lift(CellRows(order[:2], order[:2], order[:2], (pa.array([5e-324, 1e308]),)), 1)
    assert exact(how.lower(how.combine(state, wide))) == ["1e+308"]


@given(st.data())
@settings(max_examples=examples(60), deadline=None)
def test_selection_in_sorted_lists(data):
    """The paper's algorithm, on lists of any lengths, with ties within and between them."""
    lists = data.draw(
        st.lists(
            st.lists(st.integers(-6, 6) | st.integers(-(2**62), 2**62), max_size=30), max_size=9
        )
    )
    values = sorted(v for part in lists for v in part)
    order = np.zeros(64, np.int64)
    for phi in (0.0, 0.01, 0.25, 1 / 3, 0.5, 0.9, 1.0):
        how = RankCells(AggCall("quantile", (COL["i"],), INT, params=(phi,)))
        state = how.empty(1)
        for part in lists:
            some = order[: len(part)]
            new = how.lift(CellRows(some, some, some, (pa.array(part, pa.int64()),)), 1)
            state = how.combine(state, new)
        want = expected(
            AggCall("quantile", (COL["i"],), INT, params=(phi,)),
            [[tuple(v if f.name == "i" else None for f in SCHEMA) for v in values]],
        )
        assert how.lower(state).to_pylist() == want


def test_other_algebras_are_given_the_verbs():
    how = algebra(AggCall("approx_count_distinct", (COL["i"],), INT, params=(11,)))
    assert isinstance(folds(how), Plain) and folds(folds(how)).inner is how
    assert folds(algebra(call("max", "i"))).constant
