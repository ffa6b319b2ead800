"""MEDIAN, QUANTILE, QUANTILE_CONT: members by rank.

Rows     a sorted multiset per group: a node (48 bytes) per distinct value of a group
         (`parts.treap`), which is all values of an unbounded input.  O(log d) an event and an
         answer.
Cells    sorted arrays that are put together by name and searched where they lie: B-INT-QNT's (Arasu
         and Widom 2004, §3.3).  In base intervals each is merged once; a span is a list of O(log W)
         of them.  16 bytes a different value of a sorted array, once a level; O(log n) a value and
         level to merge; a combined cell copies nothing; an answer selects (`parts.ranked`).  Values
         whose words are not in order (strings, long DECIMALs) and DISTINCT ones are counted
         (`parts.counters`).
Error    none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.aggregates.parts.base import Answers, Arg, ByGroup, GroupEvents, Leaving
from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.parts.coded import Words, counting
from dsms.aggregates.parts.counters import Counters, dealt, is_heavy
from dsms.aggregates.parts.fold import Folds, ranges
from dsms.aggregates.parts.items import places
from dsms.aggregates.parts.limbs import SPACE
from dsms.aggregates.parts.lists import gathered, tallied, union
from dsms.aggregates.parts.ranked import FLOOR, LINE, STEP, WIDEST, AtShare, between, scaled, share
from dsms.aggregates.parts.treap import SIZE, Multisets, kth, put, take, without
from dsms.aggregates.parts.words import Codes, coding, ordered_bits
from dsms.errors import InternalError
from dsms.sql.expr import AggCall
from dsms.sql.types import Kind, Type
from dsms.state.lengthening import grown


@njit(cache=True, nogil=True)
def _ranked(
    code,
    sign,
    slot,
    emit,
    words,
    valid,
    rank,
    nodes,
    root,
    state,
    p,
    q,
    twos,
    fives,
    how,
    out,
    out_valid,
):
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
        n = nodes[root[g], SIZE]
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


@dataclass(slots=True)
class RankRows(ByGroup):
    """The value at share `phi`: of a member, or (`line`) between its neighbours."""

    phi: Fraction
    line: bool
    type: Type
    sets: Multisets = field(default_factory=Multisets)

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        (a,) = args
        self.sets.make_room(int(np.count_nonzero(feed.sign > 0)), feed.groups)
        p, q = self.phi.numerator, self.phi.denominator
        twos = (q & -q).bit_length() - 1
        how = STEP if not self.line else LINE if self.type.kind is Kind.FLOAT else FLOOR
        _ranked(
            *feed.events,
            a.words,
            a.valid,
            a.rank,
            self.sets.nodes,
            self.sets.root,
            self.sets.state,
            p,
            q,
            twos,
            q >> twos,
            how,
            out.words,
            out.valid,
        )
        if how == LINE:
            ordered_bits(out.words, out.words)

    def let_go(self, closed: np.ndarray) -> None:
        sets = self.sets
        sets.nodes, sets.root, _ = without(sets.nodes, sets.root, sets.state, closed)

    def held(self) -> tuple[np.ndarray, ...]:
        return (self.sets.words(),)

    @property
    def nbytes(self) -> int:
        return self.sets.nbytes


# ---------------------------------------------------------------- cells
MANY = 32  # arrays of a cell, on average, that are merged before more come


@dataclass(slots=True, eq=False)
class Sorted:
    """n cells: cell i has the arrays low[r] .. high[r] for starts[i] <= r < starts[i + 1],
    stretches of `words` (and `before`, see `lists`), which columns share."""

    starts: np.ndarray
    low: np.ndarray
    high: np.ndarray
    words: np.ndarray
    before: np.ndarray

    @property
    def single(self) -> bool:
        """Whether each cell has one array."""
        return len(self.low) == len(self.starts) - 1 and bool((np.diff(self.starts) == 1).all())


class RankCells(Folds):
    """The algebra."""

    def __init__(self, call: AggCall) -> None:
        self.words = Words(coding(call.args[0].type))
        self.ranked = AtShare(call)

    def empty(self, cells: int) -> Sorted:
        zeros = np.zeros(cells, np.int64)
        return Sorted(
            np.arange(cells + 1), zeros, zeros.copy(), np.zeros(0, np.int64), np.zeros(1, np.int64)
        )

    def lift(self, rows: CellRows, cells: int) -> Sorted:
        (column,) = rows.args
        starts, words, before = tallied(
            rows.cell, self.words.encode(column), counting(column), cells
        )
        return Sorted(np.arange(cells + 1), starts[:-1], starts[1:], words, before)

    def combine(self, older: Sorted, newer: Sorted) -> Sorted:
        both, n = self.concat([older, newer]), len(older.starts) - 1
        index = np.arange(2 * n).reshape(2, n).T.ravel()
        place, starts = places(both.starts, index)
        out = Sorted(starts[::2].copy(), both.low[place], both.high[place], both.words, both.before)
        return self.settled(out) if len(out.low) > MANY * n else out

    def subtract(self, whole: Sorted, part: Sorted) -> Sorted:
        raise InternalError("DS905", "sorted arrays can't be subtracted; please report this")

    def lower(self, state: Sorted) -> pa.Array:
        return self.ranked.answer(
            state.words, state.before, state.low, state.high, state.starts, self.words
        )

    def size(self, state: Sorted) -> int:
        return len(state.starts) - 1

    def take(self, state: Sorted, index: np.ndarray) -> Sorted:
        place, starts = places(state.starts, index)
        return Sorted(starts, state.low[place], state.high[place], state.words, state.before)

    def concat(self, states: Sequence[Sorted]) -> Sorted:
        if not states:
            return self.empty(0)
        starts = np.concatenate(
            [[0], np.cumsum(np.concatenate([np.diff(s.starts) for s in states]))]
        )
        words, before, shift = states[0].words, states[0].before, [0] * len(states)
        if any(s.words is not words or s.before is not before for s in states):
            states = [self._cut_out(s) for s in states]
            words = np.concatenate([s.words for s in states])
            counts = np.concatenate([np.diff(s.before) for s in states])
            before = np.concatenate([[0], np.cumsum(counts)])
            shift = np.cumsum([0, *(len(s.words) for s in states[:-1])]).tolist()
        low = np.concatenate([s.low + k for s, k in zip(states, shift, strict=True)])
        high = np.concatenate([s.high + k for s, k in zip(states, shift, strict=True)])
        return Sorted(starts, low, high, words, before)

    def _cut_out(self, state: Sorted) -> Sorted:
        """The same arrays one behind the other, with nothing else around them."""
        ends = np.cumsum(state.high - state.low)
        low = ends - (state.high - state.low)
        whole = len(ends) > 0 and ends[-1] == len(state.words) == len(state.before) - 1
        if whole and (low == state.low).all():
            return state
        words, before = gathered(state.words, state.before, ranges(state.low, state.high))
        return Sorted(state.starts, low, ends, words, before)

    def nbytes(self, state: Sorted) -> int:
        return int(
            state.starts.nbytes + 2 * state.low.nbytes + state.words.nbytes + state.before.nbytes
        )

    # -- over many cells ---------------------------------------------------------------------------

    def present(self, state: Sorted) -> np.ndarray:
        full = np.concatenate([[0], np.cumsum(state.high > state.low)])
        return full[state.starts[1:]] > full[state.starts[:-1]]

    def merge(
        self,
        state: Sorted,
        group: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        base: np.ndarray,
        cells: int,
    ) -> Sorted:
        index, starts = dealt(group, low, high, base, cells)  # stored cells have one array each
        return Sorted(starts, state.low[index], state.high[index], state.words, state.before)

    def settled(self, state: Sorted) -> Sorted:
        if state.single:
            return state
        starts, words, before = union(
            state.words, state.before, state.low, state.high, state.starts
        )
        return Sorted(np.arange(len(starts)), starts[:-1], starts[1:], words, before)

    def heavy(self, state: Sorted) -> bool:
        return is_heavy(state.words)

    def write(self, state: Sorted, at: int, more: Sorted) -> Sorted:
        more = self._cut_out(more)
        used, n, cells = int(state.high[at - 1]) if at else 0, len(more.words), len(more.starts) - 1
        state.words, state.before = (
            grown(state.words, used + n),
            grown(state.before, used + n + 1),
        )
        state.words[used : used + n] = more.words
        state.before[used + 1 : used + n + 1] = more.before[1:] + state.before[used]
        state.low[at : at + cells], state.high[at : at + cells] = more.low + used, more.high + used
        return state


def follow(call: AggCall, leaving: Leaving) -> RankRows:
    """The state that follows single rows."""
    if call.fn == "median":
        return RankRows(Fraction(1, 2), True, call.type)
    return RankRows(share(call.params[0]), call.fn == "quantile_cont", call.type)


def algebra(call: AggCall) -> RankCells | Counters:
    """The algebra of such a call."""
    in_order = not isinstance(coding(call.args[0].type), Codes)
    return RankCells(call) if in_order else Counters(call, None)
