"""The value at a share: its place among n sorted values, what lies between two of them, and the
answers over cells that are unions of sorted lists, found by selection: nothing is merged.

A share is the decimal fraction as written, p / q: ranks and weights are whole numbers, so 0.1 of 30
values is 3.
Cost     for p lists of q entries each O(p log q log(p q)) an answer.     Error  none.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.aggregates.parts.coded import Words, floats
from dsms.aggregates.parts.limbs import SPACE, add, divide, magnitude, parts, to_double
from dsms.aggregates.parts.lists import following, kth
from dsms.sql.expr import AggCall
from dsms.sql.types import Kind
from dsms.state.columns import arrow_values

DIGITS = 18  # of a share; further ones are rounded away
WIDEST = 80  # limbs that hold any weighted sum of two doubles
# no interpolation; exact and rounded to a double; floored to a whole number
STEP, LINE, FLOOR = range(3)


@njit(cache=True, nogil=True)
def scaled(m, p, q):
    """(m * p) // q and the rest, for 0 <= m < 2^64 (as its bits), 0 <= p <= q < 2^60; bit by bit if
    m * p is long."""
    if 0 <= m < 0x7FFFFFFF and p < 0x7FFFFFFF:
        return (m * p) // q, (m * p) % q
    whole, rest = np.int64(0), np.int64(0)
    for bit in range(63, -1, -1):
        whole, rest = whole << 1, rest << 1
        if rest >= q:
            rest -= q
            whole |= 1
        if (m >> bit) & 1:
            rest += p
            if rest >= q:
                rest -= q
                whole += 1
    return whole, rest


@njit(cache=True, nogil=True)
def _weigh(acc, pos, m, weight, sign):
    """acc[0] += sign * m * weight * 2^pos for m < 2^53, weight < 2^60."""
    m1, m0, w1, w0 = m >> 27, m & 0x7FFFFFF, weight >> 30, weight & 0x3FFFFFFF
    add(acc, 0, pos, m0 * w0, sign)
    add(acc, 0, pos + 27, m1 * w0, sign)
    add(acc, 0, pos + 30, m0 * w1, sign)
    add(acc, 0, pos + 57, m1 * w1, sign)


@njit(cache=True, nogil=True)
def between(a, b, rest, q, twos, fives, acc, scratch):
    """The double nearest to a + (b - a) * rest / q, for words of doubles a < b and q = 2^twos *
    fives."""
    ma, ea, sa = parts(a)
    mb, eb, sb = parts(b)
    if ma < 0 or mb < 0:  # from -inf nothing leads anywhere, to +inf everything does
        return math.nan if (ma < 0 and ea != 1) or (mb < 0 and eb == 0) else math.inf
    base = min(ea, eb) >> 5 << 5
    used = acc[:, : ((max(ea, eb) - base + 57) >> 5) + 3]
    used[:] = 0
    _weigh(used, ea - base, ma, q - rest, sa)
    _weigh(used, eb - base, mb, rest, sb)
    size = SPACE + used.shape[1] + 1
    scratch[:SPACE] = 0
    negative = magnitude(used, 0, scratch, SPACE)
    sticky = divide(scratch, size, fives)
    value = to_double(scratch, size, base - 32 * SPACE - twos, sticky)
    return -value if negative else value


def share(phi: object) -> Fraction:
    """The share as written: Fraction of its shortest decimal text."""
    return Fraction(round(Fraction(str(phi)) * 10**DIGITS), 10**DIGITS)


@njit(cache=True, nogil=True)
def _at_share(words, before, low, high, starts, most, p, q, twos, fives, how, out, valid):
    """Cell t has the lists starts[t] .. starts[t + 1], at most `most`."""
    acc, scratch = np.zeros((1, WIDEST), np.int64), np.zeros(WIDEST + SPACE + 1, np.int64)
    mids, sizes = np.empty(most, np.int64), np.empty(most, np.int64)
    answer = out.view(np.float64)
    for t in range(len(starts) - 1):
        lows, highs = low[starts[t] : starts[t + 1]], high[starts[t] : starts[t + 1]]
        n = np.int64(0)
        for r in range(len(lows)):
            n += before[highs[r]] - before[lows[r]]
        valid[t] = n > 0
        if n == 0:
            continue
        if how == STEP:
            place, rest = scaled(n, p, q)
            out[t] = kth(
                words,
                before,
                lows.copy(),
                highs.copy(),
                max(0, place if rest else place - 1),
                mids,
                sizes,
            )
            continue
        place, rest = scaled(n - 1, p, q)
        a = kth(words, before, lows.copy(), highs.copy(), place, mids, sizes)
        b = following(words, before, lows, highs, place, a) if rest else a
        if how == FLOOR:
            out[t] = a + scaled(b - a, rest, q)[0] if rest else a
        elif a == b:
            out[t] = a ^ 0x7FFFFFFFFFFFFFFF if a < 0 else a
        else:
            answer[t] = between(a, b, rest, q, twos, fives, acc, scratch)


class AtShare:
    """The answers of such a call, from lists of words in order."""

    def __init__(self, call: AggCall) -> None:
        self.share = Fraction(1, 2) if call.fn == "median" else share(call.params[0])
        self.type = call.type
        line = LINE if call.type.kind is Kind.FLOAT else FLOOR
        self.how = STEP if call.fn == "quantile" else line

    def answer(
        self,
        words: np.ndarray,
        before: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        starts: np.ndarray,
        coding: Words,
    ) -> pa.Array:
        """One a cell, which has the lists from starts[t] to starts[t + 1]."""
        p, q = self.share.numerator, self.share.denominator
        twos, cells = (q & -q).bit_length() - 1, len(starts) - 1
        out, valid = np.zeros(cells, np.int64), np.zeros(cells, np.bool_)
        rank = coding.rank
        if len(rank):
            words = rank[words]
        most = int(np.diff(starts).max(initial=0))
        _at_share(
            words, before, low, high, starts, most, p, q, twos, q >> twos, self.how, out, valid
        )
        if self.how == LINE:
            return floats(out.view(np.float64), valid)
        if self.how == FLOOR:
            return arrow_values(out, valid)
        if len(rank):
            order = np.argsort(rank)
            out = order[np.minimum(np.searchsorted(rank[order], out), len(order) - 1)]
        return coding.decode(out, valid)
