"""Kernels of OVER: which rows stand in the frame of each row, and which number each row has in its
window."""

from __future__ import annotations

from numba import njit

NIL = -1


@njit(cache=True, nogil=True)
def follow(
    code,
    first,
    since,
    least,
    back,
    limit,
    head,
    tail,
    seen,
    count,
    ts,
    number,
    place,
    slot_code,
    after,
    gone,
    oldest,
    e_code,
    e_sign,
    e_slot,
    e_emit,
    live,
    lag,
):
    """Let rows of slots `first`, `first` + 1, ..., of groups `code`, in one after the other.

    since, least  of each row: frames hold rows later than that, of numbers from that one on
    back          how many rows before it a frame holds; -1: all
    limit         (instant, number): what is up to the one, or below the other, is in no later frame
    head, tail    by group the oldest and youngest row of its frame;  seen, count  by group: rows
                  that came, rows in its frame
    ts, number, place, slot_code, after, gone  by slot: its timestamp, its number in the window and
                  in its group, its group, the next row of its group, whether no frame holds it
    oldest        slots before it are gone

    Fills in the events (departures, and arrivals that emit by number of row), how many rows the
    frame of each row has, and the slot `back` rows before it (-1: it is not in the window).
    Answers (events, oldest, groups that have rows now less those that had)."""
    n, alive, rows = 0, 0, len(code)
    for k in range(rows):
        c, s = code[k], first + k
        place[s] = seen[c]
        seen[c] += 1
        slot_code[s], after[s], gone[s] = c, NIL, False
        h = head[c]
        if h < 0:
            h = s
            alive += 1
        else:
            after[tail[c]] = s
        tail[c] = s
        low = place[s] - back if back >= 0 else -1
        while h != s and (ts[h] <= since[k] or number[h] < least[k] or place[h] < low):
            e_code[n], e_sign[n], e_slot[n], e_emit[n] = c, -1, h, NIL
            n += 1
            gone[h] = True
            count[c] -= 1
            h = after[h]
        head[c] = h
        count[c] += 1
        e_code[n], e_sign[n], e_slot[n], e_emit[n] = c, 1, s, k
        n += 1
        live[k] = count[c]
        lag[k] = h if place[h] == low else NIL
    end = first + rows
    while oldest < end and (gone[oldest] or ts[oldest] <= limit[0] or number[oldest] < limit[1]):
        s = oldest
        oldest += 1
        if not gone[s]:
            c = slot_code[s]
            e_code[n], e_sign[n], e_slot[n], e_emit[n] = c, -1, s, NIL
            n += 1
            gone[s] = True
            count[c] -= 1
            head[c] = after[s]
            if after[s] < 0:
                tail[c] = NIL
                alive -= 1
    return n, oldest, alive


@njit(cache=True, nogil=True)
def gather(code, count, live):
    """Rows of groups that no row leaves: how many there are with each one."""
    for k in range(len(code)):
        c = code[k]
        count[c] += 1
        live[k] = count[c]


@njit(cache=True, nogil=True)
def numbered(code, ts, count, instant, last, number, end):
    """The number of each row in its window, and of the last row of its instant there.

    count, instant, last  by window: its rows so far; of the rows before this one, from behind, the
                          timestamp and the number"""
    for i in range(len(ts)):
        number[i] = count[code[i]]
        count[code[i]] += 1
    for i in range(len(ts) - 1, -1, -1):
        c = code[i]
        if instant[c] != ts[i]:
            instant[c], last[c] = ts[i], number[i]
        end[i] = last[c]
