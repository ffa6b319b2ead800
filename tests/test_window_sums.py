"""Sums of windows that slide, kept for all groups: what is in them, and that no answer depends on
them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.aggregates.parts.additive import Additive
from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.registry import algebra
from dsms.engine import Engine
from dsms.sharing import window_sums
from dsms.sharing.column import AggregateColumn
from dsms.sharing.columns import ROWS
from dsms.sharing.window_sums import WindowSums
from dsms.sql.expr import AggCall, Col
from dsms.sql.types import INT
from dsms.synopses.basic import Basic
from tests import test_collective as twins
from tests.effort import example, examples

SUM = AggCall("sum", (Col(0, INT, "x"),), INT)


@dataclass
class Column:
    """A column of a feed, and what is in it."""

    call: AggCall
    base: int
    groups: int = 3

    def __post_init__(self) -> None:
        self.algebra = algebra(self.call)
        self.synopsis = Basic(self.algebra, self.groups)
        self.rows: list[Counter[int]] = []

    def push(self, came: list[tuple[int, int]]) -> None:
        """The next sub-window: (group, value) of its rows."""
        self.synopsis.grow(max([self.synopsis.groups, *(g + 1 for g, _ in came)]))
        cell = np.array([g for g, _ in came], np.int64)
        order = np.arange(len(came))
        values = (pa.array([x for _, x in came], pa.int64()),) if self.call.args else ()
        state = self.algebra.lift(CellRows(cell, order, order, values), self.synopsis.groups)
        self.synopsis.append(state, 1)
        found: Counter[int] = Counter()
        for g, x in came:
            found[g] += x if self.call.args else 1
        self.rows.append(found)

    def probe_some(self, low: np.ndarray, high: np.ndarray, group: np.ndarray) -> Any:
        return self.synopsis.probe_some(low - self.base, high - self.base, group)

    def of(self, low: int, high: int) -> dict[int, int]:
        """The sums of groups that are not 0."""
        first = self.base + self.synopsis.first
        held = self.rows[max(low, first) - self.base : max(0, high - self.base)]
        found: Counter[int] = Counter()
        for some in held:
            for g, x in some.items():
                found[g] += x
        return {g: x for g, x in found.items() if x}


STEP = st.tuples(
    st.lists(st.tuples(st.integers(0, 9), st.integers(-(2**40), 2**54)), max_size=8),
    st.sampled_from([0, 1, 1, 1, 1, 2, 3]),  # boundaries to the next answer
    st.sampled_from([1, 1, 1, 2]),  # the step that is foretold
    st.sampled_from([12, 12, 12, 9, 17]),  # the width
    st.integers(0, 2),  # sub-windows that are held beyond the window
    st.sampled_from([False, False, False, True]),  # whether the synopsis is another one
)


@pytest.mark.parametrize("call", [ROWS, SUM], ids=["count", "sum"])
@settings(max_examples=examples(200), deadline=None)
@given(st.lists(STEP, max_size=50), st.integers(-5, 5))
def test_sums_are_those_of_the_window(call: AggCall, steps: list[tuple], base: int) -> None:
    column, sums = Column(call, base), WindowSums()
    for came, boundaries, foretold, width, more, other in steps:
        column.push(came)
        for _ in range(boundaries - 1):
            column.push([])
        if not boundaries:
            continue
        high = base + column.synopsis.next
        low = high - width
        found = sums.over(column, low, high)
        if found is not None:
            assert column.algebra.size(found) == column.synopsis.groups
            answers = column.algebra.lower(found).to_pylist()
            assert {g: n for g, n in enumerate(answers) if n} == column.of(low, high)
        sums.ahead(column, low, high, foretold)
        column.synopsis.trim(high - base - width + 1 - more)
        if other:
            column.synopsis = _copied(column.synopsis)


def _copied(held: Basic) -> Basic:
    made = Basic(held.algebra, held.groups)
    made.__dict__ |= held.__dict__
    return made


def test_sums_are_kept_of_a_window_that_is_asked_for_again():
    column, sums, kept = Column(ROWS, 0), WindowSums(), list[bool]()
    for number in range(30):
        column.push([(number % 3, 0), (number % 5, 0)])
        if number >= 12:
            kept.append(sums.over(column, number - 11, number + 1) is not None)
            sums.ahead(column, number - 11, number + 1, 1)
            column.synopsis.trim(number - 10)
    assert kept == [False] + 17 * [True]
    assert sums.nbytes == column.algebra.empty(5).words.nbytes
    assert sums.over(column, 20, 24) is None  # too short to be worth it
    assert sums.over(column, 3, 30) is None  # for the first time


def test_no_more_windows_have_sums_than_there_is_room_for():
    column, sums = Column(ROWS, 0), WindowSums()
    for number in range(40):
        column.push([(number % 3, 0)])
        if number >= 30:
            for width in range(10, 20):
                sums.over(column, number + 1 - width, number + 1)
    assert sorted(sums.windows) == [10, 11, 12, 13]


# ---------------------------------------------------------------- answers

SEEDS = st.integers(0, 2**32)


@pytest.fixture(scope="module", autouse=True)
def _sparse():
    """Few groups are many, and few sub-windows."""
    with pytest.MonkeyPatch.context() as patch:
        for place in ("synopses.choose", "sharing.choose_synopsis", "sharing.stream_group"):
            patch.setattr(f"dsms.{place}.MANY", 2)
        patch.setattr(window_sums, "SHARE", 1)
        yield


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether there were sums, by question."""
    found, over = list[bool](), WindowSums.over

    def noted(self: WindowSums, *asked: Any) -> Any:
        state = over(self, *asked)
        found.append(state is not None)
        return state

    monkeypatch.setattr(WindowSums, "over", noted)
    return found


