"""Kernels of the symmetric window join: chains per key hash, probed and extended in one order of instants.

`head[bucket]` holds the youngest slot of both sides' chains side by side; node[slot] = (key, next older slot).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _bucket(key, mask):
    h = np.uint64(key)
    h ^= h >> np.uint64(32)
    h *= np.uint64(0x9E3779B97F4A7C15)
    h ^= h >> np.uint64(29)
    return np.int64(h & mask)


@njit(cache=True, nogil=True)
def chain(head, side, node, ok, slots):
    """Put slots on top of their chains; rows whose key is NULL (not ok) stay outside.  node[slot] = (key, link)."""
    mask = np.uint64(len(head) - 1)
    for slot in slots:
        if ok[slot]:
            b = _bucket(node[slot, 0], mask)
            node[slot, 1] = head[b, side]
            head[b, side] = slot


@njit(cache=True, nogil=True)
def _grow(a):
    out = np.empty(2 * len(a), np.int64)
    out[: len(a)] = a
    return out


@njit(cache=True, nogil=True)
def _reverse(a, start, stop):
    stop -= 1
    while start < stop:
        a[start], a[stop] = a[stop], a[start]
        start += 1
        stop -= 1


@njit(cache=True, nogil=True)
def join_fifo(head, part, parts, a_node, a_ok, a_ts, a_exp, a_first, a_old, b_node, b_ok, b_ts, b_exp, b_first, b_old):
    """Both sides' new rows (slots from a_first/b_first on) in one order of ts: probe the other side, then chain.

    Rows of both sides expire in slot order; none before slot a_old/b_old is alive.  So a chain, youngest first, is
    followed only while its slots are alive, and no expired row is touched.  Only rows whose bucket falls to `part` of
    `parts` (a power of two) are worked on, so parts may run side by side: they share no bucket and no row.
    Answers the slots of both parts of each result and the turn (place in the order of all new rows) that made it: in
    order of turn, and within one turn in order of the partners' arrival."""
    cap = 2 * (len(a_ts) - a_first + len(b_ts) - b_first) // parts + 64
    out_a, out_b, out_turn = np.empty(cap, np.int64), np.empty(cap, np.int64), np.empty(cap, np.int64)
    found = turn = 0
    mask, mine = np.uint64(len(head) - 1), parts - 1
    i, j = a_first, b_first
    while i < len(a_ts) or j < len(b_ts):
        turn += 1
        if j == len(b_ts) or (i < len(a_ts) and a_ts[i] <= b_ts[j]):
            key = a_node[i, 0]
            at = _bucket(key, mask)
            if at & mine == part and a_ok[i]:
                now = a_ts[i]
                while b_old < j and b_exp[b_old] <= now:
                    b_old += 1
                start = found
                s = head[at, 1]
                while s >= b_old:
                    if b_node[s, 0] == key:
                        if found == len(out_a):
                            out_a, out_b, out_turn = _grow(out_a), _grow(out_b), _grow(out_turn)
                        out_a[found], out_b[found], out_turn[found] = i, s, turn
                        found += 1
                    s = b_node[s, 1]
                if found > start + 1:
                    _reverse(out_b, start, found)
                a_node[i, 1] = head[at, 0]
                head[at, 0] = i
            i += 1
        else:
            key = b_node[j, 0]
            at = _bucket(key, mask)
            if at & mine == part and b_ok[j]:
                now = b_ts[j]
                while a_old < i and a_exp[a_old] <= now:
                    a_old += 1
                start = found
                s = head[at, 0]
                while s >= a_old:
                    if a_node[s, 0] == key:
                        if found == len(out_a):
                            out_a, out_b, out_turn = _grow(out_a), _grow(out_b), _grow(out_turn)
                        out_a[found], out_b[found], out_turn[found] = s, j, turn
                        found += 1
                    s = a_node[s, 1]
                if found > start + 1:
                    _reverse(out_a, start, found)
                b_node[j, 1] = head[at, 1]
                head[at, 1] = j
            j += 1
    return out_a[:found], out_b[:found], out_turn[:found]


