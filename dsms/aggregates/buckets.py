"""HISTOGRAM(x, edges): exact counts of ranges with given edges.

State    a row of counters a group, one more than there are edges.   Cost  O(log edges) an event; an
answer is written anew whenever its group changes, O(edges).
Cells    the same; they add and subtract exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from dsms import lists
from dsms.aggregates.parts.base import Answers, Arg, ByGroup, GroupEvents, Leaving
from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.parts.fold import Folds
from dsms.aggregates.parts.texts import OwnTexts
from dsms.aggregates.parts.words import Codes, Coding, validity
from dsms.sql.expr import AggCall
from dsms.sql.types import STRING
from dsms.state.lengthening import grown

ROOM = 1 << 16  # counters of answers worked on at a time


@njit(cache=True, nogil=True)
def _count(start, code, sign, slot, emit, words, valid, edges, counts, out, asked):
    """Counts of each answer into `out`, until that is full; asked[i] is the touch of answer i.
    (The event to go on with, how many answers there are.)"""
    given = 0
    for i in range(start, len(code)):
        if given == len(out):
            return i, given
        g, s = code[i], slot[i]
        if sign[i] != 0 and (len(valid) == 0 or valid[s]):
            counts[g, np.searchsorted(edges, words[s], side="right")] += sign[i]
        if emit[i] >= 0:
            out[given] = counts[g]
            asked[given] = emit[i]
            given += 1
    return len(code), given


@dataclass(slots=True)
class BucketRows(ByGroup, OwnTexts):
    """HISTOGRAM by group.  edges: int64 words, ascending;  counts int64[groups, edges + 1]"""

    edges: np.ndarray
    texts: Codes = field(default_factory=lambda: Codes(STRING, ordered=False))  # what answers mean
    counts: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.counts = np.zeros((0, len(self.edges) + 1), np.int64)

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        (a,) = args
        self.counts = grown(self.counts, feed.groups)
        width = len(self.edges) + 1
        some = max(1, min(feed.touches, ROOM // width))
        found, asked = np.empty((some, width), np.int64), np.empty(some, np.int64)
        start = 0
        while start < len(feed.code):
            start, n = _count(
                start, *feed.events, a.words, a.valid, self.edges, self.counts, found, asked
            )
            there = found[:n].any(axis=1)
            touch = asked[:n][there]
            if len(touch):
                out.words[touch] = self.texts.encode(_lists(found[:n][there]))[0]
                out.valid[touch] = True

    @property
    def nbytes(self) -> int:
        return int(self.counts.nbytes + self.edges.nbytes) + self.texts.nbytes


def _lists(counts: np.ndarray) -> pa.Array:
    """Each row of counts as a list."""
    starts = np.arange(len(counts) + 1) * counts.shape[1]
    return lists.made(starts, pa.array(counts.ravel()), "INT")


@dataclass(slots=True, eq=False, weakref_slot=True)
class Counts:
    """n cells.  counts int64[n, edges + 1]"""

    counts: np.ndarray


@dataclass(slots=True)
class BucketCells(Folds):
    """HISTOGRAM in cells."""

    edges: np.ndarray
    coding: Coding

    subtractable = True
    constant = True

    @property
    def breadth(self) -> int:
        return len(self.edges) + 1

    def empty(self, cells: int) -> Counts:
        return Counts(np.zeros((cells, self.breadth), np.int64))

    def lift(self, rows: CellRows, cells: int) -> Counts:
        (column,) = rows.args
        words, valid = self.coding.encode(column)[0], validity(column)
        width = self.breadth
        place = rows.cell * width + np.searchsorted(self.edges, words, side="right")
        found = np.bincount(place if valid is None else place[valid], minlength=cells * width)
        return Counts(found.astype(np.int64, copy=False).reshape(cells, width))

    def combine(self, older: Counts, newer: Counts) -> Counts:
        return Counts(older.counts + newer.counts)

    def subtract(self, whole: Counts, part: Counts) -> Counts:
        return Counts(whole.counts - part.counts)

    def lower(self, state: Counts) -> pa.Array:
        there = pa.array(self.present(state))
        return pc.if_else(there, _lists(state.counts), pa.scalar(None, pa.string()))

    def present(self, state: Counts) -> np.ndarray:
        return np.asarray(state.counts.any(axis=1))

    def size(self, state: Counts) -> int:
        return len(state.counts)

    def take(self, state: Counts, index: np.ndarray) -> Counts:
        if not len(state.counts):
            return self.empty(len(index))
        return Counts(np.where((index >= 0)[:, None], state.counts[index], 0))

    def concat(self, states: Sequence[Counts]) -> Counts:
        return Counts(np.concatenate([self.empty(0).counts, *(s.counts for s in states)]))

    def nbytes(self, state: Counts) -> int:
        return int(state.counts.nbytes)


def _edges(call: AggCall) -> tuple[np.ndarray, Coding]:
    """The edges as words, and how values become such."""
    (text,) = call.params
    type_ = call.args[0].type
    found = lists.read(pa.array([text], pa.string()), str(type_))
    coding = Coding(type_)
    return coding.encode(found.flatten())[0].copy(), coding


def follow(call: AggCall, leaving: Leaving) -> BucketRows:
    """The state that follows single rows."""
    return BucketRows(_edges(call)[0])


def algebra(call: AggCall) -> BucketCells:
    """The algebra of such a call."""
    return BucketCells(*_edges(call))