@settings(max_examples=examples(60), deadline=None)
@given(SEEDS)
def test_answers_are_those_of_all_groups(seed: int) -> None:
    example(twins.test_answers_are_those_of_all_groups)(seed)


@settings(max_examples=examples(20), deadline=None)
@given(SEEDS)
def test_auto_changes_no_answer(seed: int) -> None:
    example(twins.test_auto_changes_no_answer)(seed)


@settings(max_examples=examples(20), deadline=None)
@given(SEEDS)
def test_restarts_and_queries_that_come_and_go(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    example(twins.test_restarts_and_queries_that_come_and_go)(tmp_path_factory, seed)


@pytest.mark.parametrize("having", ["COUNT(*) > 3", "SUM(x) > 3", "COUNT(x) > 3 AND SUM(x) < 9"])
def test_groups_that_are_forgotten_and_come_again(having: str, used: list[bool]) -> None:
    """Codes of groups are handed out again; the sums know nothing of who had them before."""
    windows = ("[RANGE 5 s SLIDE 1 s]", "[RANGE 8 s UNTIL 2 s AGO SLIDE 2 s]")
    sql = "SELECT k, COUNT(*) AS n, SUM(x) AS x FROM s {} GROUP BY k HAVING {}"
    pair = twins.Pair([sql.format(w, having) for w in windows])
    for engine in (pair.ours, pair.twin):
        twins.many(engine, 40, 600)
        engine.heartbeat("s", 100 * twins.S)
    pair.agree()
    assert sum(used) > len(used) / 2


def test_an_index_that_was_not_asked_for_long_knows_all_that_counts() -> None:
    """While sums answer one query it stays behind, and is brought up when another window asks."""
    sql = "SELECT k, COUNT(*) AS n FROM s [RANGE {} s SLIDE 1 s] GROUP BY k HAVING COUNT(*) > {}"
    engines = {option: Engine() for option in ("collective", "none")}
    for option, engine in engines.items():
        engine.execute(twins.STREAM.replace(";", " RETAIN 60 s;"))
        engine.execute(f"CREATE QUERY q0 AS {sql.format(9, 3)} WITH (synopsis = {option})")
        rng, t = Random(5), 0
        for step in range(1, 5):
            came, t = twins.rows(rng, 400, t, False)
            engine.ingest("s", came)
            late = sql.format(9 + step, 4 * step)
            engine.execute(f"CREATE QUERY q{step} AS {late} WITH (synopsis = {option})")
        engine.heartbeat("s", t + 20 * twins.S)
    for name in (f"q{step}" for step in range(5)):
        mine, other = (twins.told(e, name) for e in engines.values())
        assert mine == other and mine


def test_columns_go_on_without_their_sums() -> None:
    """They are made anew after a restart."""
    column = AggregateColumn(ROWS, algebra(ROWS), Basic(algebra(ROWS), 1))
    column.sums.windows[9] = window_sums.Window(0, 9, 9, column.synopsis)
    state = column.__getstate__()
    again = AggregateColumn.__new__(AggregateColumn)
    again.__setstate__(state)
    assert again.sums.windows == {} and again.call == ROWS and "sums" not in state
    assert isinstance(column.algebra, Additive)
