"""How synopses put many cells together at once, whatever the algebra.

`Algebra` says what two columns of cells make.  A probe needs more: every answer is a union of
several stored cells, and answers over windows of growing length follow from each other.  An algebra
over plain arrays does that in one kernel (a subclass of `Folds` overrides these verbs); for all
others it is done here in rounds of `combine`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.aggregates.parts.cells import Algebra, CellRows, State

EMPTY = -1  # in an index: no cell


def ranges(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """int64: low[0], ..., high[0] - 1, low[1], ..., high[1] - 1, ..."""
    size = high - low
    starts = np.cumsum(size) - size
    return np.repeat(low - starts, size) + np.arange(int(size.sum()), dtype=np.int64)


@njit(cache=True, nogil=True)
def _depths(prev, out):
    most = 0
    for i in range(len(prev)):
        out[i] = 0 if prev[i] < 0 else out[prev[i]] + 1
        most = max(most, out[i])
    return most


def gathered(
    algebra: Algebra, state: State, index: np.ndarray, target: np.ndarray, cells: int
) -> State:
    """Out cell t is the union of the cells index[i] with target[i] == t, older ones having smaller
    i.

    Neighbours are combined in pairs, so there are as many rounds as the longest list has bits."""
    order = np.argsort(target, kind="stable")
    target, state = target[order], algebra.take(state, index[order])
    while True:
        first = np.ones(len(target), np.bool_)
        first[1:] = target[1:] != target[:-1]
        if first.all():
            break
        starts = np.flatnonzero(first)
        size = np.diff(np.append(starts, len(target)))
        even = ranges(np.zeros_like(size), size) % 2 == 0
        older = np.flatnonzero(even)
        newer = older + 1
        alone = newer == len(target)
        newer[alone] = 0
        alone |= first[newer]
        newer[alone] = EMPTY
        state = algebra.combine(algebra.take(state, older), algebra.take(state, newer))
        target = target[older]
    where = np.full(cells, EMPTY, np.int64)
    where[target] = np.arange(len(target))
    return algebra.take(state, where)


def chained(algebra: Algebra, state: State, prev: np.ndarray, prev_older: bool) -> State:
    """Round by round, as far as chains are long."""
    depth = np.empty(len(prev), np.int64)
    rounds = int(_depths(prev, depth)) + 1 if len(prev) else 0
    if rounds <= 1:
        return state
    order = np.argsort(depth, kind="stable")
    cuts = np.searchsorted(depth[order], np.arange(rounds + 1))
    place = np.empty(len(prev), np.int64)  # within its round
    done: list[State] = []
    for d in range(rounds):
        here = order[cuts[d] : cuts[d + 1]]
        place[here] = np.arange(len(here))
        mine = algebra.take(state, here)
        if d:
            before = algebra.take(done[-1], place[prev[here]])
            mine = algebra.combine(before, mine) if prev_older else algebra.combine(mine, before)
        done.append(mine)
    back = np.empty(len(prev), np.int64)
    back[order] = np.arange(len(prev))
    return algebra.take(algebra.concat(done), back)


# a column of cells, the group of each, and those from the first to before the second place
Part = tuple[State, np.ndarray, int, int]


class Folds(Algebra):
    """An algebra with verbs over many cells; the class of all algebras of this room that have
    kernels for them."""

    subtractable: bool = False
    duplicate_insensitive: bool = False
    constant = False  # whether a state takes the same space however many rows there are

    @property
    def breadth(self) -> int:
        """Numbers that a cell holds, as far as all hold as many: so many times as much work it
        is."""
        return 1

    def close(self, state: State) -> State:
        return state

    # -- over many cells ---------------------------------------------------------------------------

    def present(self, state: State) -> np.ndarray:
        """bool[n]: False where a cell is as good as empty."""
        return np.ones(self.size(state), np.bool_)

    def merge(
        self,
        state: State,
        group: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        base: np.ndarray,
        cells: int,
    ) -> State:
        """Unions of runs of stored cells: cell i of run r (low[r] <= i < high[r]) goes into base[r]
        + group[i].

        Runs with the same base stand together, the older first; different bases mean different
        cells."""
        index = ranges(low, high)
        return gathered(self, state, index, np.repeat(base, high - low) + group[index], cells)

    def merge_placed(
        self, parts: Sequence[Part], place: np.ndarray, cells: int, runs: int
    ) -> State:
        """Of the cells of several columns those of groups with place[group] >= 0, the older first,
        together in the cells place[group].  No group occurs more than `runs` times."""
        states, groups = [self.empty(0)], [np.zeros(0, np.int64)]
        for state, group, start, stop in parts:
            at = place[group[start:stop]]
            there = np.flatnonzero(at >= 0)
            states.append(self.take(state, there + start))
            groups.append(at[there].astype(np.int64))
        found, zero = np.concatenate(groups), np.zeros(1, np.int64)
        end = np.array([len(found)])
        return self.merge(self.concat(states), found, zero, end, zero, cells)

    def chain(self, state: State, prev: np.ndarray, prev_older: bool) -> State:
        """Out cell i is the union of cell i and out cell prev[i] < i (-1: none), which is older (or
        newer)."""
        return chained(self, state, prev, prev_older)

    def write(self, state: State, at: int, more: State) -> State:
        """The column with `more` in the cells from `at` on, which is changed where possible.  Cells
        are written in order, so those behind may be left in any condition."""
        n = self.size(more)
        rest = self.size(state) - at - n
        return self.concat([self.take(state, np.arange(at)), more, self.empty(rest)])

    def settled(self, state: State) -> State:
        """The column in the form in which it is to be kept."""
        return state

    def heavy(self, state: State) -> bool:
        """Whether the column has so much beside its cells that `write` should get another one."""
        return False


class Plain(Folds):
    """Any algebra, with these verbs in rounds of its own."""

    def __init__(self, inner: Algebra) -> None:
        self.inner = inner
        self.subtractable, self.duplicate_insensitive = (
            inner.subtractable,
            inner.duplicate_insensitive,
        )

    def empty(self, cells: int) -> State:
        return self.inner.empty(cells)

    def lift(self, rows: CellRows, cells: int) -> State:
        return self.inner.lift(rows, cells)

    def combine(self, older: State, newer: State) -> State:
        return self.inner.combine(older, newer)

    def subtract(self, whole: State, part: State) -> State:
        return self.inner.subtract(whole, part)

    def lower(self, state: State) -> pa.Array:
        return self.inner.lower(state)

    def size(self, state: State) -> int:
        return self.inner.size(state)

    def take(self, state: State, index: np.ndarray) -> State:
        return self.inner.take(state, index)

    def concat(self, states: Sequence[State]) -> State:
        return self.inner.concat(states)

    def nbytes(self, state: State) -> int:
        return self.inner.nbytes(state)

    def __getstate__(self) -> dict[str, Any]:
        return {"inner": self.inner}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["inner"])  # type: ignore[misc]

    def present(self, state: Any) -> np.ndarray:
        if isinstance(state, np.ndarray):  # objects
            return np.fromiter((s is not None for s in state), np.bool_, len(state))
        if hasattr(state, "starts"):  # lists of entries
            return np.diff(state.starts) > 0
        return super().present(state)

    def write(self, state: Any, at: int, more: Any) -> Any:
        if isinstance(state, np.ndarray):
            state[at : at + len(more)] = more
            return state
        return super().write(state, at, more)


def folds(algebra: Algebra) -> Folds:
    """The algebra with these verbs."""
    return algebra if isinstance(algebra, Folds) else Plain(algebra)
