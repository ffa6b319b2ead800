"""A value out of texts of JSON (RFC 8259): one pass over the bytes of each, which checks all of it,
and keeps of the values only where the one at a path stands.

Of a key that an object has twice the last one counts, and escapes in keys say what they mean.  A
number may have any digits; NaN and Infinity are none.  A text that is no JSON, or deeper than
`DEEPEST`, has no values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

DEEPEST = 100  # arrays and objects in each other
# what is at the path
NOTHING, OTHER, LITERAL, NUMBER, TEXT, ESCAPED = 0, 1, 2, 3, 4, 5
QUOTE, BACK, COMMA, COLON, MINUS, PLUS, DOT, ZERO, NINE = 34, 92, 44, 58, 45, 43, 46, 48, 57
ESCAPES = tuple(b'"\\/bfnrt')
OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT = 91, 93, 123, 125
BAD = -1
TRUE, FALSE, NULL = (np.frombuffer(w, np.uint8) for w in (b"true", b"false", b"null"))


# a call would count references to its arrays, which takes longer than what is called
_inside = njit(cache=True, nogil=True, inline="always")


class Steps(NamedTuple):
    """A path: by step its place in a list (-1: it is a key) and where the octets of its key begin
    and end."""

    place: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    octets: np.ndarray


def steps_of(path: tuple[str | int, ...]) -> Steps:
    """The path for kernels.  Halves of characters are as they are in UTF-16."""
    keys = [b"" if isinstance(s, int) else s.encode("utf-8", "surrogatepass") for s in path]
    ends = np.cumsum([len(k) for k in keys], dtype=np.int64)
    places = np.array([s if isinstance(s, int) else -1 for s in path], np.int64)
    sizes = np.array([len(k) for k in keys], np.int64)
    return Steps(places, ends - sizes, ends, np.frombuffer(b"".join(keys), np.uint8))


@_inside
def _blank(data, at, end):
    """Behind white space."""
    while at < end and (data[at] == 32 or data[at] == 10 or data[at] == 13 or data[at] == 9):
        at += 1
    return at


@njit(cache=True, nogil=True)
def _hex(data, at):
    """What four digits say; BAD: they are none."""
    out = 0
    for k in range(at, at + 4):
        c = data[k]
        if ZERO <= c <= NINE:
            out = out * 16 + c - ZERO
        elif 97 <= c | 32 <= 102:
            out = out * 16 + (c | 32) - 87
        else:
            return BAD
    return out


@_inside
def _string(data, at, end):
    """(behind the string whose first octet is at `at`, whether it has escapes); BAD: it is none."""
    escaped = False
    while at < end:
        c = data[at]
        if c == QUOTE:
            return at + 1, escaped
        if c < 32:
            return BAD, escaped
        at += 1
        if c == BACK:
            escaped = True
            if at >= end:
                return BAD, escaped
            c = data[at]
            at += 1
            if c == 117:  # u
                if at + 4 > end or _hex(data, at) == BAD:
                    return BAD, escaped
                at += 4
            elif c not in ESCAPES:
                return BAD, escaped
    return BAD, escaped


@_inside
def _digits(data, at, end):
    while at < end and ZERO <= data[at] <= NINE:
        at += 1
    return at


@_inside
def _number(data, at, end):
    """Behind a number; BAD: it is none."""
    if at < end and data[at] == MINUS:
        at += 1
    begin = at
    at = _digits(data, at, end)
    if at == begin or (data[begin] == ZERO and at > begin + 1):
        return BAD
    if at < end and data[at] == DOT:
        begin = at + 1
        at = _digits(data, begin, end)
        if at == begin:
            return BAD
    if at < end and data[at] | 32 == 101:
        begin = at + 1
        if begin < end and (data[begin] == PLUS or data[begin] == MINUS):
            begin += 1
        at = _digits(data, begin, end)
        if at == begin:
            return BAD
    return at


@njit(cache=True, nogil=True)
def _same(x, at, y, begin, size):
    """Whether so many octets are the same from there on."""
    k = 0
    while k < size and x[at + k] == y[begin + k]:
        k += 1
    return k == size


@njit(cache=True, nogil=True)
def _literal(data, at, end):
    """(behind true, false or null, whether it is null); BAD: it is none."""
    c = data[at]
    word = TRUE if c == TRUE[0] else FALSE if c == FALSE[0] else NULL
    if end - at < len(word) or not _same(data, at, word, 0, len(word)):
        return BAD, False
    return at + len(word), c == NULL[0]


@njit(cache=True, nogil=True)
def _unescaped(data, at, end, out, to):
    """Write what an escaped string says, as UTF-8: (behind it, whether it has half a character).
    It is never longer than its escapes."""
    half = False
    while at < end:
        c = data[at]
        at += 1
        if c != BACK:
            out[to] = c
            to += 1
            continue
        c = data[at]
        at += 1
        if c != 117:
            if c == 98:
                c = 8
            elif c == 102:
                c = 12
            elif c == 110:
                c = 10
            elif c == 114:
                c = 13
            elif c == 116:
                c = 9
            out[to] = c
            to += 1
            continue
        point = _hex(data, at)
        at += 4
        if 0xD800 <= point < 0xDC00 and at + 6 <= end and data[at] == BACK and data[at + 1] == 117:
            low = _hex(data, at + 2)
            if 0xDC00 <= low < 0xE000:
                point = 0x10000 + ((point - 0xD800) << 10) + low - 0xDC00
                at += 6
        half |= 0xD800 <= point < 0xE000
        if point < 0x80:
            out[to] = point
            to += 1
        elif point < 0x800:
            out[to], out[to + 1] = 0xC0 | point >> 6, 0x80 | point & 63
            to += 2
        elif point < 0x10000:
            out[to], out[to + 1] = 0xE0 | point >> 12, 0x80 | point >> 6 & 63
            out[to + 2] = 0x80 | point & 63
            to += 3
        else:
            out[to], out[to + 1] = 0xF0 | point >> 18, 0x80 | point >> 12 & 63
            out[to + 2], out[to + 3] = 0x80 | point >> 6 & 63, 0x80 | point & 63
            to += 4
    return to, half


@njit(cache=True, nogil=True)
def _is_key(data, at, end, escaped, steps, step, scratch):
    """Whether the octets of a string are those of the step's key."""
    begin, size = steps.begin[step], steps.end[step] - steps.begin[step]
    if steps.place[step] >= 0 or end - at < size or (not escaped and end - at > size):
        return False
    if escaped:
        count, _ = _unescaped(data, at, end, scratch, 0)
        if count != size:
            return False
        return _same(scratch, 0, steps.octets, begin, size)
    return _same(data, at, steps.octets, begin, size)


