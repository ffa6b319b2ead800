"""Kernels of the join of many windows: rows of all inputs in one arena, chained per key hash.

arena[offset[i] + slot] = (key, next older slot, end of life) of that row of input i; head[bucket,
i] is the youngest slot of input i's chain.  So one compiled kernel serves any number of inputs.  A
row whose end is GONE matches nothing: its key is NULL, or it was deleted.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dsms.operators.join_kernels import bucket_of, grown

KEY, NEXT, END = 0, 1, 2
GONE = np.iinfo(np.int64).min
MANY = 1 << 60  # results of one row, at most: more are never counted, nor got through


@njit(cache=True, nogil=True)
def chain_rows(head, arena, offset, i, slots):
    """Put rows of input i on top of their chains."""
    mask = np.uint64(len(head) - 1)
    for slot in slots:
        row = offset[i] + slot
        if arena[row, END] != GONE:
            bucket = bucket_of(arena[row, KEY], mask)
            arena[row, NEXT] = head[bucket, i]
            head[bucket, i] = slot


@njit(cache=True, nogil=True)
def merged(when, sign, first):
    """Rows of several inputs, those of input i at [first[i], first[i + 1]), in order of (instant,
    deletions first, input, place)."""
    n = len(first) - 1
    at = first[:-1].copy()
    out = np.empty(len(when), np.int64)
    for k in range(len(when)):
        least = -1
        for i in range(n):
            r = at[i]
            if r < first[i + 1] and (
                least < 0
                or when[r] < when[at[least]]
                or (when[r] == when[at[least]] and sign[r] < sign[at[least]])
            ):
                least = i
        out[k] = at[least]
        at[least] += 1
    return out


@njit(cache=True, nogil=True)
def _wider(a):
    out = np.empty((2 * len(a), a.shape[1]), np.int64)
    out[: len(a)] = a
    return out


@njit(cache=True, nogil=True)
def multi_join(head, arena, offset, old, fresh, fifo, order, at, enough, when, sign, side, slot):
    """New and deleted rows in their order: look into the other windows, then chain or forget.

    when, sign, side, slot  of each event, in order of (instant, deletions first, input, key); a
                            group is made of those that are equal in all four.  It looks once
    order    int64[n, n - 1]: the windows that a row of an input looks into, one after the other
    old      int64[n]: slots of an input before which none is alive (FIFO inputs alone)
    fresh    int64[n]: slots of an input from which on none is chained yet
    at       (next event, results of its group that were told already): where to begin and,
             afterwards, where to go on; the work ends with `enough` results

    For each level the live rows of the key are listed; the first level without any ends it.  The
    results are the product of the lists and the group.  Answers the slots of each result's parts,
    int64[results, n], and its event."""
    n = len(offset) - 1
    event, done = at[0], at[1]
    cap = min(2 * (len(when) - event), enough) + 64
    out, turn = np.empty((cap, n), np.int64), np.empty(cap, np.int64)
    lists, starts, pick = (
        np.empty(256, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
    )
    found = 0
    mask = np.uint64(len(head) - 1)
    while event < len(when) and found < enough:
        i, now, row = side[event], when[event], offset[side[event]] + slot[event]
        key, known = arena[row, KEY], arena[row, END] != GONE
        bucket = bucket_of(key, mask)
        last = event + 1
        while (
            last < len(when)
            and when[last] == now
            and side[last] == i
            and sign[last] == sign[event]
            and arena[offset[i] + slot[last], KEY] == key
            and (arena[offset[i] + slot[last], END] != GONE) == known
        ):
            last += 1
        total = last - event if known else 0
        size = 0
        for level in range(n - 1):
            if total == 0:
                break
            j = order[i, level]
            starts[level] = size
            if fifo[j]:
                while old[j] < fresh[j] and arena[offset[j] + old[j], END] <= now:
                    old[j] += 1
            s = head[bucket, j]
            while s >= old[j]:
                row = offset[j] + s
                if arena[row, KEY] == key and arena[row, END] > now:
                    if size == len(lists):
                        lists = grown(lists)
                    lists[size] = s
                    size += 1
                s = arena[row, NEXT]
            count = size - starts[level]
            total = 0 if count == 0 else (total * count if total < MANY // count else MANY)
        starts[n - 1] = size
        if total > done:
            rest = done
            for level in range(n - 2, -1, -1):
                count = starts[level + 1] - starts[level]
                pick[level] = rest % count
                rest //= count
            member = event + rest
            stop = min(total - done, enough - found)
            while found + stop > len(out):
                out, turn = _wider(out), grown(turn)
            for r in range(found, found + stop):
                out[r, i], turn[r] = slot[member], event
                for level in range(n - 1):
                    out[r, order[i, level]] = lists[starts[level] + pick[level]]
                level = n - 2
                while level >= 0:
                    pick[level] += 1
                    if pick[level] < starts[level + 1] - starts[level]:
                        break
                    pick[level] = 0
                    level -= 1
                if level < 0:
                    member += 1
            found += stop
            done += stop
            if done < total:
                break
        for e in range(event, last):
            row = offset[i] + slot[e]
            if sign[e] < 0:
                arena[row, END] = GONE
                continue
            fresh[i] = slot[e] + 1
            if known:
                arena[row, NEXT] = head[bucket, i]
                head[bucket, i] = slot[e]
        event, done = last, 0
    at[0], at[1] = event, done
    return out[:found], turn[:found]
