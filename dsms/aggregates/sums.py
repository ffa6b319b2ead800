"""SUM and AVG: exact whatever the order of rows, invertible.

Cost     O(1) a row, O(limbs) an answer; a few words a group, 24 bytes a cell of INTs (FLOAT:
         `parts.doubles`).
INT, INTERVAL, DECIMAL are whole numbers of 2 limbs (wide DECIMAL: 4); FLOAT has as many as its
exponents ask for, with NaN and infinities counted apart.  The sum is rounded once, so it is what
`math.fsum` answers over the live rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.aggregates.parts import limbs
from dsms.aggregates.parts.additive import Additive, Layout, Numbers
from dsms.aggregates.parts.base import Answers, Arg, ByGroup, GroupEvents, Leaving
from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.parts.coded import counting, fixed, floats
from dsms.aggregates.parts.doubles import DoubleCells, laid_out, special
from dsms.aggregates.parts.limbs import M32, SPACE, divide, magnitude, mean, nearest, parts, settle
from dsms.aggregates.parts.words import NARROW, coding, decimal_array, ordered_bits
from dsms.errors import QueryError
from dsms.sql.expr import AggCall
from dsms.sql.types import Kind, Type
from dsms.state.columns import arrow_values
from dsms.state.lengthening import grown

TEN_38 = tuple((10**38 >> (32 * j)) & M32 for j in range(4))


@njit(cache=True, nogil=True)
def _sum_words(code, sign, slot, emit, words, valid, acc, n, out, out_high, out_valid):
    """Sums of 64-bit words in two limbs; the first touch whose answer left 64 bits where 64 were
    wanted, or -1."""
    over = -1
    for i in range(len(code)):
        g, s = code[i], slot[i]
        if len(valid) == 0 or valid[s]:
            w = words[s]
            low = acc[g, 0] + sign[i] * (w & M32)
            acc[g, 0] = low & M32
            acc[g, 1] += sign[i] * (w >> 32) + (low >> 32)
            n[g] += sign[i]
        t = emit[i]
        if t >= 0 and n[g] > 0:
            top = acc[g, 1]
            out[t] = (top << 32) | acc[g, 0]
            out_valid[t] = True
            if len(out_high):
                out_high[t] = top >> 32
            elif top >= 0x80000000 or top < -0x80000000:
                over = t if over < 0 else min(over, t)
    return over


@njit(cache=True, nogil=True)
def _sum_wide(code, sign, slot, emit, words, high, valid, acc, n, out, out_high, out_valid, most):
    """Sums of 128-bit numbers in four limbs; the first touch whose magnitude reaches `most`
    (limbs), or -1."""
    over = -1
    scratch = np.zeros(5, np.int64)
    for i in range(len(code)):
        g, s = code[i], slot[i]
        if len(valid) == 0 or valid[s]:
            low, top = words[s], high[s]
            acc[g, 0] += sign[i] * (low & M32)
            acc[g, 1] += sign[i] * ((low >> 32) & M32)
            acc[g, 2] += sign[i] * (top & M32)
            acc[g, 3] += sign[i] * (top >> 32)
            n[g] += sign[i]
        t = emit[i]
        if t >= 0 and n[g] > 0:
            magnitude(acc, g, scratch, 0)
            out[t] = (acc[g, 1] << 32) | acc[g, 0]
            out_high[t] = (acc[g, 3] << 32) | acc[g, 2]
            out_valid[t] = True
            j = 3
            while j > 0 and scratch[j] == most[j]:
                j -= 1
            if scratch[4] != 0 or scratch[j] >= most[j]:
                over = t if over < 0 else min(over, t)
    return over


@njit(cache=True, nogil=True)
def whole_mean(acc, g, n, scratch):
    """acc[g] / n to the nearest integer, ties to even."""
    scratch[:] = 0
    negative = magnitude(acc, g, scratch, 0)
    divide(scratch, 3, n)
    q = (scratch[1] << 32) | scratch[0]
    # what is left over, from its own low bits: it is below n < 2^47
    rest = ((-1 if negative else 1) * ((acc[g, 1] << 32) | acc[g, 0]) - q * n) & 0x7FFFFFFFFFFFFFFF
    if 2 * rest > n or (2 * rest == n and q & 1):
        q += 1
    return -q if negative else q


@njit(cache=True, nogil=True)
def _mean_words(code, sign, slot, emit, words, high, valid, acc, n, tens, whole, out, out_valid):
    """AVG of whole numbers: as a double, or (whole) as an integer."""
    scratch = np.zeros(acc.shape[1] + 1 + SPACE, np.int64)
    answer = out.view(np.float64)
    for i in range(len(code)):
        g, s = code[i], slot[i]
        if len(valid) == 0 or valid[s]:
            low = words[s]
            acc[g, 0] += sign[i] * (low & M32)
            if len(high):
                acc[g, 1] += sign[i] * ((low >> 32) & M32)
                acc[g, 2] += sign[i] * (high[s] & M32)
                acc[g, 3] += sign[i] * (high[s] >> 32)
            else:
                acc[g, 1] += sign[i] * (low >> 32)
            n[g] += sign[i]
        t = emit[i]
        if t >= 0 and n[g] > 0:
            out_valid[t] = True
            if whole:
                out[t] = whole_mean(acc, g, n[g], scratch)
            else:
                long = len(tens) > 0 or n[g] >= 0x7FFFFFFF
                answer[t] = (
                    mean(acc, g, 0, n[g], tens, scratch) if long else nearest(acc, g, 0, n[g])
                )


@njit(cache=True, nogil=True)
def _sum_doubles(code, sign, slot, emit, words, valid, acc, base, odd, n, divided, out, out_valid):
    """SUM, or AVG if `divided`, of doubles."""
    none = np.zeros(0, np.int64)
    answer = out.view(np.float64)
    for i in range(len(code)):
        g, s = code[i], slot[i]
        if len(valid) == 0 or valid[s]:
            m, e, minus = parts(words[s])
            if m < 0:
                odd[g, e] += sign[i]
            elif m > 0:  # limbs.add, spelled out
                j, r = (e - base) >> 5, (e - base) & 31
                low, high = (m & M32) << r, (m >> 32) << r
                minus *= sign[i]
                acc[g, j] += minus * (low & M32)
                acc[g, j + 1] += minus * ((low >> 32) + (high & M32))
                acc[g, j + 2] += minus * (high >> 32)
            n[g] += sign[i]
        t = emit[i]
        if t >= 0 and n[g] > 0:
            out_valid[t] = True
            value = special(odd, g)
            if value == 0:
                if divided and n[g] >= 0x7FFFFFFF:
                    value = mean(
                        acc, g, base, n[g], none, np.zeros(acc.shape[1] + 1 + SPACE, np.int64)
                    )
                else:
                    value = nearest(acc, g, base, n[g] if divided else 1)
            answer[t] = value


def powers_of_ten(scale: int) -> np.ndarray:
    """Factors below 2^31 whose product is 10^scale."""
    return np.array([10**9] * (scale // 9) + ([10 ** (scale % 9)] if scale % 9 else []), np.int64)


@dataclass(slots=True)
class WholeRows(ByGroup):
    """SUM (or AVG if `divided`) of INT, INTERVAL, DECIMAL."""

    arg: Type
    result: Type
    divided: bool
    wide: bool
    acc: np.ndarray = field(init=False)
    n: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    added: int = 0
    over: int = -1  # the first touch of the last run whose sum did not fit, or -1

    def __post_init__(self) -> None:
        self.acc = np.zeros((0, 4 if self.wide else 2), np.int64)

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        self.acc, self.n = grown(self.acc, feed.groups), grown(self.n, feed.groups)
        self.added += len(feed.code)
        if self.added > limbs.CARRY_EVERY:
            limbs.settle_all(self.acc)
            self.added = len(feed.code)
        (a,) = args
        events = (feed.code, feed.sign, feed.slot, feed.emit, a.words)
        if self.divided:
            whole = self.result.kind is not Kind.FLOAT
            tens = powers_of_ten(self.arg.scale)
            _mean_words(
                *events, a.high, a.valid, self.acc, self.n, tens, whole, out.words, out.valid
            )
            if not whole:
                ordered_bits(out.words, out.words)
        elif self.wide:
            most = np.array(TEN_38, np.int64)
            self.over = _sum_wide(
                *events, a.high, a.valid, self.acc, self.n, out.words, out.high, out.valid, most
            )
        else:
            self.over = _sum_words(
                *events, a.valid, self.acc, self.n, out.words, out.high, out.valid
            )

    @property
    def nbytes(self) -> int:
        return int(self.acc.nbytes + self.n.nbytes)


def overflow(type_: Type) -> QueryError:
    """The error that stops a query whose SUM does not fit."""
    hint = (
        "SUM(CAST(x AS FLOAT)) and AVG(x) do not overflow"
        if type_.kind is Kind.DECIMAL
        else ("SUM(CAST(x AS DECIMAL(38,0))) has room, AVG(x) never overflows")
    )
    return QueryError("DS706", f"a SUM left the range of {type_}", hint=hint)


@dataclass(slots=True)
class DoubleRows(ByGroup):
    """SUM (or AVG if `divided`) of FLOAT."""

    divided: bool
    acc: np.ndarray = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    base: int | None = None  # unknown until a finite value other than zero has come
    odd: np.ndarray = field(default_factory=lambda: np.zeros((0, 3), np.int64))  # NaN, +inf, -inf
    n: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    added: int = 0

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        (a,) = args
        self.n, self.odd = grown(self.n, feed.groups), grown(self.odd, feed.groups)
        self.acc, self.base = laid_out(self.acc, self.base, feed, a)
        self.acc = grown(self.acc, feed.groups)
        self.added += len(feed.code)
        if self.added > limbs.CARRY_EVERY:
            limbs.settle_all(self.acc)
            self.added = len(feed.code)
        _sum_doubles(
            *feed.events,
            a.words,
            a.valid,
            self.acc,
            self.base or 0,
            self.odd,
            self.n,
            self.divided,
            out.words,
            out.valid,
        )
        ordered_bits(out.words, out.words)

    @property
    def nbytes(self) -> int:
        return int(self.acc.nbytes + self.odd.nbytes + self.n.nbytes)


# ---------------------------------------------------------------- cells


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


class WholeCells(Additive):
    """SUM (or AVG if `divided`) of INT, INTERVAL, DECIMAL."""

    def __init__(self, arg: Type, result: Type, divided: bool) -> None:
        self.coding = coding(arg, wide=True)
        super().__init__(Layout(4 if self.coding.wide else 2))
        self.arg, self.result, self.divided = arg, result, divided

    def lift(self, rows: CellRows, cells: int) -> Numbers:
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
        out, high, valid = (
            np.zeros(n, np.int64),
            np.zeros(n if long else 0, np.int64),
            np.zeros(n, np.bool_),
        )
        if _lower_words(
            state.words, 2 if long else 1, np.array(TEN_38, np.int64), out, high, valid
        ):
            raise overflow(self.result)
        return (
            decimal_array(out, high, valid, self.result.arrow) if long else arrow_values(out, valid)
        )


def follow(call: AggCall, leaving: Leaving) -> DoubleRows | WholeRows:
    """The state that follows single rows."""
    arg, divided = call.args[0].type, call.fn == "avg"
    if arg.kind is Kind.FLOAT:
        return DoubleRows(divided)
    return WholeRows(arg, call.type, divided, arg.kind is Kind.DECIMAL and arg.precision > NARROW)


def algebra(call: AggCall) -> DoubleCells | WholeCells:
    """The algebra of such a call."""
    arg, divided = call.args[0].type, call.fn == "avg"
    if arg.kind is Kind.FLOAT:
        return DoubleCells("avg" if divided else "sum")
    return WholeCells(arg, call.type, divided)
