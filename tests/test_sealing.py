"""Which sub-windows get files of their own: those that outlive the next checkpoint."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest

from dsms.engine import Engine
from dsms.settings import Settings

ROWS = 1000  # of a sub-window
SECOND = 1_000_000
BYTES = 16 * ROWS  # of a sub-window in the journal, and a little more


class Later:
    """A background that works when the test says so."""

    def __init__(self) -> None:
        self.jobs: list = []

    def submit(self, job, *args):
        self.jobs.append((Future(), job, args))
        return self.jobs[-1][0]

    def work(self) -> None:
        for future, job, args in self.jobs:
            future.set_result(job(*args))
        self.jobs.clear()


def _engine(folder: Path, room: int, keeps: int = 3) -> Engine:
    """A stream of which `keeps` sub-windows are kept, and that many bytes between checkpoints."""
    engine = Engine(str(folder), Settings(checkpoint_bytes=room))
    if engine.saver.recovered.rows == 0 and not engine.runtime.catalog.streams:
        engine.execute(
            f"CREATE STREAM s (v INT, t TIMESTAMP) TIMESTAMP BY t SUBWINDOW 1 s RETAIN {keeps} s"
        )
    engine.runtime.durable.least = 1
    return engine


def _come(engine: Engine, first: int, count: int) -> None:
    for k in range(first, first + count):
        at = k * SECOND + np.arange(ROWS) * (SECOND // ROWS)
        engine.ingest("s", {"v": np.full(ROWS, k), "t": at})


def _sealed(engine: Engine) -> list[int]:
    """The numbers of sub-windows in files."""
    return [sub.number for sub in engine.runtime.rings["s"].closed if sub.segment is not None]


def _files(folder: Path) -> int:
    return len(list(folder.rglob("*.arrow")))


def test_what_leaves_before_the_next_checkpoint_is_never_written(tmp_path):
    engine = _engine(tmp_path, 20 * BYTES)
    _come(engine, 0, 12)
    assert _files(tmp_path) == 0
    _come(engine, 12, 6)
    assert engine.saver.checkpointer.made == 0
    assert _sealed(engine) and min(_sealed(engine)) >= 14  # from there on they stay
    _come(engine, 18, 6)
    assert engine.saver.checkpointer.made == 1


def test_all_that_is_there_is_written_before_a_checkpoint_refers_to_it(tmp_path):
    engine = _engine(tmp_path, 1000 * BYTES)
    _come(engine, 0, 5)
    assert _sealed(engine) == []
    assert engine.saver.checkpoint()
    assert _sealed(engine) == [s.number for s in engine.runtime.rings["s"].closed]
    _come(engine, 5, 2)
    engine.saver.catalog.close()  # what a killed process leaves to the system
    back = _engine(tmp_path, 1000 * BYTES)
    assert back.saver.recovered.notes == []
    (rows,) = back.execute("SELECT v, COUNT(*) AS n FROM s [RANGE 3 s] GROUP BY v ORDER BY v")
    assert [r["v"] for r in rows.data.to_pylist()][-1] == 6
    assert sum(r["n"] for r in rows.data.to_pylist()) == 3 * ROWS


def test_the_background_seals_what_is_left_and_then_the_checkpoint_begins(tmp_path):
    engine, later = _engine(tmp_path, 8 * BYTES, keeps=100), Later()
    engine.seal_with(later)
    durable = engine.runtime.durable
    durable.room = 1000 * BYTES  # what was thought when they were closed
    _come(engine, 0, 9)
    assert len(later.jobs) >= 7 and engine.saver.checkpointer.saving is None
    _come(engine, 9, 1)
    assert engine.saver.checkpointer.saving is None  # it waits for them
    durable.room = 0
    later.work()
    _come(engine, 10, 1)
    assert engine.saver.checkpointer.saving is not None
    assert set(range(7)) <= set(_sealed(engine))
    later.work()
    engine.saver.settled()
    assert engine.saver.checkpointer.made == 1
    engine.seal_with(None)
    engine.close()
    assert Engine(str(tmp_path)).saver.recovered.notes == []


@pytest.mark.parametrize("room", [0, 1])
def test_they_are_written_at_once_where_nobody_knows_of_a_checkpoint_or_there_is_one_soon(
    tmp_path, room
):
    engine = _engine(tmp_path, room)
    _come(engine, 0, 4)
    assert _sealed(engine) == [0, 1, 2]
