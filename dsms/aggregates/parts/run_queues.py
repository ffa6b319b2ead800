"""The runs of rows that leave in the order in which they came: per group a queue of runs, the first
of which grows shorter, and of those between the first and the last one the candidates, which no
longer one follows (Dani and Getta 2005, §8.2).

O(1) amortised an event.
"""

from __future__ import annotations

from numba import njit

from dsms.aggregates.parts.links import NIL
from dsms.aggregates.parts.runs import goes_on

# by slot, of a row: the next row; of a run, at its first row: its last row, the next run, the
# candidates before and behind it
NEXT, END, FOLLOWING, BEFORE, BEHIND = range(5)
# by group: the first and the last row, the last run, the first and the last candidate
OLDEST, YOUNGEST, CURRENT, FRONT, BACK = range(5)


@njit(cache=True, nogil=True)
def _arrived(s, ends, links, length, words, rank, down):
    """Row s comes to the end of a group; `ends` are those of the group."""
    last, run = ends[YOUNGEST], ends[CURRENT]
    ends[YOUNGEST] = s
    links[s, NEXT] = links[s, FOLLOWING] = NIL
    if last >= 0:
        links[last, NEXT] = s
        if goes_on(words[last], words[s], rank, down):
            length[run] += 1
            links[run, END] = s
            return
        links[run, FOLLOWING] = s
        if run != ends[OLDEST]:  # it is over: a candidate, and shorter ones before it are none
            back = ends[BACK]
            while back >= 0 and length[back] < length[run]:
                back = links[back, BEFORE]
            links[run, BEFORE], links[run, BEHIND] = back, NIL
            ends[BACK] = run
            if back >= 0:
                links[back, BEHIND] = run
            else:
                ends[FRONT] = run
    else:
        ends[OLDEST] = s
    ends[CURRENT] = s
    length[s] = 1
    links[s, END] = s


@njit(cache=True, nogil=True)
def _left(s, ends, links, length):
    """Row s, the oldest of a group, leaves."""
    after = links[s, NEXT]
    ends[OLDEST] = after
    if after < 0:
        ends[YOUNGEST] = ends[CURRENT] = NIL
    elif length[s] > 1:
        length[after] = length[s] - 1
        links[after, END], links[after, FOLLOWING] = links[s, END], links[s, FOLLOWING]
        if ends[CURRENT] == s:
            ends[CURRENT] = after
    elif ends[FRONT] == after:
        behind = links[after, BEHIND]
        ends[FRONT] = behind
        if behind >= 0:
            links[behind, BEFORE] = NIL
        else:
            ends[BACK] = NIL


@njit(cache=True, nogil=True)
def run_queue(
    code, sign, slot, emit, words, valid, also, rank, told, down, start, by_told, ends, links,
    length, out, out_valid,
):  # many arrays  # fmt: skip
    for i in range(len(code)):
        g, s = code[i], slot[i]
        if (len(valid) == 0 or valid[s]) and (len(also) == 0 or also[s]):
            if sign[i] > 0:
                _arrived(s, ends[g], links, length, words, rank, down)
            else:
                _left(s, ends[g], links, length)
        t = emit[i]
        best = ends[g, OLDEST]
        if t < 0 or best < 0:
            continue
        front, current = ends[g, FRONT], ends[g, CURRENT]
        if front >= 0 and length[front] > length[best]:
            best = front
        if length[current] > length[best]:
            best = current
        out[t] = length[best] if not by_told else told[best if start else links[best, END]]
        out_valid[t] = True
