"""Kernels of the join of many windows: rows of all inputs in one arena, chained per key hash.

arena[offset[i] + slot] = (key, next older slot, end of life) of that row of input i; head[bucket,
i] is the youngest slot of input i's chain.  So one compiled kernel serves any number of inputs.  A
row whose end is GONE matches nothing: its key is NULL, or it was deleted.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dsms.operators.join_kernels import bucket_of, grown, turned

KEY, NEXT, END = 0, 1, 2
GONE = np.iinfo(np.int64).min
AHEAD = 128  # events whose buckets are read in one go
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
def along_rows(head, arena, offset, i, keys):
    """Slots of rows of input i that have these keys; each key stands there once."""
    mask = np.uint64(len(head) - 1)
    out, found = np.empty(2 * len(keys) + 16, np.int64), 0
    for key in keys:
        slot = head[bucket_of(key, mask), i]
        while slot >= 0:
            row = offset[i] + slot
            if arena[row, KEY] == key:
                if found == len(out):
                    out = grown(out)
                out[found] = slot
                found += 1
            slot = arena[row, NEXT]
    return out[:found]


@njit(cache=True, nogil=True)
def _chained(head, arena, offset, i, slots):
    """Chain rows of input i of one instant: the last slot.  They stand by key, chains by slot:
    whoever follows one ends at the first slot that is too old, and must not pass a younger one of
    another key."""
    by_age = np.sort(slots)
    chain_rows(head, arena, offset, i, by_age)
    return by_age[-1]


@njit(cache=True, nogil=True)
def merged(when, sign, slot, first):
    """Rows of several inputs, those of input i at [first[i], first[i + 1]), in order of (instant,
    deletions first, input, place), without those that have no slot.

    Answers (when, sign, input, slot), and how many of them differ from the one before in the first
    three."""
    n, total = len(first) - 1, len(when)
    at = first[:-1].copy()
    out_when, out_sign = np.empty(total, np.int64), np.empty(total, np.int64)
    out_side, out_slot = np.empty(total, np.int64), np.empty(total, np.int64)
    k = runs = 0
    while True:
        side = -1
        for i in range(n):
            r = at[i]
            if r < first[i + 1] and (
                side < 0
                or when[r] < when[at[side]]
                or (when[r] == when[at[side]] and sign[r] < sign[at[side]])
            ):
                side = i
        if side < 0:
            break
        r = at[side]
        at[side] += 1
        if slot[r] < 0:
            continue
        runs += k == 0 or (
            out_when[k - 1] != when[r] or out_sign[k - 1] != sign[r] or out_side[k - 1] != side
        )
        out_when[k], out_sign[k], out_side[k], out_slot[k] = when[r], sign[r], side, slot[r]
        k += 1
    return out_when[:k], out_sign[:k], out_side[:k], out_slot[:k], runs


@njit(cache=True, nogil=True)
def _wider(a, cap):
    out = np.empty((len(a), cap), np.int64)
    out[:, : a.shape[1]] = a
    return out


@njit(cache=True, nogil=True)
def _listed(lists, size, s, arena, begin, old, key, now):
    """Append the live rows with that key of a chain, from slot s down to `old`, oldest first:
    (lists, their number).  The input's rows are at `begin`."""
    start = size
    while s >= old:
        row = begin + s
        if arena[row, KEY] == key and arena[row, END] > now:
            if size == len(lists):
                lists = grown(lists)
            lists[size] = s
            size += 1
        s = arena[row, NEXT]
    turned(lists, start, size)
    return lists, size


@njit(cache=True, nogil=True)
def _product(out, found, stop, lists, begin, count, done, arena, offset):
    """Combinations [done, done + stop - found) of the lists, in order, into columns [found, stop)
    of `out`: slots, then the end of the shortest life."""
    n = len(count)
    pick, ends = np.empty(n, np.int64), np.empty(n, np.int64)
    for j in range(n - 1, -1, -1):
        pick[j] = done % count[j]
        done //= count[j]
    level = 0
    while True:
        for j in range(level, n - 1):  # what has changed in front of the last list
            s = lists[begin[j] + pick[j]]
            end = arena[offset[j] + s, END]
            ends[j] = end if j == 0 else min(ends[j - 1], end)
        before = n - 1
        run = min(count[before] - pick[before], stop - found)
        for j in range(before):
            out[j, found : found + run] = lists[begin[j] + pick[j]]
        for k in range(run):
            s = lists[begin[before] + pick[before] + k]
            out[before, found + k] = s
            out[n, found + k] = min(ends[before - 1], arena[offset[before] + s, END])
        found += run
        if found == stop:
            return
        pick[before] = 0
        level = before - 1
        while pick[level] + 1 == count[level]:
            pick[level] = 0
            level -= 1
        pick[level] += 1


