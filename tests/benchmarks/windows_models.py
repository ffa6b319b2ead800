"""The structures of Golab, Garg, Özsu 2004 as they are described, over arrays instead of pointers.

Set-valued: a sub-window is a LIST of tuples, AGGR (a sorted list of values with counts), HASH (5
such lists); the window has no index, a sorted list (L), a tree (T) or hashed sorted lists (H).  A
bucketed sorted list serves for AGGR and L (one bucket), HASH and H.  GROUP and G are counts of
ranges.  Attribute-valued: rings of tuples below an L-index, plain, AUX, BW and DB.
"""

from __future__ import annotations

import numpy as np
from numba import njit

NONE, L, T, H = range(4)
LIST, AGGR, HASH = range(3)
H_BUCKETS, HASH_BUCKETS = 100, 5
PURGE = 20_000  # tuples between two purges of values that are not there any more
RING, AUX, BW, DB = range(4)


@njit(cache=True, nogil=True)
def _enter(head, at, key, link, used, value):
    """The node of a value in a sorted list, made if need be; and the next node that is free."""
    before, node = -1, head[at]
    while node >= 0 and key[node] < value:
        before, node = node, link[node]
    if node >= 0 and key[node] == value:
        return node, used
    key[used], link[used] = value, node
    if before < 0:
        head[at] = used
    else:
        link[before] = used
    return used, used + 1


@njit(cache=True, nogil=True)
def _plant(root, key, left, right, weight, used, value):
    """The node of a value in a treap, made if need be; the root, and the next free node."""
    node = root
    while node >= 0 and key[node] != value:
        node = left[node] if value < key[node] else right[node]
    if node >= 0:
        return node, root, used
    new = used
    key[new], left[new], right[new] = value, -1, -1
    weight[new] = np.random.random()
    above, node, smaller = -1, root, False
    while node >= 0 and weight[node] >= weight[new]:
        above, smaller = node, value < key[node]
        node = left[node] if smaller else right[node]
    if above < 0:
        root = new
    elif smaller:
        left[above] = new
    else:
        right[above] = new
    low, high = new, new  # split what hung there
    while node >= 0:
        if key[node] < value:
            if low == new:
                left[new] = node
            else:
                right[low] = node
            low, node = node, right[node]
            right[low] = -1
        else:
            if high == new:
                right[new] = node
            else:
                left[high] = node
            high, node = node, left[node]
            left[high] = -1
    return new, root, used + 1


@njit(cache=True, nogil=True)
def _in_order(root, key, left, right, counts, out):
    """Values that are there, ascending; how many."""
    stack = np.empty(256, np.int64)
    n, depth, node = 0, 0, root
    while depth > 0 or node >= 0:
        while node >= 0:
            stack[depth] = node
            depth += 1
            node = left[node]
        depth -= 1
        node = stack[depth]
        if counts[node, 0] + counts[node, 1] > 0:
            out[n] = key[node]
            n += 1
        node = right[node]
    return n


