"""Sums of FLOATs and of their squares, in limbs: by group for operators, which follow rows, and in
cells for synopses.

Cost     O(1) a row, O(limbs) an answer (VAR: limbs²).     Space  56 to 64 bytes a cell of FLOATs of
         a few orders of magnitude; 4 bytes more a factor of 65,536 between the smallest and the
         largest; three times that with squares.
Error    none before the answer, which is rounded once: both sides answer the same, bit for bit.

Limbs are laid out by the same rule on both sides.  But operators keep counts and limbs in arrays of
their own, and the kernels of either side spell out what they share: columns of one matrix, or a
call that passes arrays, make an event 10 to 60 % dearer.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.aggregates.parts import limbs
from dsms.aggregates.parts.additive import Additive, Layout, Numbers
from dsms.aggregates.parts.base import Arg, GroupEvents
from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.parts.coded import counting, fixed, floats
from dsms.aggregates.parts.limbs import (
    M32,
    SPACE,
    add,
    divide,
    exponents,
    magnitude,
    mean,
    multiply,
    nearest,
    subtract,
    to_double,
)
from dsms.state.columns import numpy_values

BELOW = 4  # zero limbs below the dividend of a variance: 128 bits after the point


@njit(cache=True, nogil=True)
def special(odd, g):
    """What NaN and infinities (counted in odd[g]) make of a sum; 0 if there are none."""
    if odd[g, 0] > 0 or (odd[g, 1] > 0 and odd[g, 2] > 0):
        return math.nan
    return math.inf if odd[g, 1] > 0 else (-math.inf if odd[g, 2] > 0 else 0.0)


def laid_out(
    acc: np.ndarray, base: int | None, feed: GroupEvents, arg: Arg
) -> tuple[np.ndarray, int | None]:
    """(acc, base) with room for the exponents of what arrives."""
    low, high = exponents(arg.words, arg.valid, feed.sign, feed.slot)
    needed = _needed(low, high)
    if base is None or not needed.limbs:
        return (
            (np.zeros((len(acc), needed.limbs), np.int64), needed.base)
            if needed.limbs
            else (acc, base)
        )
    have = Layout(acc.shape[1], base)
    layout = have.joined(needed)
    if layout == have:
        return acc, base
    return limbs.relaid(acc, (base - layout.base) // 32, layout.limbs), layout.base


def _needed(low: int, high: int, odd: bool = False, squares: bool = False) -> Layout:
    """What holds doubles whose last bits count 2^low to 2^high (none if low > high)."""
    if low > high:
        return Layout(0, 0, odd, squares)
    base = low >> 5 << 5
    return Layout((high - base >> 5) + 3, base, odd, squares)


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
    multiply(q, width2, times, 2, total[BELOW:])
    subtract(total[BELOW:], square, len(square))
    size = len(total)
    sticky = divide(total, size, n)
    sticky = divide(total, size, below) or sticky
    return to_double(total, size, 2 * base - 32 * BELOW, sticky)


# ---------------------------------------------------------------- cells


@njit(cache=True, nogil=True)
def _exponents(bits, valid):
    """Of the doubles that count: (least, greatest exponent field of finite ones other than zero;
    any that is not finite); the fields are (0x7FF, 0) if there are none."""
    low, high, odd = 0x7FF, 0, False
    for i in range(len(bits)):
        if len(valid) and not valid[i]:
            continue
        field = (bits[i] >> 52) & 0x7FF
        if field == 0x7FF:
            odd = True
            continue
        if bits[i] & 0x7FFFFFFFFFFFFFFF:
            low, high = min(low, field), max(high, field)
    return low, high, odd


@njit(cache=True, nogil=True)
def _add_doubles(cell, bits, valid, first, base, out):
    for i in range(len(cell)):
        if len(valid) and not valid[i]:
            continue
        g, b = cell[i], bits[i]
        out[g, 0] += 1
        field, m = (b >> 52) & 0x7FF, b & 0xFFFFFFFFFFFFF
        if field == 0x7FF:
            out[g, 1 if m else (2 if b > 0 else 3)] += 1
            continue
        if field:
            m |= 0x10000000000000
        elif m == 0:
            continue
        pos = max(field, 1) - 1075 - base
        j, r = first + (pos >> 5), pos & 31
        low, high = (m & M32) << r, (m >> 32) << r
        if b < 0:
            out[g, j] -= low & M32
            out[g, j + 1] -= (low >> 32) + (high & M32)
            out[g, j + 2] -= high >> 32
        else:
            out[g, j] += low & M32
            out[g, j + 1] += (low >> 32) + (high & M32)
            out[g, j + 2] += high >> 32


@njit(cache=True, nogil=True)
def _add_squares(cell, bits, valid, first, base, words):
    """Squares of the finite doubles; their limbs begin in column `first`."""
    out = words[:, first:]
    for i in range(len(cell)):
        if len(valid) and not valid[i]:
            continue
        field, m = (bits[i] >> 52) & 0x7FF, bits[i] & 0xFFFFFFFFFFFFF
        if field == 0x7FF:
            continue
        if field:
            m |= 0x10000000000000
        if m:
            add_square(out, cell[i], max(field, 1) - 1075 - base, m, 1)


@njit(cache=True, nogil=True)
def _lower_doubles(words, first, base, divided, out, valid):
    none = np.zeros(0, np.int64)
    acc, odd = words[:, first:], words[:, 1:first]
    for g in range(len(words)):
        n = words[g, 0]
        valid[g] = n > 0
        if n <= 0:
            continue
        value = special(odd, g) if first > 1 else 0.0
        if value == 0 and acc.shape[1]:
            if divided and n >= 0x7FFFFFFF:
                value = mean(acc, g, base, n, none, np.zeros(acc.shape[1] + 1 + SPACE, np.int64))
            else:
                value = nearest(acc, g, base, n if divided else 1)
        out[g] = value


@njit(cache=True, nogil=True)
def _lower_spread(words, first, base, sample, root, out, valid):
    limbs = (words.shape[1] - first) // 3
    sums, squares = words[:, first : first + limbs], words[:, first + limbs :]
    size = 2 * limbs + 3
    s, square = np.zeros(limbs + 1, np.int64), np.zeros(size, np.int64)
    q, times = np.zeros(2 * limbs + 1, np.int64), np.zeros(2, np.int64)
    total = np.zeros(BELOW + size, np.int64)
    for g in range(len(words)):
        n = words[g, 0]
        below = n - 1 if sample else n
        valid[g] = below > 0
        if below <= 0:
            continue
        odd = False
        for k in range(1, first):
            odd = odd or words[g, k] > 0
        value = 0.0
        if odd:
            value = math.nan
        elif limbs:
            value = variance(sums, squares, g, base, n, below, s, square, q, times, total)
        out[g] = math.sqrt(value) if root else value


class DoubleCells(Additive):
    """SUM, AVG, VAR, VAR_POP, STDDEV, STDDEV_POP of FLOAT (`what`: "sum", "avg", "var" or
    "stddev")."""

    def __init__(self, what: Literal["sum", "avg", "var", "stddev"], sample: bool = False) -> None:
        super().__init__(Layout(0, squares=what in ("var", "stddev")))
        self.what, self.sample = what, sample

    def lift(self, rows: CellRows, cells: int) -> Numbers:
        (column,) = rows.args
        if pa.types.is_null(column.type):
            return self.empty(cells)
        bits, valid = fixed(numpy_values(column).view(np.int64)), counting(column)
        low, high, odd = _exponents(bits, valid)
        needed = _needed(max(low, 1) - 1075, max(high, 1) - 1075, bool(odd), self.layout.squares)
        self.layout = layout = self.layout.joined(needed)
        out = np.zeros((cells, layout.width), np.int64)
        _add_doubles(rows.cell, bits, valid, layout.first, layout.base, out)
        if layout.squares and layout.limbs:
            _add_squares(rows.cell, bits, valid, layout.first + layout.limbs, layout.base, out)
        return Numbers(out, layout, 3 * int(out[:, 0].max(initial=0)))

    def lower(self, state: Numbers) -> pa.Array:
        layout, n = state.layout, len(state.words)
        out, valid = np.zeros(n), np.zeros(n, np.bool_)
        if self.layout.squares:
            root = self.what == "stddev"
            _lower_spread(state.words, layout.first, layout.base, self.sample, root, out, valid)
        else:
            _lower_doubles(state.words, layout.first, layout.base, self.what == "avg", out, valid)
        return floats(out, valid)