@njit(cache=True, nogil=True)
def _walk(data, at, end, steps, objects, places, scratch):
    """What is at the path in one document: (kind, from, to); of an object or a list all of it.

    objects, places   scratch by depth: whether it is an object, the place in a list"""
    length, nothing = len(steps.place), (NOTHING, 0, 0)
    kind, begin, until = nothing
    depth = on = 0  # open arrays and objects; those of them that the path leads through
    hit = True  # the next value is where the path leads, if what it is in is
    await_value, await_key = True, False
    at = _blank(data, at, end)
    while depth > 0 or await_value:
        if at >= end:
            return nothing
        c = data[at]
        if await_key:
            if c != QUOTE:
                return nothing
            first = at + 1
            at, escaped = _string(data, first, end)
            if at == BAD:
                return nothing
            last = at - 1
            at = _blank(data, at, end)
            if at >= end or data[at] != COLON:
                return nothing
            at += 1
            hit = on == depth and _is_key(data, first, last, escaped, steps, depth - 1, scratch)
            if hit:
                kind = NOTHING  # what came before under this key does not count
            await_value, await_key = True, False
        elif await_value and c in (OPEN_OBJECT, OPEN_LIST):
            if depth == DEEPEST:
                return nothing
            opens = c == OPEN_OBJECT
            if hit and on == depth:
                if depth == length:
                    kind, begin, until = OTHER, at, at
                elif (steps.place[depth] < 0) == opens:
                    on = depth + 1
            objects[depth], places[depth] = opens, 0
            depth += 1
            at = _blank(data, at + 1, end)
            if at < end and data[at] == (CLOSE_OBJECT if opens else CLOSE_LIST):
                await_value = False
            else:
                await_value, await_key = not opens, opens
                hit = not opens and on == depth and steps.place[depth - 1] == 0
        elif await_value:
            first = at
            if c == QUOTE:
                at, escaped = _string(data, at + 1, end)
                found, first, last = ESCAPED if escaped else TEXT, first + 1, at - 1
            elif c == MINUS or ZERO <= c <= NINE:
                at = _number(data, at, end)
                found, last = NUMBER, at
            else:
                at, null = _literal(data, at, end)
                found, last = OTHER if null else LITERAL, at
            if at == BAD:
                return nothing
            if hit and on == depth and depth == length:
                kind, begin, until = found, first, last
            await_value = False
        elif c == (CLOSE_OBJECT if objects[depth - 1] else CLOSE_LIST):
            depth -= 1
            at += 1
            if kind == OTHER and depth == length and on == length and until == begin:
                until = at
            on = min(on, depth)
        elif c == COMMA:
            at += 1
            if objects[depth - 1]:
                await_key = True
            else:
                await_value = True
                places[depth - 1] += 1
                hit = on == depth and steps.place[depth - 1] == places[depth - 1]
        else:
            return nothing
        at = _blank(data, at, end)
    return (kind, begin, until) if at == end else nothing


