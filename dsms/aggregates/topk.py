"""TOPK: the most frequent values of a group, the smaller one first among equally frequent ones, as text [a, b, c].

Input    any pattern.     State  a counter per (group, value), hashed, and a treap per group (Seidel, Aragon 1996) that
         holds its values in order of (count downwards, value): 40 bytes and a table row per distinct value of a group;
         the texts that stand reported.
Cost     O(log d) an event; O(k + log d) a touch, and its text.
Cells    frequency counters (`parts.counters`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow.compute as pc
from numba import njit

from dsms.aggregates.parts.base import Answers, Arg, ByGroup, Feed, Leaving, grown
from dsms.aggregates.parts.counters import Counters
from dsms.aggregates.parts.distinct import EMPTY, find, new_table, refill
from dsms.aggregates.parts.texts import joined, shown
from dsms.aggregates.parts.words import NONE, Codes
from dsms.sql.expr import AggCall
from dsms.sql.types import STRING, Type

NIL = -1
DEEP = 512  # a path this long does not occur
WORD, COUNT, LEFT, RIGHT, LUCK = range(5)  # columns of a node
SPARE, USED, RANDOM, TAKEN = range(4)  # state: first spare node (chained by LEFT), nodes used, luck, table rows taken
ROOM = 1 << 16  # words of answers worked on at a time


@njit(cache=True, nogil=True)
def _before(nodes, a, b, rank):
    if nodes[a, COUNT] != nodes[b, COUNT]:
        return nodes[a, COUNT] > nodes[b, COUNT]
    if len(rank):
        return rank[nodes[a, WORD]] < rank[nodes[b, WORD]]
    return nodes[a, WORD] < nodes[b, WORD]


@njit(cache=True, nogil=True)
def _insert(nodes, root, g, new, rank):
    x, above, side = root[g], np.int64(NIL), LEFT
    while x >= 0 and nodes[x, LUCK] >= nodes[new, LUCK]:
        above = x
        side = LEFT if _before(nodes, new, x, rank) else RIGHT
        x = nodes[x, side]
    if above >= 0:
        nodes[above, side] = new
    else:
        root[g] = new
    low, low_side, high, high_side = new, LEFT, new, RIGHT  # what stood here is split between its two sides
    while x >= 0:
        if _before(nodes, x, new, rank):
            nodes[low, low_side] = x
            low, low_side = x, RIGHT
            x = nodes[x, RIGHT]
        else:
            nodes[high, high_side] = x
            high, high_side = x, LEFT
            x = nodes[x, LEFT]
    nodes[low, low_side] = NIL
    nodes[high, high_side] = NIL


@njit(cache=True, nogil=True)
def _remove(nodes, root, g, old, rank):
    x, above, side = root[g], np.int64(NIL), LEFT
    while x != old:
        above = x
        side = LEFT if _before(nodes, old, x, rank) else RIGHT
        x = nodes[x, side]
    a, b = nodes[old, LEFT], nodes[old, RIGHT]
    while a >= 0 or b >= 0:
        if b < 0 or (a >= 0 and nodes[a, LUCK] >= nodes[b, LUCK]):
            x, next_side = a, RIGHT
            a = nodes[a, RIGHT]
        else:
            x, next_side = b, LEFT
            b = nodes[b, LEFT]
        if above >= 0:
            nodes[above, side] = x
        else:
            root[g] = x
        above, side = x, next_side
    if above >= 0:
        nodes[above, side] = NIL
    else:
        root[g] = NIL


@njit(cache=True, nogil=True)
def _count(nodes, root, table, state, g, w, sign, rank):
    """One more or one less w in group g."""
    at = find(table, g, w, np.int64(0))
    if table[at, 0] == EMPTY:
        table[at, 0], table[at, 1], table[at, 2] = g, w, 0
        state[TAKEN] += 1
    x = table[at, 3] - 1
    if x >= 0:
        _remove(nodes, root, g, x, rank)
    else:
        x = state[SPARE]
        if x >= 0:
            state[SPARE] = nodes[x, LEFT]
        else:
            x = state[USED]
            state[USED] += 1
        state[RANDOM] = (state[RANDOM] * 1103515245 + 12345) & 0x7FFFFFFF
        nodes[x, WORD], nodes[x, COUNT], nodes[x, LUCK] = w, 0, state[RANDOM]
        table[at, 3] = x + 1
    nodes[x, COUNT] += sign
    if nodes[x, COUNT] > 0:
        _insert(nodes, root, g, x, rank)
    else:
        table[at, 3] = 0
        nodes[x, LEFT] = state[SPARE]
        state[SPARE] = x


@njit(cache=True, nogil=True)
def _first(nodes, x, k, out, at):
    """The first k words of tree x into `out` from `at` on; answers where they end."""
    stack = np.empty(DEEP, np.int64)
    depth, stop = 0, at + k
    while at < stop:
        while x >= 0:
            stack[depth] = x
            depth += 1
            x = nodes[x, LEFT]
        if depth == 0:
            break
        depth -= 1
        x = stack[depth]
        out[at] = nodes[x, WORD]
        at += 1
        x = nodes[x, RIGHT]
    return at


@njit(cache=True, nogil=True)
def _serve(start, code, sign, slot, emit, words, valid, rank, nodes, root, table, state, k, out, ends, touch):
    """Events from `start` on, until `out` may have no room for another answer: (next event, answers given).

    The words of answer i end at ends[i]; touch[i] asked for it."""
    n, given = np.int64(0), 0
    for i in range(start, len(code)):
        if n + k > len(out) or given == len(touch):
            return i, given
        g, s = code[i], slot[i]
        if sign[i] != 0 and (len(valid) == 0 or valid[s]):
            _count(nodes, root, table, state, g, words[s], sign[i], rank)
        if emit[i] >= 0 and root[g] >= 0:
            n = _first(nodes, root[g], k, out, n)
            ends[given], touch[given] = n, emit[i]
            given += 1
    return len(code), given


@dataclass(slots=True)
class TopK(ByGroup):
    """The `k` most frequent values of type `type`."""

    k: int
    type: Type
    texts: Codes = field(default_factory=lambda: Codes(STRING, ordered=False))  # what answers mean
    nodes: np.ndarray = field(default_factory=lambda: np.zeros((0, 5), np.int64))
    root: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    table: np.ndarray = field(default_factory=lambda: new_table(256))
    state: np.ndarray = field(default_factory=lambda: np.array([NIL, 0, 42, 0], np.int64))

    def run(self, feed: Feed, args: tuple[Arg, ...], out: Answers) -> None:
        (a,) = args
        self._make_room(int(np.count_nonzero(feed.sign > 0)), feed.groups)
        k = min(self.k, int(self.state[USED]) + len(feed.code))  # there are no more different values
        kept = (self.nodes, self.root, self.table, self.state)
        found, start = np.empty(max(ROOM, k), np.int64), 0
        ends, touch = np.empty(min(feed.touches, ROOM), np.int64), np.empty(min(feed.touches, ROOM), np.int64)
        while start < len(feed.code):
            start, given = _serve(start, feed.code, feed.sign, feed.slot, feed.emit, a.words, a.valid, a.rank,
                                  *kept, k, found, ends, touch)  # fmt: skip
            if given:
                out.words[touch[:given]] = self._texts(found, ends[:given], a)
                out.valid[touch[:given]] = True

    def _texts(self, found: np.ndarray, ends: np.ndarray, a: Arg) -> np.ndarray:
        """Codes of the answers' texts."""
        rows = np.arange(ends[-1])
        column = a.coding.decode(found, NONE, np.ones(len(rows), np.bool_), rows)
        lists = joined(shown(column, self.type), np.concatenate([[0], ends]), ", ")
        return self.texts.encode(pc.binary_join_element_wise("[", lists, "]", ""))[0]

    def _make_room(self, arrivals: int, groups: int) -> None:
        self.nodes = grown(self.nodes, int(self.state[USED]) + arrivals)
        self.root = grown(self.root, groups, NIL)
        if 2 * (int(self.state[TAKEN]) + arrivals) <= len(self.table):
            return
        rows, live = 256, int(np.count_nonzero(self.table[:, 3] > 0))
        while rows < 3 * (live + arrivals):
            rows *= 2
        old, self.table = self.table, new_table(rows)
        self.state[TAKEN] = refill(old, self.table)

    def forget(self, reported: np.ndarray) -> None:
        """Only these words of answers are needed any more."""
        if self.texts.crowded(len(reported)):
            self.texts.purge([reported])

    def held(self) -> tuple[np.ndarray, ...]:
        return (self.table[self.table[:, 3] > 0, 1],)

    @property
    def nbytes(self) -> int:
        return int(self.nodes.nbytes + self.root.nbytes + self.table.nbytes) + self.texts.nbytes


def follow(call: AggCall, leaving: Leaving) -> TopK:
    """The state that follows single rows."""
    return TopK(int(str(call.params[0])), call.args[0].type)


def algebra(call: AggCall) -> Counters:
    """The algebra of such a call."""
    return Counters(call, None)
