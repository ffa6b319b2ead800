"""PSoup's way (Chandrasekaran and Franklin 2003, as 004 §3.1.3 tells it): a balanced search tree
over the last values in the order of their arrival, each node with the sum below it.  004 took a
red-black tree; this is an AVL tree in arrays, whose look-ups are as short as they get.  For
benchmarks only.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tests.benchmarks.synopses_kernels import FILL, LONGEST, _add_to_checksum

LEFT, RIGHT, HEIGHT, KEY, VALUE, SUM = range(6)  # columns of a node; node 0 is no node
DEEP = 64


@njit(cache=True)
def _update(t, x):
    a, b = t[x, LEFT], t[x, RIGHT]
    t[x, HEIGHT] = max(t[a, HEIGHT], t[b, HEIGHT]) + 1
    t[x, SUM] = t[a, SUM] + t[x, VALUE] + t[b, SUM]


@njit(cache=True)
def _rotated(t, x, side):
    """The child on the other side comes up in the place of x, which goes down to `side`."""
    y = t[x, 1 - side]
    t[x, 1 - side] = t[y, side]
    t[y, side] = x
    _update(t, x)
    _update(t, y)
    return y


@njit(cache=True)
def _balanced(t, x):
    _update(t, x)
    lean = t[t[x, RIGHT], HEIGHT] - t[t[x, LEFT], HEIGHT]
    if -2 < lean < 2:
        return x
    deep = RIGHT if lean > 0 else LEFT
    child = t[x, deep]
    if t[t[child, 1 - deep], HEIGHT] > t[t[child, deep], HEIGHT]:
        t[x, deep] = _rotated(t, child, deep)
    return _rotated(t, x, 1 - deep)


@njit(cache=True)
def _append(t, root, new, path):
    """The new node is the rightmost."""
    depth, x = 0, root
    while x:
        path[depth] = x
        depth += 1
        x = t[x, RIGHT]
    below = new
    for k in range(depth - 1, -1, -1):
        t[path[k], RIGHT] = below
        below = _balanced(t, path[k])
    return below


@njit(cache=True)
def _drop_oldest(t, root, path):
    """(root, the node that is free now)."""
    depth, x = 0, root
    while t[x, LEFT]:
        path[depth] = x
        depth += 1
        x = t[x, LEFT]
    below = t[x, RIGHT]
    for k in range(depth - 1, -1, -1):
        t[path[k], LEFT] = below
        below = _balanced(t, path[k])
    return below, x


@njit(cache=True)
def _come(t, root, free, m, v, path):
    new = free
    if m >= LONGEST:
        root, new = _drop_oldest(t, root, path)
    t[new, LEFT] = t[new, RIGHT] = 0
    t[new, KEY], t[new, VALUE] = m, v
    _update(t, new)
    return _append(t, root, new, path)


@njit(cache=True)
def psoup(values, inputs):
    """The contender."""
    t, path = np.zeros((LONGEST + 1, 6), np.int64), np.zeros(DEEP, np.int64)
    root, m, checksum = np.int64(0), 0, 0
    for _ in range(FILL):
        root = _come(t, root, m + 1, m, values[m], path)
        m += 1
    for op in inputs:
        if op < 0:
            root = _come(t, root, m + 1, m, values[m], path)
            m += 1
            continue
        first, x, total = m - op, root, 0
        while x:
            inside = np.int64(t[x, KEY] >= first)
            total += -inside & (t[x, VALUE] + t[t[x, RIGHT], SUM])
            x = t[x, RIGHT - inside]  # left of it if it is inside; nothing here to predict
        checksum = _add_to_checksum(checksum, total)
    return checksum