@njit(cache=True, nogil=True)
def _kinds(data, offsets, steps, kind, begin, end):
    """What is at the path in each document."""
    objects, places = np.empty(DEEPEST, np.bool_), np.empty(DEEPEST, np.int64)
    longest = 0
    for i in range(len(kind)):
        longest = max(longest, offsets[i + 1] - offsets[i])
    scratch = np.empty(longest, np.uint8)
    for i in range(len(kind)):
        kind[i], begin[i], end[i] = _walk(
            data, offsets[i], offsets[i + 1], steps, objects, places, scratch
        )


@njit(cache=True, nogil=True)
def _texts(data, kind, begin, end, out, offsets, there):
    """The texts of scalars one behind the other."""
    to = 0
    for i in range(len(kind)):
        there[i] = kind[i] > OTHER
        before = to
        if kind[i] == ESCAPED:
            to, half = _unescaped(data, begin[i], end[i], out, to)
            if half:
                to, there[i] = before, False
        elif there[i]:
            for k in range(begin[i], end[i]):
                out[to] = data[k]
                to += 1
        offsets[i + 1] = to


def exist(data: np.ndarray, offsets: np.ndarray, steps: Steps) -> np.ndarray:
    """bool: whether something is at the path, null too.  offsets: n + 1, into the octets."""
    kind, _, _ = found(data, offsets, steps)
    return kind != NOTHING


def texts(
    data: np.ndarray, offsets: np.ndarray, steps: Steps
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(octets, n + 1 offsets int32 into them, whether there is one) of the scalars at the path: the
    digits of numbers, what strings say, true and false."""
    return spelled(data, *found(data, offsets, steps))


def spelled(
    data: np.ndarray, kind: np.ndarray, begin: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same of what stands there."""
    room = int((end - begin).sum())
    out, at = np.empty(room, np.uint8), np.zeros(len(kind) + 1, np.int32)
    there = np.empty(len(kind), np.bool_)
    _texts(data, kind, begin, end, out, at, there)
    return out[: at[-1]], at, there


def found(
    data: np.ndarray, offsets: np.ndarray, steps: Steps
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is at the path in each document, and where it begins and ends."""
    n = len(offsets) - 1
    kind = np.empty(n, np.int8)
    begin, end = np.zeros(n, np.int64), np.zeros(n, np.int64)
    _kinds(data, offsets, steps, kind, begin, end)
    return kind, begin, end