@njit(cache=True, nogil=True)
def _look_ahead(into, heads, head, arena, offset, order, side, slot, event):
    """Put the buckets of the next events `into`; answers how far.  The heads of their chains, and
    the rows there, are read one after the other, and none waits for the one before: so they are at
    hand when the events come."""
    mask, stop = np.uint64(len(head) - 1), min(AHEAD, len(side) - event)
    for e in range(stop):
        i = side[event + e]
        into[e] = bucket_of(arena[offset[i] + slot[event + e], KEY], mask)
        heads[e] = head[into[e], order[i, 0]]
    for e in range(stop):
        if heads[e] >= 0:
            heads[e] = arena[offset[order[side[event + e], 0]] + heads[e], KEY]
    return event + stop


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
    results are the product of the lists and the group, in order of the parts' slots.  Answers
    int64[n + 2, results]: the slots of the parts, the end of life, the instant; and int8[results]:
    the sign."""
    n = len(offset) - 1
    event, done = at[0], at[1]
    out = np.empty((n + 2, min(2 * (len(when) - event), enough) + 64), np.int64)
    signs = np.empty(out.shape[1], np.int8)
    lists = np.empty(256, np.int64)
    begin, count = np.empty(n, np.int64), np.empty(n, np.int64)
    buckets, heads = np.empty(AHEAD, np.int64), np.empty(AHEAD, np.int64)
    found, base, ready = 0, event, event
    while event < len(when) and found < enough:
        i, now, row = side[event], when[event], offset[side[event]] + slot[event]
        key, known = arena[row, KEY], arena[row, END] != GONE
        if event >= ready:
            base = event
            ready = _look_ahead(buckets, heads, head, arena, offset, order, side, slot, event)
        bucket = buckets[event - base]
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
        total, size = (last - event if known else 0), 0
        for level in range(n - 1):
            if total == 0:
                break
            j = order[i, level]
            if fifo[j]:
                while old[j] < fresh[j] and arena[offset[j] + old[j], END] <= now:
                    old[j] += 1
            s, rows = head[bucket, j], offset[j]
            while s >= old[j] and (arena[rows + s, KEY] != key or arena[rows + s, END] <= now):
                s = arena[rows + s, NEXT]
            if s < old[j]:  # most rows, where few find any
                total = 0
                break
            begin[j] = size
            lists, size = _listed(lists, size, s, arena, rows, old[j], key, now)
            count[j] = size - begin[j]
            total = total * count[j] if total < MANY // count[j] else MANY
        if total > done:
            begin[i], count[i] = size, last - event
            while size + last - event > len(lists):
                lists = grown(lists)
            lists[size : size + last - event] = slot[event:last]
            stop = found + min(total - done, enough - found)
            if stop > out.shape[1]:
                out = _wider(out, max(stop, 2 * out.shape[1]))
                more = np.empty(out.shape[1], np.int8)
                more[:found] = signs[:found]
                signs = more
            _product(out, found, stop, lists, begin, count, done, arena, offset)
            out[n + 1, found:stop] = now
            signs[found:stop] = sign[event]
            done += stop - found
            found = stop
            if done < total:
                break
        if sign[event] < 0:
            for e in range(event, last):
                arena[offset[i] + slot[e], END] = GONE
        elif last == len(when) or when[last] != now or side[last] != i or sign[last] < 0:
            first = event  # no row looks into its own input, so all of an instant are chained last
            while first > 0 and when[first - 1] == now and side[first - 1] == i:
                if sign[first - 1] < 0:
                    break
                first -= 1
            if last - first > 1:
                fresh[i] = _chained(head, arena, offset, i, slot[first:last]) + 1
            else:
                fresh[i] = slot[event] + 1
                if known:
                    arena[row, NEXT] = head[bucket, i]
                    head[bucket, i] = slot[event]
        event, done = last, 0
    at[0], at[1] = event, done
    return out[:, :found], signs[:found]
