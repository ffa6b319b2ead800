"""The kernel of `top`: rows of each key in order, and which of them are the first n.

The rows of a key are a list in their order, of which the first n, the members, end with `last`.  A
row that comes in before that end pushes it out, one that leaves lets the next one in: O(1) beside
finding a row its place.
"""

from __future__ import annotations

from numba import njit

from dsms.state.lists import cut, insert
from dsms.state.trees import add, comes_before, take

# what is kept: only what may ever come in, found from the end of the list; the first rows alone;
# all rows
SKYBAND, FIRST, ORDERED = range(3)
NEAR = 16  # rows that are asked whether they stand before a new one for as long as it lives


@njit(cache=True, nogil=True)
def follow(rule, strict, events, code, exp, order, lists, tree, of_key, of_row, out, gone, touched):
    """Events in order -> rows that enter the first n of their key, or are taken back: columns (at,
    sign, slot) of `out`; and slots that are let go, in `gone`.  How many of each.

    rule     (n, what is kept, whether places are found in a tree)
    events   at, sign, slot
    of_key   members int64[codes]: how many; last int64[codes]: the last one's slot, -1 if none;
             longest int64[codes]: the latest `exp` of any row so far, or a later one
    of_row   above: rows that stand before it and live as long, as far as known; member: among the
             first n; told: reported as such; kept: in the list"""
    at, sign, slot = events
    _, _, told, kept = of_row
    found = dropped = start = 0
    while start < len(at):
        now, n, stop = at[start], 0, start
        while stop < len(at) and at[stop] == now:
            s, c = slot[stop], code[stop]
            if sign[stop] > 0:
                n, dropped = _enter(
                    rule, exp, order, lists, tree, of_key, of_row, c, s, touched, n, gone, dropped
                )
            elif kept[s]:
                n = _leave(rule, order, lists, tree, of_key, of_row, c, s, touched, n)
                if told[s] and strict and exp[s] > now:
                    out[found, 0], out[found, 1], out[found, 2] = now, -1, s
                    found += 1
                told[s] = False
            stop += 1
        found = _tell(of_row, touched, n, now, out, found)
        start = stop
    return found, dropped


@njit(cache=True, nogil=True)
def _tell(of_row, touched, n, now, out, found):
    """Report the rows that are members at the end of the instant and were not before, or the other
    way round."""
    _, member, told, _ = of_row
    for k in range(n):
        s = touched[k]
        if member[s] != told[s]:
            told[s] = member[s]
            out[found, 0], out[found, 1], out[found, 2] = now, 1 if member[s] else -1, s
            found += 1
    return found


@njit(cache=True, nogil=True)
def _enter(rule, exp, order, lists, tree, of_key, of_row, c, s, touched, n, gone, dropped):
    """A row comes.  (how many are touched, how many let go)"""
    first, keeps, treed = rule
    members, last, longest = of_key
    above, member, told, kept = of_row
    above[s], member[s], told[s], kept[s] = 0, False, False, False
    full = members[c] == first
    if keeps == FIRST and full and (first == 0 or not comes_before(order, s, last[c])):
        gone[dropped] = s
        return n, dropped + 1
    previous = _place(order, lists, c, s) if not treed else add(order, tree, c, s)
    if keeps == SKYBAND:
        if exp[s] > longest[c]:
            longest[c] = exp[s]
        else:
            above[s] = _above(lists, above, exp, previous, s)
        if above[s] >= first:
            gone[dropped] = s
            return n, dropped + 1
    head, tail, before, after = lists
    insert(head, tail, before, after, c, previous, s)
    kept[s] = True
    if not full or (first > 0 and comes_before(order, s, last[c])):
        n = _join(lists, of_key, member, c, previous, s, touched, n)
        if full:
            e = last[c]
            n = _push_out(lists, of_key, member, c, e, touched, n)
            if keeps == FIRST:
                _forget(rule, order, lists, tree, kept, c, e)
                gone[dropped] = e
                dropped += 1
    if keeps == SKYBAND:
        dropped = _outlive(first, lists, above, kept, exp, c, s, gone, dropped)
    return n, dropped


@njit(cache=True, nogil=True)
def _place(order, lists, c, s):
    """The slot behind which s belongs, from the end of the list; -1: it comes first."""
    _, tail, before, _ = lists
    p = tail[c]
    while p >= 0 and comes_before(order, s, p):
        p = before[p]
    return p


@njit(cache=True, nogil=True)
def _above(lists, above, exp, previous, s):
    """How many rows stand before s and live at least as long, as far as those near it tell: one
    that does, and all that stand so before that one."""
    _, _, before, _ = lists
    p, steps = previous, 0
    while p >= 0 and steps < NEAR:
        if exp[p] >= exp[s]:
            return above[p] + 1
        p = before[p]
        steps += 1
    return 0


@njit(cache=True, nogil=True)
def _outlive(first, lists, above, kept, exp, c, s, gone, dropped):
    """Rows behind s that it outlives can do without one more; let go of those that never come
    in."""
    head, tail, before, after = lists
    p = after[s]
    while p >= 0:
        following = after[p]
        if exp[p] <= exp[s]:
            above[p] += 1
            if above[p] >= first:
                cut(head, tail, before, after, c, p)
                kept[p] = False
                gone[dropped] = p
                dropped += 1
        p = following
    return dropped


@njit(cache=True, nogil=True)
def _join(lists, of_key, member, c, previous, s, touched, n):
    """s is a member; the last one, if it stands behind it."""
    members, last, _ = of_key
    member[s] = True
    touched[n] = s
    members[c] += 1
    if previous == last[c]:
        last[c] = s
    return n + 1


@njit(cache=True, nogil=True)
def _push_out(lists, of_key, member, c, e, touched, n):
    """The last one is no member any more."""
    members, last, _ = of_key
    member[e] = False
    touched[n] = e
    members[c] -= 1
    last[c] = lists[2][e]
    return n + 1


@njit(cache=True, nogil=True)
def _leave(rule, order, lists, tree, of_key, of_row, c, s, touched, n):
    """A row goes; if it was a member, the next one comes in."""
    members, last, _ = of_key
    _, member, _, kept = of_row
    head, _, before, after = lists
    if member[s] and last[c] == s:
        last[c] = before[s]
    _forget(rule, order, lists, tree, kept, c, s)
    if not member[s]:
        return n
    member[s] = False
    members[c] -= 1
    following = after[last[c]] if last[c] >= 0 else head[c]
    if following >= 0:
        n = _join(lists, of_key, member, c, last[c], following, touched, n)
    return n


@njit(cache=True, nogil=True)
def _forget(rule, order, lists, tree, kept, c, s):
    """Take s out of the list, and out of the tree."""
    head, tail, before, after = lists
    cut(head, tail, before, after, c, s)
    kept[s] = False
    if rule[2]:
        take(order, tree, c, s)
