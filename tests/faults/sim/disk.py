"""A disk with weather: full, read-only, slow, failing to sync for a while; and the end of the
process at one of its operations."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import contextmanager
from random import Random

from tests.faults.sim.loop import Life, SimLoop
from tests.faults.simfiles import Node, Plan, SimAppender, SimFiles

WEATHERS = ("full", "read-only", "slow", "no sync")


class Disk(SimFiles):
    """`weather`: what it is like now (a list that others change); `lives`: who uses it."""

    def __init__(self, loop: SimLoop, weather: list[str], random: Random) -> None:
        super().__init__()
        self._loop, self.weather, self._random = loop, weather, random
        self.life: Life | None = None
        self.died: Callable[[], None] = lambda: None
        self.met = 0  # operations that the weather has spoiled

    def next_life(self, kind: str) -> Disk:
        """What is left after a crash: "kill" or "power"."""
        left = super().crash(kind, self._random)
        out = Disk(self._loop, self.weather, self._random)
        out.names, out.durable, out.folders = left.names, left.durable, left.folders
        out.met = self.met
        return out

    def die_at(self, operations: int, after: bool) -> None:
        """The process ends so many operations from now."""
        self.plan = Plan(self.count + operations, None, after)

    @contextmanager
    def _operation(self, path: str):
        if "slow" in self.weather:
            self._loop.now += self._random.uniform(0.0, 0.2)
        with super()._operation(path):
            yield

    def _fail(self, path: str) -> None:
        if self.plan.error is None and self.life is not None:
            self.life.alive = False
            self.died()
        super()._fail(path)

    def _spoiled(self, *kinds: str) -> None:
        """Raise what an operation meets that any of these spoils."""
        codes = {"full": errno.ENOSPC, "read-only": errno.EROFS, "no sync": errno.EIO}
        for kind in kinds:
            if kind in self.weather:
                self.met += 1
                raise OSError(codes[kind], kind)

    # -- what the weather spoils -------------------------------------------------------------------

    def append(self, path: str) -> SimAppender:
        if path not in self.names:
            with self._operation(path):
                self._spoiled("read-only")
        made = super().append(path)
        return Writer(self, path, made.node, made.size)

    def recycle(self, old: str, path: str) -> SimAppender:
        made = super().recycle(old, path)
        return Writer(self, path, made.node, made.size)

    def remove(self, path: str) -> None:
        with self._operation(path):
            self._spoiled("read-only")
        super().remove(path)

    def rename(self, old: str, new: str) -> None:
        with self._operation(new):
            self._spoiled("read-only")
        super().rename(old, new)

    def make_folder(self, folder: str) -> None:
        with self._operation(folder):
            self._spoiled(*(["read-only"] if folder not in self.folders else []))
        super().make_folder(folder)

    def sync_contents(self, path: str) -> None:
        with self._operation(path):
            self._spoiled("no sync")
        super().sync_contents(path)

    def sync_folder(self, folder: str) -> None:
        with self._operation(folder):
            self._spoiled("no sync")
        super().sync_folder(folder)

    def node(self, path: str) -> Node:
        return self.names[path]


class Writer(SimAppender):
    """An open file on such a disk."""

    def write(self, buffers) -> None:
        disk = self.files
        assert isinstance(disk, Disk)
        with disk._operation(self.path):
            disk._spoiled("read-only")
        if "full" in disk.weather:
            disk.met += 1
            disk.plan.room = disk._random.choice((0, 1, 10, 100))
        try:
            super().write(buffers)
        finally:
            disk.plan.room = None

    def sync(self) -> None:
        disk = self.files
        assert isinstance(disk, Disk)
        with disk._operation(self.path):
            if "no sync" in disk.weather:
                self.broken = True
                disk._spoiled("no sync")
        super().sync()
