"""Approximate aggregates: errors within the documented bounds, in the documented share of answers,
however merged."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from math import sqrt

import numpy as np
import pyarrow as pa
import pytest

from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.sketches import (
    CountDistinct,
    Quantile,
    Sketches,
    TopK,
    as_doubles,
    as_integers,
)
from dsms.aggregates.sketches import algebra as sketch
from dsms.errors import InternalError
from dsms.sql.binder import bind_create_stream, bind_query
from dsms.sql.catalog import Catalog
from dsms.sql.expr import AggCall, Col
from dsms.sql.parser import parse_one
from dsms.sql.types import BOOL, BYTES, FLOAT, INT, INTERVAL, NULL, STRING, TIMESTAMP, Type, decimal
from tests.oneshot_runs import run, values
from tests.oracle import Row


def rows(cells: np.ndarray | Sequence[int], values: object, type_: Type = INT) -> CellRows:
    n = np.arange(len(cells))
    return CellRows(np.asarray(cells, np.int64), n, n, (pa.array(values, type_.arrow),))


def merged(algebra: Sketches, state: np.ndarray) -> np.ndarray:
    """All cells as one, pairwise like the nodes of a tree."""
    while len(state) > 1:
        odd = state[len(state) & ~1 :]
        state = algebra.concat([algebra.combine(state[: len(state) & ~1 : 2], state[1::2]), odd])
    return state


def over(algebra: Sketches, values: np.ndarray, subwindows: int, type_: Type = INT) -> np.ndarray:
    """The state of one cell over the values, lifted by sub-window and merged."""
    cells = np.arange(len(values)) * subwindows // max(len(values), 1)
    return merged(algebra, algebra.lift(rows(cells, values, type_), subwindows))


# ---------------------------------------------------------------- how near


@pytest.mark.parametrize("lg_k", [8, 11])
def test_count_distinct_is_as_near_as_documented(lg_k: int) -> None:
    """One standard error holds at least 68 answers in 100, two 95, three 99.7 (less three standard
    deviations of the number of trials)."""
    rng, algebra, errors = np.random.default_rng(lg_k), CountDistinct(lg_k, INT), []
    for trial in range(120):
        size = int(rng.integers(2000, 20_000))
        values = rng.permutation(np.repeat(rng.integers(-(2**63), 2**63 - 1, size), 1 + trial % 2))
        (found,) = algebra.lower(over(algebra, values, 1 + trial % 9)).to_pylist()
        errors.append((found / len(np.unique(values)) - 1) * sqrt(2**lg_k) / 0.6931)
    size = np.abs(errors)
    for errors_of, share in ((1, 0.6827), (2, 0.9545), (3, 0.9973)):
        assert np.mean(size <= errors_of) >= share - 3 * sqrt(share * (1 - share) / len(size)), (
            errors_of
        )
    assert size.max() > 0.1  # approximate it is


@pytest.mark.parametrize("size", [50, 200])
def test_quantile_is_as_near_as_documented(size: int) -> None:
    rng, bound = np.random.default_rng(size), 2.296 / size**0.9723
    within = []
    for trial in range(100):
        values = (
            rng.normal(size=20_000),
            rng.pareto(1.2, 20_000),
            np.arange(20_000.0),
            rng.integers(0, 50, 20_000),
        )
        column = np.sort(np.asarray(values[trial % 4], np.float64))
        phi = float(rng.random())
        algebra = Quantile(phi, size, FLOAT)
        (found,) = algebra.lower(
            over(algebra, rng.permutation(column), 1 + trial % 13, FLOAT)
        ).to_pylist()
        low, high = np.searchsorted(column, found, "left"), np.searchsorted(column, found, "right")
        assert low < high  # one of the values
        within.append(low / len(column) - bound <= phi <= high / len(column) + bound)
    # its coins have no seed: 1 run in 10^5 fails
    assert np.mean(within) >= 0.99 - 5 * sqrt(0.99 * 0.01 / len(within))


@pytest.mark.parametrize("k", [1, 4, 10])
def test_topk_is_as_near_as_documented(k: int) -> None:
    rng, algebra = np.random.default_rng(k), TopK(k, INT)
    error = 3.5 / 2**algebra.lg_m
    assert 2**algebra.lg_m >= 64 * k
    for trial in range(40):
        values = rng.zipf(1.1 + trial / 40, 20_000) % 5000 - 2500
        true = Counter(values.tolist())
        (state,) = over(algebra, values, 1 + trial % 11)
        found, counts = algebra.ranking(state)
        slack = error * len(values)
        assert all(
            true[v] <= n <= true[v] + slack for v, n in zip(found.to_pylist(), counts, strict=True)
        )
        least = min(true[v] for v in found.to_pylist())
        assert all(n <= least + slack for v, n in true.items() if v not in set(found.to_pylist()))


def test_topk_is_exact_while_few_values_are_different() -> None:
    rng, algebra = np.random.default_rng(7), TopK(5, STRING)
    words = np.array([f"w{i:03}" for i in range(300)])
    values = words[np.minimum(rng.zipf(1.2, 30_000), 300) - 1]
    ranked = sorted(Counter(values.tolist()).items(), key=lambda e: (-e[1], e[0]))
    assert algebra.lower(over(algebra, values, 20, STRING)).to_pylist() == [
        f"[{', '.join(v for v, _ in ranked[:5])}]"
    ]


# ---------------------------------------------------------------- the algebra


def algebras() -> Iterator[Sketches]:
    yield CountDistinct(11, INT)
    yield Quantile(0.5, 200, INT)
    yield TopK(3, INT)


@pytest.mark.parametrize("algebra", list(algebras()), ids=lambda a: type(a).__name__)
def test_few_values_are_answered_exactly_and_parts_stay(algebra: Sketches) -> None:
    a = algebra.lift(rows([0, 0, 1, 0], [5, 5, None, 7]), 3)
    b = algebra.lift(rows([0, 1, 1], [9, 3, 3]), 3)
    before = algebra.lower(a).to_pylist(), algebra.lower(b).to_pylist()
    both = algebra.combine(a, b)
    assert (
        algebra.lower(both).to_pylist()
        == {
            CountDistinct: [3, 1, 0],
            Quantile: [5, 3, None],
            TopK: ["[5, 7, 9]", "[3]", None],
        }[type(algebra)]
    )
    assert (algebra.lower(a).to_pylist(), algebra.lower(b).to_pylist()) == before
    picked = algebra.take(both, np.array([1, -1, 0]))
    assert algebra.size(picked) == 3
    assert algebra.lower(picked).to_pylist()[1] in (0, None)
    assert (
        algebra.lower(algebra.concat([picked, both])).to_pylist()[3:]
        == algebra.lower(both).to_pylist()
    )
    assert algebra.size(algebra.concat([])) == 0
    assert algebra.nbytes(both) > algebra.nbytes(algebra.empty(3)) > 0
    with pytest.raises(InternalError):
        algebra.subtract(a, b)


VALUES = [
    (INT, [-1, 2, 2], "[2, -1]"),
    (BOOL, [True, False, True], "[true, false]"),
    (FLOAT, [float("nan"), -0.0, 0.0], "[0.0, nan]"),
    (decimal(5, 2), [Decimal("10.50"), Decimal("9.00")], "[9.00, 10.50]"),
    (STRING, ["é", "z", "é"], "[é, z]"),
    (BYTES, [b"a", b"\xff", b"\xff"], "[ff, a]"),
    (TIMESTAMP, [1, 0, 1], "[1970-01-01 00:00:00.000001, 1970-01-01 00:00:00]"),
    (INTERVAL, [60_000_000, -1], "[-00:00:00.000001, 00:01:00]"),
]


@pytest.mark.parametrize(("type_", "values", "shown"), VALUES, ids=lambda v: str(v)[:12])
def test_values_of_every_type(type_: Type, values: list[object], shown: str) -> None:
    top, count = TopK(9, type_), CountDistinct(11, type_)
    assert top.lower(over(top, np.array(values, object), 2, type_)).to_pylist() == [shown]
    assert count.lower(over(count, np.array(values, object), 2, type_)).to_pylist() == [2]


def test_nothing_but_null() -> None:
    for algebra in (TopK(9, NULL), CountDistinct(11, NULL)):
        assert algebra.lower(algebra.lift(rows([0], [None], NULL), 1)).to_pylist() in ([None], [0])


def test_the_same_rows_give_the_same_answer() -> None:
    values = np.random.default_rng(1).integers(0, 10**6, 30_000)
    for algebra in (CountDistinct(11, INT), TopK(3, INT)):
        assert algebra.lower(over(algebra, values, 8)) == algebra.lower(over(algebra, values, 8))


def test_the_count_of_different_values_depends_on_their_set_alone() -> None:
    algebra, values = CountDistinct(11, INT), np.arange(30_000)
    assert algebra.duplicate_insensitive
    whole = over(algebra, values, 1)
    assert algebra.lower(
        algebra.combine(whole, over(algebra, values[:20_000], 3))
    ) == algebra.lower(whole)
    assert algebra.lower(over(algebra, values[::-1], 7)) == algebra.lower(whole)
    assert not Quantile(0.5, 200, INT).duplicate_insensitive


# ---------------------------------------------------------------- quantiles of all numbers


def test_integers_become_doubles_in_order() -> None:
    rng = np.random.default_rng(3)
    values = np.concatenate(
        [np.arange(-50, 50), 2**53 + np.arange(10), rng.integers(-(2**62), 2**62, 1000)]
    )
    values = np.unique(np.concatenate([values, -values]))
    found = as_doubles(values)
    assert np.isfinite(found).all()
    assert (np.diff(found) > 0).all()
    assert (np.abs(found) >= np.finfo(np.float64).tiny).all()
    assert (as_integers(found) == values).all()
    assert (np.diff(as_integers(as_doubles(np.array([-(2**63), 0, 2**63 - 1])))) > 0).all()


def test_large_instants_keep_their_microsecond() -> None:
    algebra, values = Quantile(0.5, 200, TIMESTAMP), 253_402_300_799_999_990 + np.arange(9)
    assert algebra.lower(over(algebra, values, 1, TIMESTAMP)).to_pylist() == [int(values[4])]


@pytest.mark.parametrize(
    ("phi", "shown"), [(0.0, "-inf"), (0.4, "1.0"), (0.6, "inf"), (0.7, "nan"), (1.0, "nan")]
)
def test_nan_is_above_all_numbers(phi: float, shown: str) -> None:
    algebra = Quantile(phi, 200, FLOAT)
    values = np.array([float("nan"), 1.0, float("-inf"), float("nan"), float("inf")])
    assert [str(v) for v in algebra.lower(over(algebra, values, 2, FLOAT)).to_pylist()] == [shown]
    alone = algebra.lift(rows([0, 0], [float("nan"), None], FLOAT), 1)
    assert [str(v) for v in algebra.lower(alone).to_pylist()] == ["nan"]


def test_a_call_says_which() -> None:
    column = (Col(0, FLOAT),)
    assert sketch(AggCall("approx_quantile", column, FLOAT, params=(0.5, 100))) == Quantile(
        0.5, 100, FLOAT
    )
    assert sketch(AggCall("approx_topk", column, STRING, params=(7,))) == TopK(7, FLOAT)
    assert sketch(AggCall("approx_count_distinct", column, INT, params=(12,))) == CountDistinct(
        12, FLOAT
    )
    with pytest.raises(InternalError):
        sketch(AggCall("sum", column, FLOAT))


def test_one_time_queries_see_the_window_as_one_sub_window() -> None:
    catalog = Catalog()
    declared = parse_one("CREATE STREAM s (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t")
    catalog.streams["s"] = bind_create_stream(declared, catalog)  # type: ignore[arg-type]
    calls = (
        "APPROX_COUNT_DISTINCT(v), APPROX_QUANTILE(v, 0.5), APPROX_TOPK(v, 2) FILTER (WHERE v "
        "> 1), FREQUENT(v, 2)"
    )
    given = {
        "s": [
            Row(0, i, (k, v, 0))
            for i, (k, v) in enumerate([("a", 1), ("a", 1), ("b", None), ("a", 2)])
        ]
    }
    grouped = bind_query(
        parse_one(f"SELECT k, {calls} FROM s GROUP BY k"), catalog, persistent=False
    )  # type: ignore[arg-type]
    found = sorted(values(run(grouped.child, given, {}, 0)))
    assert [(k, n, q, top) for k, n, q, top, _ in found] == [
        ("a", 2, 1, "[2]"),
        ("b", 0, None, None),
    ]
    assert [text and json.loads(text)["items"] for *_, text in found] == [[[1, 2]], None]
    whole = bind_query(parse_one(f"SELECT {calls} FROM s"), catalog, persistent=False)  # type: ignore[arg-type]
    assert values(run(whole.child, {"s": []}, {}, 0)) == [(0, None, None, None)]
