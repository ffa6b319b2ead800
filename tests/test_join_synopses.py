"""Join synopses against brute force: random results with two part timestamps, all window lengths,
all boundaries.

The algebra `Bags` keeps every row that a cell has taken in, so a result that is missed, or counted
twice, shows itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.aggregates.parts.cells import CellRows
from dsms.synopses.bij import BasicIntervalJoin
from dsms.synopses.ij import IntervalJoin
from dsms.synopses.joins import JoinSynopsis
from dsms.synopses.rj import RunningJoin
from tests.effort import examples

KINDS = (BasicIntervalJoin, IntervalJoin, RunningJoin)


@dataclass(frozen=True, slots=True)
class Bags:
    """Cells are sorted tuples of the arrival numbers in them."""

    subtractable: bool = False
    duplicate_insensitive: bool = False

    def empty(self, cells: int) -> np.ndarray:
        return self._column([()] * cells)

    def _column(self, cells: Sequence[tuple[int, ...]]) -> np.ndarray:
        out = np.empty(len(cells), object)
        out[:] = cells
        return out

    def lift(self, rows: CellRows, cells: int) -> np.ndarray:
        found: list[list[int]] = [[] for _ in range(cells)]
        for cell, row in zip(rows.cell.tolist(), rows.arrival.tolist(), strict=True):
            found[cell].append(row)
        return self._column([tuple(sorted(f)) for f in found])

    def close(self, state: np.ndarray) -> np.ndarray:
        return state

    def combine(self, older: np.ndarray, newer: np.ndarray) -> np.ndarray:
        assert len(older) == len(newer)
        return self._column([tuple(sorted(a + b)) for a, b in zip(older, newer, strict=True)])

    def subtract(self, whole: np.ndarray, part: np.ndarray) -> np.ndarray:
        raise AssertionError("join synopses subtract nothing")

    def lower(self, state: np.ndarray) -> pa.Array:
        return pa.array([len(cell) for cell in state])

    def size(self, state: np.ndarray) -> int:
        return len(state)

    def take(self, state: np.ndarray, index: np.ndarray) -> np.ndarray:
        return self._column([state[i] if i >= 0 else () for i in index.tolist()])

    def concat(self, states: Sequence[np.ndarray]) -> np.ndarray:
        return np.concatenate(states)

    def nbytes(self, state: np.ndarray) -> int:
        return 8 * sum(map(len, state))


@dataclass(frozen=True)
class Result:
    """Sub-windows of the two parts, and the group."""

    k1: int
    k2: int
    group: int


def lifted(synopsis: JoinSynopsis, rows: list[tuple[int, Result]], algebra: Bags) -> np.ndarray:
    """The buffer of rows (number, result) born in the open sub-window."""
    k1, k2, group = (
        np.array([getattr(r, name) for _, r in rows], np.int64) for name in ("k1", "k2", "group")
    )
    cell = synopsis.cell(k1, k2, group)
    numbers = np.array([n for n, _ in rows], np.int64)
    kept = cell >= 0
    return algebra.lift(CellRows(cell[kept], numbers[kept], numbers[kept]), synopsis.buffer)


def expected(
    results: list[Result], at: int, n1: int, n2: int, groups: int
) -> list[tuple[int, ...]]:
    """By the definition: parts younger than their windows, both there already."""
    out: list[list[int]] = [[] for _ in range(groups)]
    for number, r in enumerate(results):
        if at - n1 <= r.k1 < at and at - n2 <= r.k2 < at:
            out[r.group].append(number)
    return [tuple(sorted(o)) for o in out]


def pairs(b: int, g: int) -> list[tuple[int, int]]:
    """All window lengths that SS3 lets share."""
    return [(x, y) for x, y in product(range(1, b + 1), repeat=2) if x == y or min(x, y) >= b - g]


def checked(synopsis: JoinSynopsis, results: list[Result], at: int, groups: int) -> None:
    asked = pairs(synopsis.b, synopsis.g)
    n1, n2 = np.array(asked).T
    ats = np.full(len(asked), at)
    # nothing is born in `at`
    late = synopsis.probe(np.append(ats, ats + 1), np.tile(n1, 2), np.tile(n2, 2))
    past = [r if max(r.k1, r.k2) < at else Result(-(10**6), -(10**6), 0) for r in results]
    for i, (a, b) in enumerate(asked):
        assert list(late[i * groups : (i + 1) * groups]) == expected(past, at, a, b, groups)
        j = i + len(asked)
        assert list(late[j * groups : (j + 1) * groups]) == expected(past, at + 1, a, b, groups)


parts = st.builds(Result, st.integers(0, 14), st.integers(0, 14), st.integers(0, 2))


@pytest.mark.parametrize("kind", KINDS)
@given(
    b=st.integers(1, 7),
    g=st.integers(0, 6),
    start=st.integers(-9, 9),
    results=st.lists(parts, max_size=25),
)
@settings(max_examples=examples(40), deadline=None)
def test_every_window_at_every_boundary(kind, b, g, start, results):
    """Sub-windows may lie before the epoch; those where nothing is born are passed over."""
    g, how = min(g, b - 1), Bags()
    results = [
        Result(r.k1 + start, r.k2 + start, r.group) for r in results if abs(r.k1 - r.k2) <= b
    ]
    synopsis = kind(how, b, g, 3, start)
    for k in range(start, start + 17):
        new = [(i, r) for i, r in enumerate(results) if max(r.k1, r.k2) == k]
        if new:
            synopsis.update(lifted(synopsis, new, how))
        else:
            synopsis.move(k + 1)
        assert synopsis.next == k + 1
        checked(synopsis, results, k + 1, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_groups_come(kind):
    how, results = (
        Bags(),
        [Result(0, 2, 0), Result(1, 2, 0), Result(2, 0, 0), Result(3, 3, 1), Result(1, 3, 1)],
    )
    synopsis = kind(how, 4, 2, 1, 2)
    synopsis.update(
        lifted(synopsis, [(i, r) for i, r in enumerate(results) if max(r.k1, r.k2) == 2], how)
    )
    checked(synopsis, results, 3, 1)
    synopsis.grow(2)
    synopsis.update(lifted(synopsis, [(3, results[3]), (4, results[4])], how))
    checked(synopsis, results, 4, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_which_windows_share(kind):
    synopsis = kind(Bags(), 8, 2)
    assert [n for n in range(10) if synopsis.answers(n, n)] == list(range(1, 9))
    assert synopsis.answers(6, 8) and synopsis.answers(8, 7)
    assert not synopsis.answers(5, 8) and not synopsis.answers(8, 9)
    assert not kind(Bags(), 8).answers(7, 8)


def test_windows_of_7_and_8_of_the_thesis():
    """§8.3.2: a COUNT over a (7s, 8s)-join lies between those of the (7s, 7s)- and the (8s,
    8s)-join."""
    how = Bags()
    synopsis = BasicIntervalJoin(how, 8, 1, 1, 7)
    results = [Result(7, 0, 0), Result(0, 7, 0), Result(0, 0, 0), Result(3, 7, 0)]
    synopsis.update(lifted(synopsis, [(0, results[0]), (1, results[1]), (3, results[3])], how))
    counts = how.lower(
        synopsis.probe(np.full(4, 8), np.array([7, 7, 8, 8]), np.array([7, 8, 7, 8]))
    )
    assert counts.to_pylist() == [1, 2, 2, 3]


def test_what_expired_before_its_sub_window_ended_is_in_no_cell():
    """A result of windows of b sub-windows may reach b sub-windows back, if its older part came
    late in its own."""
    synopsis = BasicIntervalJoin(Bags(), 2, 0, 1, 5)
    cells = synopsis.cell(np.array([3, 4, 5]), np.array([5, 5, 5]), np.zeros(3, np.int64))
    assert cells.tolist() == [-1, 0, 1]


def test_the_bytes_of_a_synopsis_are_those_of_its_cells():
    how = Bags()
    synopsis = RunningJoin(how, 4, 1, 1, 3)
    assert synopsis.nbytes == 0
    synopsis.update(lifted(synopsis, [(0, Result(3, 3, 0))], how))
    assert synopsis.nbytes == 8 * 4  # the youngest interval, and all that run up to it
