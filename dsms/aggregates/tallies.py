"""MODE and ENTROPY: what counters of values answer.

MODE     as TOPK with k = 1 (`topk`), the value itself.
ENTROPY  a counter per (group, value), hashed, and a group's exact sum of terms (`parts.entropy`).
Input    any pattern.     Cost  MODE O(log d) an event, ENTROPY O(1).
Cells    frequency counters (`parts.counters`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.aggregates.parts import limbs
from dsms.aggregates.parts.base import Answers, Arg, ByGroup, GroupEvents, Leaving
from dsms.aggregates.parts.counters import Counters
from dsms.aggregates.parts.entropy import LIMBS, add_term, bits
from dsms.aggregates.parts.valued import Valued, enter, find, leave
from dsms.aggregates.parts.words import ordered_bits
from dsms.aggregates.topk import TopK
from dsms.sql.expr import AggCall
from dsms.state.chains import END
from dsms.state.lengthening import grown


@dataclass(slots=True)
class ModeRows(TopK):
    """MODE by group."""

    def _answers(self, found: np.ndarray, ends: np.ndarray, a: Arg) -> np.ndarray:
        return found[: len(ends)]

    def forget(self, reported: np.ndarray) -> None:
        return


@njit(cache=True, nogil=True)
def _follow(
    code, sign, slot, emit, words, valid, head, link, size, rows, state, acc, n, different, out,
    out_valid
):  # fmt: skip  # a list of arrays
    answer = out.view(np.float64)
    for i in range(len(code)):
        g, s = code[i], slot[i]
        if sign[i] != 0 and (len(valid) == 0 or valid[s]):
            w, none = words[s], np.int64(0)
            at = find(head, link, size, rows, g, w, none)
            if at == END:
                at = enter(head, link, size, rows, state, g, w, none)
                different[g] += 1
            add_term(acc, g, rows[at, 3], -1)
            rows[at, 3] += sign[i]
            add_term(acc, g, rows[at, 3], 1)
            n[g] += sign[i]
            if rows[at, 3] == 0:
                leave(head, link, size, rows, state, at)
                different[g] -= 1
        t = emit[i]
        if t >= 0 and n[g] > 0:
            answer[t], out_valid[t] = bits(acc, g, n[g], different[g]), True


@dataclass(slots=True)
class EntropyRows(ByGroup):
    """ENTROPY by group."""

    values: Valued = field(default_factory=Valued)
    acc: np.ndarray = field(default_factory=lambda: np.zeros((0, LIMBS), np.int64))
    n: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    different: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    added: int = 0

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        (a,) = args
        self.acc, self.n = grown(self.acc, feed.groups), grown(self.n, feed.groups)
        self.different = grown(self.different, feed.groups)
        self.values.reserve(int(np.count_nonzero(feed.sign > 0)))
        self.added += 2 * len(feed.code)
        if self.added > limbs.CARRY_EVERY:
            limbs.settle_all(self.acc)
            self.added = 2 * len(feed.code)
        kept = (*self.values.kernel, self.acc, self.n, self.different)
        _follow(*feed.events, a.words, a.valid, *kept, out.words, out.valid)
        ordered_bits(out.words, out.words)

    def let_go(self, closed: np.ndarray) -> None:
        self.values.let_go(closed)

    def held(self) -> tuple[np.ndarray, ...]:
        return (self.values.words,)

    @property
    def nbytes(self) -> int:
        arrays = (self.acc, self.n, self.different)
        return int(sum(a.nbytes for a in arrays)) + self.values.nbytes


def follow(call: AggCall, leaving: Leaving) -> ModeRows | EntropyRows:
    """The state that follows single rows."""
    return ModeRows(1, call.args[0].type) if call.fn == "mode" else EntropyRows()


def algebra(call: AggCall) -> Counters:
    """The algebra of such a call."""
    return Counters(call, None)
