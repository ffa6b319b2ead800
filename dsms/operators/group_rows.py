"""The rows a GROUP BY has reported, and what of them changes: deletions and insertions in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.operators.aggregates.base import Answers, grown
from dsms.operators.aggregates.words import NONE, Coding
from dsms.operators.basic import sorted_by
from dsms.operators.group_feed import Touches
from dsms.operators.group_keys import GroupKeys
from dsms.state.batch import Batch


@njit(cache=True, nogil=True)
def _differ(words, valid, prev, changed):
    for t in range(len(prev)):
        p = prev[t]
        if valid[t] != valid[p] or (valid[t] and words[t] != words[p]):
            changed[t] = True


@njit(cache=True, nogil=True)
def _resolve(at, prev, exists, changed, rep, row, when, sign):
    """Walk the touches: what each instant takes back (deletions first) and reports; answers the number of rows.

    rep[r] becomes the row that stands reported after row r; a row r is a touch, or t + k: what the k-th group had
    reported before this step."""
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
    """Arrival numbers of rows: of the group's oldest row for a touch, as reported for the others."""
    t = len(oldest)
    for i in range(len(row)):
        r = row[i]
        if r >= t:
            out[i] = reported[groups[r - t]]
        else:
            out[i] = ids[oldest[r]] if oldest[r] >= 0 else -1


@dataclass(slots=True)
class Slate:
    """Answers of one aggregate as they stand reported, by group code."""

    coding: Coding
    words: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    high: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    valid: np.ndarray = field(default_factory=lambda: np.zeros(0, np.bool_))

    def rows(self, touches: int, groups: np.ndarray, capacity: int) -> Answers:
        """Answers by row: touches still NULL, then what the groups had reported."""
        self.words, self.valid = grown(self.words, capacity), grown(self.valid, capacity)
        words = np.zeros(touches + len(groups), np.int64)
        words[touches:] = self.words[groups]
        valid = np.zeros(touches + len(groups), np.bool_)
        valid[touches:] = self.valid[groups]
        if not self.coding.wide:
            return Answers(words, NONE, valid)
        self.high = grown(self.high, capacity)
        high = np.zeros(touches + len(groups), np.int64)
        high[touches:] = self.high[groups]
        return Answers(words, high, valid)

    def note(self, groups: np.ndarray, rows: np.ndarray, answers: Answers) -> None:
        """`rows` now stand reported for `groups`."""
        self.words[groups] = answers.words[rows]
        self.valid[groups] = answers.valid[rows]
        if self.coding.wide:
            self.high[groups] = answers.high[rows]

    @property
    def nbytes(self) -> int:
        return int(self.words.nbytes + self.high.nbytes + self.valid.nbytes)


@dataclass(slots=True)
class Reported:
    """What stands reported, by group code.  `always`: the one group of a global aggregate has a row even when empty."""

    width: int
    codings: Sequence[Coding]
    always: bool
    slates: list[Slate] = field(init=False)
    there: np.ndarray = field(default_factory=lambda: np.zeros(0, np.bool_))
    ids: list[np.ndarray] = field(init=False)

    def __post_init__(self) -> None:
        self.slates = [Slate(c) for c in self.codings]
        self.ids = [np.zeros(0, np.int64) for _ in range(self.width)]

    def before(self, touches: Touches) -> list[Answers]:
        """Answers to be filled in for the touches, followed by those that the groups had reported."""
        capacity = touches.feed.groups
        self.there = grown(self.there, capacity)
        self.ids = [grown(i, capacity, -1) for i in self.ids]
        return [s.rows(touches.feed.touches, touches.groups, capacity) for s in self.slates]

    def report(self, touches: Touches, answers: Sequence[Answers], keys: GroupKeys, order: Sequence[int]) -> Batch:
        """Deletions and insertions of the step; they then stand reported."""
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
        rep, row, when = (np.empty(k, np.int64) for k in (t + len(groups), 2 * t, 2 * t))
        sign = np.empty(2 * t, np.int8)
        n = _resolve(touches.at, touches.prev, exists, changed, rep, row, when, sign)
        row, when, sign = row[:n], when[:n], sign[:n]
        ids = self._ids(row, touches)
        out = self._batch(row, when, sign, ids, touches, answers, keys, order)
        stands = rep[touches.final]
        for slate, a in zip(self.slates, answers, strict=True):
            slate.note(groups, stands, a)
        for kept, picked in zip(self.ids, self._ids(stands, touches), strict=True):
            kept[groups] = picked
        self.there[groups] = exists[touches.final]
        return out

    def _ids(self, row: np.ndarray, touches: Touches) -> tuple[np.ndarray, ...]:
        out = tuple(np.empty(len(row), np.int64) for _ in self.ids)
        for k, reported in enumerate(self.ids):
            _pick(row, touches.oldest, touches.ids[k], reported, touches.groups, out[k])
        return out

    def _batch(
        self, row: np.ndarray, when: np.ndarray, sign: np.ndarray, ids: tuple[np.ndarray, ...],
        touches: Touches, answers: Sequence[Answers], keys: GroupKeys, order: Sequence[int],
    ) -> Batch:  # fmt: skip
        ranks = [when, sign, *(ids[k] for k in order)]
        if not sorted_by(ranks):
            index = np.lexsort(ranks[::-1])
            row, when, sign, ids = row[index], when[index], sign[index], tuple(i[index] for i in ids)
        code = np.concatenate([touches.code, touches.groups])[row]
        cols: list[pa.Array] = keys.gather(code)
        for slate, a in zip(self.slates, answers, strict=True):
            high = a.high[row] if len(a.high) else NONE
            cols.append(slate.coding.decode(a.words[row], high, a.valid[row]))
        return Batch(when, None, sign, ids, tuple(cols))

    def held(self, arg: int) -> np.ndarray:
        """Words that stand reported by aggregate `arg`."""
        return self.slates[arg].words[self.slates[arg].valid & self.there[: len(self.slates[arg].words)]]

    @property
    def nbytes(self) -> int:
        own = self.there.nbytes + sum(i.nbytes for i in self.ids)
        return int(own + sum(s.nbytes for s in self.slates))
