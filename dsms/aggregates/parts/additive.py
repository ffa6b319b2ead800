"""Aggregates whose cells are exact numbers: one row of 64-bit words a cell, which adds and
subtracts word by word.

    n | NaN, +inf, -inf counted apart (once there are any) | limbs of the sum | limbs of the sum of squares (VAR)

Limbs are those of the continuous engine (`dsms.aggregates.parts.limbs`): fixed-point numbers of 32
bits each, as many as the exponents of the data ask for, carried before they could overflow.  So
nothing is rounded before `lower`, whole - part is exact, and every way of cutting a window gives
the same answer, bit for bit.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numba import njit

from dsms.aggregates.parts import limbs
from dsms.aggregates.parts.fold import Folds, Part
from dsms.aggregates.parts.limbs import settle_all

ODD = 3  # columns of NaN, +inf, -inf
# additions a limb may hold when it is kept: then many of them can be added up without a carry
KEPT = 1 << 10


@dataclass(frozen=True, slots=True)
class Layout:
    """What the columns of a matrix mean.

    limbs    of the sum, the lowest of which counts 2^base (floats: 0 until a finite value other
             than zero has come)
    odd      whether values that are not finite are counted
    squares  whether sums of squares follow: twice as many limbs, from 2^(2 base)
    pairs    whether there are sums of two arguments, of their squares and of their products, in
             this order
    """

    limbs: int
    base: int = 0
    odd: bool = False
    squares: bool = False
    pairs: bool = False

    @property
    def blocks(self) -> tuple[int, ...]:
        """Of each number of a cell: by what `limbs` and `base` are multiplied."""
        return (1, 1, 2, 2, 2) if self.pairs else (1, 2) if self.squares else (1,)

    @property
    def first(self) -> int:
        """The column of the lowest limb."""
        return 1 + ODD * self.odd

    @property
    def width(self) -> int:
        return self.first + self.limbs * sum(self.blocks)

    def joined(self, other: Layout) -> Layout:
        """The least one that holds what either holds."""
        odd = self.odd or other.odd
        if not (self.limbs and other.limbs):
            return replace(self if self.limbs else other, odd=odd)
        base = min(self.base, other.base)
        top = max(self.base + 32 * self.limbs, other.base + 32 * other.limbs)
        return replace(self, limbs=(top - base) // 32, base=base, odd=odd)


@dataclass(frozen=True, slots=True)
class Numbers:
    """n cells.  words int64[n, layout.width];  added: no limb holds more than that many additions
    since its carry."""

    words: np.ndarray
    layout: Layout
    added: int


@njit(cache=True, nogil=True)
def _merge(words, group, low, high, base, out):
    width = words.shape[1]
    for r in range(len(low)):
        for i in range(low[r], high[r]):
            t = base[r] + group[i]
            for j in range(width):
                out[t, j] += words[i, j]


@njit(cache=True, nogil=True)
def _merge_placed(words, group, start, stop, place, out):
    for i in range(start, stop):
        t = place[group[i]]
        if t >= 0:
            for j in range(words.shape[1]):
                out[t, j] += words[i, j]


@njit(cache=True, nogil=True)
def _shift(words, group, more, sign):
    for i in range(len(group)):
        for j in range(words.shape[1]):
            words[group[i], j] += sign * more[i, j]


@njit(cache=True, nogil=True)
def _chain(words, prev):
    for i in range(len(prev)):
        if prev[i] >= 0:
            for j in range(words.shape[1]):
                words[i, j] += words[prev[i], j]


@njit(cache=True, nogil=True)
def _take(words, index, out):
    for i in range(len(index)):
        k = index[i]
        for j in range(words.shape[1]):
            out[i, j] = words[k, j] if k >= 0 else 0


def longest(base: np.ndarray) -> int:
    """How many equal ones stand together, at most."""
    if not len(base):
        return 0
    cuts = np.flatnonzero(np.diff(base))
    return int(np.diff(cuts, prepend=-1, append=len(base) - 1).max())


def relaid(state: Numbers, layout: Layout) -> Numbers:
    """The same numbers in a layout that holds them."""
    old = state.layout
    if old == layout:
        return state
    out = np.zeros((len(state.words), layout.width), np.int64)
    out[:, 0] = state.words[:, 0]
    if old.odd:
        out[:, 1 : 1 + ODD] = state.words[:, 1 : 1 + ODD]
    if old.limbs:
        below = (old.base - layout.base) // 32
        here, there = old.first, layout.first
        for times in old.blocks:
            part = np.ascontiguousarray(state.words[:, here : here + times * old.limbs])
            size = times * layout.limbs
            out[:, there : there + size] = limbs.relaid(part, times * below, size)
            here, there = here + times * old.limbs, there + size
    return Numbers(out, layout, 1)


def carried(state: Numbers) -> Numbers:
    """The same numbers with all limbs carried."""
    layout = state.layout
    words = state.words.copy()
    start = layout.first
    for times in layout.blocks:
        part = np.ascontiguousarray(words[:, start : start + times * layout.limbs])
        if part.shape[1]:
            settle_all(part)
        words[:, start : start + part.shape[1]] = part
        start += part.shape[1]
    return Numbers(words, layout, 1)


WHOLE = 1 << 59  # whole numbers in one word are below this


def whole_numbers(state: Numbers, sums: bool) -> np.ndarray | None:
    """int64[n]: how many values each cell counts, or the `sums` of those that are whole numbers;
    None where one of these is WHOLE or more, or no whole number."""
    layout = state.layout
    if not sums:
        return state.words[:, 0].copy()
    if layout.odd or layout.base or layout.limbs < 2:
        return None
    limb = carried(state).words[:, layout.first : layout.first + layout.limbs].T
    upper = limb[1] if layout.limbs == 2 else _upper(limb)
    if len(upper) and not -(WHOLE >> 32) < int(upper.min()) <= int(upper.max()) < WHOLE >> 32:
        return None
    whole: np.ndarray = (upper << 32) + limb[0]
    return whole


def _upper(limb: np.ndarray) -> np.ndarray:
    """What stands above the lowest of four carried limbs, if that fits into a word; WHOLE if
    not."""
    fits = ((limb[3] == 0) & (limb[2] == 0)) | ((limb[3] == -1) & (limb[2] == limbs.M32))
    return np.where(fits, (limb[3] << 32) + limb[1], WHOLE)


class Additive(Folds):
    """What they share; `layout` is the widest seen so far, so that most columns agree."""

    subtractable = True
    constant = True

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def empty(self, cells: int) -> Numbers:
        return Numbers(np.zeros((cells, self.layout.width), np.int64), self.layout, 0)

    def _alike(self, *states: Numbers) -> list[Numbers]:
        """The columns in one layout."""
        layout = self.layout
        for s in states:
            if s.layout != layout:
                layout = layout.joined(s.layout)
        self.layout = layout
        return [relaid(s, layout) for s in states]

    def combine(self, older: Numbers, newer: Numbers) -> Numbers:
        a, b = self._ready(older, newer)
        return Numbers(a.words + b.words, a.layout, a.added + b.added)

    def subtract(self, whole: Numbers, part: Numbers) -> Numbers:
        a, b = self._ready(whole, part)
        return Numbers(a.words - b.words, a.layout, a.added + b.added)

    def _ready(self, a: Numbers, b: Numbers) -> list[Numbers]:
        """Two columns in one layout whose sum does not overflow."""
        if a.layout != b.layout or a.layout != self.layout:
            a, b = self._alike(a, b)
        if a.added + b.added >= limbs.CARRY_EVERY:
            a, b = carried(a), carried(b)
        return [a, b]

    def size(self, state: Numbers) -> int:
        return len(state.words)

    def take(self, state: Numbers, index: np.ndarray) -> Numbers:
        out = np.empty((len(index), state.words.shape[1]), np.int64)
        _take(state.words, index, out)
        return Numbers(out, state.layout, state.added)

    def concat(self, states: Sequence[Numbers]) -> Numbers:
        if not states:
            return self.empty(0)
        states = self._alike(*states)
        return Numbers(
            np.concatenate([s.words for s in states]), self.layout, max(s.added for s in states)
        )

    def nbytes(self, state: Numbers) -> int:
        return int(state.words.nbytes)

    # -- over many cells ---------------------------------------------------------------------------

    def present(self, state: Numbers) -> np.ndarray:
        return state.words[:, 0] != 0

    def merge(
        self,
        state: Numbers,
        group: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        base: np.ndarray,
        cells: int,
    ) -> Numbers:
        most = longest(base)
        if state.added * most >= limbs.CARRY_EVERY:
            state = carried(state)
        out = np.zeros((cells, state.words.shape[1]), np.int64)
        _merge(state.words, group, low, high, base, out)
        return Numbers(out, state.layout, state.added * most)

    def merge_placed(
        self, parts: Sequence[Part], place: np.ndarray, cells: int, runs: int
    ) -> Numbers:
        if not parts:
            return self.empty(cells)
        states = self._alike(*(state for state, *_ in parts))
        added = max(s.added for s in states)
        if added * runs >= limbs.CARRY_EVERY:
            states, added = [carried(s) for s in states], 1
        out = np.zeros((cells, self.layout.width), np.int64)
        for state, (_, group, start, stop) in zip(states, parts, strict=True):
            _merge_placed(state.words, group, start, stop, place, out)
        return Numbers(out, self.layout, added * runs)

    def shifted(self, state: Numbers, group: np.ndarray, more: Numbers, sign: int) -> Numbers:
        """The column, which is changed, with cell i of `more` added to (sign 1) or subtracted from
        (-1) the cell group[i]; no group comes twice."""
        state, more = self._ready(state, more)
        _shift(state.words, group, more.words, sign)
        return Numbers(state.words, state.layout, state.added + more.added)

    def chain(self, state: Numbers, prev: np.ndarray, prev_older: bool) -> Numbers:
        state = carried(state) if state.added * len(prev) >= limbs.CARRY_EVERY else state
        words = state.words.copy()
        _chain(words, prev)
        return Numbers(words, state.layout, state.added * max(1, len(prev)))

    def settled(self, state: Numbers) -> Numbers:
        return carried(state) if state.added > KEPT else state

    def write(self, state: Numbers, at: int, more: Numbers) -> Numbers:
        state, more = self._alike(state, more)
        state.words[at : at + len(more.words)] = more.words
        return Numbers(state.words, state.layout, max(state.added, more.added))
