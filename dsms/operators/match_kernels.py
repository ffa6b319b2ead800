"""Kernels of MATCH: rows by key, attempts that wait, and the rows that may be next of each.

Rows of a step are known by position; `order` has the positions key by key, those of code c in
[begin[c], end[c]); begin is -1 where there are none.  Attempts are known by slot; those that wait
for one step and have one key are a chain, from head[code] by `link` to -1.
"""

from __future__ import annotations

from numba import njit

END = -1
DONE = -2  # there are no more rows for an attempt
FRESH = -1  # where to begin is not known yet
EQ, NE, LT, LE, GT, GE = range(6)


@njit(cache=True, nogil=True)
def by_key(code, begin, end, order):
    """Fill `order`, begin and end of all rows; begin is -1 before for the codes that come."""
    for c in code:
        if begin[c] == END:
            begin[c] = DONE
            end[c] = 0
        end[c] += 1
    at = 0
    for i in range(len(code)):
        c = code[i]
        if begin[c] == DONE:
            begin[c] = at
            at += end[c]
            end[c] = begin[c]
        order[end[c]] = i
        end[c] += 1


@njit(cache=True, nogil=True)
def forget(code, begin):
    """Undo `by_key`."""
    for c in code:
        begin[c] = END


@njit(cache=True, nogil=True)
def unlinked(head, link, code, out, n):
    """Take all attempts of these keys out of their chains, into `out` from place n on; answers how
    many are there then."""
    for c in code:
        a = head[c]
        while a != END:
            out[n] = a
            n += 1
            a = link[a]
        head[c] = END
    return n


@njit(cache=True, nogil=True)
def linked(head, link, slots, code):
    """Put attempts into the chains of their keys."""
    for a in slots:
        c = code[a]
        link[a] = head[c]
        head[c] = a


@njit(cache=True, nogil=True)
def _first_later(ts, low, high, last):
    """The first place in [low, high) whose row is later than `last`."""
    while low < high:
        middle = (low + high) // 2
        if ts[middle] > last:
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True, nogil=True)
def _holds(op, mine, theirs):
    if op == EQ:
        return mine == theirs
    if op == NE:
        return mine != theirs
    if op == LT:
        return mine < theirs
    if op == LE:
        return mine <= theirs
    if op == GT:
        return mine > theirs
    return mine >= theirs


@njit(cache=True, nogil=True)
def candidates(
    code, last, limit, asks, place, most, begin, end, order, ts, answers, ops, mine, theirs,
    attempt, row,
):  # a long list  # fmt: skip
    """Rows that may be next of each attempt, up to `most` of each in their order: pairs (place of
    the attempt, position of the row) into `attempt` and `row`; answers how many.

    A row is later than `last` of the attempt, before its `limit`, has its `code`, and meets all
    comparisons ops[t]: mine[t] of the row with theirs[t] of the attempt; not where `answers` of the
    row or `asks` of the attempt is False, which are those with a NULL there.  ts, answers and mine
    stand in the order of `order`.  `place` says where in that to go on with each: FRESH at first,
    DONE where nothing is left."""
    n = 0
    for a in range(len(code)):
        c = code[a]
        if begin[c] < 0 or not asks[a]:
            place[a] = DONE
            continue
        high = end[c]
        x = place[a]
        if x == FRESH:
            x = _first_later(ts, begin[c], high, last[a])
        found = 0
        while x < high and found < most:
            at = x
            x += 1
            if ts[at] >= limit[a]:
                x = high
                break
            good = answers[at]
            t = 0
            while good and t < len(ops):
                good = _holds(ops[t], mine[t, at], theirs[t, a])
                t += 1
            if good:
                attempt[n] = a
                row[n] = order[at]
                n += 1
                found += 1
        place[a] = x if x < high else DONE
    return n


@njit(cache=True, nogil=True)
def counting(code, first, last, until, good):
    """Of matches in the order in which they are complete which count: those whose first row is
    later than until[code], which is where the last row of the one before is."""
    for m in range(len(code)):
        c = code[m]
        good[m] = first[m] > until[c]
        if good[m]:
            until[c] = last[m]


@njit(cache=True, nogil=True)
def parted(tried, found, ts, limit, upto, going, place, at, staying, over):
    """Part attempts by the place of the row that each has found (-1: none), which has the timestamp
    ts[place]: those that go on, with place and timestamp, those that stay, as rows later than
    `upto` may be within their window, and those that are over; answers how many each."""
    goes, stays, ends = 0, 0, 0
    for i in range(len(tried)):
        a = tried[i]
        if found[i] >= 0:
            going[goes], place[goes], at[goes] = a, found[i], ts[found[i]]
            goes += 1
        elif limit[a] > upto + 1:
            staying[stays] = a
            stays += 1
        else:
            over[ends] = a
            ends += 1
    return goes, stays, ends


@njit(cache=True, nogil=True)
def chained(tail, link, code, first):
    """Link rows, whose slots are `first`, `first` + 1, ..., behind the last of their keys."""
    for i in range(len(code)):
        last = tail[code[i]]
        if last != END:
            link[last] = first + i
        tail[code[i]] = first + i


@njit(cache=True, nogil=True)
def counted(first, before, link, ts, out):
    """How many rows there are from first[m] on along `link` that are older than before[m]."""
    for m in range(len(first)):
        slot, n = first[m], 0
        while slot != END and ts[slot] < before[m]:
            n += 1
            slot = link[slot]
        out[m] = n


@njit(cache=True, nogil=True)
def followed(first, count, link, match, slot):
    """These rows: the place of first[m], and their slots."""
    n = 0
    for m in range(len(first)):
        at = first[m]
        for _ in range(count[m]):
            match[n] = m
            slot[n] = at
            n += 1
            at = link[at]
