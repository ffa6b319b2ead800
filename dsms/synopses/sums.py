"""COUNT, SUM, AVG, VAR, STDDEV, BOOL_AND, BOOL_OR as algebras of exact numbers (`additive`).

Cost     O(1) a row, O(limbs) a cell and answer.     Space  8 bytes a cell (COUNT), 24 (SUM of INT), 56 to 64 (SUM of
         FLOATs of a few orders of magnitude; 4 bytes more a factor of 65,536 between the smallest and the largest).
Error    none before the answer, which is rounded once: what the continuous engine answers, bit for bit.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.operators.aggregates.limbs import M32, magnitude, nearest, settle
from dsms.operators.aggregates.moments import SPACE as BELOW
from dsms.operators.aggregates.moments import add_square, variance
from dsms.operators.aggregates.sums import SPACE, TEN_38, mean, overflow, powers_of_ten, special, whole_mean
from dsms.operators.aggregates.words import coding, decimal_array
from dsms.sql.types import Kind, Type
from dsms.state.columns import arrow_values, numpy_valid, numpy_values
from dsms.synopses.additive import Additive, Layout, Numbers
from dsms.synopses.cells import Rows
from dsms.synopses.coded import counting, fixed, floats

# ---------------------------------------------------------------- lift


@njit(cache=True, nogil=True)
def _exponents(bits, valid):
    """Of the doubles that count: (least, greatest exponent field of finite ones other than zero; any that is not
    finite); the fields are (0x7FF, 0) if there are none."""
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
def _add_words(cell, words, high, valid, out):
    """Whole numbers of one word, or two."""
    for i in range(len(cell)):
        if len(valid) and not valid[i]:
            continue
        g, w = cell[i], words[i]
        out[g, 0] += 1
        out[g, 1] += w & M32
        if len(high):
            out[g, 2] += (w >> 32) & M32
            out[g, 3] += high[i] & M32
            out[g, 4] += high[i] >> 32
        else:
            out[g, 2] += w >> 32


@njit(cache=True, nogil=True)
def _add_bools(cell, values, valid, out):
    for i in range(len(cell)):
        if len(valid) == 0 or valid[i]:
            out[cell[i], 0] += 1
            out[cell[i], 1] += values[i]


# ---------------------------------------------------------------- lower


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


@njit(cache=True, nogil=True)
def _lower_words(words, wanted, most, out, high, valid):
    """Sums of two limbs (`high` empty: 64 bits are wanted) or four; whether one does not fit."""
    acc = words[:, 1:]
    scratch = np.zeros(acc.shape[1] + 1, np.int64)
    over = False
    for g in range(len(words)):
        valid[g] = words[g, 0] > 0
        if words[g, 0] <= 0:
            continue
        if acc.shape[1] == 2:
            settle(acc, g)
            top = acc[g, 1]
            out[g] = (top << 32) | acc[g, 0]
            if wanted == 1:
                over = over or top >= 0x80000000 or top < -0x80000000
            else:
                high[g] = top >> 32
            continue
        magnitude(acc, g, scratch, 0)
        out[g] = (acc[g, 1] << 32) | acc[g, 0]
        high[g] = (acc[g, 3] << 32) | acc[g, 2]
        j = 3
        while j > 0 and scratch[j] == most[j]:
            j -= 1
        over = over or scratch[4] != 0 or scratch[j] >= most[j]
    return over


@njit(cache=True, nogil=True)
def _lower_means(words, tens, out, valid):
    acc = words[:, 1:]
    scratch = np.zeros(acc.shape[1] + 1 + SPACE, np.int64)
    for g in range(len(words)):
        n = words[g, 0]
        valid[g] = n > 0
        if n > 0:
            long = len(tens) > 0 or n >= 0x7FFFFFFF
            out[g] = mean(acc, g, 0, n, tens, scratch) if long else nearest(acc, g, 0, n)


@njit(cache=True, nogil=True)
def _lower_whole_means(words, out, valid):
    acc = words[:, 1:]
    scratch = np.zeros(acc.shape[1] + 1 + SPACE, np.int64)
    for g in range(len(words)):
        valid[g] = words[g, 0] > 0
        if valid[g]:
            settle(acc, g)
            out[g] = whole_mean(acc, g, words[g, 0], scratch)


# ---------------------------------------------------------------- the algebras


class Count(Additive):
    """COUNT(*), COUNT(x)."""

    def __init__(self) -> None:
        super().__init__(Layout(0))

    def lift(self, rows: Rows, cells: int) -> Numbers:
        valid = numpy_valid(rows.args[0]) if rows.args else None
        cell = rows.cell if valid is None else rows.cell[valid]
        return Numbers(np.bincount(cell, minlength=cells).astype(np.int64, copy=False)[:, None], self.layout, 1)

    def lower(self, state: Numbers) -> pa.Array:
        return pa.array(state.words[:, 0])


class Bools(Additive):
    """BOOL_AND, or BOOL_OR if `any_`."""

    def __init__(self, any_: bool) -> None:
        super().__init__(Layout(1))
        self.any = any_

    def lift(self, rows: Rows, cells: int) -> Numbers:
        out = np.zeros((cells, 2), np.int64)
        (column,) = rows.args
        if not pa.types.is_null(column.type):
            _add_bools(rows.cell, fixed(numpy_values(column)), counting(column), out)
        return Numbers(out, self.layout, 1)

    def lower(self, state: Numbers) -> pa.Array:
        n, true = state.words[:, 0], state.words[:, 1]
        return arrow_values(true > 0 if self.any else true == n, n > 0)


class Doubles(Additive):
    """SUM, AVG, VAR, VAR_POP, STDDEV, STDDEV_POP of FLOAT (`what`: "sum", "avg", "var" or "stddev")."""

    def __init__(self, what: Literal["sum", "avg", "var", "stddev"], sample: bool = False) -> None:
        super().__init__(Layout(0, squares=what in ("var", "stddev")))
        self.what, self.sample = what, sample

    def lift(self, rows: Rows, cells: int) -> Numbers:
        (column,) = rows.args
        if pa.types.is_null(column.type):
            return self.empty(cells)
        bits, valid = fixed(numpy_values(column).view(np.int64)), counting(column)
        low, high, odd = _exponents(bits, valid)
        needed = Layout(0, 0, bool(odd), self.layout.squares)
        if low <= high:
            base = max(low, 1) - 1075 >> 5 << 5
            needed = Layout((max(high, 1) - 1075 - base >> 5) + 3, base, bool(odd), self.layout.squares)
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


class Whole(Additive):
    """SUM (or AVG if `divided`) of INT, INTERVAL, DECIMAL."""

    def __init__(self, arg: Type, result: Type, divided: bool) -> None:
        self.coding = coding(arg, wide=True)
        super().__init__(Layout(4 if self.coding.wide else 2))
        self.arg, self.result, self.divided = arg, result, divided

    def lift(self, rows: Rows, cells: int) -> Numbers:
        (column,) = rows.args
        words, high = self.coding.encode(column)
        out = np.zeros((cells, self.layout.width), np.int64)
        _add_words(rows.cell, fixed(words), fixed(high), counting(column), out)
        return Numbers(out, self.layout, int(out[:, 0].max(initial=0)))

    def lower(self, state: Numbers) -> pa.Array:
        return self._means(state) if self.divided else self._sums(state)

    def _means(self, state: Numbers) -> pa.Array:
        n = len(state.words)
        valid = np.zeros(n, np.bool_)
        if self.result.kind is Kind.FLOAT:
            out = np.zeros(n)
            _lower_means(state.words, powers_of_ten(self.arg.scale), out, valid)
            return floats(out, valid)
        whole = np.zeros(n, np.int64)
        _lower_whole_means(state.words, whole, valid)
        return arrow_values(whole, valid)

    def _sums(self, state: Numbers) -> pa.Array:
        n, long = len(state.words), self.result.kind is Kind.DECIMAL
        out, high, valid = np.zeros(n, np.int64), np.zeros(n if long else 0, np.int64), np.zeros(n, np.bool_)
        if _lower_words(state.words, 2 if long else 1, np.array(TEN_38, np.int64), out, high, valid):
            raise overflow(self.result)
        return decimal_array(out, high, valid, self.result.arrow) if long else arrow_values(out, valid)
