"""Kernels of the symmetric window join: chains per key hash, probed and extended in one order of
instants.

`head[bucket]` holds the youngest slot of both sides' chains side by side; node[slot] = (key, next
older slot).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
from numba import njit

Pairs = tuple[np.ndarray, np.ndarray]


@njit(cache=True, nogil=True)
def bucket_of(key, mask):
    h = np.uint64(key)
    h ^= h >> np.uint64(32)
    h *= np.uint64(0x9E3779B97F4A7C15)
    h ^= h >> np.uint64(29)
    return np.int64(h & mask)


@njit(cache=True, nogil=True)
def chain(head, side, node, ok, slots):
    """Put slots on top of their chains; rows whose key is NULL (not ok) stay outside.  node[slot] =
    (key, link)."""
    mask = np.uint64(len(head) - 1)
    for slot in slots:
        if ok[slot]:
            b = bucket_of(node[slot, 0], mask)
            node[slot, 1] = head[b, side]
            head[b, side] = slot


@njit(cache=True, nogil=True)
def along(head, side, node, keys):
    """Slots of one side in the chains of these keys that have them; each key stands there once."""
    mask = np.uint64(len(head) - 1)
    out, found = np.empty(2 * len(keys) + 16, np.int64), 0
    for key in keys:
        slot = head[bucket_of(key, mask), side]
        while slot >= 0:
            if node[slot, 0] == key:
                if found == len(out):
                    out = grown(out)
                out[found] = slot
                found += 1
            slot = node[slot, 1]
    return out[:found]


@njit(cache=True, nogil=True)
def grown(a):
    out = np.empty(2 * len(a), np.int64)
    out[: len(a)] = a
    return out


@njit(cache=True, nogil=True)
def turned(a, start, stop):
    stop -= 1
    while start < stop:
        a[start], a[stop] = a[stop], a[start]
        start += 1
        stop -= 1


@njit(cache=True, nogil=True)
def join_fifo(
    head, part, parts, at, enough, most, a_node, a_ok, a_ts, a_exp, b_node, b_ok, b_ts, b_exp
):
    """Both sides' new rows in one order of ts: probe the other side, then chain.

    `at` = (next new slot of a, of b, slots before which no row of a, of b is alive, turn, overflow)
    is where to begin and, afterwards, where to go on: the work ends behind the row with which the
    results are `enough`.  A row with more than `most` results sets the overflow; nothing can go on
    from there.  Rows of both sides expire in slot order.  So a chain, youngest first, is followed
    only while its slots are alive, and no expired row is touched.  Only rows whose bucket falls to
    `part` of `parts` (a power of two) are worked on, so parts may run side by side: they share no
    bucket and no row.  Answers the slots of both parts of each result and the turn (place in the
    order of all new rows) that made it: in order of turn, and within one turn in order of the
    partners' arrival."""
    i, j, a_old, b_old, turn = at[0], at[1], at[2], at[3], at[4]
    cap = min(2 * (len(a_ts) - i + len(b_ts) - j) // parts, enough) + 64
    out_a, out_b, out_turn = (
        np.empty(cap, np.int64),
        np.empty(cap, np.int64),
        np.empty(cap, np.int64),
    )
    found = 0
    mask, mine = np.uint64(len(head) - 1), parts - 1
    while found < enough and (i < len(a_ts) or j < len(b_ts)):
        turn += 1
        start = found
        if j == len(b_ts) or (i < len(a_ts) and a_ts[i] <= b_ts[j]):
            key = a_node[i, 0]
            bucket = bucket_of(key, mask)
            if bucket & mine == part and a_ok[i]:
                now = a_ts[i]
                while b_old < j and b_exp[b_old] <= now:
                    b_old += 1
                s = head[bucket, 1]
                while s >= b_old and found - start <= most:
                    if b_node[s, 0] == key:
                        if found == len(out_a):
                            out_a, out_b, out_turn = grown(out_a), grown(out_b), grown(out_turn)
                        out_a[found], out_b[found], out_turn[found] = i, s, turn
                        found += 1
                    s = b_node[s, 1]
                if found > start + 1:
                    turned(out_b, start, found)
                a_node[i, 1] = head[bucket, 0]
                head[bucket, 0] = i
            i += 1
        else:
            key = b_node[j, 0]
            bucket = bucket_of(key, mask)
            if bucket & mine == part and b_ok[j]:
                now = b_ts[j]
                while a_old < i and a_exp[a_old] <= now:
                    a_old += 1
                s = head[bucket, 0]
                while s >= a_old and found - start <= most:
                    if a_node[s, 0] == key:
                        if found == len(out_a):
                            out_a, out_b, out_turn = grown(out_a), grown(out_b), grown(out_turn)
                        out_a[found], out_b[found], out_turn[found] = s, j, turn
                        found += 1
                    s = a_node[s, 1]
                if found > start + 1:
                    turned(out_a, start, found)
                b_node[j, 1] = head[bucket, 1]
                head[bucket, 1] = j
            j += 1
        if found - start > most:
            at[5] = 1
            break
    at[0], at[1], at[2], at[3], at[4] = i, j, a_old, b_old, turn
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


def in_halves(
    head: np.ndarray, at: np.ndarray, enough: int, sides: Sequence[np.ndarray]
) -> Pairs | None:
    """`join_fifo` in two threads, each with half of the buckets (the kernel lets go of the
    interpreter's lock).

    None if a half found `enough` and stopped: the chains then hold rows up to different places in
    the order."""
    there = at.copy()
    other = _helper().submit(join_fifo, head, 1, 2, there, enough, enough, *sides)
    here = join_fifo(head, 0, 2, at, enough, enough, *sides)
    beside = other.result()
    return _merge_turns(*here, *beside) if max(len(here[0]), len(beside[0])) < enough else None


def halves_ready() -> None:
    """Compile or load what only `in_halves` calls."""
    none = np.empty(0, np.int64)
    _merge_turns(none, none, none, none, none, none)


@cache
def _helper() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="dsms-join")