@njit(cache=True, nogil=True)
def _merge_turns(a0, b0, turn0, a1, b1, turn1):
    """Results of two parts in order of turn; no turn is in both."""
    n, m = len(a0), len(a1)
    a, b = np.empty(n + m, np.int64), np.empty(n + m, np.int64)
    i = j = 0
    for k in range(n + m):
        if j == m or (i < n and turn0[i] < turn1[j]):
            a[k], b[k] = a0[i], b0[i]
            i += 1
        else:
            a[k], b[k] = a1[j], b1[j]
            j += 1
    return a, b


def in_halves(head: np.ndarray, args: Sequence[object]) -> tuple[np.ndarray, np.ndarray]:
    """`join_fifo` in two threads, each with half of the buckets (the kernel lets go of the interpreter's lock)."""
    other = _helper().submit(join_fifo, head, 1, 2, *args)
    here = join_fifo(head, 0, 2, *args)
    return _merge_turns(*here, *other.result())


@cache
def _helper() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="dsms-join")


@njit(cache=True, nogil=True)
def join_signed(head, a_at, a_sign, a_slot, a_node, a_ok, a_exp, a_alive,
                b_at, b_sign, b_slot, b_node, b_ok, b_exp, b_alive):  # fmt: skip
    """As `join_fifo` for inputs of any pattern; rows in order of (instant, deletions first) over both sides.

    A deleted row takes back its results with partners still alive.  Answers also the sign of each result."""
    cap = 2 * (len(a_at) + len(b_at)) + 64
    out_a, out_b, out_ts, out_sign = (np.empty(cap, np.int64), np.empty(cap, np.int64),
                                      np.empty(cap, np.int64), np.empty(cap, np.int64))  # fmt: skip
    found = 0
    mask = np.uint64(len(head) - 1)
    i = j = 0
    while i < len(a_at) or j < len(b_at):
        left = j == len(b_at) or (
            i < len(a_at) and (a_at[i] < b_at[j] or (a_at[i] == b_at[j] and a_sign[i] <= b_sign[j]))
        )
        if left:
            now, sign, row = a_at[i], a_sign[i], a_slot[i]
            i += 1
            if row < 0:
                continue
            key, ok = a_node[row, 0], a_ok[row]
            s = head[_bucket(key, mask), 1] if ok else np.int64(-1)
        else:
            now, sign, row = b_at[j], b_sign[j], b_slot[j]
            j += 1
            if row < 0:
                continue
            key, ok = b_node[row, 0], b_ok[row]
            s = head[_bucket(key, mask), 0] if ok else np.int64(-1)
        start = found
        while s >= 0:
            if left:
                match, after = b_alive[s] and b_exp[s] > now and b_node[s, 0] == key, b_node[s, 1]
            else:
                match, after = a_alive[s] and a_exp[s] > now and a_node[s, 0] == key, a_node[s, 1]
            if match:
                if found == len(out_a):
                    out_a, out_b, out_ts, out_sign = _grow(out_a), _grow(out_b), _grow(out_ts), _grow(out_sign)
                out_a[found], out_b[found] = (row, s) if left else (s, row)
                out_ts[found], out_sign[found] = now, sign
                found += 1
            s = after
        if found > start + 1:
            _reverse(out_a, start, found)
            _reverse(out_b, start, found)
        if sign < 0:
            if left:
                a_alive[row] = False
            else:
                b_alive[row] = False
        elif ok:
            at = _bucket(key, mask)
            if left:
                a_node[row, 1] = head[at, 0]
                head[at, 0] = row
            else:
                b_node[row, 1] = head[at, 1]
                head[at, 1] = row
    return out_a[:found], out_b[:found], out_ts[:found], out_sign[:found]
