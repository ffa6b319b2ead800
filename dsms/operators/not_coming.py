"""What does not come any more to the inputs of a join (punctuations: Tucker, Maier, Sheard and
Fegaras 2003), and the rows that need not be kept for it.

Every result to come has a row that comes yet.  So a row of one input is part of none of them if to
each of the other inputs nothing comes that could meet it, as promises tell of the columns that are
equal to ones of its own.  Whatever it met among rows that are there was told already.  A row may
be such a one from the beginning: then it meets what is there, and is not kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from dsms.operators.letting_go import equal_to
from dsms.operators.pieces import Look, go_on
from dsms.operators.sweeping import Sweep
from dsms.state.expiry import Never
from dsms.state.intern import Intern
from dsms.state.live import LiveInput

Places = Mapping[int, tuple[int, ...]]


@runtime_checkable
class Meets(Protocol):
    """An operator that keeps rows for what other inputs may bring."""

    def none_come(self, child: int, places: Places, values: Sequence[pa.Array]) -> None:
        """To input `child` no row comes any more with one of these combinations of values.

        places  by input: the columns in which a combination stands.  Rows meet only if theirs are
                the same; of an input that is not there nothing is known"""
        ...


class Kept(Protocol):
    """What keeps the rows of an input."""

    rows: LiveInput
    strict: bool


@dataclass(slots=True)
class Away:
    """Combinations of values without rows to come on input `child`; see `Meets.none_come`."""

    child: int
    places: dict[int, tuple[int, ...]]
    values: Intern

    def has(self, values: Sequence[pa.Array]) -> np.ndarray:
        """Which of those combinations are there, bool[n]."""
        found: np.ndarray = self.values.lookup(values, len(values[0])) >= 0
        return found

    def forget(self, values: Sequence[pa.Array]) -> None:
        """Those combinations, which are there."""
        codes = self.values.lookup(values, len(values[0]))
        left = np.ones(self.values.capacity, np.bool_)
        left[codes] = False
        self.values.purge(left)


Told = tuple[tuple[tuple[int, tuple[int, ...]], ...], list[pa.Array]]  # places, values


def told(places: Places, values: Sequence[pa.Array]) -> Told:
    """A promise as it is kept until it has been followed everywhere."""
    return tuple((j, tuple(columns)) for j, columns in sorted(places.items())), list(values)


@dataclass(slots=True)
class NotComing:
    """All that is known of the inputs of a join.  What no input brings any more is not known: no
    row of it is there, or comes.

    sweep  promises by which rows have to be looked for where no hash leads to them
    over   promises of which no row is left, and that perhaps all inputs have made"""

    sets: list[Away] = field(default_factory=list)
    sweep: Sweep[Told] = field(default_factory=Sweep)
    over: list[Told] = field(default_factory=list)

    def add(self, child: int, places: Places, values: Sequence[pa.Array]) -> None:
        """One more promise of that input."""
        there = {j: tuple(columns) for j, columns in places.items()}
        same = {s.child: s for s in self.sets if s.places == there}
        if child not in same:
            same[child] = Away(child, there, Intern(len(values)))
            self.sets.append(same[child])
        same[child].values.codes(values, len(values[0]))

    def found(self, promise: Told) -> None:
        """All rows that this promise makes needless have gone, if those before have been followed:
        it is over with these."""
        if self.sweep.idle:
            self.over.append(promise)
        else:
            self.sweep.promised(promise, len(promise[1][0]))

    def swept(
        self, sides: Sequence[Kept], many: int = 0, look: Look = go_on
    ) -> Iterator[tuple[int, np.ndarray]]:
        """(input, slots) of rows that need not be kept, if it is time to look for some; see
        `Sweep.places`."""
        sizes = [len(side.rows.store) if may_go(side) else 0 for side in sides]
        for k, slots in self.sweep.places(sizes, many, look):
            alive = slots[sides[k].rows.store.alive.view[slots]]
            dead = self.dead(k, len(sides), sides[k], alive)
            self.sweep.freed(len(dead))
            yield k, dead
        self.over += [promise for promise in self.sweep.ended() if promise[1]]

    def close(self, inputs: int) -> None:
        """Forget combinations, of which no row is kept, that no input brings: when half of them may
        be such, for all that are known are gone through."""
        many = sum(len(values[0]) for _, values in self.over)
        if not many or 2 * many < max(some.values.size for some in self.sets):
            return
        over: dict[tuple[tuple[int, tuple[int, ...]], ...], list[list[pa.Array]]] = {}
        for places, values in self.over:
            over.setdefault(places, []).append(values)
        self.over = []
        for places, each in over.items():
            values = [pa.concat_arrays(column) for column in zip(*each, strict=True)]
            self._close(inputs, dict(places), values)

    def _close(self, inputs: int, places: Places, values: Sequence[pa.Array]) -> None:
        same = [s for s in self.sets if s.places == places]
        if len(same) < inputs:
            return
        everywhere = np.logical_and.reduce([some.has(values) for some in same])
        if everywhere.any():
            gone = [v.filter(pa.array(everywhere)) for v in values]
            for some in same:
                some.forget(gone)
            self.sets = [some for some in self.sets if some.values.size]

    def dead(self, j: int, inputs: int, side: Kept, slots: np.ndarray) -> np.ndarray:
        """Of the rows of input j at those slots those that need not be kept: there alone where
        rows stay for ever otherwise, and no deletion asks for them."""
        if not may_go(side):
            return slots[:0]
        for i in range(inputs):
            if i != j and len(slots):
                slots = slots[self._none_meets(i, j, side, slots)]
        return slots

    def _none_meets(self, i: int, j: int, side: Kept, slots: np.ndarray) -> np.ndarray:
        """Which of those rows no row to come of input i can meet."""
        out = np.zeros(len(slots), np.bool_)
        for some in self.sets:
            if some.child == i and j in some.places:
                cols = [side.rows.store.cols[c].gather(slots) for c in some.places[j]]
                out |= some.values.lookup(cols, len(slots)) >= 0
        return out

    @property
    def nbytes(self) -> int:
        waiting = (*self.sweep.waiting, *self.sweep.walking, *self.over)
        own = sum(some.values.nbytes for some in self.sets)
        return own + sum(v.nbytes for _, values in waiting for v in values)


def may_go(side: Kept) -> bool:
    """Whether rows of an input stay for ever, and none is deleted."""
    return not side.strict and isinstance(side.rows.expiry, Never)


def having(
    side: Kept, slots: np.ndarray, columns: Sequence[int], values: Sequence[pa.Array]
) -> np.ndarray:
    """Those of the rows of an input at these slots that have one of those combinations of
    values."""
    slots = slots[side.rows.store.alive.view[slots]]
    return slots[equal_to([side.rows.store.cols[c].gather(slots) for c in columns], values)]


def keyed(by: Sequence[int], columns: Sequence[int]) -> list[int] | None:
    """Where in `columns` the key columns `by` of an input stand; None: not all of them do, or they
    are not known."""
    if not by or not set(by) <= set(columns):
        return None
    return [columns.index(column) for column in by]
