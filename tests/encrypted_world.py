"""A data folder with a key, in which names and values can be found by a mark."""

from __future__ import annotations

import shutil
from pathlib import Path

from dsms.engine import Engine
from dsms.settings import Settings
from tests.keys import KEY

MARK = "marker"
DECLARED = f"""
CREATE STREAM {MARK}s ({MARK}k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t SUBWINDOW 10 s RETAIN 5 min;
CREATE TABLE {MARK}r ({MARK}k STRING PRIMARY KEY, n INT);
INSERT INTO {MARK}r VALUES ('{MARK}1', 1);
CREATE QUERY {MARK}q AS SELECT {MARK}k, SUM(v) FROM {MARK}s [RANGE UNBOUNDED] GROUP BY {MARK}k;
"""  # noqa: E501


def opened(folder: Path, key: bytes | None = KEY) -> Engine:
    engine = Engine(str(folder), Settings(checkpoint_bytes=0), state_key=key)
    assert engine.saver is not None
    engine.saver.durable.least = 1  # every sub-window that is closed has a file
    return engine


def send(engine: Engine, first: int, count: int = 30) -> None:
    for i in range(first, first + count):
        engine.ingest(f"{MARK}s", [[f"{MARK}{i % 3}", i, i * 1_000_000]])


def kill(engine: Engine) -> None:
    """All was on the disk when the process ended."""
    assert engine.saver is not None
    engine.saver.durable.close()
    engine.saver.catalog.close()


def used(folder: Path, key: bytes | None = KEY) -> Path:
    """A folder with two checkpoints, sealed sub-windows, and rows behind them; killed."""
    engine = opened(folder, key)
    engine.execute(DECLARED)
    for turn in range(2):
        send(engine, 30 * turn)
        assert engine.saver is not None and engine.saver.checkpoint()
    engine.execute(f"INSERT INTO {MARK}r VALUES ('{MARK}2', 2)")
    send(engine, 60)
    kill(engine)
    return folder


def answers(engine: Engine) -> list:
    texts = (
        f"SELECT COUNT(*), SUM(v) FROM {MARK}s [RANGE 5 min]",
        f"SELECT {MARK}k, n FROM {MARK}r",
        f"SELECT * FROM {MARK}q",
    )
    return [sorted(map(str, engine.execute(t)[0].data.to_pylist())) for t in texts]


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


def copied(folder: Path, to: Path) -> Path:
    shutil.copytree(folder, to)
    return to


def shows(data: bytes) -> bool:
    return MARK.encode() in data.lower()
