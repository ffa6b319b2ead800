"""Sorted multisets, one per group, with access by rank: treaps (Seidel, Aragon 1996) in shared arrays.

A node is a distinct value of a group with its multiplicity; sizes count members.  O(log d) expected for d distinct
values, to add, to take away and to find the k-th smallest.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.aggregates.parts.base import grown

NIL = -1
DEEP = 512  # a path this long does not occur: the expected depth of a billion nodes is about 80
WORD, TIMES, SIZE, LEFT, RIGHT, LUCK = range(6)  # columns of a node


@njit(cache=True, nogil=True)
def less(a, b, rank):
    return rank[a] < rank[b] if len(rank) else a < b


@njit(cache=True, nogil=True)
def _size(nodes, x):
    return nodes[x, SIZE] if x >= 0 else 0


@njit(cache=True, nogil=True)
def _split(nodes, x, w, rank, new):
    """Hang the values of tree x below and above w (which it does not hold) under the node `new`."""
    spine = np.empty(DEEP, np.int64)
    depth = 0
    low, low_side, high, high_side = new, LEFT, new, RIGHT
    while x >= 0:
        spine[depth] = x
        depth += 1
        if less(nodes[x, WORD], w, rank):
            nodes[low, low_side] = x
            low, low_side = x, RIGHT
            x = nodes[x, RIGHT]
        else:
            nodes[high, high_side] = x
            high, high_side = x, LEFT
            x = nodes[x, LEFT]
    nodes[low, low_side] = NIL
    nodes[high, high_side] = NIL
    for k in range(depth - 1, -1, -1):
        x = spine[k]
        nodes[x, SIZE] = _size(nodes, nodes[x, LEFT]) + _size(nodes, nodes[x, RIGHT]) + nodes[x, TIMES]
    nodes[new, SIZE] = _size(nodes, nodes[new, LEFT]) + _size(nodes, nodes[new, RIGHT]) + nodes[new, TIMES]


@njit(cache=True, nogil=True)
def _seek(nodes, x, w, rank):
    while x >= 0 and nodes[x, WORD] != w:
        x = nodes[x, LEFT] if less(w, nodes[x, WORD], rank) else nodes[x, RIGHT]
    return x


@njit(cache=True, nogil=True)
def put(nodes, root, g, w, rank, state):
    """One more w in group g.  state: (first spare node, chained by LEFT; nodes used; random numbers)."""
    known = _seek(nodes, root[g], w, rank) >= 0
    luck = np.int64(0)
    if not known:
        luck = (state[2] * 1103515245 + 12345) & 0x7FFFFFFF
        state[2] = luck
    x, above, side = root[g], np.int64(NIL), LEFT
    while x >= 0 and (nodes[x, LUCK] >= luck or known):
        nodes[x, SIZE] += 1
        if known and nodes[x, WORD] == w:
            nodes[x, TIMES] += 1
            return
        above = x
        side = LEFT if less(w, nodes[x, WORD], rank) else RIGHT
        x = nodes[x, side]
    new = state[0]
    if new >= 0:
        state[0] = nodes[new, LEFT]
    else:
        new = state[1]
        state[1] += 1
    nodes[new, WORD], nodes[new, TIMES], nodes[new, LUCK] = w, 1, luck
    _split(nodes, x, w, rank, new)
    if above >= 0:
        nodes[above, side] = new
    else:
        root[g] = new


@njit(cache=True, nogil=True)
def _join(nodes, a, b):
    """Trees a (all smaller) and b as one."""
    top, above, side = np.int64(NIL), np.int64(NIL), LEFT
    while a >= 0 and b >= 0:
        if nodes[a, LUCK] >= nodes[b, LUCK]:
            nodes[a, SIZE] += nodes[b, SIZE]
            here, next_side = a, RIGHT
            a = nodes[a, RIGHT]
        else:
            nodes[b, SIZE] += nodes[a, SIZE]
            here, next_side = b, LEFT
            b = nodes[b, LEFT]
        if above >= 0:
            nodes[above, side] = here
        else:
            top = here
        above, side = here, next_side
    rest = a if a >= 0 else b
    if above < 0:
        return rest
    nodes[above, side] = rest
    return top


@njit(cache=True, nogil=True)
def take(nodes, root, g, w, rank, state):
    """One w less in group g (there is one)."""
    x, above, side = root[g], np.int64(NIL), LEFT
    while nodes[x, WORD] != w:
        nodes[x, SIZE] -= 1
        above = x
        side = LEFT if less(w, nodes[x, WORD], rank) else RIGHT
        x = nodes[x, side]
    nodes[x, SIZE] -= 1
    nodes[x, TIMES] -= 1
    if nodes[x, TIMES] > 0:
        return
    rest = _join(nodes, nodes[x, LEFT], nodes[x, RIGHT])
    if above >= 0:
        nodes[above, side] = rest
    else:
        root[g] = rest
    nodes[x, LEFT] = state[0]
    state[0] = x


@njit(cache=True, nogil=True)
def kth(nodes, x, k):
    """The k-th smallest word (from 0) of tree x."""
    while True:
        left = _size(nodes, nodes[x, LEFT])
        if k < left:
            x = nodes[x, LEFT]
        elif k < left + nodes[x, TIMES]:
            return nodes[x, WORD]
        else:
            k -= left + nodes[x, TIMES]
            x = nodes[x, RIGHT]


@dataclass(slots=True)
class Multisets:
    """The arrays.  Spare nodes are kept for later; their number is at most that of nodes in use at the peak."""

    nodes: np.ndarray = field(default_factory=lambda: np.zeros((0, 6), np.int64))
    root: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    state: np.ndarray = field(default_factory=lambda: np.array([NIL, 0, 42], np.int64))

    def make_room(self, arrivals: int, groups: int) -> None:
        self.nodes = grown(self.nodes, int(self.state[1]) + arrivals)
        self.root = grown(self.root, groups, NIL)

    def words(self) -> np.ndarray:
        """All words in use."""
        used = self.nodes[: self.state[1]]
        return used[used[:, TIMES] > 0, WORD]

    @property
    def nbytes(self) -> int:
        return int(self.nodes.nbytes + self.root.nbytes)
