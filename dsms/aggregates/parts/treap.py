"""Sorted sets, one per group: treaps (Seidel, Aragon 1996) in shared arrays.

A node is a distinct value of a group with its multiplicity.  O(log d) expected for d distinct
values, to add, to take away, and to find the k-th smallest where nodes know the sizes of their
trees.  Values stand in order, or (`by_times`) the more frequent ones before them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.state.lengthening import grown

NIL = -1
DEEP = 512  # a path this long does not occur: the expected depth of a billion nodes is about 80
# columns of a node; without the last one it does not know its size
WORD, TIMES, LEFT, RIGHT, LUCK, SIZE = range(6)
# state: the first spare node (chained by LEFT), nodes used, random numbers
SPARE, USED, RANDOM = range(3)


@njit(cache=True, nogil=True)
def less(a, b, rank):
    return rank[a] < rank[b] if len(rank) else a < b


@njit(cache=True, nogil=True)
def _before(nodes, a, b, rank, by_times):
    """Whether node a stands before node b."""
    if by_times and nodes[a, TIMES] != nodes[b, TIMES]:
        return nodes[a, TIMES] > nodes[b, TIMES]
    return less(nodes[a, WORD], nodes[b, WORD], rank)


@njit(cache=True, nogil=True)
def _size(nodes, x):
    return nodes[x, SIZE] if x >= 0 else 0


@njit(cache=True, nogil=True)
def fresh(nodes, state, w, times):
    """A node that stands nowhere yet."""
    new = state[SPARE]
    if new >= 0:
        state[SPARE] = nodes[new, LEFT]
    else:
        new = state[USED]
        state[USED] += 1
    state[RANDOM] = (state[RANDOM] * 1103515245 + 12345) & 0x7FFFFFFF
    nodes[new, WORD], nodes[new, TIMES], nodes[new, LUCK] = w, times, state[RANDOM]
    return new


@njit(cache=True, nogil=True)
def spare(nodes, state, x):
    """Node x stands nowhere any more."""
    nodes[x, LEFT] = state[SPARE]
    state[SPARE] = x


@njit(cache=True, nogil=True)
def _members_before(nodes, x, new, rank, by_times):
    """Members of tree x that stand before the node `new`."""
    n = 0
    while x >= 0:
        if _before(nodes, x, new, rank, by_times):
            n += _size(nodes, nodes[x, LEFT]) + nodes[x, TIMES]
            x = nodes[x, RIGHT]
        else:
            x = nodes[x, LEFT]
    return n


@njit(cache=True, nogil=True)
def _split(nodes, x, new, rank, by_times):
    """Hang the nodes of tree x before and behind the node `new` under it."""
    sized = nodes.shape[1] > SIZE
    below = np.int64(0)  # members of what is left of x that stand before the node
    if sized:
        below = np.int64(_members_before(nodes, x, new, rank, by_times))
        nodes[new, SIZE] = _size(nodes, x) + nodes[new, TIMES]
    low, low_side, high, high_side = new, LEFT, new, RIGHT
    while x >= 0:
        if _before(nodes, x, new, rank, by_times):
            if sized:
                rest = below - _size(nodes, nodes[x, LEFT]) - nodes[x, TIMES]
                nodes[x, SIZE] = below
                below = rest
            nodes[low, low_side] = x
            low, low_side = x, RIGHT
            x = nodes[x, RIGHT]
        else:
            if sized:
                nodes[x, SIZE] -= below
            nodes[high, high_side] = x
            high, high_side = x, LEFT
            x = nodes[x, LEFT]
    nodes[low, low_side] = NIL
    nodes[high, high_side] = NIL


@njit(cache=True, nogil=True)
def insert(nodes, root, g, new, rank, by_times):
    """Put a node that stands nowhere, and whose like does not either, into the tree of group g."""
    sized = nodes.shape[1] > SIZE
    x, above, side = root[g], np.int64(NIL), LEFT
    while x >= 0 and nodes[x, LUCK] >= nodes[new, LUCK]:
        if sized:
            nodes[x, SIZE] += nodes[new, TIMES]
        above = x
        side = LEFT if _before(nodes, new, x, rank, by_times) else RIGHT
        x = nodes[x, side]
    _split(nodes, x, new, rank, by_times)
    if above >= 0:
        nodes[above, side] = new
    else:
        root[g] = new


@njit(cache=True, nogil=True)
def _unhook(nodes, root, g, old, above, side):
    """Put what hangs below node `old` in its place: under node `above`, on that side, or at the
    root."""
    sized = nodes.shape[1] > SIZE
    a, b = nodes[old, LEFT], nodes[old, RIGHT]
    while a >= 0 or b >= 0:
        if b < 0 or (a >= 0 and nodes[a, LUCK] >= nodes[b, LUCK]):
            x, next_side = a, RIGHT
            if sized:
                nodes[a, SIZE] += _size(nodes, b)
            a = nodes[a, RIGHT]
        else:
            x, next_side = b, LEFT
            if sized:
                nodes[b, SIZE] += _size(nodes, a)
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
def remove(nodes, root, g, old, rank, by_times):
    """Take a node without a size out of the tree of group g."""
    x, above, side = root[g], np.int64(NIL), LEFT
    while x != old:
        above = x
        side = LEFT if _before(nodes, old, x, rank, by_times) else RIGHT
        x = nodes[x, side]
    _unhook(nodes, root, g, old, above, side)


def without(
    nodes: np.ndarray, root: np.ndarray, state: np.ndarray, closed: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The trees but those of the groups that are `closed` (bool by group), with no spare nodes:
    nodes, roots, and the new place of each old node (-1: gone).  `state` is made to fit."""
    used = int(state[USED])
    gone = nodes[:used, TIMES] == 0
    root = root.copy()
    shut = np.flatnonzero(closed[: len(root)])
    front = root[shut]
    root[shut] = NIL
    while len(front := front[front >= 0]):
        gone[front] = True
        front = nodes[front][:, [LEFT, RIGHT]].ravel()
    kept = np.flatnonzero(~gone)
    where = np.full(used, NIL, np.int64)
    where[kept] = np.arange(len(kept))
    nodes = nodes[kept]
    for links in (root, nodes[:, LEFT], nodes[:, RIGHT]):
        some = links >= 0
        links[some] = where[links[some]]
    state[SPARE], state[USED] = NIL, len(kept)
    return nodes, root, where


