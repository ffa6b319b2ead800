"""Rows of each key in an order of their own: treaps of slots, by key code (Seidel, Aragon 1996).

O(log d) expected for the d rows of a key, to add one, to find the one before it, and to take one
away.  How rows compare is said by `Order`: arrays of words by slot, of which the first that differs
decides.  Kernels take the arrays; `Trees` owns them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.state.vec import Vec

NIL = -1


@njit(cache=True, nogil=True)
def comes_before(order, a, b):
    """Whether the row at slot a comes before that at slot b.

    `order`: (words int64[slots, w]; base int64[w], where the ranks of a column of codes begin in
    `ranks`, -1 if its words are in order themselves; ranks int64)."""
    words, base, ranks = order
    for k in range(words.shape[1]):
        v, w = words[a, k], words[b, k]
        if v != w:
            if base[k] >= 0:
                v, w = ranks[base[k] + v], ranks[base[k] + w]
            return v < w
    return False


@njit(cache=True, nogil=True)
def add(order, tree, code, slot):
    """Put a slot into the tree of `code`; the slot that comes right before it, or NIL."""
    root, left, right, luck = tree
    parent = NIL
    previous = NIL
    smaller = False
    at = root[code]
    while at >= 0 and luck[at] >= luck[slot]:
        parent = at
        smaller = comes_before(order, slot, at)
        if smaller:
            at = left[at]
        else:
            previous = at
            at = right[at]
    _hang(tree, code, parent, smaller, slot)
    behind = _split(order, tree, at, slot)
    return behind if behind >= 0 else previous


@njit(cache=True, nogil=True)
def _hang(tree, code, parent, smaller, slot):
    """Put a slot, or NIL, on that side of `parent`; without one it is the root."""
    root, left, right, _ = tree
    if parent < 0:
        root[code] = slot
    elif smaller:
        left[parent] = slot
    else:
        right[parent] = slot


@njit(cache=True, nogil=True)
def _split(order, tree, at, slot):
    """Hang the slots of a tree before and behind `slot` under it; the last of those before it."""
    _, left, right, _ = tree
    left[slot] = right[slot] = NIL
    low = high = slot
    while at >= 0:
        if comes_before(order, slot, at):
            if high == slot:
                right[slot] = at
            else:
                left[high] = at
            high, at = at, left[at]
        else:
            if low == slot:
                left[slot] = at
            else:
                right[low] = at
            low, at = at, right[at]
    if high != slot:
        left[high] = NIL
    if low == slot:
        return NIL
    right[low] = NIL
    return low


@njit(cache=True, nogil=True)
def take(order, tree, code, slot):
    """Take a slot out of the tree of `code`, in which it is."""
    root, left, right, luck = tree
    parent = NIL
    smaller = False
    at = root[code]
    while at != slot:
        parent = at
        smaller = comes_before(order, slot, at)
        at = left[at] if smaller else right[at]
    a, b = left[slot], right[slot]
    while a >= 0 or b >= 0:
        if b < 0 or (a >= 0 and luck[a] >= luck[b]):
            at, a = a, right[a]
            later = False
        else:
            at, b = b, left[b]
            later = True
        _hang(tree, code, parent, smaller, at)
        parent, smaller = at, later
    _hang(tree, code, parent, smaller, NIL)


@njit(cache=True, nogil=True)
def draw(luck, first, state):
    """Luck for the slots from `first` on."""
    for slot in range(first, len(luck)):
        state[0] = (state[0] * 1103515245 + 12345) & 0x7FFFFFFF
        luck[slot] = state[0]


@dataclass(slots=True)
class Trees:
    """root by code; left, right and luck by slot; NIL: none.  state: the last random number."""

    root: Vec = field(default_factory=Vec)
    left: Vec = field(default_factory=Vec)
    right: Vec = field(default_factory=Vec)
    luck: Vec = field(default_factory=Vec)
    state: np.ndarray = field(default_factory=lambda: np.array([42], np.int64))

    def reserve(self, codes: int, slots: int) -> tuple[np.ndarray, ...]:
        """Room for that many codes and slots; the arrays for the kernels."""
        self.root.extend_fill(max(0, codes - self.root.n), NIL)
        first = self.luck.n
        for vec in (self.left, self.right, self.luck):
            vec.extend_fill(max(0, slots - vec.n), NIL)
        draw(self.luck.view, first, self.state)
        return self.root.view, self.left.view, self.right.view, self.luck.view

    def moved(self, where: np.ndarray) -> None:
        """Slots were renumbered (dead ones, -1, are in no tree)."""
        kept = np.flatnonzero(where >= 0)
        for vec in (self.left, self.right, self.luck):
            vec.keep(kept)
        for vec in (self.root, self.left, self.right):
            linked = vec.view >= 0
            vec.view[linked] = where[vec.view[linked]]

    @property
    def nbytes(self) -> int:
        return sum(v.nbytes for v in (self.root, self.left, self.right, self.luck))
