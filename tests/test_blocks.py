"""Answers after each touch from blocks of rows: as from all rows, and the same for each cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.aggregates.parts.base import GroupEvents
from dsms.aggregates.parts.blocks import Blocks
from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.parts.fold import Folds
from tests.effort import examples


class Trees(Folds):
    """The cell of rows is how they were put together: "((0 1) 2)"."""

    def empty(self, cells: int) -> np.ndarray:
        return np.full(cells, "", object)

    def lift(self, rows: CellRows, cells: int) -> np.ndarray:
        raise NotImplementedError

    def combine(self, older: np.ndarray, newer: np.ndarray) -> np.ndarray:
        pairs = [
            a + b if not a or not b else f"({a} {b})" for a, b in zip(older, newer, strict=True)
        ]
        return np.array([*pairs, None], object)[:-1]

    def subtract(self, whole: Any, part: Any) -> Any:
        raise NotImplementedError

    def lower(self, state: np.ndarray) -> pa.Array:
        return pa.array(state)

    def present(self, state: np.ndarray) -> np.ndarray:
        return np.array([bool(c) for c in state], np.bool_)

    def size(self, state: np.ndarray) -> int:
        return len(state)

    def take(self, state: np.ndarray, index: np.ndarray) -> np.ndarray:
        return np.array([*(state[i] if i >= 0 else "" for i in index), None], object)[:-1]

    def concat(self, states: Sequence[np.ndarray]) -> np.ndarray:
        return np.concatenate([*states, np.zeros(0, object)])

    def nbytes(self, state: np.ndarray) -> int:
        return 8 * len(state)


class Twin:
    """Rows of groups, by slot; events as the operator gives them."""

    def __init__(self, leaving: bool) -> None:
        self.blocks = Blocks(Trees(), leaving)
        self.leaving = leaving
        self.rows: dict[int, list[int]] = {}  # by group: slots of live rows, the oldest first
        self.name: list[int] = []  # by slot
        self.counts: list[bool] = []

    def step(
        self, events: list[tuple[int, int, int, int, bool]]
    ) -> list[tuple[int, str, list[int]]]:
        """Events (instant, group, sign, slot, counts): (group, answer, live rows) of each touch."""
        emit, touches, last = [-1] * len(events), 0, dict[int, tuple[int, int, int]]()
        for i, (at, g, *_) in enumerate(events):
            known = last.get(g)
            if known is not None and known[0] == at:
                emit[known[1]], number = -1, known[2]
            else:
                number, touches = touches, touches + 1
            last[g], emit[i] = (at, i, number), number
        columns = list(zip(*(e[1:4] for e in events), strict=True)) or [(), (), ()]
        code, sign, slot = (np.array(c, np.int64) for c in columns)
        feed = GroupEvents(
            code,
            sign.astype(np.int8),
            slot,
            np.array(emit, np.int64),
            code,
            touches=touches,
            groups=4,
        )
        counts = np.array([e[4] for e in events] if not self.leaving else self.counts, np.bool_)
        cells, at = self.blocks.after(feed, counts, self._lifted)
        expected = [(-1, list[int]())] * touches
        for i, (_, g, way, s, counted) in enumerate(events):
            live = self.rows.setdefault(g, [])
            name = self.name[s] if self.leaving else self.name[len(self.name) - len(events) + s]
            if counted:
                live.append(name) if way > 0 else live.remove(name)
            if emit[i] >= 0:
                expected[emit[i]] = g, list(live)
        return [
            (g, "" if k < 0 else cells[k], live)
            for k, (g, live) in zip(at.tolist(), expected, strict=True)
        ]

    def _lifted(self, slots: np.ndarray) -> np.ndarray:
        first = 0 if self.leaving else len(self.name) - self.of_step
        return np.array([*(str(self.name[first + s]) for s in slots), None], object)[:-1]

    of_step = 0


def flat(answer: str) -> list[int]:
    return [int(n) for n in answer.replace("(", " ").replace(")", " ").split()]


Event = tuple[
    int, bool, int, bool
]  # group, whether it comes, which of the live rows leaves, counts
EVENTS = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 0, 1]),
        st.booleans(),
        st.integers(0, 9),
        st.integers(0, 5),
        st.booleans(),
    ),
    min_size=1,
    max_size=80,
)


def drawn(events: list[tuple], how: str) -> list[tuple[int, int, int, int, bool]]:
    """(instant, group, sign, number of the row, counts)."""
    live: list[tuple[int, int, bool]] = []
    out, at, number = [], 0, 0
    for g, comes, which, odd, later in events:
        at += later
        if comes or how == "never" or not live:
            row = (number, g, odd > 0)
            live.append(row)
            out.append((at, g, 1, number, odd > 0))
            number += 1
        else:
            at += 1  # what leaves at an instant stands before what comes
            row = live.pop(0 if how == "in order" else which % len(live))
            out.append((at, row[1], -1, row[0], row[2]))
    return out


@settings(max_examples=examples(400), deadline=None)
@given(EVENTS, st.sampled_from(["never", "in order", "anyhow"]), st.data())
def test_answers_are_those_of_all_rows_whatever_the_cut(
    events: list[tuple], how: str, data: st.DataObject
) -> None:
    wanted = drawn(events, how)
    runs = []
    for cut in (False, True):
        twin, answers, start = Twin(how != "never"), [], 0
        while start < len(wanted):
            stop = len(wanted)
            if cut:
                stop = min(len(wanted), start + data.draw(st.integers(1, 12)))
                while stop < len(wanted) and wanted[stop][0] == wanted[stop - 1][0]:
                    stop += 1
            some = wanted[start:stop]
            if how == "never":
                twin.name += [e[3] for e in some]
                twin.of_step = len(some)
                some = [(a, g, w, k, c) for k, (a, g, w, _, c) in enumerate(some)]
            else:
                for _, _, way, n, counted in some:
                    if way > 0:
                        twin.name.append(n)
                        twin.counts.append(counted)
            found = twin.step(some)
            for _, answer, live in found:
                assert flat(answer) == live
            answers += [(g, a) for g, a, _ in found]
            start = stop
        kept = twin.blocks.kept.runs
        rows = sum(len(live) for live in twin.rows.values())
        if how != "never":
            there = sum(int(piece.there.sum()) for run in kept for piece in run)
            assert there >= rows and (rows or len(kept) > 1 or not there)
        runs.append(answers)
    assert runs[0] == runs[1]


def test_rows_that_never_leave_need_little_room() -> None:
    twin = Twin(False)
    for n in range(64):
        twin.name += range(16 * n, 16 * n + 16)
        twin.of_step = 16
        twin.step([(16 * n + k, 0, 1, k, True) for k in range(16)])
    assert sum(len(piece.key) for run in twin.blocks.kept.runs for piece in run) < 16


def test_slots_that_are_compacted_keep_their_numbers() -> None:
    twin = Twin(True)
    twin.name, twin.counts = [0, 1, 2], [True] * 3
    twin.step([(0, 0, 1, 0, True), (0, 0, 1, 1, True), (0, 0, 1, 2, True), (1, 0, -1, 0, True)])
    twin.blocks.moved(np.array([-1, 0, 1]))
    twin.name, twin.counts = [1, 2], [True] * 2
    ((_, answer, _),) = twin.step([(2, 0, -1, 0, True)])
    assert answer == "2"
