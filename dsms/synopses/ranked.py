"""QUANTILE, QUANTILE_CONT, MEDIAN over cells that are unions of sorted lists: found by selection, nothing is merged.

Cost     for p lists of q entries each O(p log q log(p q)) an answer.     Error  none.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.operators.aggregates.quantiles import FLOOR, LINE, SPACE, STEP, WIDEST, between, scaled, share
from dsms.sql.expr import AggCall
from dsms.sql.types import Kind
from dsms.state.columns import arrow_values
from dsms.synopses.coded import Words, floats
from dsms.synopses.lists import following, kth


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
            out[t] = kth(words, before, lows.copy(), highs.copy(), max(0, place if rest else place - 1), mids, sizes)
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

    def answer(self, words: np.ndarray, before: np.ndarray, low: np.ndarray, high: np.ndarray, starts: np.ndarray,
               told: Words) -> pa.Array:  # fmt: skip
        """One a cell, which has the lists from starts[t] to starts[t + 1]."""
        p, q = self.share.numerator, self.share.denominator
        twos, cells = (q & -q).bit_length() - 1, len(starts) - 1
        out, valid = np.zeros(cells, np.int64), np.zeros(cells, np.bool_)
        rank = told.rank
        if len(rank):
            words = rank[words]
        most = int(np.diff(starts).max(initial=0))
        _at_share(words, before, low, high, starts, most, p, q, twos, q >> twos, self.how, out, valid)
        if self.how == LINE:
            return floats(out.view(np.float64), valid)
        if self.how == FLOOR:
            return arrow_values(out, valid)
        if len(rank):
            order = np.argsort(rank)
            out = order[np.minimum(np.searchsorted(rank[order], out), len(order) - 1)]
        return told.decode(out, valid)
