"""What an aggregate is: it is given the events of a step in order, and fills in its answer after
the last event of a group at an instant.

The operator (`dsms.operators.group`) finds out which rows arrive and depart at which instant, in
which group, in what order; an aggregate only adds and takes away.  Whether it can take away (an
inverse) and in which order that happens decides which class serves it (`follow` of its family):

    lift      a row's value                             -> `Arg`: one 64-bit word per slot
    combine   count, limbs, best row, tree of values    -> arrays by group code
    invert    additive families subtract; the others have structures that know how to lose a member
    lower     the answer at a touch                     -> `Answers`
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from dsms.aggregates.parts.words import Coding

# How rows leave a group.  out of age: in any order, and they did not come in the order of their
# ages either
Leaving = Literal["never", "in order", "anyhow", "out of age"]

NO_BOOLS = np.empty(0, np.bool_)
NO_AGES = np.empty((0, 0), np.int64)


@dataclass(slots=True)
class GroupEvents:
    """Events of one step in order of (instant, departures first).

    code int64[m]  group;  sign int8[m];  slot int64[m]: where the row's argument values are
    emit int64[m]  touch that ends with this event (its answer is wanted now), or -1
    touches        number of (group, instant) pairs that had events;  groups: codes are below this
    live int64[t]  rows of the group at the end of each touch
    ages int64[slots, k]  rows that compare, from the left, as the ages of their slots; none: a
                          later slot is younger
    """

    code: np.ndarray
    sign: np.ndarray
    slot: np.ndarray
    emit: np.ndarray
    live: np.ndarray
    ages: np.ndarray = field(default_factory=lambda: NO_AGES)
    touches: int = field(kw_only=True)  # by name, since kernels trust them
    groups: int = field(kw_only=True)

    @property
    def events(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """code, sign, slot, emit: what every kernel of events takes first."""
        return self.code, self.sign, self.slot, self.emit


@dataclass(slots=True)
class Arg:
    """An argument's values by slot: `words` int64, `high` int64 (upper half of wide DECIMALs, else
    empty), `valid` bool (empty: all rows count; False: NULL or filtered out); `coding` says what a
    word means."""

    words: np.ndarray
    high: np.ndarray
    valid: np.ndarray
    coding: Coding

    @property
    def rank(self) -> np.ndarray:
        """int64 by word where words are codes of values; empty where words themselves are in
        order."""
        return self.coding.rank


@dataclass(slots=True)
class Answers:
    """Answers by touch: words int64[t], high int64[t] (empty unless 128 bits), valid bool[t].  All
    NULL at first."""

    words: np.ndarray
    high: np.ndarray
    valid: np.ndarray

    def first(self, touches: int) -> Answers:
        """Those of the first touches."""
        return Answers(self.words[:touches], self.high[:touches], self.valid[:touches])


class Aggregate(Protocol):
    """One aggregate of a running GROUP BY."""

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        """Take the events in and answer every touch."""
        ...

    def moved(self, where: np.ndarray) -> None:
        """Slots were compacted: the new slot of each old one, -1 for the dead."""
        ...

    def held(self) -> tuple[np.ndarray, ...]:
        """Words that are kept in state apart from live slots, by argument (coded values must not be
        forgotten)."""
        ...

    @property
    def nbytes(self) -> int: ...


@runtime_checkable
class Sheds(Protocol):
    """An aggregate whose state grows with the rows of a group.  Rows never leave it."""

    def let_go(self, closed: np.ndarray) -> None:
        """No row comes any more to the groups that are `closed` (bool by code), which nobody asks
        for their answers again: what is kept of their rows goes."""
        ...


class ByGroup:
    """What aggregates share that keep nothing by slot and no words."""

    def moved(self, where: np.ndarray) -> None:
        return

    def held(self) -> tuple[np.ndarray, ...]:
        return ()
