"""Arrays that become longer where they lie.

An array of some size gets a range of addresses that is much longer than what is in use.  The system
gives memory to what has been written only, so a longer array is another view of the same range: no
place is copied, nothing is unused, and memory comes page by page with the rows that need it.  Where
the system gives no such ranges, arrays are copied into longer ones, as short arrays always are.
"""

from __future__ import annotations

import math
import mmap
import sys
from itertools import cycle

import numpy as np

FROM = 1 << 20  # bytes; a shorter array is copied sooner than mapped
RANGE = 8 << 30  # bytes of addresses for one array
RANGES = 1 << 45  # bytes of addresses for all of them: a quarter of what a process has
STEP = 1 << 17  # places that an array becomes longer by at most, if not asked for more
LONG = 1 << 20  # places from which a copy has half as many more: more would be much memory at once
_NO_RESERVE = 0x4000  # MAP_NORESERVE of Linux

_taken = 0  # bytes of addresses
# arrays that grow together are not all put into ranges in one step: of these each fourth one is
_turns = cycle((0, 1, 2, 3))


class _Range(mmap.mmap):
    """The addresses of one array, of which `used` bytes are in use."""

    used: int
    taken: int = 0

    def __del__(self) -> None:
        global _taken
        _taken -= self.taken


def grown(array: np.ndarray, count: int, fill: int | None = 0) -> np.ndarray:
    """An array with these rows and room for `count` at least, to be used in place of the given
    one; the same object if it has the room.  Of the given array nothing must be read any more
    that is written now.

    fill  of the new places; None: anything, since they are written before they are read"""
    n = len(array)
    if count <= n:
        return array
    out = _where_it_lies(array, count)
    if out is None:
        out = _copied(array, count, fill == 0)
    if fill:
        out[n:] = fill
    return out


def _where_it_lies(array: np.ndarray, count: int) -> np.ndarray | None:
    """The array, longer and with zeros behind, if it is in a range to its end, or can be put into
    one; else None."""
    row = array.itemsize * math.prod(array.shape[1:])
    if count * row < FROM or not array.flags.c_contiguous:
        return None
    place = array.base
    if not isinstance(place, _Range) or place.used != array.nbytes:
        place = None
    if place is None and count * row < 2 * FROM and next(_turns):
        return None
    count += min(count >> 2, STEP)
    if place is not None and count * row <= place.taken:
        return _view(place, array, count, count * row)
    fresh = _reserved(count * row)
    if fresh is None:
        return None
    out = _view(fresh, array, count, count * row)
    out[: len(array)] = array
    return out


def _view(place: _Range, like: np.ndarray, count: int, used: int) -> np.ndarray:
    place.used = used
    return np.ndarray((count, *like.shape[1:]), like.dtype, buffer=place)


def _copied(array: np.ndarray, count: int, zeros: bool) -> np.ndarray:
    n = len(array)
    shape = (max(count, n + n // 2 if n >= LONG else 2 * n, 16), *array.shape[1:])
    out: np.ndarray = np.zeros(shape, array.dtype) if zeros else np.empty(shape, array.dtype)
    out[:n] = array
    return out


def _reserved(least: int) -> _Range | None:
    """Addresses for that many bytes and many more; None where the system counts addresses as if
    they were memory, or has no more of them."""
    global _taken
    size = max(RANGE, 4 * least) & -mmap.PAGESIZE
    if _taken + size > RANGES or not _are_free():
        return None
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
    try:
        place = _Range(-1, size, flags=flags)
    except (OSError, ValueError, OverflowError):
        return None
    place.taken, place.used = size, 0
    _taken += size
    return place


def _are_free() -> bool:
    """Whether addresses that are not written to cost nothing."""
    if sys.platform != "linux" or sys.maxsize < 1 << 40 or _strict():
        return False
    import resource

    limits = (resource.RLIMIT_AS, resource.RLIMIT_DATA)
    return all(resource.getrlimit(limit)[0] == resource.RLIM_INFINITY for limit in limits)


_overcommit: list[bool] = []


def _strict() -> bool:
    """Whether the system promises memory for all addresses (vm.overcommit_memory = 2)."""
    if not _overcommit:
        try:
            with open("/proc/sys/vm/overcommit_memory") as file:
                _overcommit.append(file.read().strip() == "2")
        except OSError:
            _overcommit.append(True)
    return _overcommit[0]
