"""Rows by age, one tree a group, each node with its tree summed up by its runs: treaps (Seidel,
Aragon 1996) whose nodes are slots.

O(log n) expected to put a row in, to take any out, and O(1) to tell of the whole group.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dsms.aggregates.parts.heap import older
from dsms.aggregates.parts.links import NIL
from dsms.aggregates.parts.runs import appended, joined, single
from dsms.aggregates.parts.treap import DEEP

BELOW, ABOVE = range(2)  # columns of a node: its older and its younger side


@njit(cache=True, nogil=True)
def _summed(x, nodes, runs, words, told, rank, down, start):
    """Sum up the tree of node x anew, from those of its sides."""
    low, high = nodes[x, BELOW], nodes[x, ABOVE]
    if low >= 0:
        for c in range(runs.shape[1]):
            runs[x, c] = runs[low, c]
        appended(runs, x, words[x], told[x], rank, down, start)
    else:
        single(runs, x, words[x], told[x])
    if high >= 0:
        joined(runs, x, runs, high, runs, x, rank, down, start)


@njit(cache=True, nogil=True)
def _put(s, g, ages, root, nodes, luck, path):
    """Hang node s into the tree of group g; answers how many nodes of `path`, from above, changed
    sides."""
    depth, x, above, side = 0, root[g], np.int64(NIL), BELOW
    while x >= 0 and luck[x] >= luck[s]:
        path[depth] = above = x
        depth += 1
        side = BELOW if older(s, x, ages) else ABOVE
        x = nodes[x, side]
    if above >= 0:
        nodes[above, side] = s
    else:
        root[g] = s
    path[depth] = s
    depth += 1
    low, low_side, high, high_side = s, BELOW, s, ABOVE
    while x >= 0:  # what is older goes below s, what is younger above it
        path[depth] = x
        depth += 1
        if older(x, s, ages):
            nodes[low, low_side] = x
            low, low_side = x, ABOVE
            x = nodes[x, ABOVE]
        else:
            nodes[high, high_side] = x
            high, high_side = x, BELOW
            x = nodes[x, BELOW]
    nodes[low, low_side] = NIL
    nodes[high, high_side] = NIL
    return depth


@njit(cache=True, nogil=True)
def _cut(s, g, ages, root, nodes, luck, path):
    """Take node s out; answers as `_put` does."""
    depth, x, above, side = 0, root[g], np.int64(NIL), BELOW
    while x != s:
        path[depth] = above = x
        depth += 1
        side = BELOW if older(s, x, ages) else ABOVE
        x = nodes[x, side]
    a, b = nodes[s, BELOW], nodes[s, ABOVE]
    while a >= 0 or b >= 0:
        if b < 0 or (a >= 0 and luck[a] >= luck[b]):
            x, next_side = a, ABOVE
            a = nodes[a, ABOVE]
        else:
            x, next_side = b, BELOW
            b = nodes[b, BELOW]
        if above >= 0:
            nodes[above, side] = x
        else:
            root[g] = x
        path[depth] = above = x
        depth += 1
        side = next_side
    if above >= 0:
        nodes[above, side] = NIL
    else:
        root[g] = NIL
    return depth


@njit(cache=True, nogil=True)
def run_ordered(
    code, sign, slot, emit, words, valid, also, rank, told, ages, down, start, seed, root, nodes,
    luck, runs, column, out, out_valid,
):  # many arrays  # fmt: skip
    """Events into the trees; `column` of each group's runs is its answer.  luck: priorities by
    slot."""
    path = np.empty(2 * DEEP, np.int64)
    for i in range(len(code)):
        g, s = code[i], slot[i]
        if (len(valid) == 0 or valid[s]) and (len(also) == 0 or also[s]):
            if sign[i] > 0:
                seed[0] = (seed[0] * 1103515245 + 12345) & 0x7FFFFFFF
                nodes[s, BELOW] = nodes[s, ABOVE] = NIL
                luck[s] = seed[0]
                depth = _put(s, g, ages, root, nodes, luck, path)
            else:
                depth = _cut(s, g, ages, root, nodes, luck, path)
            for k in range(depth - 1, -1, -1):
                _summed(path[k], nodes, runs, words, told, rank, down, start)
        t = emit[i]
        if t >= 0 and root[g] >= 0:
            out[t] = runs[root[g], column]
            out_valid[t] = True
