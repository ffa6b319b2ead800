"""An engine in one's own process, without a server that sees to its files: what it keeps, and what
is on the disk."""

from __future__ import annotations

from random import Random

import pytest

from dsms.engine import Engine
from dsms.settings import Settings
from tests.faults.simfiles import SimFiles

STREAM = "CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h"
S = 1_000_000


def count(engine: Engine) -> int:
    (rows,) = engine.execute("SELECT COUNT(*) AS n FROM s [RANGE UNBOUNDED]")
    return rows.data.to_pylist()[0]["n"]


def logs(files: SimFiles) -> list[str]:
    return [name for name in files.names if "/streams/s/" in name and name.endswith(".log")]


@pytest.mark.parametrize("policy", ["interval", "sync"])
def test_logs_that_checkpoints_have_overtaken_are_let_go(tmp_path, policy):
    files = SimFiles()
    engine = Engine(str(tmp_path), Settings(checkpoint_bytes=1), files)
    engine.execute(f"{STREAM} WITH (durability = {policy})")
    for i in range(100):
        engine.ingest("s", [[i, i * S]])
    assert engine.saver.checkpointer.made > 5
    assert len(logs(files)) <= 3
    assert len(engine.saver.durable.journal._left) <= 3
    engine.saver.catalog.close()
    again = Engine(str(tmp_path), Settings(), files.crash("kill", Random(1)))
    again.heartbeat("s", 110 * S)
    assert count(again) == 100 and not again.saver.recovered.notes


@pytest.mark.parametrize("seed", range(20))
def test_what_was_synced_outlives_a_power_failure(tmp_path, seed):
    files = SimFiles()
    engine = Engine(str(tmp_path), Settings(checkpoint_bytes=0), files)
    engine.execute(STREAM)
    engine.ingest("s", [[1, S], [2, 2 * S]])
    engine.sync()
    engine.ingest("s", [[3, 3 * S]])
    engine.saver.catalog.close()
    again = Engine(str(tmp_path), Settings(), files.crash("power", Random(seed)))
    again.heartbeat("s", 60 * S)
    assert count(again) in (2, 3)


def test_an_engine_without_a_folder_has_nothing_to_sync():
    Engine().sync()
