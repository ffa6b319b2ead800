"""Synthetic traffic: cars that enter and leave expressways, jams, and accidents.

As in the paper (Arasu et al., VLDB 2004, §2) an expressway has two directions of 100 segments of a
mile, each car reports every 30 seconds, and lane 4 is an exit.  How many cars there are stays the
same all the time: a car that leaves is followed by another one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

SECOND = 1_000_000  # microseconds
EVERY = 30  # seconds between two reports of a car
MILE = 5280  # feet
SEGMENTS = 100
EXIT = 4
COLUMNS = ("car", "speed", "xway", "lane", "dir", "seg", "pos", "t")
STOPPED = 8  # reports of a car from the place of its accident


class Traffic:
    """`cars` on each expressway; in every fourth segment they creep.

    accidents  of each expressway in 30 seconds, on average"""

    def __init__(self, xways: int, cars: int, seed: int = 1, accidents: float = 0.5) -> None:
        self.rng = np.random.default_rng(seed)
        self.xways, self.accidents = xways, accidents
        count = xways * cars
        self.xway = np.repeat(np.arange(xways), cars)
        self.offset = self.rng.integers(0, EVERY, count)  # seconds
        self.car = np.arange(count)
        self.next = count
        self.dir = self.rng.integers(0, 2, count)
        self.pos = self.rng.integers(0, SEGMENTS * MILE, count)
        self.last = self._ends(self.pos, self.dir)
        self.stopped = np.zeros(count, np.int64)  # reports that are still to come from there
        self.lane = self.rng.integers(1, EXIT, count)

    def _ends(self, pos: np.ndarray, way: np.ndarray) -> np.ndarray:
        """Segments where trips end, 3 to 30 further on."""
        return pos // MILE + np.where(way == 0, 1, -1) * self.rng.integers(3, 31, len(pos))

    def seconds(self, count: int) -> Iterator[pa.RecordBatch]:
        """The reports of each second, `COLUMNS`, in order of time."""
        for begin in range(0, count, EVERY):
            reports = self._half_minute()
            for second in range(min(EVERY, count - begin)):
                mine = np.flatnonzero(self.offset == second)
                mine = mine[np.argsort(reports["car"][mine], kind="stable")]
                t = np.full(len(mine), (begin + second) * SECOND)
                yield pa.RecordBatch.from_pydict(
                    {c: reports[c][mine] for c in COLUMNS[:-1]} | {"t": t}
                )
            self._follow(reports["lane"] == EXIT)

    def _half_minute(self) -> dict[str, np.ndarray]:
        """A report of each car, and it goes on."""
        self._crash()
        seg, still = self.pos // MILE, self.stopped > 0
        jam = (seg % 4 == 0) & ~still
        speed = self.rng.integers(50, 100, len(seg))
        speed = np.where(jam, self.rng.integers(10, 40, len(seg)), np.where(still, 0, speed))
        over = np.where(self.dir == 0, seg >= self.last, seg <= self.last)
        over |= (seg <= 0) & (self.dir == 1) | (seg >= SEGMENTS - 1) & (self.dir == 0)
        lane = np.where(over & ~still, EXIT, self.lane)
        found = dict(
            zip(COLUMNS, (self.car, speed, self.xway, lane, self.dir, seg, self.pos), strict=False)
        )
        found = {name: np.array(column) for name, column in found.items()}
        feet = speed * MILE * EVERY // 3600
        self.pos = np.clip(self.pos + np.where(self.dir == 0, feet, -feet), 0, SEGMENTS * MILE - 1)
        self.stopped = np.maximum(self.stopped - 1, 0)
        return found

    def _crash(self) -> None:
        """Some pairs of cars stop at one place."""
        for xway in range(self.xways):
            for _ in range(self.rng.poisson(self.accidents)):
                first = self.rng.choice(np.flatnonzero((self.xway == xway) & (self.stopped == 0)))
                near = (self.xway == xway) & (self.dir == self.dir[first]) & (self.stopped == 0)
                near &= abs(self.pos - self.pos[first]) < MILE
                pair = np.array([first, self.rng.choice(np.flatnonzero(near))])
                self.pos[pair], self.lane[pair] = self.pos[first], self.lane[first]
                self.stopped[pair] = STOPPED

    def _follow(self, gone: np.ndarray) -> None:
        """Other cars enter where some have left."""
        places = np.flatnonzero(gone)
        self.car[places] = self.next + np.arange(len(places))
        self.next += len(places)
        self.dir[places] = self.rng.integers(0, 2, len(places))
        self.pos[places] = self.rng.integers(0, SEGMENTS * MILE, len(places))
        self.last[places] = self._ends(self.pos[places], self.dir[places])
