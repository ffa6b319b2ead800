"""VAR and STDDEV: from exact sums of x and x², so nothing cancels and nothing drifts.

Input    any pattern.     Cost  O(1) an event, O(limbs²) an answer; a few dozen words a group.
Algebra  invertible and exact: n * sum(x²) - sum(x)² is a whole multiple of a power of two, divided
         by n (n - 1) (sample) or n² (population) in limbs and rounded once; STDDEV is the root of
         that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.aggregates.parts import limbs
from dsms.aggregates.parts.base import Answers, Arg, ByGroup, GroupEvents, Leaving
from dsms.aggregates.parts.doubles import BELOW, DoubleCells, add_square, laid_out, variance
from dsms.aggregates.parts.limbs import add, parts
from dsms.aggregates.parts.words import ordered_bits
from dsms.sql.expr import AggCall
from dsms.state.lengthening import grown


@njit(cache=True, nogil=True)
def _spread(
    code, sign, slot, emit, words, valid, sums, squares, base, odd, n, sample, root, out, out_valid
):
    width, width2 = sums.shape[1] + 1, squares.shape[1] + 1
    size = max(2 * width, width2 + 2)
    s, square = np.zeros(width, np.int64), np.zeros(size, np.int64)
    q, times = np.zeros(width2, np.int64), np.zeros(2, np.int64)
    total = np.zeros(BELOW + size, np.int64)
    answer = out.view(np.float64)
    for i in range(len(code)):
        g, k = code[i], slot[i]
        if len(valid) == 0 or valid[k]:
            m, e, minus = parts(words[k])
            if m < 0:
                odd[g] += sign[i]
            elif m > 0:
                add(sums, g, e - base, m, minus * sign[i])
                add_square(squares, g, e - base, m, sign[i])
            n[g] += sign[i]
        t = emit[i]
        below = n[g] - 1 if sample else n[g]
        if t >= 0 and below > 0:
            out_valid[t] = True
            value = math.nan
            if odd[g] == 0:
                value = variance(sums, squares, g, base, n[g], below, s, square, q, times, total)
            answer[t] = math.sqrt(value) if root else value


@dataclass(slots=True)
class SpreadRows(ByGroup):
    """VAR, VAR_POP, STDDEV, STDDEV_POP of FLOAT."""

    sample: bool
    root: bool
    sums: np.ndarray = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    squares: np.ndarray = field(default_factory=lambda: np.zeros((0, 5), np.int64))
    base: int | None = None
    # values that are not finite
    odd: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    n: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    added: int = 0

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        (a,) = args
        self._lay_out(feed, a)
        self.n, self.odd = grown(self.n, feed.groups), grown(self.odd, feed.groups)
        self.added += 3 * len(feed.code)
        if self.added > limbs.CARRY_EVERY:
            limbs.settle_all(self.sums)
            limbs.settle_all(self.squares)
            self.added = 3 * len(feed.code)
        _spread(
            *feed.events,
            a.words,
            a.valid,
            self.sums,
            self.squares,
            self.base or 0,
            self.odd,
            self.n,
            self.sample,
            self.root,
            out.words,
            out.valid,
        )
        ordered_bits(out.words, out.words)

    def _lay_out(self, feed: GroupEvents, arg: Arg) -> None:
        base, width = self.base, self.sums.shape[1]
        self.sums, self.base = laid_out(self.sums, base, feed, arg)
        if self.base != base or self.sums.shape[1] != width:
            assert self.base is not None
            shift = 0 if base is None else (base - self.base) // 16
            self.squares = limbs.relaid(self.squares, shift, 2 * self.sums.shape[1])
        self.sums, self.squares = grown(self.sums, feed.groups), grown(self.squares, feed.groups)

    @property
    def nbytes(self) -> int:
        return int(self.sums.nbytes + self.squares.nbytes + self.odd.nbytes + self.n.nbytes)


def follow(call: AggCall, leaving: Leaving) -> SpreadRows:
    """The state that follows single rows."""
    return SpreadRows(sample=not call.fn.endswith("pop"), root=call.fn.startswith("stddev"))


def algebra(call: AggCall) -> DoubleCells:
    """The algebra of such a call."""
    return DoubleCells(
        "stddev" if call.fn.startswith("stddev") else "var", sample=not call.fn.endswith("pop")
    )
