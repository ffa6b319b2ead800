"""Finding the versions of a table that were current at an instant, by key: many probes in one call.

State   per key value a chain of the slots that have it, youngest first; a NULL in the key keeps a
        slot out
Cost    a probe walks its key's chain.  A primary key is decided by the youngest version born at or
        before the instant; other keys need the whole chain.  Old versions leave with
        `VersionedTable.forget`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.state.columns import numpy_valid
from dsms.state.intern import Intern
from dsms.state.vec import Vec

NONE = -1
DEEP = 8  # slots of one key that are taken back one by one


@njit(cache=True, nogil=True)
def _chain(head, link, codes, first):
    for i in range(len(codes)):
        slot, code = first + i, codes[i]
        link[slot] = NONE
        if code != NONE:
            link[slot] = head[code]
            head[code] = slot


@njit(cache=True, nogil=True)
def _count(codes, ts, head, link, born, ended, unique):
    """Matches per probe: slots of the chain with born <= ts < ended."""
    out = np.zeros(len(codes), np.int64)
    for i in range(len(codes)):
        slot = head[codes[i]] if codes[i] != NONE else NONE
        while slot != NONE:
            if born[slot] <= ts[i]:
                out[i] += ts[i] < ended[slot]
                if unique:
                    break
            slot = link[slot]
    return out


@njit(cache=True, nogil=True)
def _fill(codes, ts, head, link, born, ended, unique, stop):
    """Slots of all matches, each probe's in ascending order, ending at `stop[i]`."""
    out = np.empty(stop[-1] if len(stop) else 0, np.int64)
    for i in range(len(codes)):
        at = stop[i]
        slot = head[codes[i]] if codes[i] != NONE else NONE
        while slot != NONE:
            if born[slot] <= ts[i]:
                if ts[i] < ended[slot]:
                    at -= 1
                    out[at] = slot
                if unique:
                    break
            slot = link[slot]
    return out


@dataclass(slots=True)
class AsOfIndex:
    """Chains over `columns` of a table (schema positions; none: one chain of everything).

    `unique`: at most one current version per key (the primary key is among the columns)."""

    columns: tuple[int, ...]
    unique: bool
    intern: Intern = field(init=False)
    head: Vec = field(default_factory=Vec)
    link: Vec = field(default_factory=Vec)

    def __post_init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything: the slots have moved."""
        self.intern = Intern(len(self.columns))
        self.head, self.link = Vec(), Vec()

    def cut(self, count: int) -> None:
        """Only the first `count` slots stay; those of one key that go are few, or all is
        forgotten."""
        if self.link.n <= count:
            return
        head = self.head.view
        for _ in range(DEEP):
            gone = np.flatnonzero(head >= count)
            if not len(gone):
                self.link.n = count
                return
            head[gone] = self.link.view[head[gone]]  # youngest first
        self.clear()

    def extend(self, cols: Sequence[pa.Array], count: int) -> None:
        """`count` further slots with these key columns."""
        first = self.link.n
        codes = self.intern.codes(cols, count)
        codes[_null(cols, count)] = NONE
        self.head.extend_fill(self.intern.capacity - self.head.n, NONE)
        self.link.extend_fill(count, NONE)
        _chain(self.head.view, self.link.view, codes, first)

    def probe(
        self, cols: Sequence[pa.Array], ts: np.ndarray, born: np.ndarray, ended: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(probe row, slot) pairs, int64, by probe row and then slot: the versions current at each
        row's `ts`."""
        codes = self.intern.lookup(cols, len(ts))
        codes[_null(cols, len(ts))] = NONE
        ts = np.ascontiguousarray(ts)
        found = _count(codes, ts, self.head.view, self.link.view, born, ended, self.unique)
        stop = np.cumsum(found)
        slots = _fill(codes, ts, self.head.view, self.link.view, born, ended, self.unique, stop)
        return np.repeat(np.arange(len(ts), dtype=np.int64), found), slots

    @property
    def nbytes(self) -> int:
        return self.intern.nbytes + self.head.nbytes + self.link.nbytes


def _null(cols: Sequence[pa.Array], count: int) -> np.ndarray:
    """bool[count]: rows whose key has a NULL, which never match."""
    out = np.zeros(count, np.bool_)
    for col in cols:
        valid = numpy_valid(col)
        if valid is not None:
            out |= ~valid
    return out
