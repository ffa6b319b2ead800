"""An engine that dies at any of its operations on files, by a kill or with the power: its next life
has everything that was acknowledged, once, and tells the rows that one tells that never died."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path

import pytest

from dsms.storage import journal
from tests.keys import everywhere
from tests.recovery_world import World, crashed_at, finish, undisturbed_rows

Point = tuple[str, str, bool, int]  # way, kind of crash, whether it is done before, operation
CHECKPOINT = {"plain": 4000, "encrypted": 4000, "logs written over": 1500}  # bytes, by way


class Crashes:
    """`points`: all there are.  `folder` is for what is no simulated file (the catalog)."""

    def __init__(self, folder: Path, ways: Iterable[str] = CHECKPOINT) -> None:
        self._folder, self._ways, self._numbers = folder, ways, itertools.count()

    @cached_property
    def points(self) -> list[Point]:
        return [
            (way, kind, after, at)
            for way in self._ways
            for at in range(self._operations(way))
            for after in (False, True)
            for kind in ("kill", "power")
        ]

    @cached_property
    def _want(self) -> dict[str, list[tuple]]:
        return undisturbed_rows(self._fresh())

    def suffer(self, point: Point) -> None:
        """Raises AssertionError with what differs."""
        way, kind, after, at = point
        want = self._want
        with _as(way):
            got = crashed_at(self._fresh(), at, after, kind, CHECKPOINT[way])
        for name, rows in want.items():
            assert got[name] == rows, f"{name}: {len(rows)} rows and {len(got[name])}"

    def _operations(self, way: str) -> int:
        with _as(way):
            world = World(self._fresh(), "sync", CHECKPOINT[way])
            world.open()
            world.declare()
            finish(world)
            return world.files.count

    def _fresh(self) -> Path:
        return self._folder / str(next(self._numbers))


def _as(way: str) -> ExitStack:
    stack = ExitStack()
    if way == "encrypted":
        stack.enter_context(everywhere())
    if way == "logs written over":
        stack.enter_context(pytest.MonkeyPatch.context()).setattr(journal, "WORTH", 1)
    return stack
