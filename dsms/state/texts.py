"""Texts and bytes to dense codes: what `intern` does for words, of values of any length.

State  The bytes of all known values, one behind the other; where each begins, and its length.
Cost   O(length) a value.
Hash   A polynomial over the integers modulo 2^31 - 1, at two points that are drawn when the process
       starts (Carter and Wegman 1979, Universal Classes of Hash Functions): which values would
       collide nobody can know who sends them.  Codes do not depend on it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.state.chains import END, Chains, bucket_of, mask_over, put
from dsms.state.columns import numpy_valid
from dsms.state.lengthening import grown

UNKNOWN = -1
Look = Callable[[], None]
SLICE = 4096  # values looked up at a time where few are known
MOST = 1 << 16  # values that are at all
PRIME, BITS = np.uint64((1 << 31) - 1), np.uint64(31)
POINTS = tuple(np.uint64(secrets.randbelow((1 << 31) - 3) + 2) for _ in range(2))


@njit(cache=True, nogil=True)
def _folded(x):
    """Below 2^32, and the same modulo 2^31 - 1."""
    x = (x & PRIME) + (x >> BITS)
    return (x & PRIME) + (x >> BITS)


@njit(cache=True, nogil=True)
def _hash(data, begin, end, a, b):
    h = k = np.uint64(end - begin)
    i = begin
    while i < end:
        word = np.uint64(data[i])
        if i + 1 < end:
            word |= np.uint64(data[i + 1]) << np.uint64(8)
        if i + 2 < end:
            word |= np.uint64(data[i + 2]) << np.uint64(16)
        h, k = _folded(h * a + word), _folded(k * b + word)
        i += 3
    h ^= k << np.uint64(32)
    h *= np.uint64(0xFF51AFD7ED558CCD)
    return h ^ (h >> np.uint64(32))


@njit(cache=True, nogil=True)
def _same(one, begin, end, other, at):
    for i in range(end - begin):  # noqa: SIM110
        if one[begin + i] != other[at + i]:
            return False
    return True


@njit(cache=True, nogil=True)
def _encode(
    head, link, size, known, place, used, data, edges, valid, spare, spares, fresh, add, a, b, out
):
    """Codes of values, of which value i is data[edges[i] : edges[i + 1]]; arbitrary where NULL.

    known, place  bytes of the known values, and where a code's begin and how many these are
    used          bytes of `known` that are in use
    add           unknown values take spare codes first, then `fresh`, `fresh` + 1, ...; there is
                  room for all.  Else they are UNKNOWN
    Answers (spares left, next fresh code, bytes in use)."""
    buckets = np.uint64(size[0])
    mask = mask_over(buckets)
    for i in range(len(out)):
        out[i] = 0
        if len(valid) > 0 and not valid[i]:
            continue
        begin, end = np.int64(edges[i]), np.int64(edges[i + 1])
        h = _hash(data, begin, end, a, b)
        code = head[bucket_of(h, mask, buckets)]
        while code != END and not (
            link[code, 1] == np.int64(h)
            and place[code, 1] == end - begin
            and _same(data, begin, end, known, place[code, 0])
        ):
            code = link[code, 0]
        if code == END and add:
            if spares > 0:
                spares -= 1
                code = spare[spares]
            else:
                code = fresh
                fresh += 1
            place[code, 0], place[code, 1] = used, end - begin
            for k in range(begin, end):
                known[used] = data[k]
                used += 1
            put(head, link, size, code, h)
            buckets = np.uint64(size[0])
            mask = mask_over(buckets)
        out[i] = code
    return spares, fresh, used


@njit(cache=True, nogil=True)
def _put_all(head, link, size, known, place, codes, a, b):
    for code in codes:
        begin = place[code, 0]
        put(head, link, size, code, _hash(known, begin, begin + place[code, 1], a, b))


@njit(cache=True, nogil=True)
def _move(known, place, codes, out):
    """The bytes of these codes alone, one behind the other; answers how many these are."""
    used = 0
    for code in codes:
        begin = place[code, 0]
        place[code, 0] = used
        for k in range(begin, begin + place[code, 1]):
            out[used] = known[k]
            used += 1
    return used


def fits(type_: pa.DataType) -> bool:
    """Whether values of that type are coded here."""
    return bool(pa.types.is_string(type_) or pa.types.is_binary(type_))


@dataclass(slots=True)
class Texts:
    """Codes 0 <= code < `fresh` for texts or bytes."""

    known: np.ndarray = field(default_factory=lambda: np.empty(1024, np.uint8))
    used: int = 0
    place: np.ndarray = field(default_factory=lambda: np.empty((64, 2), np.int64))
    spare: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    spares: int = 0
    fresh: int = 0
    chains: Chains = field(default_factory=Chains)  # of codes

    def __post_init__(self) -> None:
        self.chains.clear(64, 64)

    def __len__(self) -> int:
        """Values known now."""
        return self.fresh - self.spares

    def encode(self, col: pa.Array, add: bool, look: Look) -> np.ndarray:
        """Codes of a column, int64[n], arbitrary where NULL.  Unknown values become known, or have
        the code UNKNOWN."""
        n = len(col)
        out = np.empty(n, np.int64)
        data, edges = _bytes_of(col)
        valid = numpy_valid(col)
        marks = np.empty(0, np.bool_) if valid is None else valid
        start = 0
        # in slices, so that room is made for the values that come and not for the rows
        while start < n:
            stop = min(n, start + min(max(SLICE, self.fresh), MOST))
            if add:
                self._make_room(stop - start, int(edges[stop]) - int(edges[start]))
            self.spares, self.fresh, self.used = _encode(
                *self.chains.kernel,
                self.known,
                self.place,
                self.used,
                data,
                edges[start:],
                marks[start:],
                self.spare,
                self.spares,
                self.fresh,
                add,
                *POINTS,
                out[start:stop],
            )
            start = stop
            look()
        return out

    def _make_room(self, values: int, nbytes: int) -> None:
        need = self.fresh + values
        self.place = grown(self.place, need, None)
        self.known = grown(self.known, self.used + nbytes, None)
        self.chains.reserve(need, values)

    def purge(self, used: np.ndarray) -> None:
        """Forget all codes but those of these that have a value; they will be handed out again."""
        live = np.zeros(self.fresh, np.bool_)
        live[used[used < self.fresh]] = True
        live[self.spare[: self.spares]] = False
        codes, dead = np.flatnonzero(live), np.flatnonzero(~live)
        self.spare, self.spares = dead[::-1].copy(), len(dead)
        kept = np.empty(max(1024, int(self.place[codes, 1].sum())), np.uint8)
        self.used = _move(self.known, self.place, codes, kept)
        self.known = kept
        self._chain(codes)

    def _chain(self, codes: np.ndarray) -> None:
        """Put these codes into chains, and no others."""
        self.chains.clear(self.fresh, len(codes))
        _put_all(*self.chains.kernel, self.known, self.place, codes, *POINTS)

    def __getstate__(self) -> dict[str, Any]:
        """Without the chains, which are made of the rest."""
        return {
            "known": self.known[: self.used],
            "place": self.place[: self.fresh],
            "spare": self.spare[: self.spares],
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.known, self.place, self.spare = (state[k] for k in ("known", "place", "spare"))
        self.used, self.fresh, self.spares = len(self.known), len(self.place), len(self.spare)
        if not self._sound():
            raise ValueError("texts are missing")
        self.chains = Chains()
        self._chain(np.setdiff1d(np.arange(self.fresh), self.spare))

    def _sound(self) -> bool:
        forms = self.known.dtype == np.uint8 and self.place.shape[1:] == (2,)
        if not (forms and self.place.dtype == self.spare.dtype == np.int64):
            return False
        codes = np.setdiff1d(np.arange(self.fresh), self.spare)
        begin, length = self.place[codes, 0], self.place[codes, 1]
        inside = bool(((begin >= 0) & (length >= 0) & (begin <= self.used - length)).all())
        free = self.spare
        each = len(np.unique(free)) == len(free) and len(codes) + len(free) == self.fresh
        return inside and each

    @property
    def nbytes(self) -> int:
        own = self.known.nbytes + self.place.nbytes + self.spare.nbytes
        return int(own) + self.chains.nbytes


_NOTHING = np.zeros(1, np.uint8)
_NOTHING.flags.writeable = False


def _bytes_of(col: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """(bytes, uint8; where each value begins in them, and the last one ends, int32[n + 1])."""
    _, edges, data = col.buffers()
    if not len(col):
        return _NOTHING, np.zeros(1, np.int32)
    known = np.frombuffer(edges, np.int32)[col.offset : col.offset + len(col) + 1]
    found = np.frombuffer(data, np.uint8) if data is not None and data.size else _NOTHING
    for array in (known, found):
        array.flags.writeable = False  # as those of some buffers are: one kernel serves all
    return found, known


def ready() -> None:
    """Have the kernels that no row meets compiled or loaded now."""
    texts = Texts()
    texts.purge(np.empty(0, np.int64))
