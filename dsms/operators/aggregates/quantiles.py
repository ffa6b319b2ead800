"""MEDIAN, QUANTILE, QUANTILE_CONT: members by rank in a sorted multiset per group.

Input    any pattern.     State  a node (48 bytes) per distinct value of a group (`treap`), which is all values of an
         unbounded input.     Cost  O(log d) an event and an answer.
A share is the decimal fraction as written, p / q: ranks and weights are whole numbers, so 0.1 of 30 values is 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numba import njit

from dsms.operators.aggregates.base import Answers, Arg, ByGroup, Feed
from dsms.operators.aggregates.limbs import add, divide, magnitude, parts, to_double
from dsms.operators.aggregates.treap import Multisets, kth, put, take
from dsms.operators.aggregates.words import ordered_bits
from dsms.sql.types import Kind, Type

DIGITS = 18  # of a share; further ones are rounded away
SPACE = 3
WIDEST = 80  # limbs that hold any weighted sum of two doubles
STEP, LINE, FLOOR = range(3)  # no interpolation; exact and rounded to a double; floored to a whole number


@njit(cache=True, nogil=True)
def scaled(m, p, q):
    """(m * p) // q and the rest, for 0 <= m < 2^64 (as its bits), 0 <= p <= q < 2^60; bit by bit if m * p is long."""
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
    """The double nearest to a + (b - a) * rest / q, for words of doubles a < b and q = 2^twos * fives."""
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


@njit(cache=True, nogil=True)
def _ranked(code, sign, slot, emit, words, valid, rank, nodes, root, state, p, q, twos, fives, how, out, out_valid):
    acc, scratch = np.zeros((1, WIDEST), np.int64), np.zeros(WIDEST + SPACE + 1, np.int64)
    answer = out.view(np.float64)
    for i in range(len(code)):
        g, s = code[i], slot[i]
        if len(valid) == 0 or valid[s]:
            if sign[i] > 0:
                put(nodes, root, g, words[s], rank, state)
            elif sign[i] < 0:
                take(nodes, root, g, words[s], rank, state)
        t = emit[i]
        if t < 0 or root[g] < 0:
            continue
        n = nodes[root[g], 2]
        out_valid[t] = True
        if how == STEP:
            place, rest = scaled(n, p, q)
            out[t] = kth(nodes, root[g], max(0, place if rest else place - 1))
            continue
        place, rest = scaled(n - 1, p, q)
        a = kth(nodes, root[g], place)
        b = kth(nodes, root[g], place + 1) if rest else a
        if how == FLOOR:
            out[t] = a + scaled(b - a, rest, q)[0] if rest else a
        elif a == b:
            out[t] = a ^ 0x7FFFFFFFFFFFFFFF if a < 0 else a
        else:
            answer[t] = between(a, b, rest, q, twos, fives, acc, scratch)


def share(phi: object) -> Fraction:
    """The share as written: Fraction of its shortest decimal text."""
    return Fraction(round(Fraction(str(phi)) * 10**DIGITS), 10**DIGITS)


@dataclass(slots=True)
class Ranked(ByGroup):
    """The value at share `phi`: of a member, or (`line`) between its neighbours."""

    phi: Fraction
    line: bool
    type: Type
    sets: Multisets = field(default_factory=Multisets)

    def run(self, feed: Feed, args: tuple[Arg, ...], out: Answers) -> None:
        (a,) = args
        self.sets.make_room(int(np.count_nonzero(feed.sign > 0)), feed.groups)
        p, q = self.phi.numerator, self.phi.denominator
        twos = (q & -q).bit_length() - 1
        how = STEP if not self.line else LINE if self.type.kind is Kind.FLOAT else FLOOR
        _ranked(feed.code, feed.sign, feed.slot, feed.emit, a.words, a.valid, a.rank, self.sets.nodes, self.sets.root,
                self.sets.state, p, q, twos, q >> twos, how, out.words, out.valid)  # fmt: skip
        if how == LINE:
            ordered_bits(out.words, out.words)

    def held(self) -> tuple[np.ndarray, ...]:
        return (self.sets.words(),)

    @property
    def nbytes(self) -> int:
        return self.sets.nbytes
