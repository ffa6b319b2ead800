"""Time zones as arrays: when the offset from UTC changes, and to what; for whole columns of
instants at once.

The transitions are those of the system's (or the `tzdata` package's) TZif files, as `zoneinfo`
reads them.  After the last one in the file its rule goes on for ever; the Gregorian calendar
repeats every 400 years, so the rule is asked for 400 years at most.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib import resources
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo

import numpy as np

from dsms.sql.zones import fixed_offset

SECOND = 1_000_000
_CYCLE = 146_097 * 86_400 * SECOND  # 400 years
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Zone:
    """`offsets[i]` (µs, local minus UTC) holds before `changes[i]`, `offsets[-1]` after the last
    change.

    From `cycle` on (an instant; None: never) the offsets are those of 400 years before.
    """

    changes: np.ndarray
    offsets: np.ndarray
    cycle: int | None

    def at(self, utc: np.ndarray) -> np.ndarray:
        """The offset at each instant (µs); an array of one if it is the same for all."""
        return self.offsets[_segments(self.changes, self._home(utc))]

    def to_local(self, utc: np.ndarray) -> np.ndarray:
        """Local wall clock, as µs since 1970-01-01T00:00 local."""
        return utc + self.at(utc)

    def first_instant(self, local: np.ndarray) -> np.ndarray:
        """The first instant whose local time is at or past `local`."""
        home = self._home(local)
        ends = np.maximum.accumulate(self.changes + self.offsets[:-1])
        segment = _segments(ends, home)
        starts = np.concatenate([[-(2**62)], self.changes])
        return np.maximum(home - self.offsets[segment], starts[segment]) + (local - home)

    def _home(self, instants: np.ndarray) -> np.ndarray:
        """The instants, moved back by whole cycles to where the changes are known."""
        if self.cycle is None or len(instants) == 0 or instants.max() < self.cycle:
            return instants
        return instants - np.maximum((instants - self.cycle) // _CYCLE + 1, 0) * _CYCLE


def _segments(changes: np.ndarray, instants: np.ndarray) -> np.ndarray:
    """How many changes each instant is at or past.  Those of one batch mostly lie between the same
    two changes."""
    if len(instants):
        first, last = np.searchsorted(changes, [instants.min(), instants.max()], side="right")
        if first == last:
            return np.full(1, first)
    return np.searchsorted(changes, instants, side="right")


@lru_cache(maxsize=64)
def zone(name: str) -> Zone:
    """The zone of that name or offset; LookupError (zoneinfo's) if there is none."""
    fixed = fixed_offset(name)
    if fixed is not None:
        return Zone(np.empty(0, np.int64), np.array([fixed], np.int64), None)
    info = ZoneInfo(name)
    changes, offsets = _read(_bytes(name))
    start = _EPOCH + timedelta(microseconds=int(changes[-1])) if len(changes) else _EPOCH
    offsets[-1] = _offset(info, start)  # from here on the rule holds, not the file
    more = _rule(info, start)
    if not more:
        return Zone(changes, offsets, None)
    at = np.concatenate([changes, np.array([instant for instant, _ in more], np.int64)])
    return Zone(
        at,
        np.concatenate([offsets, np.array([o for _, o in more], np.int64)]),
        _micros(start) + _CYCLE,
    )


def _micros(when: datetime) -> int:
    return (when - _EPOCH) // timedelta(microseconds=1)


def _offset(info: ZoneInfo, when: datetime) -> int:
    delta = when.astimezone(info).utcoffset()
    assert delta is not None  # a zone always has one
    return delta // timedelta(microseconds=1)


def _rule(info: ZoneInfo, start: datetime) -> list[tuple[int, int]]:
    """Changes of the rule in the 400 years (two spare) from `start`; none if its first two years
    have none."""
    found: list[tuple[int, int]] = []
    before, was = start, _offset(info, start)
    for step in range(1, 402 * 24 + 1):
        if step > 48 and not found:
            return []
        after = start + timedelta(days=step * 365.2425 / 24)
        now = _offset(info, after)
        if now != was:
            found.append((_change(info, before, after), now))
        before, was = after, now
    return found


def _change(info: ZoneInfo, low: datetime, high: datetime) -> int:
    """The instant in (low, high] at which the offset changes, to the second."""
    was = _offset(info, low)
    a, b = _micros(low) // SECOND, -(-_micros(high) // SECOND)
    while b - a > 1:
        middle = (a + b) // 2
        if _offset(info, _EPOCH + timedelta(seconds=middle)) == was:
            a = middle
        else:
            b = middle
    return b * SECOND


def _bytes(name: str) -> bytes:
    """The zone's TZif file, from where zoneinfo finds it."""
    for folder in TZPATH:
        path = Path(folder, *name.split("/"))
        if path.is_file():
            return path.read_bytes()
    return resources.files("tzdata.zoneinfo").joinpath(*name.split("/")).read_bytes()


def _read(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Changes and offsets (µs) of a TZif file (RFC 8536): its 64-bit block if there is one."""
    size, at = 4, 0
    if data[4:5] >= b"2":
        at, size = 44 + _block(data, 0, 4), 8
    counts = struct.unpack(">6l", data[at + 20 : at + 44])
    times, types = counts[3], counts[4]
    at += 44
    changes = np.frombuffer(data, f">i{size}", times, at).astype(np.int64) * SECOND
    at += times * size
    which = np.frombuffer(data, np.uint8, times, at)
    at += times
    each = [struct.unpack(">lbb", data[at + 6 * i : at + 6 * i + 6]) for i in range(types)]
    offsets = np.array([o for o, _, _ in each], np.int64) * SECOND
    first = next((i for i, (_, dst, _) in enumerate(each) if not dst), 0)
    return changes, np.concatenate([offsets[[first]], offsets[which]])


def _block(data: bytes, at: int, size: int) -> int:
    """Length of the data block whose header is at `at`."""
    isut, isstd, leap, times, types, chars = struct.unpack(">6l", data[at + 20 : at + 44])
    return times * size + times + types * 6 + chars + leap * (size + 4) + isstd + isut
