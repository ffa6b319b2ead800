"""One MIN or MAX over all rows of a time window: the same answers as GROUP BY, without groups and
without visiting every event.

Input    WKS: `exp` never falls, no deletions, no `life`.
Output   As `group.GroupByOp`: a deletion and an insertion at each instant that changes the answer,
         the ids those of the oldest live row.
State    expiry and arrival numbers of the live rows, and of those that no younger row beats (a
         monotonic deque) the word and the expiry; the row that stands reported.
Cost     O(1) amortised a row.  An expiry is looked at only when it is the answer's.
Twin     `group.GroupByOp`, which the tests run beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.aggregates.parts.words import NONE, Coding, arg_coding
from dsms.operators.basic import by_parts
from dsms.operators.group import in_order_already
from dsms.operators.group_args import ArgColumn
from dsms.operators.group_touch import Scratch
from dsms.operators.pieces import InStretches, Look
from dsms.sql.logical import GroupBy
from dsms.sql.types import ALWAYS, FOREVER
from dsms.state.batch import Batch
from dsms.state.vec import Vec

Evaluate = Callable[[Sequence[pa.Array], int], pa.Array]
OLDEST, FRONT, BACK, WORD, VALID, THERE = range(6)  # places of `ExtremeOp.at`
DROP_FROM = 4096  # dead slots; fewer are left lying


@njit(cache=True, nogil=True)
def _slide(
    down, upto, ts, exp, first, words, valid, q_word, q_exp, at, o_at, o_word, o_valid, o_slot
):
    """Arrivals (slots from `first` on, at `ts`) and the expirations up to `upto`; answers the
    number of answers that are new: instant, word, whether there is one, and the slot of the oldest
    row then (-1: none).

    at  the oldest live slot, front and back of the deque, the answer's word, whether it has one,
        whether it stands"""
    oldest, front, back, word, full, there = at[0], at[1], at[2], at[3], at[4] != 0, at[5] != 0
    found, i, n = 0, 0, len(ts)
    while True:
        now = ts[i] if i < n else upto
        due = front < back and q_exp[front] <= now
        if due:
            now = q_exp[front]
            while front < back and q_exp[front] <= now:
                front += 1
        elif i == n:
            break
        while i < n and ts[i] == now:
            if len(valid) == 0 or valid[i]:
                w = words[i]
                while back > front and (w > q_word[back - 1] if down else w < q_word[back - 1]):
                    back -= 1
                q_word[back], q_exp[back] = w, exp[first + i]
                back += 1
            i += 1
        some = front < back
        best = q_word[front] if some else np.int64(0)
        if there and some == full and best == word:
            continue
        word, full, there = best, some, True
        while oldest < first + i and exp[oldest] <= now:
            oldest += 1
        o_at[found], o_word[found], o_valid[found] = now, word, full
        o_slot[found] = oldest if oldest < first + i else -1
        found += 1
    at[0], at[1], at[2], at[3], at[4], at[5] = oldest, front, back, word, full, there
    return found


@dataclass(slots=True)
class ExtremeOp(InStretches):
    """See the module.

    arg    the aggregate's argument under its filter
    order  FROM order of the input's id columns
    """

    node: GroupBy
    width: int
    order: tuple[int, ...]
    arg: ArgColumn
    exp: Vec = field(default_factory=Vec)  # by slot
    ids: list[Vec] = field(init=False)  # by slot
    # word, exp
    best: list[np.ndarray] = field(
        default_factory=lambda: [np.empty(64, np.int64) for _ in range(2)]
    )
    at: np.ndarray = field(default_factory=lambda: np.zeros(6, np.int64))
    reported: np.ndarray = field(init=False)  # ids of the row that stands reported
    scratch: Scratch = field(default_factory=Scratch)

    def __post_init__(self) -> None:
        self.ids = [Vec() for _ in range(self.width)]
        self.reported = np.full(self.width, -1, np.int64)

    @property
    def coding(self) -> Coding:
        return self.arg.coding

    def stretch(self, inputs: Sequence[Batch], upto: int, look: Look) -> Batch:
        (rows,) = inputs
        if not in_order_already(rows, self.order):
            rows = by_parts(rows, self.order)
        n, first = len(rows), self.exp.n
        new = self.arg.lift(rows.cols, n)
        self.exp.extend(rows.exps())
        for vec, ids in zip(self.ids, rows.ids, strict=True):
            vec.extend(ids)
        self._make_room(n)
        most = 2 * n + int(self.at[BACK] - self.at[FRONT]) + 1
        at, word, slot = self.scratch.ints(most, 3)
        valid = self.scratch.signs8(most)
        before = self.at.copy()
        found = self._seed(rows, at, word, valid, slot)
        found += _slide(
            self.node.aggs[0].fn == "max",
            upto,
            rows.ts,
            self.exp.view,
            first,
            new.words,
            new.valid,
            *self.best,
            self.at,
            at[found:],
            word[found:],
            valid[found:],
            slot[found:],
        )
        out = self._changes(
            before, at[:found], word[:found], valid[:found].astype(np.bool_), slot[:found]
        )
        self._settle(upto)
        return out

    def _seed(
        self, rows: Batch, at: np.ndarray, word: np.ndarray, valid: np.ndarray, slot: np.ndarray
    ) -> int:
        """An aggregate of all rows has an answer before the first of them."""
        if self.at[THERE] or (len(rows) and rows.ts[0] == ALWAYS):
            return 0
        at[0], word[0], valid[0], slot[0] = ALWAYS, 0, 0, -1
        self.at[WORD], self.at[VALID], self.at[THERE] = 0, 0, 1
        return 1

    def _make_room(self, n: int) -> None:
        """For n more in the deque."""
        front, back = int(self.at[FRONT]), int(self.at[BACK])
        if back + n <= len(self.best[0]):
            return
        if 2 * (back - front + n) <= len(self.best[0]):
            for array in self.best:
                array[: back - front] = array[front:back].copy()
        else:
            size = max(64, 4 * (back - front + n))
            kept = self.best
            self.best = [np.empty(size, np.int64) for _ in kept]
            for array, old in zip(self.best, kept, strict=True):
                array[: back - front] = old[front:back]
        self.at[FRONT], self.at[BACK] = 0, back - front

    def _changes(
        self,
        before: np.ndarray,
        at: np.ndarray,
        word: np.ndarray,
        valid: np.ndarray,
        slot: np.ndarray,
    ) -> Batch:
        """Each new answer after the deletion of the one before it; the last one stands reported."""
        n = len(at)
        ids = [
            np.where(slot < 0, -1, vec.view[slot]) if vec.n else np.full(n, -1, np.int64)
            for vec in self.ids
        ]
        words, there = np.append(before[WORD], word), np.append(before[VALID] != 0, valid)
        ids_in_turn = [
            np.append(earlier, new) for earlier, new in zip(self.reported, ids, strict=True)
        ]
        # of those, the old and the new in turn
        which = np.repeat(np.arange(n), 2) + np.tile(np.array([0, 1]), n)
        sign = np.tile(np.array([-1, 1], np.int8), n)
        when = np.repeat(at, 2)
        if n and not before[THERE]:
            which, sign, when = which[1:], sign[1:], when[1:]
        if n:
            self.reported = np.array([e[-1] for e in ids_in_turn], np.int64)
        value = self.coding.decode(words, NONE, there, which)
        return Batch(when, None, sign, tuple(e[which] for e in ids_in_turn), (value,))

    def _settle(self, upto: int) -> None:
        """Forget the dead, now and then."""
        exp = self.exp.view
        start = int(self.at[OLDEST])
        dead = start + int(np.searchsorted(exp[start:], upto, side="right"))
        if dead >= DROP_FROM and 2 * dead >= len(exp):
            for vec in (self.exp, *self.ids):
                vec.drop(dead)
            dead = 0
        self.at[OLDEST] = dead

    def standing(self) -> int:
        """How many rows `current` gives."""
        return int(self.at[THERE])

    def current(self) -> Batch:
        """The row that stands reported; `ts` has no meaning."""
        one = int(self.at[THERE])
        value = self.coding.decode(
            self.at[WORD : WORD + 1], NONE, self.at[VALID : VALID + 1] != 0, np.arange(one)
        )
        return Batch(
            np.zeros(one, np.int64),
            None,
            None,
            tuple(i[:one] for i in self.reported[:, None]),
            (value,),
        )

    def live(self) -> int:
        return self.exp.n - int(self.at[OLDEST])

    def nbytes(self) -> int:
        kept = self.exp.nbytes + sum(v.nbytes for v in self.ids) + sum(b.nbytes for b in self.best)
        return int(kept + self.scratch.nbytes)

    def next_due(self) -> int:
        return int(self.exp.view[self.at[OLDEST]]) if self.live() else FOREVER


def extreme_op(
    node: GroupBy, width: int, order: tuple[int, ...], arg: Evaluate, filter_: Evaluate | None
) -> ExtremeOp:
    """The operator of a node that is to have it (`plan.variants.group`)."""
    return ExtremeOp(node, width, order, ArgColumn(arg, filter_, arg_coding(node.aggs[0], 0), True))
