"""Key interning: rows of key columns to dense integer codes, with purging of values that no live
row uses.

Codes are stable while in use; a purged code is handed out again later, so arrays indexed by code
stay as long as the number of keys alive at once (Golab, Garg, Özsu 2004, §4: purging).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from dsms.state.chains import END, Chains, bucket_of, mask_over, put
from dsms.state.columns import numpy_valid, numpy_values
from dsms.state.lengthening import grown
from dsms.state.texts import Texts, fits
from dsms.state.texts import ready as texts_ready

FREE = -1
SLICE = 4096  # rows looked up at a time where few keys are known
MOST = 1 << 16  # rows that are at all
Look = Callable[[], None]
_NAN_BITS = np.float64("nan").view(np.int64)


@njit(cache=True, nogil=True)
def _hash(keys, i):
    h = np.uint64(0x9E3779B97F4A7C15)
    for k in range(keys.shape[1]):
        h ^= np.uint64(keys[i, k])
        h *= np.uint64(0xFF51AFD7ED558CCD)
        h ^= h >> np.uint64(32)
    return h


@njit(cache=True, nogil=True)
def _equal(a, i, b, j):
    for k in range(a.shape[1]):  # noqa: SIM110
        if a[i, k] != b[j, k]:
            return False
    return True


@njit(cache=True, nogil=True)
def _lookup(head, link, size, known, keys, out):
    buckets = np.uint64(size[0])
    mask = mask_over(buckets)
    for i in range(len(keys)):
        code = head[bucket_of(_hash(keys, i), mask, buckets)]
        while code != END and not _equal(known, code, keys, i):
            code = link[code, 0]
        out[i] = code


@njit(cache=True, nogil=True)
def _intern(head, link, size, known, keys, spare, spares, fresh, out):
    """Codes of all rows; new keys take spare codes first, then `fresh`, `fresh` + 1, ...

    Answers (spares left, next fresh code).  There is room for all."""
    buckets = np.uint64(size[0])
    mask = mask_over(buckets)
    for i in range(len(keys)):
        h = _hash(keys, i)
        code = head[bucket_of(h, mask, buckets)]
        while code != END and not _equal(known, code, keys, i):
            code = link[code, 0]
        if code == END:
            if spares > 0:
                spares -= 1
                code = spare[spares]
            else:
                code = fresh
                fresh += 1
            for k in range(keys.shape[1]):
                known[code, k] = keys[i, k]
            put(head, link, size, code, h)
            buckets = np.uint64(size[0])
            mask = mask_over(buckets)
        out[i] = code
    return spares, fresh


@njit(cache=True, nogil=True)
def _put_all(head, link, size, known, codes):
    for code in codes:
        put(head, link, size, code, _hash(known, code))


def _go_on() -> None:
    return


@dataclass(slots=True)
class _Words:
    """Codes for a column whose values neither fit 8 bytes nor are texts: per batch only its
    distinct values are looked up."""

    codes: dict[object, int] = field(default_factory=dict)
    spare: list[int] = field(default_factory=list)

    def encode(self, col: pa.Array, add: bool, look: Look) -> np.ndarray:
        coded = col.dictionary_encode()
        values = coded.dictionary.to_pylist()
        if add:
            table = [self._code(v) for v in values]
        else:
            table = [self.codes.get(v, FREE) for v in values]
        index = np.asarray(pc.fill_null(coded.indices, 0))
        return np.array(table, np.int64)[index] if table else np.zeros(len(col), np.int64)

    def _code(self, value: object) -> int:
        code = self.codes.get(value)
        if code is None:
            code = self.spare.pop() if self.spare else len(self.codes)
            self.codes[value] = code
        return code

    def purge(self, used: np.ndarray) -> None:
        alive = set(used.tolist())
        total = len(self.codes) + len(self.spare)
        self.codes = {v: c for v, c in self.codes.items() if c in alive}
        taken = set(self.codes.values())
        self.spare = [c for c in range(total) if c not in taken]

    @property
    def nbytes(self) -> int:
        return 100 * len(self.codes)


def word(col: pa.Array) -> np.ndarray | None:
    """The column as int64 words with equal words for equal values (floats: -0.0 is 0.0, NaN is
    NaN); None if the type does not fit.  Arbitrary where NULL."""
    if not (
        pa.types.is_int64(col.type)
        or pa.types.is_float64(col.type)
        or pa.types.is_boolean(col.type)
    ):
        return None
    values = numpy_values(col)
    if values.dtype == np.float64:
        bits = (values + 0.0).view(np.int64)
        nan = np.isnan(values)
        return np.where(nan, _NAN_BITS, bits) if nan.any() else bits
    return values.astype(np.int64, copy=False)


@dataclass(slots=True)
class Intern:
    """Codes 0 <= code < `capacity` for rows of `columns` key columns.  NULLs are equal to each
    other here."""

    columns: int
    chains: Chains = field(default_factory=Chains)  # of codes
    known: np.ndarray = field(init=False)
    words: dict[int, _Words | Texts] = field(default_factory=dict)
    spare: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    spares: int = 0
    fresh: int = 0

    def __post_init__(self) -> None:
        self.known = np.empty((512, self.columns + 1), np.int64)
        self.chains.clear(512, 512)

    @property
    def capacity(self) -> int:
        """Codes are below this; arrays indexed by code need this length."""
        return self.fresh

    @property
    def size(self) -> int:
        """Keys known now."""
        return self.fresh - self.spares

    def _keys(self, cols: Sequence[pa.Array], n: int, add: bool, look: Look = _go_on) -> np.ndarray:
        """int64[n, columns + 1]: a word per column, then a bit per NULL."""
        keys = np.zeros((n, self.columns + 1), np.int64)
        for k, col in enumerate(cols):
            words = word(col)
            if words is None:
                words = self._coder(k, col.type).encode(col, add, look)
            valid = numpy_valid(col)
            if valid is None:
                keys[:, k] = words
            else:
                keys[:, k] = np.where(valid, words, 0)
                keys[:, -1] |= np.where(valid, 0, 1 << k)
        return keys

    def _coder(self, column: int, type_: pa.DataType) -> _Words | Texts:
        """What makes words of that column's values."""
        if column not in self.words:
            self.words[column] = Texts() if fits(type_) else _Words()
        return self.words[column]

    def codes(self, cols: Sequence[pa.Array], n: int, look: Look = _go_on) -> np.ndarray:
        """Codes of n rows, int64[n]; unknown keys become known.

        `look` is called between stretches of work where there are many keys.  It may raise, but
        only if these codes are not used afterwards."""
        keys = self._keys(cols, n, True, look)
        out = np.empty(n, np.int64)
        start = 0
        # in slices, so that room is made for the keys that come and not for the rows
        while start < n:
            stop = min(n, start + min(max(SLICE, self.fresh), MOST))
            self._make_room(stop - start)
            kept = (*self.chains.kernel, self.known, keys[start:stop], self.spare)
            self.spares, self.fresh = _intern(*kept, self.spares, self.fresh, out[start:stop])
            start = stop
            if start < n:
                look()
        return out

    def reserve(self) -> int:
        """A code that no key has or will have (keep it live in `purge`)."""
        self._make_room(1)
        self.fresh += 1
        self.known[self.fresh - 1] = 0
        self.known[self.fresh - 1, -1] = -1
        return self.fresh - 1

    def lookup(self, cols: Sequence[pa.Array], n: int) -> np.ndarray:
        """Codes of n rows, -1 for unknown keys; nothing becomes known."""
        out = np.empty(n, np.int64)
        keys = self._keys(cols, n, add=False)
        _lookup(*self.chains.kernel, self.known, keys, out)
        return out

    def _make_room(self, n: int) -> None:
        need = self.fresh + n
        self.known = grown(self.known, need, None)
        self.chains.reserve(need, n)

    def _chain(self, used: np.ndarray) -> None:
        """Put these codes into chains, and no others."""
        self.chains.clear(self.fresh, len(used))
        _put_all(*self.chains.kernel, self.known, used)

    def wants_purge(self, alive: int) -> bool:
        """Worth purging, when `alive` keys are still used."""
        return self.size > 1024 and self.size > 2 * alive

    def purge(self, live: np.ndarray) -> None:
        """Forget all codes whose `live` (bool[capacity]) is False; they will be handed out
        again."""
        used = np.flatnonzero(live[: self.fresh])
        dead = np.flatnonzero(~live[: self.fresh])
        self.spare, self.spares = dead[::-1].copy(), len(dead)
        self._chain(used)
        for k, words in self.words.items():
            words.purge(self.known[used, k])

    def __getstate__(self) -> dict[str, Any]:
        """Without the chains, which are made of the rest."""
        return {
            "columns": self.columns,
            "known": self.known[: self.fresh],
            "words": self.words,
            "spare": self.spare[: self.spares],
            "spares": self.spares,
            "fresh": self.fresh,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """States of earlier versions have a table instead of chains, which is not needed."""
        for name in ("columns", "known", "words", "spare", "spares", "fresh"):
            setattr(self, name, state[name])
        if self.known.shape[1:] != (self.columns + 1,) or len(self.known) < self.fresh:
            raise ValueError("keys are missing")
        self.chains = Chains()
        codes = np.arange(self.fresh, dtype=np.int64)
        self._chain(np.setdiff1d(codes, self.spare[: self.spares], assume_unique=True))

    @property
    def nbytes(self) -> int:
        own = self.chains.nbytes + int(self.known.nbytes + self.spare.nbytes)
        return own + sum(w.nbytes for w in self.words.values())


def ready() -> None:
    """Have the kernel that no row meets, but what is read from a file, compiled or loaded now."""
    Intern(1)._chain(np.empty(0, np.int64))
    texts_ready()
