"""Kernels of [SESSION ...] and [WHEN ...]: which rows are in which episode of their key, and what
is told of them (`window_episodes`).

The rows of a key's open episode are chained: last[c] is the slot of its last row, -1 where none is
open, and the number of its rows; before[slot] is the row before, -1 of the first one.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dsms.sql.types import FOREVER

LANES = 32  # chains that are followed at a time

# ---------------------------------------------------------------- which episode a row is in


@njit(cache=True, nogil=True)
def _sink(at, code, n, key, value):
    """Put (key, value) into a heap of n entries whose first one is void."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and at[child + 1] < at[child]:
            child += 1
        if at[child] >= key:
            break
        at[i], code[i] = at[child], code[child]
        i = child
    at[i], code[i] = key, value


@njit(cache=True, nogil=True)
def _rise(at, code, n, key, value):
    """Put (key, value) into a heap of n entries, which gets one more."""
    i = n
    while i > 0:
        above = (i - 1) // 2
        if at[above] <= key:
            break
        at[i], code[i] = at[above], code[above]
        i = above
    at[i], code[i] = key, value


@njit(cache=True, nogil=True)
def _append(c, slot, last, before):
    """The row is the last one of the key's open episode, or the first."""
    before[slot] = last[c, 0]
    last[c, 0] = slot
    last[c, 1] += 1


@njit(cache=True, nogil=True)
def _end(c, at, last, ended, gone):
    """The key's open episode is the next one that ends; how many rows it has."""
    rows = last[c, 1]
    ended[gone, 0], ended[gone, 1], ended[gone, 2] = at, last[c, 0], rows
    last[c, 0], last[c, 1] = -1, 0
    return rows


@njit(cache=True, nogil=True)
def sessions(ts, code, until, upto, first, end, due, due_code, dues, last, before, inside, ended):
    """Rows in order join the open session of their key, or begin one; row i has slot first + i.

    until[i]  up to where it prolongs a session;  end[c] where the key's open one ends
    due, due_code  the heap, of `dues` entries: none is later than the end of its session
    inside[i]      whether the row is in a session
    ended          those that end, in order: when, the slot of the last row, the number of rows
    Answers (entries of the heap, how many have ended, how many rows these have)."""
    gone = rows = 0
    for i in range(len(ts) + 1):
        now = ts[i] if i < len(ts) else upto
        while dues > 0 and due[0] <= now:
            c = due_code[0]
            if end[c] > due[0]:
                if end[c] == FOREVER:
                    dues -= 1
                    _sink(due, due_code, dues, due[dues], due_code[dues])
                else:
                    _sink(due, due_code, dues, end[c], c)
                continue
            rows += _end(c, due[0], last, ended, gone)
            gone += 1
            dues -= 1
            _sink(due, due_code, dues, due[dues], due_code[dues])
        if i == len(ts):
            break
        c = code[i]
        inside[i] = last[c, 0] >= 0 or until[i] > now
        if not inside[i]:
            continue
        if last[c, 0] < 0:
            end[c] = until[i]
            if until[i] < FOREVER:
                _rise(due, due_code, dues, until[i], c)
                dues += 1
        elif until[i] > end[c]:
            end[c] = until[i]
        _append(c, first + i, last, before)
    return dues, gone, rows


@njit(cache=True, nogil=True)
def steady_sessions(ts, code, gap, upto, first, seen, known, of, last, before, ended):
    """As `sessions`, of one gap: rows fall due in the order in which they came, and the last one of
    a session ends it.

    seen  slots from there on have not fallen due;  known[slot], of[slot] the row's instant and code
    Answers (seen, how many have ended, how many rows these have)."""
    gone = rows = 0
    for i in range(len(ts) + 1):
        due = (ts[i] if i < len(ts) else upto) - gap
        while seen < first + i and known[seen] <= due:
            c = of[seen]
            if last[c, 0] == seen:
                rows += _end(c, known[seen] + gap, last, ended, gone)
                gone += 1
            seen += 1
        if i < len(ts):
            _append(code[i], first + i, last, before)
    return seen, gone, rows


@njit(cache=True, nogil=True)
def whens(ts, code, start, stop, first, last, before, inside, ended):
    """As `sessions`; start[i] and stop[i] are what the row says.  Answers (how many have ended,
    how many rows these have)."""
    gone = rows = 0
    for i in range(len(ts)):
        c = code[i]
        if last[c, 0] >= 0 and stop[i]:
            rows += _end(c, ts[i], last, ended, gone)
            gone += 1
        inside[i] = last[c, 0] >= 0 or start[i]
        if inside[i]:
            _append(c, first + i, last, before)
    return gone, rows


# ---------------------------------------------------------------- what is told of it


@njit(cache=True, nogil=True)
def rows_of(ended, before, out):
    """The slots of each episode that has ended, oldest first, one episode behind the other.

    A row is found by the one behind it, which costs a look into memory; many chains are followed
    by turns, so that these looks need not wait for each other."""
    slot, place = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    taken = stop = lanes = 0
    while lanes < LANES and taken < len(ended):
        stop += ended[taken, 2]
        slot[lanes], place[lanes] = ended[taken, 1], stop
        lanes += 1
        taken += 1
    while lanes > 0:
        k = 0
        while k < lanes:
            place[k] -= 1
            out[place[k]] = slot[k]
            slot[k] = before[slot[k]]
            if slot[k] < 0 and taken < len(ended):
                stop += ended[taken, 2]
                slot[k], place[k] = ended[taken, 1], stop
                taken += 1
            elif slot[k] < 0:
                lanes -= 1
                slot[k], place[k] = slot[lanes], place[lanes]
                continue
            k += 1


@njit(cache=True, nogil=True)
def come_and_go(ts, inside, first, ended, gone, known, slot, at, sign):
    """Rows that come and rows that leave, in order of instants, departures first.

    gone  slots of the episodes that have ended (`rows_of`)
    known[slot]  the row's instant; one that left in its own neither came nor leaves
    Answers how many rows are told."""
    j = 0
    for k in range(len(ended)):
        for _ in range(ended[k, 2]):
            if known[gone[j]] == ended[k, 0]:
                inside[gone[j] - first] = False
            j += 1
    i = j = k = told = 0
    while i < len(ts) or k < len(ended):
        if k < len(ended) and (i == len(ts) or ended[k, 0] <= ts[i]):
            for _ in range(ended[k, 2]):
                s = gone[j]
                if known[s] < ended[k, 0]:
                    slot[told], at[told], sign[told] = s, ended[k, 0], -1
                    told += 1
                j += 1
            k += 1
            continue
        if inside[i]:
            slot[told], at[told], sign[told] = first + i, ts[i], 1
            told += 1
        i += 1
    return told


@njit(cache=True, nogil=True)
def closed(ended, gone, known, slot, at):
    """The rows of the episodes that have ended, at their ends; none of one that began in that
    instant.  Answers how many these are."""
    told = j = 0
    for k in range(len(ended)):
        lasted = known[gone[j]] < ended[k, 0]
        for _ in range(ended[k, 2]):
            if lasted:
                slot[told], at[told] = gone[j], ended[k, 0]
                told += 1
            j += 1
    return told
