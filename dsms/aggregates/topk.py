"""TOPK: the most frequent values of a group, the smaller one first among equally frequent ones, as
text [a, b, c].

Input    any pattern.     State  a counter per (group, value), hashed, and a treap per group
         (`parts.treap`) that holds its values in order of (count downwards, value): 40 bytes and a
         table row per distinct value of a group; the texts that stand reported.
Cost     O(log d) an event; O(k + log d) a touch, and its text.
Cells    frequency counters (`parts.counters`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow.compute as pc
from numba import njit

from dsms.aggregates.parts.base import Answers, Arg, ByGroup, GroupEvents, Leaving
from dsms.aggregates.parts.counters import Counters
from dsms.aggregates.parts.texts import OwnTexts, joined, shown
from dsms.aggregates.parts.treap import (
    NIL,
    TIMES,
    USED,
    first,
    fresh,
    insert,
    remove,
    spare,
    without,
)
from dsms.aggregates.parts.valued import Valued, enter, find, leave
from dsms.aggregates.parts.words import NONE, Codes
from dsms.sql.expr import AggCall
from dsms.sql.types import STRING, Type
from dsms.state.chains import END
from dsms.state.lengthening import grown

ROOM = 1 << 16  # words of answers worked on at a time


@njit(cache=True, nogil=True)
def _count(nodes, root, state, head, link, size, rows, places, g, w, sign, rank):
    """One more or one less w in group g."""
    at = find(head, link, size, rows, g, w, np.int64(0))
    if at == END:
        at = enter(head, link, size, rows, places, g, w, np.int64(0))
    x = rows[at, 3] - 1
    if x >= 0:
        remove(nodes, root, g, x, rank, True)
    else:
        x = fresh(nodes, state, w, 0)
        rows[at, 3] = x + 1
    nodes[x, TIMES] += sign
    if nodes[x, TIMES] > 0:
        insert(nodes, root, g, x, rank, True)
    else:
        leave(head, link, size, rows, places, at)
        spare(nodes, state, x)


@njit(cache=True, nogil=True)
def _serve(
    start,
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
    head,
    link,
    size,
    rows,
    places,
    k,
    out,
    ends,
    touch,
):
    """Events from `start` on, until `out` may have no room for another answer: (next event, answers
    given).

    The words of answer i end at ends[i]; touch[i] asked for it."""
    n, given = np.int64(0), 0
    for i in range(start, len(code)):
        if n + k > len(out) or given == len(touch):
            return i, given
        g, s = code[i], slot[i]
        if sign[i] != 0 and (len(valid) == 0 or valid[s]):
            _count(
                nodes,
                root,
                state,
                head,
                link,
                size,
                rows,
                places,
                g,
                words[s],
                sign[i],
                rank,
            )
        if emit[i] >= 0 and root[g] >= 0:
            n = first(nodes, root[g], k, out, n)
            ends[given], touch[given] = n, emit[i]
            given += 1
    return len(code), given


@dataclass(slots=True)
class TopK(OwnTexts, ByGroup):
    """The `k` most frequent values of type `type`."""

    k: int
    type: Type
    texts: Codes = field(default_factory=lambda: Codes(STRING, ordered=False))  # what answers mean
    nodes: np.ndarray = field(default_factory=lambda: np.zeros((0, 5), np.int64))
    root: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    values: Valued = field(default_factory=Valued)  # counts are nodes, from 1 on
    state: np.ndarray = field(default_factory=lambda: np.array([NIL, 0, 42], np.int64))

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        (a,) = args
        self._make_room(int(np.count_nonzero(feed.sign > 0)), feed.groups)
        # there are no more different values
        k = min(self.k, int(self.state[USED]) + len(feed.code))
        kept = (self.nodes, self.root, self.state, *self.values.kernel)
        found, start = np.empty(max(ROOM, k), np.int64), 0
        ends, touch = (
            np.empty(min(feed.touches, ROOM), np.int64),
            np.empty(min(feed.touches, ROOM), np.int64),
        )
        while start < len(feed.code):
            start, given = _serve(
                start,
                *feed.events,
                a.words,
                a.valid,
                a.rank,
                *kept,
                k,
                found,
                ends,
                touch,
            )
            if given:
                out.words[touch[:given]] = self._answers(found, ends[:given], a)
                out.valid[touch[:given]] = True

    def _answers(self, found: np.ndarray, ends: np.ndarray, a: Arg) -> np.ndarray:
        """Codes of the answers' texts."""
        rows = np.arange(ends[-1])
        column = a.coding.decode(found, NONE, np.ones(len(rows), np.bool_), rows)
        lists = joined(shown(column, self.type), np.concatenate([[0], ends]), ", ")
        return self.texts.encode(pc.binary_join_element_wise("[", lists, "]", ""))[0]

    def _make_room(self, arrivals: int, groups: int) -> None:
        self.nodes = grown(self.nodes, int(self.state[USED]) + arrivals)
        self.root = grown(self.root, groups, NIL)
        self.values.reserve(arrivals)

    def let_go(self, closed: np.ndarray) -> None:
        self.values.let_go(closed)
        kept = (self.nodes, self.root, self.state)
        self.nodes, self.root, where = without(*kept, closed)
        self.values.count_by(where)

    def held(self) -> tuple[np.ndarray, ...]:
        return (self.values.words,)

    @property
    def nbytes(self) -> int:
        return int(self.nodes.nbytes + self.root.nbytes) + self.values.nbytes + self.texts.nbytes


def follow(call: AggCall, leaving: Leaving) -> TopK:
    """The state that follows single rows."""
    return TopK(int(str(call.params[0])), call.args[0].type)


def algebra(call: AggCall) -> Counters:
    """The algebra of such a call."""
    return Counters(call, None)
