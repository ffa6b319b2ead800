"""What tests of the engine's side of the archive share: an engine that archives, and what has
landed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import dsms
from dsms.archiving.place import Place
from dsms.settings import Settings

S = 1_000_000
STREAM = (
    "CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t ARCHIVE FOR 1 h UPDATE EVERY 10 s"
)


def fresh(folder: Path, stream: str = STREAM, **settings: Any) -> dsms.Engine:
    engine = dsms.Engine(settings=Settings(archive=str(folder), **settings))
    engine.execute(stream)
    return engine


def feed(engine: dsms.Engine, seconds: range, stream: str = "s", v: int = 1) -> None:
    engine.ingest(
        stream,
        {"k": [t % 3 for t in seconds], "v": [v] * len(seconds), "t": [t * S for t in seconds]},
    )


def files(folder: Path, name: str = "s") -> list[Path]:
    return sorted((folder / name / "landing").glob("*.parquet"))


@cache
def rows_of(path: Path) -> list[dict[str, Any]]:
    """A landed file never changes."""
    return pq.ParquetFile(path).read().to_pylist()


def landed(folder: Path, name: str = "s") -> list[dict[str, Any]]:
    return [row for path in files(folder, name) for row in rows_of(path)]


def live(engine: dsms.Engine, name: str = "s") -> list[int]:
    """Arrival numbers of the rows on this side of the seam."""
    seam = engine.runtime.archivings[name].seam
    return [int(i) for b in engine.runtime.rings[name].rows(seam) for i in b.ids[0]]


def check_once(engine: dsms.Engine, folder: Path, complete: int, keep: int = 3600 * S) -> None:
    """Landed and live rows are all that are complete, each once, on their sides of the seam."""
    seam = engine.runtime.archivings["s"].seam
    # what is being written counts when that is done
    rows = [r for r in landed(folder) if r["__ts"] <= seam]
    there = [r["__id"] for r in rows]
    assert all(r["__exp"] == r["__ts"] + keep for r in rows)
    assert all(r["__ts"] == round(r["t"].timestamp() * S) for r in rows)
    assert sorted(there + live(engine)) == list(range(complete))
    assert engine.runtime.archivings["s"].repeated == 0
    for path in files(folder):
        stamps = [r["__ts"] for r in rows_of(path)]
        assert stamps and min(stamps) // (10 * S) == max(stamps) // (10 * S)


class Later:
    """A writer whose jobs are done when the test says so."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Future, Any]] = []

    def submit(self, job: Any) -> Future:
        future: Future = Future()
        self.jobs.append((future, job))
        return future

    def work(self) -> None:
        for future, job in self.jobs:
            try:
                future.set_result(job())
            except OSError as problem:
                future.set_exception(problem)
        self.jobs.clear()


def shown(engine: dsms.Engine, name: str = "s") -> dict[str, Any]:
    return next(
        r for r in engine.execute("SHOW ARCHIVES")[0].data.to_pylist() if r["archive"] == name
    )


def killed(engine: dsms.Engine) -> None:
    """Let go of its files, with nothing written down."""
    assert engine.saver is not None
    engine.saver.durable.close()
    engine.saver.catalog.close()


@contextmanager
def full_disk() -> Iterator[None]:
    """Nothing can be written meanwhile."""
    land = Place.land

    def refuse(self: Place, *args: object) -> None:
        raise OSError(28, "No space left on device")

    Place.land = refuse
    try:
        yield
    finally:
        Place.land = land
