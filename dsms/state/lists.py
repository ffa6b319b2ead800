"""Live rows of each key in order of arrival: doubly linked lists of slots, by key code.

The head is the oldest live arrival of its key, the tail the youngest.  Kernels take the four
arrays; `Lists` owns them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.state.vec import Vec


@njit(cache=True, nogil=True)
def push(head, tail, before, after, code, slot):
    """Append a slot to the list of `code`."""
    before[slot], after[slot] = tail[code], -1
    if tail[code] >= 0:
        after[tail[code]] = slot
    else:
        head[code] = slot
    tail[code] = slot


@njit(cache=True, nogil=True)
def insert(head, tail, before, after, code, previous, slot):
    """Put a slot into the list of `code` right behind `previous`; -1: at its head."""
    following = after[previous] if previous >= 0 else head[code]
    before[slot], after[slot] = previous, following
    if previous >= 0:
        after[previous] = slot
    else:
        head[code] = slot
    if following >= 0:
        before[following] = slot
    else:
        tail[code] = slot


@njit(cache=True, nogil=True)
def cut(head, tail, before, after, code, slot):
    """Take a slot out of the list of `code`."""
    if before[slot] >= 0:
        after[before[slot]] = after[slot]
    else:
        head[code] = after[slot]
    if after[slot] >= 0:
        before[after[slot]] = before[slot]
    else:
        tail[code] = before[slot]


@dataclass(slots=True)
class Lists:
    """head, tail by code; before, after by slot; -1 ends a list."""

    head: Vec = field(default_factory=Vec)
    tail: Vec = field(default_factory=Vec)
    before: Vec = field(default_factory=Vec)
    after: Vec = field(default_factory=Vec)

    def reserve(
        self, codes: int, slots: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Room for that many codes and slots; the arrays for the kernels."""
        for vec, size in (
            (self.head, codes),
            (self.tail, codes),
            (self.before, slots),
            (self.after, slots),
        ):
            vec.extend_fill(max(0, size - vec.n), -1)
        return self.head.data, self.tail.data, self.before.data, self.after.data

    def moved(self, where: np.ndarray) -> None:
        """Slots were renumbered (dead ones, -1, are in no list)."""
        kept = np.flatnonzero(where >= 0)
        for vec in (self.before, self.after):
            vec.keep(kept)
            linked = vec.view >= 0
            vec.view[linked] = where[vec.view[linked]]
        for vec in (self.head, self.tail):
            linked = vec.view >= 0
            vec.view[linked] = where[vec.view[linked]]

    @property
    def nbytes(self) -> int:
        return self.head.nbytes + self.tail.nbytes + self.before.nbytes + self.after.nbytes
