"""Kernels of [SESSION ...] and [WHEN ...]: which rows are in which episode of their key, and what
is told of them (`window_episodes`).

The rows of a key's open episode are chained: head[c] and tail[c] are the slots of its first and
last row, -1 where none is open, size[c] their number, link[slot] the next one.
"""

from __future__ import annotations

from numba import njit

from dsms.sql.types import FOREVER

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
def _append(c, slot, head, tail, size, link):
    """The row is the last one of the key's open episode, or the first."""
    if head[c] < 0:
        head[c] = slot
    else:
        link[tail[c]] = slot
    tail[c] = slot
    link[slot] = -1
    size[c] += 1


@njit(cache=True, nogil=True)
def sessions(
    ts,
    code,
    until,
    upto,
    first,
    end,
    due,
    due_code,
    dues,
    head,
    tail,
    size,
    link,
    inside,
    ends,
    heads,
):
    """Rows in order join the open session of their key, or begin one; row i has slot first + i.

    until[i]  up to where it prolongs a session;  end[c] where the key's open one ends
    due, due_code  the heap, of `dues` entries: none is later than the end of its session
    inside[i]      whether the row is in a session;  ends, heads: those that end, in order
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
            ends[gone], heads[gone] = due[0], head[c]
            gone += 1
            rows += size[c]
            head[c] = tail[c] = -1
            size[c] = 0
            dues -= 1
            _sink(due, due_code, dues, due[dues], due_code[dues])
        if i == len(ts):
            break
        c = code[i]
        inside[i] = head[c] >= 0 or until[i] > now
        if not inside[i]:
            continue
        if head[c] < 0:
            end[c] = until[i]
            if until[i] < FOREVER:
                _rise(due, due_code, dues, until[i], c)
                dues += 1
        elif until[i] > end[c]:
            end[c] = until[i]
        _append(c, first + i, head, tail, size, link)
    return dues, gone, rows


@njit(cache=True, nogil=True)
def steady_sessions(
    ts, code, gap, upto, first, seen, known, of, head, tail, size, link, ends, heads
):
    """As `sessions`, of one gap: rows fall due in the order in which they came, and the last one of
    a session ends it.

    seen  slots from there on have not fallen due;  known[slot], of[slot] the row's instant and code
    Answers (seen, how many have ended, how many rows these have)."""
    gone = rows = 0
    for i in range(len(ts) + 1):
        due = (ts[i] if i < len(ts) else upto) - gap
        while seen < first + i and known[seen] <= due:
            c = of[seen]
            if tail[c] == seen:
                ends[gone], heads[gone] = known[seen] + gap, head[c]
                gone += 1
                rows += size[c]
                head[c] = tail[c] = -1
                size[c] = 0
            seen += 1
        if i < len(ts):
            _append(code[i], first + i, head, tail, size, link)
    return seen, gone, rows


@njit(cache=True, nogil=True)
def whens(ts, code, start, stop, first, head, tail, size, link, inside, ends, heads):
    """As `sessions`; start[i] and stop[i] are what the row says.  Answers (how many have ended,
    how many rows these have)."""
    gone = rows = 0
    for i in range(len(ts)):
        c = code[i]
        if head[c] >= 0 and stop[i]:
            ends[gone], heads[gone] = ts[i], head[c]
            gone += 1
            rows += size[c]
            head[c] = tail[c] = -1
            size[c] = 0
        inside[i] = head[c] >= 0 or start[i]
        if inside[i]:
            _append(c, first + i, head, tail, size, link)
    return gone, rows


# ---------------------------------------------------------------- what is told of it


@njit(cache=True, nogil=True)
def come_and_go(ts, inside, first, ends, heads, link, known, slot, at, sign, dead):
    """Rows that come and rows that leave, in order of instants, departures first.

    known[slot]  the row's instant; one that left in its own neither came nor leaves
    dead         slots of the episodes that have ended.  Answers how many rows are told."""
    for k in range(len(ends)):
        s = heads[k]
        while s >= 0:
            if known[s] == ends[k]:
                inside[s - first] = False
            s = link[s]
    i = k = told = gone = 0
    while i < len(ts) or k < len(ends):
        if k < len(ends) and (i == len(ts) or ends[k] <= ts[i]):
            s = heads[k]
            while s >= 0:
                dead[gone] = s
                gone += 1
                if known[s] < ends[k]:
                    slot[told], at[told], sign[told] = s, ends[k], -1
                    told += 1
                s = link[s]
            k += 1
            continue
        if inside[i]:
            slot[told], at[told], sign[told] = first + i, ts[i], 1
            told += 1
        i += 1
    return told


@njit(cache=True, nogil=True)
def ended(ends, heads, link, known, slot, at, dead):
    """The rows of the episodes that have ended, at their ends; none of one that began in that
    instant.  Answers how many these are."""
    told = gone = 0
    for k in range(len(ends)):
        s = heads[k]
        lasted = known[s] < ends[k]
        while s >= 0:
            dead[gone] = s
            gone += 1
            if lasted:
                slot[told], at[told] = s, ends[k]
                told += 1
            s = link[s]
    return told
