"""Groups as lists of their rows in the order of age, of which each touch asks for all.

The slots of a group are linked in that order; a row that comes late walks to its place from the
young end.  O(1) an event in order, 16 bytes a slot; an answer takes as long as its group is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numba import njit

from dsms.aggregates.parts.base import GroupEvents
from dsms.aggregates.parts.heap import Linked, older
from dsms.state.lengthening import grown
from dsms.state.lists import cut, insert

ALL = 1 << 62
ROOM = 1 << 16  # words of answers worked on at a time


@njit(cache=True, nogil=True)
def _enter(g, s, ages, head, tail, before, after):
    """Slot s takes its place in the list of g."""
    at = tail[g]
    while at >= 0 and older(s, at, ages):
        at = before[at]
    insert(head, tail, before, after, g, at, s)


@njit(cache=True, nogil=True)
def _serve(
    start,
    code,
    sign,
    slot,
    emit,
    words,
    valid,
    ages,
    n,
    head,
    tail,
    before,
    after,
    out,
    ends,
    touch,
    most,
):
    """Events from `start` on, until `out` may have no room for another answer: (next event, answers
    given).  The words of answer i, the first `most` of its group, end at ends[i]; touch[i] asked
    for it."""
    m, given = np.int64(0), 0
    for i in range(start, len(code)):
        g, s = code[i], slot[i]
        if emit[i] >= 0 and (m + min(n[g] + 1, most) > len(out) or given == len(touch)):
            return i, given
        if sign[i] != 0 and (len(valid) == 0 or valid[s]):
            n[g] += sign[i]
            if sign[i] > 0:
                _enter(g, s, ages, head, tail, before, after)
            else:
                cut(head, tail, before, after, g, s)
        if emit[i] >= 0 and n[g] > 0:
            at, left = head[g], most
            while at >= 0 and left > 0:
                out[m] = words[at]
                m += 1
                left -= 1
                at = after[at]
            ends[given], touch[given] = m, emit[i]
            given += 1
    return len(code), given


def chains() -> list[np.ndarray]:
    return [np.empty(0, np.int64) for _ in range(2)]


class Listed(Linked):
    """`n` counts the rows of a group, `roots` are the first and last slot of its list; `links` the
    slots before and after each."""

    n: np.ndarray

    def _listed(
        self, feed: GroupEvents, words: np.ndarray, valid: np.ndarray, most: int = ALL
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """(words, ends, touch): the words of the i-th touch, the first `most` of its group's rows,
        end at ends[i]; of touches of groups without rows there is nothing.

        words, valid  by slot; no valid: all rows count"""
        self.n = grown(self.n, feed.groups)
        self._grow(feed, len(words))
        longest = min(int(self.n.max(initial=0)) + len(feed.code) + 1, most)
        found, some = np.empty(max(ROOM, longest), np.int64), min(feed.touches, ROOM)
        ends, touch, start = np.empty(some, np.int64), np.empty(some, np.int64), 0
        kept = (words, valid, feed.ages, self.n, *self.roots, *self.links)
        while start < len(feed.code):
            start, given = _serve(start, *feed.events, *kept, found, ends, touch, most)
            if given:
                yield found[: ends[given - 1]], ends[:given], touch[:given]