# ---------------------------------------------------------------- multisets: in order, with sizes


@njit(cache=True, nogil=True)
def _seek(nodes, x, w, rank):
    while x >= 0 and nodes[x, WORD] != w:
        x = nodes[x, LEFT] if less(w, nodes[x, WORD], rank) else nodes[x, RIGHT]
    return x


@njit(cache=True, nogil=True)
def put(nodes, root, g, w, rank, state):
    """One more w in group g."""
    if _seek(nodes, root[g], w, rank) < 0:
        insert(nodes, root, g, fresh(nodes, state, w, 1), rank, False)
        return
    x = root[g]
    while nodes[x, WORD] != w:
        nodes[x, SIZE] += 1
        x = nodes[x, LEFT] if less(w, nodes[x, WORD], rank) else nodes[x, RIGHT]
    nodes[x, SIZE] += 1
    nodes[x, TIMES] += 1


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
    if nodes[x, TIMES] == 0:
        _unhook(nodes, root, g, x, above, side)
        spare(nodes, state, x)


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


@njit(cache=True, nogil=True)
def below(nodes, x, w, rank):
    """How many members of tree x are less than w."""
    n = np.int64(0)
    while x >= 0:
        if less(nodes[x, WORD], w, rank):
            n += _size(nodes, nodes[x, LEFT]) + nodes[x, TIMES]
            x = nodes[x, RIGHT]
        else:
            x = nodes[x, LEFT]
    return n


@njit(cache=True, nogil=True)
def times(nodes, x, w, rank):
    """How often w is in tree x."""
    x = _seek(nodes, x, w, rank)
    return nodes[x, TIMES] if x >= 0 else np.int64(0)


@njit(cache=True, nogil=True)
def first(nodes, x, k, out, at):
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


@dataclass(slots=True)
class Multisets:
    """The arrays.  Spare nodes are kept for later; their number is at most that of nodes in use at
    the peak."""

    nodes: np.ndarray = field(default_factory=lambda: np.zeros((0, 6), np.int64))
    root: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    state: np.ndarray = field(default_factory=lambda: np.array([NIL, 0, 42], np.int64))

    def make_room(self, arrivals: int, groups: int) -> None:
        self.nodes = grown(self.nodes, int(self.state[USED]) + arrivals)
        self.root = grown(self.root, groups, NIL)

    def words(self) -> np.ndarray:
        """All words in use."""
        used = self.nodes[: self.state[USED]]
        return used[used[:, TIMES] > 0, WORD]

    @property
    def nbytes(self) -> int:
        return int(self.nodes.nbytes + self.root.nbytes)
