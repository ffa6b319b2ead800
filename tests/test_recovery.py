"""What an engine loses when it is killed or the power fails: nothing that it had acknowledged."""

from __future__ import annotations

import shutil
from concurrent.futures import Future
from random import Random

import pytest

from dsms.engine import Engine
from dsms.errors import DsmsError, UsageError
from dsms.settings import Settings
from dsms.storage import journal
from tests.effort import effort, sampled, thinned
from tests.recovery_world import (
    World,
    crashed_at,
    finish,
    opened,
    run,
    told,
    undisturbed_rows,
)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple]]:
    return undisturbed_rows(tmp_path_factory.mktemp("data"))


# ---------------------------------------------------------------- crashes


def test_a_clean_stop_leaves_nothing_to_repeat(tmp_path, undisturbed):
    world = opened(tmp_path, checkpoint_bytes=0, steps=13)
    world.engine.close()
    world.open()
    assert (world.engine.saver.recovered.records, world.engine.saver.recovered.notes) == (0, [])
    assert world.engine.saver.recovered.checkpoint > 0
    assert finish(world) == undisturbed


def test_without_any_checkpoint_everything_is_applied_again(tmp_path, undisturbed):
    world = opened(tmp_path, checkpoint_bytes=0, steps=13)
    world.crash()
    world.open()
    told = world.engine.saver.recovered
    assert (told.checkpoint, told.rows, told.notes) == (0, 13 * 7, [])
    assert finish(world) == undisturbed


def test_restart_time_is_bounded_by_the_state_not_by_history(tmp_path):
    world = opened(tmp_path, checkpoint_bytes=2000)
    checkpoints = set()
    for steps in range(40, 161 if effort() else 81, 40):
        run(world, steps)
        world.crash()
        world.open()
        saver = world.engine.saver
        assert saver.durable.journal.written < saver.checkpointer.size + 3000
        checkpoints.add(saver.recovered.checkpoint)
    assert len(checkpoints) > 1


@pytest.fixture(scope="module")
def operations(tmp_path_factory: pytest.TempPathFactory) -> int:
    """File operations of the whole undisturbed run."""
    world = World(tmp_path_factory.mktemp("data"), "sync")
    world.open()
    world.declare()
    finish(world)
    return world.files.count