@njit(cache=True, nogil=True)
def join_signed(
    head,
    at,
    enough,
    most,
    a_at,
    a_sign,
    a_slot,
    a_node,
    a_ok,
    a_exp,
    a_alive,
    b_at,
    b_sign,
    b_slot,
    b_node,
    b_ok,
    b_exp,
    b_alive,
):
    """As `join_fifo` for inputs of any pattern; rows in order of (instant, deletions first) over
    both sides.

    `at` = (next row of a, of b, -, -, -, overflow).  A deleted row takes back its results with
    partners still alive.  Answers also the instant and the sign of each result.

    Rows that have left are unlinked when a chain is first gone through: where one row at a time is
    alive, as of a value that changes with each row, a batch would else go through all that it
    brings, for each of its rows."""
    i, j = at[0], at[1]
    cap = min(2 * (len(a_at) - i + len(b_at) - j), enough) + 64
    out_a, out_b, out_ts, out_sign = (
        np.empty(cap, np.int64),
        np.empty(cap, np.int64),
        np.empty(cap, np.int64),
        np.empty(cap, np.int64),
    )
    found = 0
    mask = np.uint64(len(head) - 1)
    while found < enough and (i < len(a_at) or j < len(b_at)):
        left = j == len(b_at) or (
            i < len(a_at) and (a_at[i] < b_at[j] or (a_at[i] == b_at[j] and a_sign[i] <= b_sign[j]))
        )
        if left:
            now, sign, row = a_at[i], a_sign[i], a_slot[i]
            i += 1
            if row < 0:
                continue
            key, ok, other = a_node[row, 0], a_ok[row], 1
        else:
            now, sign, row = b_at[j], b_sign[j], b_slot[j]
            j += 1
            if row < 0:
                continue
            key, ok, other = b_node[row, 0], b_ok[row], 0
        place = bucket_of(key, mask)
        s = head[place, other] if ok else np.int64(-1)
        before = np.int64(-1)
        start = found
        while s >= 0 and found - start <= most:
            if left:
                gone, match, after = (
                    not b_alive[s] or b_exp[s] <= now,
                    b_node[s, 0] == key,
                    b_node[s, 1],
                )
            else:
                gone, match, after = (
                    not a_alive[s] or a_exp[s] <= now,
                    a_node[s, 0] == key,
                    a_node[s, 1],
                )
            if gone:  # for good: nobody comes past it again
                if before < 0:
                    head[place, other] = after
                elif left:
                    b_node[before, 1] = after
                else:
                    a_node[before, 1] = after
                s = after
                continue
            before = s
            if match:
                if found == len(out_a):
                    out_a, out_b, out_ts, out_sign = (
                        grown(out_a),
                        grown(out_b),
                        grown(out_ts),
                        grown(out_sign),
                    )
                out_a[found], out_b[found] = (row, s) if left else (s, row)
                out_ts[found], out_sign[found] = now, sign
                found += 1
            s = after
        if found - start > most:
            at[5] = 1
            break
        if found > start + 1:
            turned(out_a, start, found)
            turned(out_b, start, found)
        if sign < 0:
            if left:
                a_alive[row] = False
            else:
                b_alive[row] = False
        elif ok:
            if left:
                a_node[row, 1] = head[place, 0]
                head[place, 0] = row
            else:
                b_node[row, 1] = head[place, 1]
                head[place, 1] = row
    at[0], at[1] = i, j
    return out_a[:found], out_b[:found], out_ts[:found], out_sign[:found]
