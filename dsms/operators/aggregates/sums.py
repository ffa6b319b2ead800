"""SUM and AVG: exact whatever the order of rows, invertible.

Input    any pattern.     Cost  O(1) an event, O(limbs) an answer; a few words a group.
INT, INTERVAL, DECIMAL are whole numbers of 2 limbs (wide DECIMAL: 4); FLOAT has as many as its exponents ask for,
with NaN and infinities counted apart.  The sum is rounded once, so it is what `math.fsum` answers over the live rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.errors import QueryError
from dsms.operators.aggregates import limbs
from dsms.operators.aggregates.base import Answers, Arg, ByGroup, Feed, grown
from dsms.operators.aggregates.limbs import M32, divide, exponents, magnitude, nearest, parts, to_double
from dsms.operators.aggregates.words import ordered_bits
from dsms.sql.types import Kind, Type

SPACE = 3  # zero limbs below a dividend: 96 bits after the point
TEN_38 = tuple((10**38 >> (32 * j)) & M32 for j in range(4))


@njit(cache=True, nogil=True)
def _sum_words(code, sign, slot, emit, words, valid, acc, n, out, out_high, out_valid):
    """Sums of 64-bit words in two limbs; the first touch whose answer left 64 bits where 64 were wanted, or -1."""
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
    """Sums of 128-bit numbers in four limbs; the first touch whose magnitude reaches `most` (limbs), or -1."""
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
def mean(acc, g, base, n, tens, scratch):
    """The double nearest to acc[g] * 2^base / (n * product of tens)."""
    scratch[:] = 0
    size = len(scratch)
    negative = magnitude(acc, g, scratch, SPACE)
    sticky = False
    for ten in tens:
        sticky = divide(scratch, size, ten) or sticky
    sticky = divide(scratch, size, n) or sticky
    value = to_double(scratch, size, base - 32 * SPACE, sticky)
    return -value if negative else value


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
                answer[t] = mean(acc, g, 0, n[g], tens, scratch) if long else nearest(acc, g, 0, n[g])


@njit(cache=True, nogil=True)
def special(odd, g):
    """What NaN and infinities (counted in odd[g]) make of a sum; 0 if there are none."""
    if odd[g, 0] > 0 or (odd[g, 1] > 0 and odd[g, 2] > 0):
        return math.nan
    return math.inf if odd[g, 1] > 0 else (-math.inf if odd[g, 2] > 0 else 0.0)


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
                    value = mean(acc, g, base, n[g], none, np.zeros(acc.shape[1] + 1 + SPACE, np.int64))
                else:
                    value = nearest(acc, g, base, n[g] if divided else 1)
            answer[t] = value


def powers_of_ten(scale: int) -> np.ndarray:
    """Factors below 2^31 whose product is 10^scale."""
    return np.array([10**9] * (scale // 9) + ([10 ** (scale % 9)] if scale % 9 else []), np.int64)


@dataclass(slots=True)
class Whole(ByGroup):
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

    def run(self, feed: Feed, args: tuple[Arg, ...], out: Answers) -> None:
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
            _mean_words(*events, a.high, a.valid, self.acc, self.n, tens, whole, out.words, out.valid)
            if not whole:
                ordered_bits(out.words, out.words)
        elif self.wide:
            most = np.array(TEN_38, np.int64)
            self.over = _sum_wide(*events, a.high, a.valid, self.acc, self.n, out.words, out.high, out.valid, most)
        else:
            self.over = _sum_words(*events, a.valid, self.acc, self.n, out.words, out.high, out.valid)

    @property
    def nbytes(self) -> int:
        return int(self.acc.nbytes + self.n.nbytes)


def overflow(type_: Type) -> QueryError:
    """The error that stops a query whose SUM does not fit."""
    hint = "SUM(CAST(x AS FLOAT)) and AVG(x) do not overflow" if type_.kind is Kind.DECIMAL else (
        "SUM(CAST(x AS DECIMAL(38,0))) has room, AVG(x) never overflows")  # fmt: skip
    return QueryError("DS706", f"a SUM left the range of {type_}", hint=hint)


@dataclass(slots=True)
class Doubles(ByGroup):
    """SUM (or AVG if `divided`) of FLOAT."""

    divided: bool
    acc: np.ndarray = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    base: int | None = None  # unknown until a finite value other than zero has come
    odd: np.ndarray = field(default_factory=lambda: np.zeros((0, 3), np.int64))  # NaN, +inf, -inf
    n: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    added: int = 0

    def run(self, feed: Feed, args: tuple[Arg, ...], out: Answers) -> None:
        (a,) = args
        self.n, self.odd = grown(self.n, feed.groups), grown(self.odd, feed.groups)
        self.acc, self.base = laid_out(self.acc, self.base, feed, a)
        self.acc = grown(self.acc, feed.groups)
        self.added += len(feed.code)
        if self.added > limbs.CARRY_EVERY:
            limbs.settle_all(self.acc)
            self.added = len(feed.code)
        _sum_doubles(feed.code, feed.sign, feed.slot, feed.emit, a.words, a.valid, self.acc, self.base or 0, self.odd,
                     self.n, self.divided, out.words, out.valid)  # fmt: skip
        ordered_bits(out.words, out.words)

    @property
    def nbytes(self) -> int:
        return int(self.acc.nbytes + self.odd.nbytes + self.n.nbytes)


def laid_out(acc: np.ndarray, base: int | None, feed: Feed, arg: Arg) -> tuple[np.ndarray, int | None]:
    """(acc, base) with room for the exponents of what arrives."""
    low, high = exponents(arg.words, arg.valid, feed.sign, feed.slot)
    if low > high:
        return acc, base
    if base is None:
        base = low >> 5 << 5
        return np.zeros((len(acc), (high - base >> 5) + 3), np.int64), base
    below = max(0, base - low + 31 >> 5)
    above = (high - base >> 5) + 3
    if below == 0 and above <= acc.shape[1]:
        return acc, base
    return limbs.relaid(acc, below, below + max(acc.shape[1], above)), base - 32 * below
