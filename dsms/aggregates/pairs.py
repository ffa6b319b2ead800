"""COVAR_POP, COVAR_SAMP, CORR, REGR_SLOPE, REGR_INTERCEPT: from exact sums of y, x, y², x² and yx,
so nothing cancels and nothing drifts.

Input    any pattern.     Cost  O(1) an event, O(limbs²) an answer.     Space  eight numbers as long
         as a sum of FLOATs (`parts.doubles`) a group or cell, in one row of `parts.additive`.
Algebra  invertible and exact.  With C(a, b) = n Σab - Σa Σb in limbs: C(y, x) / n² or / n (n - 1)
         rounded once; C(y, x) / C(x, x), C(y, x) / √(C(y, y) C(x, x)) and
         (Σy Σx² - Σx Σyx) / C(x, x) from each of these numbers rounded once to 53 bits, whatever
         its exponent.
A NaN or an infinity in a row makes the answer NaN; once the row has left, nothing of it is left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.aggregates.parts import limbs
from dsms.aggregates.parts.additive import Additive, Layout, Numbers, carried, relaid
from dsms.aggregates.parts.base import Answers, Arg, ByGroup, GroupEvents, Leaving
from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.parts.coded import counting, floats
from dsms.aggregates.parts.doubles import BELOW
from dsms.aggregates.parts.limbs import M32, add, divide, magnitude, multiply, parts, subtract
from dsms.aggregates.parts.limbs import to_double as rounded_once
from dsms.aggregates.parts.words import float_words, ordered_bits
from dsms.sql.expr import AggCall
from dsms.state.columns import numpy_values
from dsms.state.lengthening import grown

NAMES = ("covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept")
POP, SAMP, CORR, SLOPE, INTERCEPT = range(5)
FIRST = Layout(0, odd=True, pairs=True).first  # the column of the first number
# where a number stands in a cell, in multiples of the limbs of a sum
Y, X, YY, XX, YX = 0, 1, 2, 4, 6
ROOM = 8  # rows of scratch


# ---------------------------------------------------------------- one pair more or less


@njit(cache=True, nogil=True)
def _add_product(words, g, pos, a, b, sign):
    """words[g] += sign * a * b * 2^pos for 0 <= a, b < 2^53."""
    a_high, a_low, b_high, b_low = a >> 27, a & 0x7FFFFFF, b >> 27, b & 0x7FFFFFF
    add(words, g, pos, a_low * b_low, sign)
    add(words, g, pos + 27, a_high * b_low + a_low * b_high, sign)
    add(words, g, pos + 54, a_high * b_high, sign)


@njit(cache=True, nogil=True)
def _count(words, g, size, base, y, x, sign):
    """A pair, as words of FLOATs, comes to cell g or leaves it."""
    words[g, 0] += sign
    my, ey, sy = parts(y)
    mx, ex, sx = parts(x)
    if my < 0 or mx < 0:
        words[g, 1] += sign
        return
    at, step = 32 * FIRST, 32 * size
    if my > 0:
        add(words, g, at + Y * step + ey - base, my, sign * sy)
        _add_product(words, g, at + YY * step + 2 * (ey - base), my, my, sign)
    if mx > 0:
        add(words, g, at + X * step + ex - base, mx, sign * sx)
        _add_product(words, g, at + XX * step + 2 * (ex - base), mx, mx, sign)
    if my > 0 and mx > 0:
        _add_product(words, g, at + YX * step + ey + ex - 2 * base, my, mx, sign * sy * sx)


# ---------------------------------------------------------------- answers


@njit(cache=True, nogil=True)
def _number(words, g, at, limbs_, out):
    """Magnitude of a number of a cell; True if negative."""
    start = FIRST + at
    out[:] = 0
    return magnitude(words[:, start : start + limbs_], g, out, 0)


@njit(cache=True, nogil=True)
def _minus(a, a_negative, b, b_negative):
    """a -= b, in magnitudes; True if what it comes to is negative."""
    n = len(a)
    if a_negative != b_negative:
        carry = a[0] * 0
        for j in range(n):
            v = a[j] + b[j] + carry
            a[j] = v & M32
            carry = v >> 32
        return a_negative
    j = n - 1
    while j > 0 and a[j] == b[j]:
        j -= 1
    if a[j] >= b[j]:
        subtract(a, b, n)
        return a_negative
    borrow = a[0] * 0
    for j in range(n):
        v = b[j] - a[j] - borrow
        a[j] = v & M32
        borrow = -(v >> 32)
    return not a_negative


@njit(cache=True, nogil=True)
def _product(a, a_limbs, b, b_limbs, out):
    out[:] = 0
    multiply(a, a_limbs, b, b_limbs, out)


@njit(cache=True, nogil=True)
def _centred(words, g, size, a, b, ab, room, out):
    """out = |n Σab - Σa Σb|, times 2^(2 base); True if negative."""
    n = words[g, 0]
    minus_a = _number(words, g, a * size, size, room[0])
    minus_b = _number(words, g, b * size, size, room[1])
    _product(room[0], size + 1, room[1], size + 1, room[2])
    minus = _number(words, g, ab * size, 2 * size, room[0])
    room[1, 0], room[1, 1] = n & M32, n >> 32
    _product(room[0], 2 * size + 1, room[1], 2, out)
    return _minus(out, minus, room[2], minus_a != minus_b)


@njit(cache=True, nogil=True)
def _digits(number):
    """(the double nearest to it without its exponent, the exponent: a multiple of 32)."""
    h = len(number) - 1
    while h > 0 and number[h] == 0:
        h -= 1
    return rounded_once(number, len(number), -32 * h, False), 32 * h


@njit(cache=True, nogil=True)
def _scaled(value, e):
    """value * 2^e, rounded once; infinite if too large."""
    _, k = math.frexp(value)
    if value == 0.0 or k + e < -1100:
        return 0.0
    if k + e > 1024:
        return math.inf
    return math.ldexp(value, int(e))


@njit(cache=True, nogil=True)
def _covariance(number, base, n, below, total):
    """number * 4^base / (n * below), rounded once."""
    total[:] = 0
    total[BELOW:] = number[: len(number) - BELOW]  # the upper ones are zero
    sticky = divide(total, len(total), n)
    sticky = divide(total, len(total), below) or sticky
    return rounded_once(total, len(total), 2 * base - 32 * BELOW, sticky)


@njit(cache=True, nogil=True)
def _crossing(words, g, size, room, out):
    """out = |Σy Σx² - Σx Σyx|, times 2^(3 base); True if negative."""
    minus = _number(words, g, Y * size, size, room[0])
    _number(words, g, XX * size, 2 * size, room[1])
    _product(room[0], size + 1, room[1], 2 * size + 1, out)
    minus_x = _number(words, g, X * size, size, room[0])
    minus_yx = _number(words, g, YX * size, 2 * size, room[1])
    _product(room[0], size + 1, room[1], 2 * size + 1, room[2])
    return _minus(out, minus, room[2], minus_x != minus_yx)


@njit(cache=True, nogil=True)
def _answer(words, g, size, base, what, room):
    """(value, whether there is one)."""
    n = words[g, 0]
    below = n - 1 if what == SAMP else n
    if below <= 0:
        return math.nan, False
    if words[g, 1] > 0:
        return math.nan, True
    if size == 0:
        return 0.0, what <= SAMP
    if what <= SAMP:
        minus = _centred(words, g, size, Y, X, YX, room, room[3])
        value = _covariance(room[3], base, n, below, room[4])
        return (-value if minus and value > 0.0 else value), True
    _centred(words, g, size, X, X, XX, room, room[4])
    under, e_under = _digits(room[4])
    if under == 0.0:
        return math.nan, False
    if what == INTERCEPT:
        minus = _crossing(words, g, size, room, room[3])
    else:
        minus = _centred(words, g, size, Y, X, YX, room, room[3])
    over, e_over = _digits(room[3])
    if what == CORR:
        _centred(words, g, size, Y, Y, YY, room, room[4])
        other, e_other = _digits(room[4])
        if other == 0.0:
            return math.nan, False
        value = min(
            1.0, _scaled(over / math.sqrt(under * other), e_over - (e_under + e_other) // 2)
        )
    else:
        value = _scaled(over / under, e_over - e_under + (base if what == INTERCEPT else 0))
    return (-value if minus and value > 0.0 else value), True


@njit(cache=True, nogil=True)
def _scratch(size):
    return np.zeros((ROOM - 3, 3 * size + 4 + BELOW), np.int64)


@njit(cache=True, nogil=True)
def _follow(
    code, sign, slot, emit, y, y_valid, x, x_valid, words, size, base, what, out, out_valid
):
    room = _scratch(size)
    answer = out.view(np.float64)
    for i in range(len(code)):
        g, s = code[i], slot[i]
        if (len(y_valid) == 0 or y_valid[s]) and (len(x_valid) == 0 or x_valid[s]):
            _count(words, g, size, base, y[s], x[s], sign[i])
        t = emit[i]
        if t >= 0:
            value, there = _answer(words, g, size, base, what, room)
            answer[t], out_valid[t] = value, there


@njit(cache=True, nogil=True)
def _lift(cell, y, y_valid, x, x_valid, words, size, base):
    for i in range(len(cell)):
        if (len(y_valid) == 0 or y_valid[i]) and (len(x_valid) == 0 or x_valid[i]):
            _count(words, cell[i], size, base, y[i], x[i], 1)


@njit(cache=True, nogil=True)
def _lower(words, size, base, what, out, valid):
    room = _scratch(size)
    for g in range(len(words)):
        out[g], valid[g] = _answer(words, g, size, base, what, room)


def _holding(
    layout: Layout, words: np.ndarray, valid: np.ndarray, sign: np.ndarray, slot: np.ndarray
) -> Layout:
    """The layout, with room for what arrives in one argument."""
    low, high = limbs.exponents(words, valid, sign, slot)
    if low > high:
        return layout
    base = int(low) >> 5 << 5
    return layout.joined(Layout((int(high) - base >> 5) + 3, base, True, pairs=True))


# ---------------------------------------------------------------- by group, and in cells


@dataclass(slots=True)
class PairRows(ByGroup):
    """One of them by group (`what`: its place among NAMES): row g of `words` is the cell of
    group g."""

    what: int
    layout: Layout = field(default_factory=lambda: Layout(0, odd=True, pairs=True))
    words: np.ndarray = field(default_factory=lambda: np.zeros((0, FIRST), np.int64))
    added: int = 0

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        layout = self.layout
        for a in args:
            layout = _holding(layout, a.words, a.valid, feed.sign, feed.slot)
        held = relaid(Numbers(self.words, self.layout, self.added), layout)
        self.added += 3 * len(feed.code)
        if self.added > limbs.CARRY_EVERY:
            held, self.added = carried(held), 3 * len(feed.code)
        self.words, self.layout = grown(held.words, feed.groups), layout
        y, x = args
        pair = (y.words, y.valid, x.words, x.valid)
        kept = (self.words, layout.limbs, layout.base)
        _follow(*feed.events, *pair, *kept, self.what, out.words, out.valid)
        ordered_bits(out.words, out.words)

    @property
    def nbytes(self) -> int:
        return int(self.words.nbytes)


class PairCells(Additive):
    """One of them in cells."""

    def __init__(self, what: int) -> None:
        super().__init__(Layout(0, odd=True, pairs=True))
        self.what = what

    def lift(self, rows: CellRows, cells: int) -> Numbers:
        if any(pa.types.is_null(column.type) for column in rows.args):
            return self.empty(cells)
        n, pair = len(rows.cell), list[np.ndarray]()
        for column in rows.args:
            words, valid = float_words(numpy_values(column)), np.array(counting(column))
            self.layout = _holding(self.layout, words, valid, np.ones(n, np.int8), np.arange(n))
            pair += [words, valid]
        layout = self.layout
        out = np.zeros((cells, layout.width), np.int64)
        _lift(rows.cell, *pair, out, layout.limbs, layout.base)
        return Numbers(out, layout, 3 * int(out[:, 0].max(initial=0)))

    def lower(self, state: Numbers) -> pa.Array:
        layout, n = state.layout, len(state.words)
        out, valid = np.zeros(n), np.zeros(n, np.bool_)
        _lower(state.words, layout.limbs, layout.base, self.what, out, valid)
        return floats(out, valid)


def follow(call: AggCall, leaving: Leaving) -> PairRows:
    """The state that follows single rows."""
    return PairRows(NAMES.index(call.fn))


def algebra(call: AggCall) -> PairCells:
    """The algebra of such a call."""
    return PairCells(NAMES.index(call.fn))
