"""VAR and STDDEV: from exact sums of x and x², so nothing cancels and nothing drifts.

Input    any pattern.     Cost  O(1) an event, O(limbs²) an answer; a few dozen words a group.
Algebra  invertible and exact: n * sum(x²) - sum(x)² is a whole multiple of a power of two, divided by n (n - 1)
         (sample) or n² (population) in limbs and rounded once; STDDEV is the root of that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.operators.aggregates import limbs
from dsms.operators.aggregates.base import Answers, Arg, ByGroup, Feed, grown
from dsms.operators.aggregates.limbs import M32, add, divide, magnitude, multiply, parts, subtract, to_double
from dsms.operators.aggregates.sums import laid_out
from dsms.operators.aggregates.words import ordered_bits

SPACE = 4  # zero limbs below the dividend: 128 bits after the point


@njit(cache=True, nogil=True)
def add_square(acc, g, pos, m, sign):
    """acc[g] += sign * m² * 2^(2 pos) for 0 <= m < 2^53."""
    high, low = m >> 27, m & 0x7FFFFFF
    add(acc, g, 2 * pos, low * low, sign)
    add(acc, g, 2 * pos + 27, 2 * high * low, sign)
    add(acc, g, 2 * pos + 54, high * high, sign)


@njit(cache=True, nogil=True)
def variance(sums, squares, g, base, n, below, s, square, q, times, total):
    """The double nearest to (n * squares - sums²) * 4^base / (n * below)."""
    width, width2 = sums.shape[1] + 1, squares.shape[1] + 1
    magnitude(sums, g, s, 0)
    multiply(s, width, s, width, square)
    magnitude(squares, g, q, 0)
    times[0], times[1] = n & M32, n >> 32
    total[:] = 0
    multiply(q, width2, times, 2, total[SPACE:])
    subtract(total[SPACE:], square, len(square))
    size = len(total)
    sticky = divide(total, size, n)
    sticky = divide(total, size, below) or sticky
    return to_double(total, size, 2 * base - 32 * SPACE, sticky)


@njit(cache=True, nogil=True)
def _spread(code, sign, slot, emit, words, valid, sums, squares, base, odd, n, sample, root, out, out_valid):
    width, width2 = sums.shape[1] + 1, squares.shape[1] + 1
    size = max(2 * width, width2 + 2)
    s, square = np.zeros(width, np.int64), np.zeros(size, np.int64)
    q, times = np.zeros(width2, np.int64), np.zeros(2, np.int64)
    total = np.zeros(SPACE + size, np.int64)
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
class Spread(ByGroup):
    """VAR, VAR_POP, STDDEV, STDDEV_POP of FLOAT."""

    sample: bool
    root: bool
    sums: np.ndarray = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    squares: np.ndarray = field(default_factory=lambda: np.zeros((0, 5), np.int64))
    base: int | None = None
    odd: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # values that are not finite
    n: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    added: int = 0

    def run(self, feed: Feed, args: tuple[Arg, ...], out: Answers) -> None:
        (a,) = args
        self._lay_out(feed, a)
        self.n, self.odd = grown(self.n, feed.groups), grown(self.odd, feed.groups)
        self.added += 3 * len(feed.code)
        if self.added > limbs.CARRY_EVERY:
            limbs.settle_all(self.sums)
            limbs.settle_all(self.squares)
            self.added = 3 * len(feed.code)
        _spread(feed.code, feed.sign, feed.slot, feed.emit, a.words, a.valid, self.sums, self.squares, self.base or 0,
                self.odd, self.n, self.sample, self.root, out.words, out.valid)  # fmt: skip
        ordered_bits(out.words, out.words)

    def _lay_out(self, feed: Feed, arg: Arg) -> None:
        base, width = self.base, self.sums.shape[1]
        self.sums, self.base = laid_out(self.sums, base, feed, arg)
        if self.base != base or self.sums.shape[1] != width:
            assert self.base is not None
            shift = 0 if base is None else (base - self.base) // 16
            room = (2 * 32 * (self.sums.shape[1] - 3) + 62 + 54 >> 5) + 3
            self.squares = limbs.relaid(self.squares, shift, max(room, self.squares.shape[1] + shift))
        self.sums, self.squares = grown(self.sums, feed.groups), grown(self.squares, feed.groups)

    @property
    def nbytes(self) -> int:
        return int(self.sums.nbytes + self.squares.nbytes + self.odd.nbytes + self.n.nbytes)