@njit(cache=True, nogil=True)
def maintain(values, subs, store, index, query):
    """Windows of `subs` sub-windows move over values[window, tuple]; all is filled first, by half
    of them.  Answers when each sub-window is full, of the last: sorted values (query 1) or, of two
    windows, how many values both have (2)."""
    windows, total = values.shape
    b = total // 2 // subs
    room = 2 * windows * total + 2
    width = 1 if store == AGGR else HASH_BUCKETS
    head = np.full((windows * subs, width), -1, np.int64)  # of sub-windows
    skey, slink = (
        np.empty((windows * subs, b + 1), np.int64),
        np.empty((windows * subs, b + 1), np.int64),
    )
    times, to = (
        np.empty((windows * subs, b + 1), np.int64),
        np.empty((windows * subs, b + 1), np.int64),
    )
    used = np.zeros(windows * subs, np.int64)
    buckets = H_BUCKETS if index == H else 1
    ihead = np.full(buckets, -1, np.int64)
    key, link, right = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    weight, counts = np.empty(room), np.zeros((room, 2), np.int64)
    n, root, answer, purged = 0, -1, 0, 0
    out = np.empty(total, np.int64)
    for k in range(total // b):
        for w in range(windows):
            slot = w * subs + k % subs
            for at in range(used[slot]):  # the oldest sub-window leaves
                if index != NONE:
                    counts[to[slot, at], w] -= times[slot, at]
            used[slot] = 0
            head[slot] = -1
            for i in range(k * b, (k + 1) * b):
                v, before = values[w, i], used[slot]
                if store == LIST:
                    node = before
                    skey[slot, node], slink[slot, node] = v, node - 1
                    used[slot] = node + 1
                else:
                    node, used[slot] = _enter(
                        head[slot], v % width, skey[slot], slink[slot], before, v
                    )
                if used[slot] > before:
                    times[slot, node] = 0
                    if index == T:
                        to[slot, node], root, n = _plant(root, key, link, right, weight, n, v)
                    elif index != NONE:
                        to[slot, node], n = _enter(ihead, v % buckets, key, link, n, v)
                times[slot, node] += 1
            for at in range(used[slot]):
                if index != NONE:
                    counts[to[slot, at], w] += times[slot, at]
        if (k + 1) * b - purged >= PURGE and index != NONE:
            purged = (k + 1) * b
            n, root = _purge(index, ihead, key, link, right, weight, counts, n, root, to, used, b)
        if query == 1 and k * b >= total // 2:
            answer = _histogram(index, ihead, key, link, right, counts, root, out)
        elif query == 2 and k * b >= total // 2:
            answer = 0
            for node in range(n):
                answer += counts[node, 0] > 0 and counts[node, 1] > 0
    return answer, out


@njit(cache=True, nogil=True)
def _purge(index, ihead, key, link, right, weight, counts, n, root, to, used, b):
    """Forget values whose count is zero; the others move together."""
    moved = np.full(n, -1, np.int64)
    m = 0
    for node in range(n):
        if counts[node, 0] + counts[node, 1] > 0:
            moved[node] = m
            key[m], weight[m] = key[node], weight[node]
            counts[m, 0], counts[m, 1] = counts[node, 0], counts[node, 1]
            if index != T:
                link[m] = link[node]
            m += 1
    for slot in range(len(used)):
        for at in range(used[slot]):
            to[slot, at] = moved[to[slot, at]]
    counts[m:n] = 0
    if index == T:
        root, made = -1, 0
        for node in range(m):
            _, root, made = _plant(root, key, link, right, weight, made, key[node])
        return m, root
    order = np.argsort(-key[:m])  # lists anew, from their ends
    ihead[:] = -1
    for node in order:
        at = key[node] % len(ihead)
        link[node] = ihead[at]
        ihead[at] = node
    return m, root


@njit(cache=True, nogil=True)
def _histogram(index, ihead, key, link, right, counts, root, out):
    """Sorted values of an index."""
    n = 0
    if index == T:
        return _in_order(root, key, link, right, counts, out)
    if index == L:
        return 1 if ihead[0] >= 0 else 0  # the list is the answer
    for at in range(len(ihead)):
        node = ihead[at]
        while node >= 0:
            if counts[node, 0] > 0:
                out[n] = key[node]
                n += 1
            node = link[node]
    out[:n] = np.sort(out[:n])
    return n


@njit(cache=True, nogil=True)
def groups(values, subs, ranges, most, query):
    """G over GROUP: counts of `ranges` ranges of values below `most`, as lists that are gone
    through; of two windows how many ranges both have (query 2)."""
    windows, total = values.shape
    b = total // 2 // subs
    held = np.zeros((windows * subs, ranges), np.int64)
    counts, answer = np.zeros((windows, ranges), np.int64), 0
    ends = np.array([(g + 1) * most // ranges for g in range(ranges)])
    for k in range(total // b):
        for w in range(windows):
            slot = w * subs + k % subs
            delta = -held[slot]
            held[slot] = 0
            for i in range(k * b, (k + 1) * b):
                g = 0
                while values[w, i] >= ends[g]:
                    g += 1
                held[slot, g] += 1
            counts[w] += delta + held[slot]
        if query == 2 and k * b >= total // 2:
            answer = 0
            for g in range(ranges):
                answer += counts[0, g] > 0 and counts[1, g] > 0
    return answer


# ---------------------------------------------------------------- rings of tuples


@njit(cache=True, nogil=True)
def insert(kind, values, at, b, ihead, key, link, n, first, last, nxt, node_of):
    """b tuples from `at` on, below an L-index; how many nodes that has then.

    first: of each value the oldest tuple (of BW and DB the youngest, since rings run back)."""
    ahead = np.full(1, -1, np.int64)
    akey, alink, to = np.empty(b, np.int64), np.empty(b, np.int64), np.empty(b, np.int64)
    young, old = np.empty(b, np.int64), np.empty(b, np.int64)
    used = 0
    for t in range(at, at + b):
        nxt[t] = -1
        if kind == RING:
            node, n = _enter(ihead, 0, key, link, n, values[t])
            node_of[t] = node
            if first[node] < 0:
                first[node] = t
            else:
                end = first[node]
                while nxt[end] >= 0:
                    end = nxt[end]
                nxt[end] = t
            continue
        a, more = _enter(ahead, 0, akey, alink, used, values[t])
        if more > used:
            used = more
            to[a], n = _enter(ihead, 0, key, link, n, values[t])
            end = first[to[a]]
            while end >= 0 and nxt[end] >= 0:  # to the end of the ring
                end = nxt[end]
            if kind == AUX:
                if end < 0:
                    first[to[a]] = t
                else:
                    nxt[end] = t
            old[a] = t
        elif kind == AUX:
            nxt[young[a]] = t
        else:
            nxt[t] = young[a]
        young[a] = t
        node_of[t] = to[a]
    if kind >= BW:
        for a in range(used):  # attach: the rings go on where they were
            nxt[old[a]] = first[to[a]]
            first[to[a]] = young[a]
    return n


@njit(cache=True, nogil=True)
def delete(kind, at, b, first, nxt, node_of, dirty, end_of):
    """The oldest b tuples, from `at` on, leave."""
    if kind <= AUX:
        for t in range(at, at + b):
            end = t
            while nxt[end] >= 0:  # all the way back to the index
                end = nxt[end]
            first[node_of[end]] = nxt[t]
        return
    gone = np.zeros(b, np.bool_)
    for t in range(at + b - 1, at - 1, -1):  # the youngest first
        if gone[t - at]:
            continue
        node, old = node_of[t], nxt[t]
        while old >= at:  # in bulk
            gone[old - at] = True
            old = nxt[old]
        if kind == DB:
            dirty[node], end_of[node] = True, t
            nxt[t] = -1
            continue
        if first[node] == t:
            first[node] = -1
            continue
        end = first[node]
        while nxt[end] != t:
            end = nxt[end]
        nxt[end] = -1


@njit(cache=True, nogil=True)
def read(kind, ihead, link, first, nxt, dirty, end_of, second, out):
    """The second attribute in the order of the first; how many tuples."""
    n, node = 0, ihead[0]
    while node >= 0:
        t = first[node]
        while t >= 0:
            if kind == DB and dirty[node] and t == end_of[node]:
                break
            out[n] = second[t]
            n += 1
            t = nxt[t]
        node = link[node]
    return n
