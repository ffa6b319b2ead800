"""FREQUENT (Algorithm 6 of Golab 2006): against brute force over sub-windows, and what its answers
guarantee."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.aggregates.frequent import GUARANTEE, Counters, Frequent
from dsms.aggregates.frequent import algebra as frequent
from dsms.aggregates.parts.cells import CellRows
from dsms.sql.expr import AggCall, Col
from dsms.sql.types import BOOL, BYTES, FLOAT, INT, INTERVAL, NULL, STRING, TIMESTAMP, Type, decimal
from tests.effort import examples


def rows(cells: Sequence[int], values: Sequence[object], type_: Type = INT) -> CellRows:
    n = np.arange(len(cells))
    return CellRows(np.array(cells, np.int64), n, n, (pa.array(values, type_.arrow),))


def answer(algebra: Frequent, state: Counters) -> tuple[int, list[list[object]]] | None:
    """Threshold and items of a state of one cell."""
    (text,) = algebra.lower(state).to_pylist()
    if text is None:
        return None
    found = json.loads(text)
    assert found.keys() == {"delta", "items", "guarantee"}
    return found["delta"], found["items"]


class Algorithm6:
    """The algorithm as it is printed: a queue of summaries, global counters, delta."""

    def __init__(self, k: int, subwindows: int) -> None:
        self.k, self.subwindows = k, subwindows
        self.queue: deque[tuple[list[tuple[int, int]], int]] = deque()
        self.counters: Counter[int] = Counter()
        self.delta = 0

    def append(self, items: Sequence[int]) -> None:
        ranked = sorted(Counter(items).items(), key=lambda e: (-e[1], e[0]))
        top, delta = ranked[: self.k], ranked[self.k - 1][1] if len(ranked) >= self.k else 0
        self.queue.append((top, delta))
        self.counters.update(dict(top))
        self.delta += delta
        if len(self.queue) > self.subwindows:
            top, delta = self.queue.popleft()
            self.counters.subtract(dict(top))
            self.delta -= delta

    def answer(self) -> tuple[int, list[list[int]]] | None:
        left = [[v, n] for v, n in self.counters.items() if n]
        over = sorted((e for e in left if e[1] > self.delta), key=lambda e: (-e[1], e[0]))
        return (self.delta, over) if left else None


STREAMS = st.lists(st.lists(st.integers(0, 6), max_size=12), min_size=1, max_size=12)


@settings(deadline=None, max_examples=examples(150))
@given(stream=STREAMS, k=st.integers(1, 8), width=st.integers(1, 5))
def test_is_algorithm_6(stream: list[list[int]], k: int, width: int) -> None:
    """By subtraction like the printed one, and by combining what is in the window anew."""
    algebra, printed = Frequent(k, INT), Algorithm6(k, width)
    cells = [i for i, part in enumerate(stream) for _ in part]
    lifted = algebra.close(
        algebra.lift(rows(cells, [v for part in stream for v in part]), len(stream))
    )
    running = algebra.empty(1)
    for i, part in enumerate(stream):
        printed.append(part)
        one = algebra.take(lifted, np.array([i]))
        running = algebra.combine(running, one)
        if i >= width:
            running = algebra.subtract(running, algebra.take(lifted, np.array([i - width])))
        window = algebra.empty(1)
        for j in range(max(0, i - width + 1), i + 1):
            window = algebra.combine(window, algebra.take(lifted, np.array([j])))
        assert answer(algebra, running) == answer(algebra, window) == printed.answer()


@settings(deadline=None, max_examples=examples(150))
@given(stream=STREAMS, k=st.integers(1, 8))
def test_there_are_no_false_positives(stream: list[list[int]], k: int) -> None:
    algebra, true = Frequent(k, INT), Counter(v for part in stream for v in part)
    state = algebra.empty(1)
    kept: set[int] = set()
    for part in stream:
        one = algebra.close(algebra.lift(rows([0] * len(part), part), 1))
        kept |= set(one.values.to_pylist())
        state = algebra.combine(state, one)
    found = answer(algebra, state)
    if found is None:
        assert not true
        return
    delta, items = found
    assert all(true[v] >= n > delta for v, n in items)
    assert all(n <= delta for v, n in true.items() if v not in kept)


@settings(deadline=None, max_examples=examples(100))
@given(stream=STREAMS, k=st.integers(1, 4), cuts=st.integers(1, 4))
def test_a_sub_window_may_come_in_pieces(stream: list[list[int]], k: int, cuts: int) -> None:
    algebra, whole, pieces = Frequent(k, INT), Frequent(k, INT).empty(1), Frequent(k, INT).empty(1)
    for part in stream:
        whole = algebra.combine(whole, algebra.close(algebra.lift(rows([0] * len(part), part), 1)))
        open_ = algebra.empty(1)
        for i in range(cuts):
            open_ = algebra.combine(
                open_, algebra.lift(rows([0] * len(part[i::cuts]), part[i::cuts]), 1)
            )
        assert open_.counts.sum() == len(part)
        last = algebra.combine(pieces, open_)  # closed by meeting a closed one, or by being lowered
        pieces = algebra.combine(pieces, algebra.close(open_))
        assert answer(algebra, last) == answer(algebra, pieces) == answer(algebra, whole)


def test_one_sub_window_has_exact_counts() -> None:
    algebra = Frequent(2, STRING)
    state = algebra.lift(rows([0] * 8, ["a", "b", "a", "c", "b", "a", None, "d"], STRING), 1)
    assert answer(algebra, state) == (2, [["a", 3]])


def test_a_false_negative() -> None:
    """c is second in every sub-window and never on a list of one; a and b are, and delta hides
    both."""
    algebra, state = Frequent(1, STRING), Frequent(1, STRING).empty(1)
    for text in ("aaaccx", "bbbccx", "aaaccx", "bbbccx"):
        state = algebra.combine(
            state, algebra.close(algebra.lift(rows([0] * 6, list(text), STRING), 1))
        )
    assert answer(algebra, state) == (12, [])
    assert algebra.lower(state).to_pylist() == [
        f'{{"delta": 12, "items": [], "guarantee": "{GUARANTEE}"}}'
    ]


def test_equal_counts_take_the_smaller_value() -> None:
    algebra = Frequent(2, FLOAT)
    state = algebra.close(algebra.lift(rows([0] * 4, [float("nan"), 7.5, -1.0, 2.0], FLOAT), 1))
    assert state.counts.tolist() == [1, 1]
    assert (
        algebra.lower(algebra.combine(state, state))
        .to_pylist()[0]
        .startswith('{"delta": 2, "items": []')
    )
    many = algebra.lift(
        rows([0] * 9, [5.0, 5.0, -0.0, 0.0, *[float("nan")] * 3, 1.0, None], FLOAT), 1
    )
    assert answer(algebra, many) == (2, [["nan", 3]])


@pytest.mark.parametrize(
    ("type_", "values", "shown"),
    [
        (INT, [-3, 2**62], [-3, 2**62]),
        (BOOL, [False, True], [False, True]),
        (FLOAT, [-1.5, 1e20, float("inf")], [-1.5, 1e20, "inf"]),
        (decimal(5, 2), [Decimal("-1.50"), Decimal("12.25")], ["-1.50", "12.25"]),
        (STRING, ['"', "Ω\n"], ['"', "Ω\n"]),
        (BYTES, [b"a", b"\xff"], ["a", "ff"]),
        (TIMESTAMP, [0, 1], ["1970-01-01 00:00:00", "1970-01-01 00:00:00.000001"]),
        (INTERVAL, [-1_000_000, 60_000_000], ["-00:00:01", "00:01:00"]),
    ],
    ids=str,
)
def test_values_of_every_type(type_: Type, values: list[object], shown: list[object]) -> None:
    algebra = frequent(AggCall("frequent", (Col(0, type_),), STRING, params=(9,)))
    state = algebra.lift(rows([0] * 2 * len(values), [*values, *reversed(values)], type_), 1)
    assert answer(algebra, state) == (0, [[v, 2] for v in shown])


def test_over_no_values_it_is_null() -> None:
    for type_ in (INT, FLOAT, STRING, NULL):
        algebra = Frequent(3, type_)
        state = algebra.lift(rows([0, 1], [None, None], type_), 2)
        assert algebra.lower(algebra.combine(state, algebra.empty(2))).to_pylist() == [None, None]


def test_cells_are_columns() -> None:
    """take, concat and empty cells, apart from each other."""
    algebra = Frequent(2, STRING)
    state = algebra.lift(rows([0, 0, 2, 2, 2], ["a", "b", "c", "c", "d"], STRING), 3)
    picked = algebra.take(state, np.array([2, -1, 0, 2]))
    assert algebra.size(picked) == 4
    assert [answer(algebra, algebra.take(picked, np.array([i]))) for i in range(4)] == [
        (1, [["c", 2]]),
        None,
        (1, []),
        (1, [["c", 2]]),
    ]
    both = algebra.concat([state, picked, algebra.empty(1)])
    assert algebra.lower(both).to_pylist() == [
        *algebra.lower(state).to_pylist(),
        *algebra.lower(picked).to_pylist(),
        None,
    ]
    assert algebra.size(algebra.concat([])) == 0
    assert algebra.nbytes(both) > algebra.nbytes(state) > 0