@thinned(3)
@pytest.mark.parametrize("kind", ["kill", "power"])
@pytest.mark.parametrize("part", range(8))
def test_a_crash_at_any_file_operation_loses_nothing(
    tmp_path, undisturbed, operations, kind, part, request
):
    every = 1 if request.config.getoption("--fuzz") else 23 if effort() else 368
    for at in range(part * every // 8, operations, every * 8 if every == 1 else every):
        after = bool((at + part) % 2)
        data = tmp_path / str(at)
        assert crashed_at(data, at, after, kind) == undisturbed, (
            f"operation {at}, {'after' if after else 'before'}"
        )


def test_a_power_failure_takes_no_row_of_a_sync_stream(tmp_path, undisturbed):
    for seed in range(6 if effort() else 3):
        world = World(tmp_path / str(seed), "sync")
        world.open()
        world.declare()
        run(world, 4 + 3 * seed)
        world.crash("power", seed)
        world.open()
        assert finish(world) == undisturbed


def test_a_power_failure_takes_the_newest_rows_of_an_interval_stream_and_says_so(tmp_path):
    world = opened(tmp_path, "interval", checkpoint_bytes=0, steps=9)
    world.engine.saver.durable.journal.commit()
    world.step(9)
    world.crash("power", 1)
    world.open()
    (rows,) = world.engine.execute("SELECT COUNT(*) FROM s [RANGE 1 min]")
    assert 40 <= rows.data.column(0)[0].as_py() <= 50


def test_pages_that_a_power_failure_took_out_of_what_was_not_synced_are_no_damage(tmp_path):
    for seed in range(24 if effort() else 4):
        world = World(tmp_path / str(seed), "interval", checkpoint_bytes=0)
        world.open()
        world.declare()
        run(world, 5)
        world.engine.saver.durable.journal.commit()
        run(world, 15)
        world.crash("power", seed)
        world.open()
        assert not world.engine.saver.durable.journal.failures
        (rows,) = world.engine.execute("SELECT COUNT(*) FROM s [RANGE 1 min]")
        assert 24 <= rows.data.column(0)[0].as_py() <= 75
        assert world.engine.ingest("s", [["a", 1, 10**9]]).accepted == 1


@pytest.mark.parametrize("kind", ["kill", "power"])
def test_a_crash_while_logs_are_written_over_loses_nothing(
    tmp_path, undisturbed, kind, monkeypatch, request
):
    monkeypatch.setattr(journal, "WORTH", 1)
    world = World(tmp_path / "whole", "sync", checkpoint_bytes=1500)
    world.open()
    world.declare()
    assert finish(world) == undisturbed
    every = 1 if request.config.getoption("--fuzz") else 41 if effort() else 246
    for at in range(7, world.files.count, every):
        found = crashed_at(tmp_path / str(at), at, bool(at % 2), kind, checkpoint_bytes=1500)
        assert found == undisturbed, f"operation {at}"


def test_repeated_frames_are_applied_once_over_a_restart(tmp_path):
    world = opened(tmp_path)
    rows = {"k": ["a", "b"], "v": [1, 2], "t": [0, 1]}
    assert world.engine.ingest("s", rows, client="w", seq=4).accepted == 2
    world.crash()
    world.open()
    assert world.engine.ingest("s", rows, client="w", seq=4).repeated
    assert world.engine.ingest("s", rows, client="w", seq=3).repeated
    assert not world.engine.ingest("s", rows, client="x", seq=4).repeated


def test_half_a_frame_is_completed_by_its_repetition(tmp_path):
    world = opened(tmp_path)
    rows = [["a", i, 1000 + i] for i in range(10)]
    world.engine.ingest("s", rows[:6], client="w", seq=1, last=False)
    world.crash()
    world.open()
    assert world.engine.ingest("s", rows[:4], client="w", seq=1, last=False).accepted == 0
    assert world.engine.ingest("s", rows[4:], client="w", seq=1, first=4).accepted == 4
    assert world.engine.ingest("s", rows, client="w", seq=1).repeated
    world.engine.heartbeat("s", 10**6)
    (found,) = world.engine.execute("SELECT v FROM s [RANGE 1 min] ORDER BY v")
    assert found.data.column(0).to_pylist() == list(range(10))


def test_a_stream_that_keeps_nothing_comes_back_as_of_the_checkpoint(tmp_path):
    world = opened(tmp_path, "none", checkpoint_bytes=0, steps=3)
    assert world.engine.saver.checkpoint()
    run(world, 6)
    world.crash()
    world.open()
    (found,) = world.engine.execute("SELECT COUNT(*) FROM s [RANGE 1 min]")
    assert found.data.column(0).to_pylist() == [14], "the newest instant is not complete"


def test_dropped_and_made_anew_between_checkpoints(tmp_path):
    world = World(tmp_path, checkpoint_bytes=0)
    world.open()
    engine = world.engine
    engine.execute("CREATE STREAM s (v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 min")
    engine.ingest("s", {"v": [1, 2], "t": [1, 2]})
    engine.execute(
        "DROP STREAM s; CREATE STREAM s (v STRING, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 min"
    )
    engine.ingest("s", {"v": ["x"], "t": [3]})
    engine.execute(
        "CREATE QUERY q AS SELECT v FROM s; DROP QUERY q; CREATE QUERY q AS SELECT COUNT(*) FROM s"
    )
    engine.ingest("s", {"v": ["y", "z"], "t": [4, 5]})
    world.crash()
    world.open()
    (found,) = world.engine.execute("SELECT v FROM s [RANGE 1 min]")
    assert found.data.column(0).to_pylist() == ["x", "y"]
    assert (
        world.engine.runtime.queries["q"].definition.sql.strip()
        == "CREATE QUERY q AS SELECT COUNT(*) FROM s"
    )


def test_two_engines_cannot_share_a_folder(tmp_path):
    first = Engine(str(tmp_path))
    with pytest.raises(UsageError, match="DS542"):
        Engine(str(tmp_path))
    first.close()
    Engine(str(tmp_path)).close()


def test_a_catalog_of_an_older_layout_is_taken_over(tmp_path):
    import sqlite3

    engine = Engine(str(tmp_path))
    engine.execute(
        "CREATE STREAM s (v INT, t TIMESTAMP) TIMESTAMP BY t; CREATE TABLE r (k INT PRIMARY KEY)"
    )
    engine.execute("INSERT INTO r VALUES (1), (2); CREATE QUERY q AS SELECT COUNT(*) FROM s")
    engine.saver.catalog.close()
    import shutil

    shutil.rmtree(tmp_path / "journal")
    with sqlite3.connect(tmp_path / "catalog.sqlite") as db:
        db.execute("DROP TABLE journal")
        db.execute("DELETE FROM setting")
        db.execute("PRAGMA user_version = 1")
    db.close()
    engine = Engine(str(tmp_path))
    assert (
        engine.runtime.catalog.names() == ["s", "r", "q"] and len(engine.runtime.tables["r"]) == 2
    )
    engine.saver.catalog.close()
    assert len(Engine(str(tmp_path)).runtime.tables["r"]) == 2


def test_a_query_that_was_stopped_stays_stopped(tmp_path):
    world = World(tmp_path)
    world.open()
    world.engine.execute("CREATE STREAM s (v INT, t TIMESTAMP) TIMESTAMP BY t")
    world.engine.execute("CREATE QUERY q AS SELECT 1 / v FROM s WITH (on_error = stop)")
    world.engine.ingest("s", [[1, 1], [0, 2], [1, 3]])
    world.engine.heartbeat("s", 10)
    assert world.engine.runtime.queries["q"].failure is not None
    world.engine.saver.checkpoint()
    world.crash()
    world.open()
    failure = world.engine.runtime.queries["q"].failure
    assert isinstance(failure, DsmsError) and failure.code.startswith("DS7")


# ---------------------------------------------------------------- in the background, as in a server


class Later:
    """A background that works when the test says so."""

    def __init__(self) -> None:
        self.jobs: list = []

    def submit(self, job, *args):
        future: Future = Future()
        self.jobs.append((future, lambda: job(*args)))
        return future

    def work(self, count: int = 1 << 30) -> None:
        for future, job in self.jobs[:count]:
            try:
                future.set_result(job())
            except Exception as error:
                future.set_exception(error)
        del self.jobs[:count]


@pytest.mark.parametrize("seed", sampled(range(6), 2))
def test_what_is_sealed_and_saved_late_is_there_when_it_is_needed(tmp_path, undisturbed, seed):
    """Sub-windows are sealed and checkpoints written at any later moment, or never, before the
    crash."""
    random, world = Random(seed), World(tmp_path, checkpoint_bytes=3000)
    later = Later()
    world.open()
    world.engine.runtime.durable.background = later
    world.declare()
    while world.sent < 30:
        run(world, world.sent + 1)
        if random.random() < 0.5:
            later.work(random.randint(0, 3))
        if random.random() < 0.15:
            world.crash("kill", seed)
            world.open()
            assert world.engine.saver.recovered.notes == []
            later = world.engine.runtime.durable.background = Later()
    later.work()
    assert finish(world) == undisturbed
    world.engine.runtime.durable.background = None
    world.engine.close()
    world.files = world.files.crash("kill", Random(seed))
    world.open()
    assert world.engine.saver.recovered.notes == []


WHOLE_WINDOWS = """
CREATE STREAM s (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 min;
CREATE QUERY rows AS SELECT k, v + 1 AS w FROM s [RANGE 10 s SLIDE 2 s] WHERE v > 1 WITH (path = ws);
CREATE QUERY best AS SELECT k, ROUND(AVG(v), 1) AS a FROM s [RANGE 10 s SLIDE 2 s] GROUP BY k HAVING COUNT(*) > 1
    ORDER BY a DESC LIMIT 2 WITH (path = ws);
CREATE QUERY slow AS SELECT k, v FROM s [RANGE 10 s SLIDE 2 s] WHERE v > 1 WITH (path = ws, boundaries = elastic);
CREATE QUERY counted AS SELECT k, v FROM s [ROWS 5 SLIDE 3] WITH (path = ws);
CREATE QUERY asked AS SELECT k, SUM(v) AS x FROM s [RANGE 10 s] GROUP BY k ON LOOKUP;
"""  # noqa: E501


def test_queries_that_scan_windows_are_part_of_checkpoints(tmp_path):
    def fed(engine: Engine, first: int, last: int) -> None:
        for i in range(first, last):
            engine.ingest("s", [["abc"[i % 3], i % 7, i * 500_000]])
            while engine.work():
                pass

    def told_of(engine: Engine) -> dict[str, list]:
        names = ("rows", "best", "slow", "counted")
        return {
            n: [line for push in engine.subscribe(n, 0).take() for line in told(push)]
            for n in names
        }

    lone = Engine()
    world = World(tmp_path, checkpoint_bytes=0)
    world.open()
    for engine in (lone, world.engine):
        engine.execute(WHOLE_WINDOWS)
        fed(engine, 0, 40)
    for upto in (60, 80):
        assert world.engine.saver.checkpoint(), world.engine.saver.checkpointer.trouble
        world.crash()
        world.open()
        assert (world.engine.saver.recovered.notes, world.engine.saver.recovered.records) == ([], 0)
        for engine in (lone, world.engine):
            fed(engine, upto - 20, upto)
        assert told_of(lone) == told_of(world.engine)
    answers = [e.execute("LOOKUP asked")[0].data for e in (lone, world.engine)]
    assert answers[0].equals(answers[1]) and answers[0].num_rows > 0


def test_queries_come_back_that_a_lower_limit_would_refuse(tmp_path):
    engine = Engine(str(tmp_path))
    engine.execute("CREATE STREAM s (k STRING, t TIMESTAMP) TIMESTAMP BY t")
    engine.execute("CREATE QUERY p AS SELECT k FROM s; CREATE QUERY q AS SELECT k FROM s")
    engine.saver.durable.close()  # killed
    engine.saver.catalog.close()
    again = Engine(str(tmp_path), Settings(queries=1))
    assert again.saver.recovered.notes == [] and list(again.runtime.queries) == ["p", "q"]
    with pytest.raises(UsageError, match="2 queries are registered, which is the limit"):
        again.execute("CREATE QUERY r AS SELECT k FROM s")


@pytest.mark.parametrize(
    "windows", ["[RANGE 2 s SLIDE 2 s]", "[RANGE 2 s] EVERY 2 s", "[RANGE 2 s] ON LOOKUP"]
)
def test_a_query_that_begins_to_keep_rows_of_a_stream_comes_back_with_all_behind_it(
    tmp_path, windows
):
    """The ring that its own statement makes is not there yet when that is done again."""
    engine = Engine(str(tmp_path / "data"))
    engine.execute("CREATE STREAM a (v INT, t TIMESTAMP) TIMESTAMP BY t")
    engine.ingest("a", [[1, 1_000_000], [2, 9_000_000]])
    engine.execute(f"CREATE QUERY q AS SELECT COUNT(*) FROM a {windows} WITH (path = ws)")
    engine.execute("CREATE TABLE h (k INT PRIMARY KEY); INSERT INTO h VALUES (7)")
    engine.ingest("a", [[3, 20_000_000]])
    engine.sync()
    shutil.copytree(tmp_path / "data", tmp_path / "copy")  # the engine has died there
    again = Engine(str(tmp_path / "copy"))
    assert again.saver.recovered.notes == [] and list(again.runtime.queries) == ["q"]
    assert again.execute("SELECT k FROM h")[0].data.to_pydict() == {"k": [7]}
    rings = [e.runtime.rings["a"] for e in (engine, again)]
    assert rings[0].reach == rings[1].reach and rings[0].count == rings[1].count
    engine.close()
    again.close()
