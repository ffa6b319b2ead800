"""FIRST and LAST: the value of the oldest or youngest row of a group whose value is not NULL.

list     slots are in order of age.                              O(1) an event; 16 bytes a slot
keep     rows never leave.                                       O(1) an event, O(1) a group
heap     rows neither come nor leave in the order of their ages  O(log n) amortised an event
         (`parts.heap`)
As cells: `parts.picks`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.aggregates.parts.base import (
    NO_BOOLS,
    Aggregate,
    Answers,
    Arg,
    GroupEvents,
    Leaving,
)
from dsms.aggregates.parts.coded import Words
from dsms.aggregates.parts.heap import NO_WORDS, Heap
from dsms.aggregates.parts.links import NIL, moved_links, renamed
from dsms.aggregates.parts.picks import FIRST, LAST, Picks
from dsms.aggregates.parts.words import arg_coding
from dsms.sql.expr import AggCall
from dsms.state.lengthening import grown


@njit(cache=True, nogil=True)
def _ends(
    code, sign, slot, emit, words, valid, youngest, head, tail, before, after, out, out_valid
):
    for i in range(len(code)):
        g, s = code[i], slot[i]
        if len(valid) == 0 or valid[s]:
            if sign[i] > 0:  # to the end of the list
                before[s], after[s] = tail[g], NIL
                if tail[g] >= 0:
                    after[tail[g]] = s
                else:
                    head[g] = s
                tail[g] = s
            else:  # out of it
                a, b = before[s], after[s]
                if a >= 0:
                    after[a] = b
                else:
                    head[g] = b
                if b >= 0:
                    before[b] = a
                else:
                    tail[g] = a
        t = emit[i]
        if t >= 0 and head[g] >= 0:
            out[t] = words[tail[g] if youngest else head[g]]
            out_valid[t] = True


@njit(cache=True, nogil=True)
def _kept(code, slot, emit, words, valid, youngest, value, full, out, out_valid):
    for i in range(len(code)):
        g, s = code[i], slot[i]
        if (len(valid) == 0 or valid[s]) and (youngest or not full[g]):
            full[g], value[g] = True, words[s]
        t = emit[i]
        if t >= 0 and full[g]:
            out[t] = value[g]
            out_valid[t] = True


@dataclass(slots=True)
class EndOfList:
    """Rows leave."""

    youngest: bool
    ends: list[np.ndarray] = field(
        default_factory=lambda: [np.empty(0, np.int64) for _ in range(2)]
    )
    links: list[np.ndarray] = field(
        default_factory=lambda: [np.empty(0, np.int64) for _ in range(2)]
    )

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        (a,) = args
        self.ends = [grown(e, feed.groups, NIL) for e in self.ends]
        self.links = [grown(k, len(a.words), NIL) for k in self.links]
        _ends(
            *feed.events,
            a.words,
            a.valid,
            self.youngest,
            *self.ends,
            *self.links,
            out.words,
            out.valid,
        )

    def moved(self, where: np.ndarray) -> None:
        kept = np.flatnonzero(where >= 0)
        self.links = [moved_links(k, where, kept) for k in self.links]
        self.ends = [renamed(e, where) for e in self.ends]

    def held(self) -> tuple[np.ndarray, ...]:
        return ()

    @property
    def nbytes(self) -> int:
        return int(sum(a.nbytes for a in (*self.ends, *self.links)))


@dataclass(slots=True)
class EndKept:
    """Rows never leave."""

    youngest: bool
    value: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    full: np.ndarray = field(default_factory=lambda: np.zeros(0, np.bool_))

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        (a,) = args
        self.value, self.full = grown(self.value, feed.groups), grown(self.full, feed.groups)
        _kept(
            feed.code,
            feed.slot,
            feed.emit,
            a.words,
            a.valid,
            self.youngest,
            self.value,
            self.full,
            out.words,
            out.valid,
        )

    def moved(self, where: np.ndarray) -> None:
        return

    def held(self) -> tuple[np.ndarray, ...]:
        return (self.value[self.full],)

    @property
    def nbytes(self) -> int:
        return int(self.value.nbytes + self.full.nbytes)


@dataclass(slots=True)
class EndHeap(Heap):
    """FIRST and LAST of rows that neither come nor leave in the order of their ages."""

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        (a,) = args
        self._run(feed, a, NO_WORDS, a.words, NO_BOOLS, out)


def follow(call: AggCall, leaving: Leaving) -> Aggregate:
    """The state that follows single rows."""
    kinds = {"never": EndKept, "in order": EndOfList, "anyhow": EndOfList, "out of age": EndHeap}
    return kinds[leaving](call.fn == "last")


def algebra(call: AggCall) -> Picks:
    """The algebra of such a call."""
    return Picks(LAST if call.fn == "last" else FIRST, Words(arg_coding(call, 0)))
