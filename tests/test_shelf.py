"""Cells by key in sorted runs (`dsms.aggregates.parts.shelf`): what is found is what was put last,
whatever is being merged meanwhile, and no step merges much more than it brings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.aggregates.parts import shelf
from dsms.aggregates.parts.shelf import Run, Shelf
from dsms.aggregates.python import PythonAggregate, PythonState
from dsms.sql.types import INT

HOW = PythonAggregate("m:A", (INT,), INT)


class Counted(PythonAggregate):
    """It counts the cells that are put together."""

    cells = 0

    def concat(self, states: Any) -> Any:
        Counted.cells += sum(len(s.counts) for s in states)
        return super().concat(states)


def cells(values: list[int]) -> PythonState:
    """Cells that say these; 0: empty ones."""
    column = np.array(values, np.int64)
    return PythonState(column, pa.RecordBatch.from_arrays([pa.array(column)], ["x"]))


def said(found: np.ndarray, state: PythonState) -> list[int]:
    out = np.zeros(len(found), np.int64)
    out[found] = state.counts
    return out.tolist()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "FEW", 4)
    monkeypatch.setattr(shelf, "PIECE", 3)
    monkeypatch.setattr(shelf, "SHARE", 2)


ENTRY = st.tuples(st.integers(0, 3), st.integers(0, 12), st.integers(0, 5))
STEPS = st.lists(st.tuples(st.lists(ENTRY, max_size=12), st.booleans()), max_size=25)


@given(STEPS)
@settings(deadline=None)
def test_what_is_found_is_what_was_put_last(steps: list[tuple[list[tuple], bool]]) -> None:
    kept, known = Shelf(HOW), dict[tuple[int, int], int]()
    asked = np.array([(k, b) for k in range(5) for b in range(14)], np.int64)
    for entries, again in steps:
        column = np.array([e[:2] for e in entries], np.int64).reshape(-1, 2)
        kept.put(column[:, 0], column[:, 1], cells([e[2] for e in entries]))
        known |= {e[:2]: e[2] for e in entries}
        if again:  # a checkpoint: what was being merged begins anew
            state = kept.__getstate__()
            kept = Shelf.__new__(Shelf)
            kept.__setstate__(state)
        wanted = [known.get((k, b), 0) for k, b in asked.tolist()]
        assert said(*kept.find(asked[:, 0], asked[:, 1])) == wanted
        assert said(*kept.find(asked[:0, 0], asked[:0, 1])) == []


def test_runs_of_earlier_versions_are_whole() -> None:
    key, block = np.arange(9), np.zeros(9, np.int64)
    run = Run(key, block, cells([*range(1, 10)]), np.ones(9, np.bool_))
    kept = Shelf.__new__(Shelf)
    kept.__setstate__({"how": HOW, "runs": [run]})
    kept.put(key[:5], block[:5], cells([0, 20, 0, 40, 0]))
    for step in range(9):
        kept.put(np.array([step]), np.array([7]), cells([1]))
    assert said(*kept.find(key, block)) == [0, 20, 0, 40, 0, 6, 7, 8, 9]


def test_no_step_merges_much_more_than_it_brings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "SHARE", 12)
    kept, most = Shelf(Counted("m:A", (INT,), INT)), 0
    for step in range(300):
        Counted.cells = 0
        kept.put(np.arange(10) % 4, np.arange(10) + 10 * step, cells([1] * 10))
        most = max(most, Counted.cells)
    assert most <= 12 * 10 + 2 * 3
    assert len(kept.runs) <= 14
    found, _ = kept.find(np.arange(3000) % 10 % 4, np.arange(3000))
    assert found.all()
