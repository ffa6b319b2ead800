"""Rows of many sub-windows taken in one go, whatever arrays they lie in.

The kernels get addresses: by sub-window those of its timestamps, its arrival numbers, and its
columns.  They hold for a sub-window as it is: who asks has it, and one that has taken its place is
looked at anew.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from weakref import ref

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.state.batch import Batch, picked
from dsms.state.columns import EIGHT_BYTES
from dsms.state.memory import carray, pointer
from dsms.state.probing import column_at, is_text
from dsms.state.ring import SubWindow

TS, ID, COLUMNS = 0, 1, 2  # two addresses a column: words or ends of texts, and octets


@njit(cache=True, nogil=True)
def _words(address, of, place, out):
    """The words at those places of the sub-windows `of`."""
    for i in range(len(of)):
        out[i] = carray(pointer(address[of[i]]), (1,), np.int64)[place[i]]


@njit(cache=True, nogil=True)
def _ends(address, of, place, ends):
    """Where the texts at those places will end, one behind the other; how long all are."""
    end = np.int64(0)
    ends[0] = 0
    for i in range(len(of)):
        column = carray(pointer(address[of[i]]), (1,), np.int32)
        end += column[place[i] + 1] - column[place[i]]
        if end > np.iinfo(np.int32).max:
            return end
        ends[i + 1] = end
    return end


@njit(cache=True, nogil=True)
def _octets(address, text, of, place, out):
    """Those texts."""
    n = 0
    for i in range(len(of)):
        column = carray(pointer(address[of[i]]), (1,), np.int32)
        octets = carray(pointer(text[of[i]]), (1,), np.uint8)
        for j in range(column[place[i]], column[place[i] + 1]):
            out[n] = octets[j]
            n += 1


@dataclass(slots=True)
class Addresses:
    """Of the sub-windows that were asked for last: `table[i]` is of the one that refs[i] is."""

    refs: list[ref[SubWindow]] = field(default_factory=list)
    table: np.ndarray = field(default_factory=lambda: np.empty((0, COLUMNS), np.int64))

    def of(self, subs: Sequence[SubWindow]) -> np.ndarray:
        """int64[n, 2 + 2 * columns], of closed sub-windows; a column that has NULLs, or is of no
        type that is read here, has none."""
        if len(subs) != len(self.refs) or any(
            known() is not sub for known, sub in zip(self.refs, subs, strict=True)
        ):
            rows = {id(sub): row for known, row in self._known() if (sub := known()) is not None}
            found = [rows.get(id(sub)) or _addresses(sub.rows) for sub in subs]
            self.refs, self.table = [ref(sub) for sub in subs], np.array(found, np.int64)
        return self.table

    def _known(self) -> zip[tuple[ref[SubWindow], list[int]]]:
        return zip(self.refs, self.table.tolist(), strict=True)


def _addresses(rows: Batch) -> list[int]:
    found = [_of_words(rows.ts), _of_words(rows.ids[0]) if len(rows.ids) == 1 else 0]
    for col in rows.cols:
        read = not col.null_count and (col.type in EIGHT_BYTES or is_text(col.type))
        found += column_at(col) if read else (0, 0)
    return found


def _of_words(words: np.ndarray) -> int:
    plain = words.dtype == np.int64 and words.flags.c_contiguous
    return int(words.__array_interface__["data"][0]) if plain else 0


def taken(
    subs: Sequence[SubWindow],
    table: np.ndarray,
    of: np.ndarray,
    place: np.ndarray,
    used: Collection[int],
) -> Batch:
    """The rows at those places of the sub-windows subs[of], in that order (of ascending); columns
    that are not `used` are NULL.  `table`: their addresses, among them those of ts and ids."""
    ts, number = (_of_eight(table[:, at], of, place) for at in (TS, ID))
    cols = [
        _column(subs, table, k, of, place) if k in used else pa.nulls(len(of), col.type)
        for k, col in enumerate(subs[0].rows.cols)
    ]
    return Batch(ts, None, None, (number,), tuple(cols))


def _of_eight(address: np.ndarray, of: np.ndarray, place: np.ndarray) -> np.ndarray:
    out = np.empty(len(of), np.int64)
    _words(address, of, place, out)
    return out


def _column(
    subs: Sequence[SubWindow], table: np.ndarray, k: int, of: np.ndarray, place: np.ndarray
) -> pa.Array:
    address, type_ = table[:, COLUMNS + 2 * k], subs[0].rows.cols[k].type
    ends = np.empty(len(of) + 1, np.int32)
    if not address.all() or (is_text(type_) and _ends(address, of, place, ends) >= 1 << 31):
        cuts = np.searchsorted(of, np.arange(len(subs) + 1)).tolist()
        runs = zip(subs, cuts, cuts[1:], strict=False)
        parts = [(sub.rows.cols[k], place[a:b]) for sub, a, b in runs if a < b]
        return picked(parts) if parts else subs[0].rows.cols[k].slice(0, 0)
    if is_text(type_):
        octets = np.empty(ends[-1], np.uint8)
        _octets(address, table[:, COLUMNS + 2 * k + 1], of, place, octets)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(octets)]
        return pa.Array.from_buffers(type_, len(of), buffers)
    words = _of_eight(address, of, place)
    return pa.array(words.view(np.float64) if pa.types.is_floating(type_) else words)


def ready() -> None:
    """Have the kernels compiled or loaded now."""
    one = np.zeros(1, np.int64)
    for column in (pa.array([1]), pa.array(["a"])):
        subs = [SubWindow(0, Batch(one, None, None, (one,), (column,)))]
        taken(subs, Addresses().of(subs), one, one, {0})
