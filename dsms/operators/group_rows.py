"""The rows that a GROUP BY has reported, and their changes: deletions and insertions in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.aggregates.parts.base import Answers
from dsms.aggregates.parts.words import NONE, Coding
from dsms.operators.group_keys import GroupKeys
from dsms.operators.group_touch import Scratch, Touches
from dsms.sql.types import FOREVER
from dsms.state.batch import Batch
from dsms.state.lengthening import grown

LONG = 64  # places that a row may be moved by insertion; beyond that, rows are sorted


def _last_before(before: int, touches: Touches, count: int) -> np.ndarray:
    """For each group its last touch before that instant, or what stood reported before all."""
    last, late = touches.final.copy(), np.append(touches.at[:count] >= before, False)
    while (back := late[np.minimum(last, count)]).any():
        last[back] = touches.prev[last[back]]
    return last


@njit(cache=True, nogil=True)
def _differ(words, valid, prev, changed):
    for t in range(len(prev)):
        p = prev[t]
        if valid[t] != valid[p] or (valid[t] and words[t] != words[p]):
            changed[t] = True


@njit(cache=True, nogil=True)
def _resolve(at, prev, exists, changed, rep, row, when, sign):
    """Walk the touches: what each instant takes back (deletions first) and reports; answers the
    number of rows.

    rep[r] becomes the row that stands reported after row r; a row r is a touch, or t + k: what the
    k-th group had reported before this step."""
    t = len(at)
    for r in range(t, len(rep)):
        rep[r] = r
    n = start = 0
    while start < t:
        stop = start
        while stop < t and at[stop] == at[start]:
            k = stop
            p = prev[k]
            same = exists[k] == exists[p] and not (exists[k] and changed[k])
            rep[k] = rep[p] if same else k
            if exists[p] and not same:
                row[n], when[n], sign[n] = rep[p], at[k], -1
                n += 1
            stop += 1
        for k in range(start, stop):
            if exists[k] and rep[k] == k:
                row[n], when[n], sign[n] = k, at[k], 1
                n += 1
        start = stop
    return n


@njit(cache=True, nogil=True)
def _pick(row, oldest, ids, reported, groups, out):
    """Arrival numbers of rows: of the group's oldest row for a touch, as reported for the
    others."""
    t = len(oldest)
    for i in range(len(row)):
        r = row[i]
        if r >= t:
            out[i] = reported[groups[r - t]]
        else:
            out[i] = ids[oldest[r]] if oldest[r] >= 0 else -1


@njit(cache=True, nogil=True)
def _entered(row, at, reported, groups, out):
    """When rows entered: a touch at its instant, the others as reported."""
    t = len(at)
    for i in range(len(row)):
        out[i] = reported[groups[row[i] - t]] if row[i] >= t else at[row[i]]


@njit(cache=True, nogil=True)
def _codes(row, code, groups, out):
    """Groups of rows."""
    t = len(code)
    for i in range(len(row)):
        out[i] = groups[row[i] - t] if row[i] >= t else code[row[i]]


@njit(cache=True, nogil=True)
def _before(ranks, a, b):
    for rank in ranks:
        if rank[a] != rank[b]:
            return rank[a] < rank[b]
    return False


@njit(cache=True, nogil=True)
def _arrange(when, sign, ranks, index):
    """Order rows of one instant and sign by `ranks`: `index` becomes the permutation.

    0: nothing to do, 1: done, 2: too many in one instant for insertion."""
    moved = 0
    start = 0
    for i in range(len(when)):
        index[i] = i
        if i > 0 and (when[i] != when[i - 1] or sign[i] != sign[i - 1]):
            start = i
        j = i
        while j > start and _before(ranks, i, index[j - 1]):
            index[j] = index[j - 1]
            j -= 1
            moved = 1
        index[j] = i
        if i - j > LONG:
            return 2
    return moved


@dataclass(slots=True)
class Slate:
    """Answers of one aggregate as they stand reported, by group code."""

    coding: Coding
    scratch: Scratch = field(default_factory=Scratch)
    flags: np.ndarray = field(default_factory=lambda: np.zeros(0, np.bool_))
    words: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    high: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    valid: np.ndarray = field(default_factory=lambda: np.zeros(0, np.bool_))

    def rows(self, touches: int, groups: np.ndarray, capacity: int) -> Answers:
        """Answers by row: touches still NULL, then what the groups had reported."""
        self.words, self.valid = grown(self.words, capacity), grown(self.valid, capacity)
        n = touches + len(groups)
        words, high = self.scratch.ints(n, 2)
        if n > len(self.flags):
            self.flags = np.zeros(n + n // 2, np.bool_)
        valid = self.flags[:n]
        words[:touches], valid[:touches] = 0, False
        words[touches:], valid[touches:] = self.words[groups], self.valid[groups]
        if not self.coding.wide:
            return Answers(words, NONE, valid)
        self.high = grown(self.high, capacity)
        high[:touches], high[touches:] = 0, self.high[groups]
        return Answers(words, high, valid)

    def note(self, groups: np.ndarray, rows: np.ndarray, answers: Answers) -> None:
        """`rows` now stand reported for `groups`."""
        self.words[groups] = answers.words[rows]
        self.valid[groups] = answers.valid[rows]
        if self.coding.wide:
            self.high[groups] = answers.high[rows]

    @property
    def nbytes(self) -> int:
        return int(
            self.words.nbytes
            + self.high.nbytes
            + self.valid.nbytes
            + self.scratch.nbytes
            + self.flags.nbytes
        )


@dataclass(slots=True)
class Reported:
    """What stands reported, by group code.

    timed   behind the ids stands when the row entered
    always  the one group of a global aggregate has a row even when empty"""

    width: int
    timed: bool
    codings: Sequence[Coding]
    always: bool
    slates: list[Slate] = field(init=False)
    there: np.ndarray = field(default_factory=lambda: np.zeros(0, np.bool_))
    ids: list[np.ndarray] = field(init=False)
    scratch: Scratch = field(default_factory=Scratch)

    def __post_init__(self) -> None:
        self.slates = [Slate(c) for c in self.codings]
        self.ids = [np.zeros(0, np.int64) for _ in range(self.width + self.timed)]

    def before(self, touches: Touches) -> list[Answers]:
        """Answers to be filled in for the touches, followed by those that the groups had
        reported."""
        capacity = touches.feed.groups
        self.there = grown(self.there, capacity)
        self.ids = [grown(i, capacity, -1) for i in self.ids]
        return [s.rows(touches.feed.touches, touches.groups, capacity) for s in self.slates]

    def report(
        self,
        touches: Touches,
        answers: Sequence[Answers],
        lives: np.ndarray | None,
        keys: GroupKeys,
        order: Sequence[int],
        before: int = FOREVER,
    ) -> Batch:
        """Deletions and insertions of the step; they then stand reported, but for those that are
        not `before` that instant.  `lives`: `Batch.life` by touch."""
        t, groups = touches.feed.touches, touches.groups
        exists = np.ones(t + len(groups), np.bool_)
        if not self.always:
            exists[:t] = touches.feed.live > 0
        exists[t:] = self.there[groups]
        changed = np.zeros(t, np.bool_)
        for a in answers:
            _differ(a.words, a.valid, touches.prev, changed)
            if len(a.high):
                _differ(a.high, a.valid, touches.prev, changed)
        rep, row, when = self.scratch.ints(2 * t + len(groups), 3)
        rep, sign = rep[: t + len(groups)], self.scratch.signs8(2 * t)
        n = _resolve(touches.at, touches.prev, exists, changed, rep, row, when, sign)
        row, when, sign = row[:n], when[:n].copy(), sign[:n].copy()
        ids = self._ids(row, touches)
        out = self._batch(row, when, sign, ids, touches, answers, lives, keys, order)
        final = touches.final if before == FOREVER else _last_before(before, touches, t)
        stands = rep[final]
        for slate, a in zip(self.slates, answers, strict=True):
            slate.note(groups, stands, a)
        for kept, picked in zip(self.ids, self._ids(stands, touches), strict=True):
            kept[groups] = picked
        self.there[groups] = exists[final]
        return out

    def _ids(self, row: np.ndarray, touches: Touches) -> tuple[np.ndarray, ...]:
        out = tuple(np.empty(len(row), np.int64) for _ in self.ids)
        for k, reported in enumerate(self.ids[: self.width]):
            _pick(row, touches.oldest, touches.ids[k], reported, touches.groups, out[k])
        if self.timed:
            _entered(row, touches.at, self.ids[-1], touches.groups, out[-1])
        return out

    def _batch(
        self,
        row: np.ndarray,
        when: np.ndarray,
        sign: np.ndarray,
        ids: tuple[np.ndarray, ...],
        touches: Touches,
        answers: Sequence[Answers],
        lives: np.ndarray | None,
        keys: GroupKeys,
        order: Sequence[int],
    ) -> Batch:
        row, ids = arranged(row, when, sign, ids, order)
        cols: list[pa.Array] = []
        if keys.types:
            code = np.empty(len(row), np.int64)
            _codes(row, touches.code, touches.groups, code)
            cols = keys.gather(code)
        for slate, a in zip(self.slates, answers, strict=True):
            cols.append(slate.coding.decode(a.words, a.high, a.valid, row))
        life = None
        if lives is not None:
            life = np.where(
                sign > 0, np.append(lives, FOREVER)[np.minimum(row, len(lives))], FOREVER
            )
        return Batch(when, None, sign, ids, tuple(cols), life)

    def current(self, keys: GroupKeys) -> Batch:
        """The rows that stand reported, one per group; `ts` has no meaning."""
        groups = np.flatnonzero(self.there)
        cols: list[pa.Array] = keys.gather(groups)
        for slate in self.slates:
            cols.append(slate.coding.decode(slate.words, slate.high, slate.valid, groups))
        return Batch(
            np.zeros(len(groups), np.int64),
            None,
            None,
            tuple(i[groups] for i in self.ids),
            tuple(cols),
        )

    def held(self, arg: int) -> np.ndarray:
        """Words that stand reported by aggregate `arg`."""
        return self.slates[arg].words[
            self.slates[arg].valid & self.there[: len(self.slates[arg].words)]
        ]

    @property
    def nbytes(self) -> int:
        own = self.there.nbytes + self.scratch.nbytes + sum(i.nbytes for i in self.ids)
        return int(own + sum(s.nbytes for s in self.slates))


def arranged(
    row: np.ndarray,
    when: np.ndarray,
    sign: np.ndarray,
    ids: tuple[np.ndarray, ...],
    order: Sequence[int],
) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """(row, ids) with the rows of one instant and sign in order of their arrival numbers."""
    index = np.empty(len(row), np.int64)
    ranks = tuple(ids[k] for k in order)
    match _arrange(when, sign, ranks, index):
        case 0:
            return row, ids
        case 2:
            index = np.lexsort((*ranks[::-1], sign, when))
    return row[index], tuple(i[index] for i in ids)
