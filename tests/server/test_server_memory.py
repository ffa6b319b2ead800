"""One budget for the memory of a server: who asks for more than there is gets a code, and others go
on."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from harness import Peer, Running

from dsms.api import Cancel
from dsms.engine import Engine
from dsms.errors import UsageError
from dsms.operators.pieces import finished
from dsms.sessions import MemoryLine
from dsms_server.config import Config
from dsms_server.freed import Freed, to_the_system
from dsms_server.machine import default_share
from dsms_server.memory import LEAST, Memory
from dsms_server.serve import make_engine
from tests.waiting import wait_until

MB = 1 << 20
SCRIPT = (
    "CREATE STREAM s (k INT, x STRING, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 DAY; CREATE "
    "TABLE r (k INT)"
)


def shown(peer: Peer, like: str = "%") -> list[list[Any]]:
    return peer.ask("execute", sql=f"SHOW MEMORY LIKE '{like}'")["results"][0]["rows"]


def fill(peer: Peer, first: int, rows: int = 2000) -> dict:
    """Rows of a kilobyte each."""
    times = [(first + k) * 1000 for k in range(rows)]
    return peer.ask(
        "ingest", stream="s", columns={"k": times, "x": ["x" * 1000] * rows, "t": times}
    )


@pytest.fixture
def running(serve) -> Running:
    made = serve(make_engine(Config()), memory=32 * MB)
    with made.peer() as peer:
        assert "error" not in peer.ask("execute", sql=SCRIPT)
    return made


@pytest.fixture
def full(running: Running) -> Running:
    """A server whose stream has all the memory that there is."""
    with running.peer() as peer:
        for k in range(100):
            if fill(peer, k * 2000).get("error"):
                return running
            peer.ask("heartbeat", stream="s", ts=(k + 1) * 2_000_000 - 1)
            running.on_loop(lambda: setattr(running.server.memory, "_next_look", 0.0))
            wait_until(lambda: not running.server.memory.is_due(1e-9), "a look at what is held")
    raise AssertionError("the memory is never full")


def test_who_holds_what_is_shown(running: Running):
    with running.peer() as peer:
        fill(peer, 0)
        peer.ask(
            "execute",
            sql="CREATE QUERY q AS SELECT COUNT(*) FROM s [RANGE 1 min]; INSERT INTO r VALUES (1)",
        )
        lines = {(part, holder): (size, limit) for part, holder, size, limit in shown(peer)}
        assert lines["streams", "s"][0] > MB
        assert lines["tables", "r"][0] > 0
        assert lines["queries", "q"] == (lines["queries", "q"][0], 4 << 30)
        assert lines["all", None][1] == 32 * MB
        assert {line[0] for line in shown(peer, "s%")} == {"streams"}


def test_the_line_of_all_is_the_sum_of_the_others(running: Running):
    running.on_loop(lambda: setattr(running.server.memory, "_next_look", float("inf")))
    with running.peer() as peer:
        for k in range(2):
            fill(peer, k * 500, 500)
            lines = shown(peer)
            (total,) = (size for part, _, size, _ in lines if part == "all")
            assert total == sum(size for part, _, size, _ in lines if part != "all")
            assert total > 500_000 * (k + 1)


def test_over_the_budget_rows_and_declarations_are_refused(full: Running):
    with full.peer() as peer:
        problem = fill(peer, 10_000_000)["error"]
        assert (problem["code"], "SHOW MEMORY" in problem["hint"]) == ("DS625", True)
        assert re.search(r"\d+ MiB of 32 MiB are held", problem["message"])
        for sql in (
            "CREATE STREAM u (k INT)",
            "CREATE TABLE u (k INT)",
            "CREATE QUERY q AS SELECT k FROM s",
            "CREATE OR REPLACE QUERY q AS SELECT k FROM s",
            "ALTER STREAM s ADD COLUMN c INT",
            "SELECT COUNT(*) FROM s [RANGE 1 min]",
            "INSERT INTO r VALUES (1)",
            "INSERT INTO r VALUES (1) ON CONFLICT DO NOTHING",
        ):
            assert peer.ask("execute", sql=sql)["error"]["code"] == "DS625", sql


def test_a_column_whose_defaults_are_too_large_is_refused(running: Running):
    with running.peer() as peer:
        peer.ask("execute", sql="CREATE QUERY q AS SELECT k FROM s [RANGE 1 min]")
        fill(peer, 0)
        add = "ALTER STREAM s ADD COLUMN {} STRING DEFAULT '{}'"
        problem = peer.ask("execute", sql=add.format("c", "x" * 20_000))["error"]
        assert problem["code"] == "DS625" and "a column of 38.2 MiB" in problem["message"]
        done = [
            "error" not in peer.ask("execute", sql=add.format(name, "x" * 3000))
            for name in "cdefghi"
        ]
        assert done == sorted(done, reverse=True) and 2 < sum(done) < 6
        assert running.server.memory.used <= 32 * MB


def test_over_the_budget_others_go_on_and_what_is_dropped_makes_room(full: Running):
    with full.peer() as peer:
        for sql in (
            "SHOW STREAMS",
            "SHOW MEMORY",
            "SHOW SESSIONS",
            "EXPLAIN SELECT k FROM s",
            "DELETE FROM r",
        ):
            assert "error" not in peer.ask("execute", sql=sql), sql
        assert "error" not in peer.ask("ping")
        assert "error" not in peer.ask("heartbeat", stream="s", ts=1_000_000_000)
        assert "error" not in peer.ask("execute", sql="DROP STREAM s")
        full.on_loop(lambda: setattr(full.server.memory, "_next_look", 0.0))
        wait_until(lambda: full.server.memory.used < 32 * MB, "room")
        assert "error" not in peer.ask("execute", sql=SCRIPT.partition(";")[0])
        assert fill(peer, 0)["accepted"] == 2000


def test_without_a_limit_nobody_is_refused(serve):
    running = serve(make_engine(Config()), memory=0)
    with running.peer() as peer:
        peer.ask("execute", sql=SCRIPT)
        assert fill(peer, 0)["accepted"] == 2000
        ((*_, limit),) = shown(peer, "all")
        assert limit is None


def test_a_program_sees_what_its_engine_holds():
    engine = Engine()
    engine.execute("CREATE STREAM s (k INT); CREATE QUERY q AS SELECT k FROM s")
    (rows,) = engine.execute("SHOW MEMORY")
    assert [line["part"] for line in rows.data.to_pylist()] == ["queries", "results", "streams"]


def test_metrics_have_the_parts(running: Running):
    with running.peer() as peer:
        fill(peer, 0)
        wait_until(
            lambda: running.server.memory.parts().get("streams", 0) > MB, "a look at what is held"
        )
    running.on_loop(running.server.update_gauges)
    text = running.server.metrics.text().decode()
    assert float(re.search(r'dsms_memory_bytes\{part="streams"\} (\S+)', text)[1]) > MB
    assert float(re.search(r"^dsms_memory_limit_bytes (\S+)", text, re.M)[1]) == 32 * MB


# ---------------------------------------------------------------- the ledger


def ledger(limit: int | None) -> Memory:
    return Memory(limit, list)


def test_statements_have_at_most_half_and_leave_some_for_the_next():
    memory = ledger(256 * MB)
    sizes = []
    with (
        memory.lent(1 << 30, None) as first,
        memory.lent(1 << 30, None) as second,
        memory.lent(1 << 30, None) as third,
    ):
        sizes = [first, second, third]
        assert memory.parts()["statements"] == sum(sizes)
    assert sizes == [64 * MB, 32 * MB, 16 * MB]
    assert memory.used == 0


def test_a_statement_that_wants_little_gets_it():
    with ledger(256 * MB).lent(LEAST, None) as size:
        assert size == LEAST
    with ledger(None).lent(1 << 30, None) as size:
        assert size == 1 << 30


def test_a_statement_that_could_not_run_is_refused():
    memory = ledger(256 * MB)
    memory.replies = 250 * MB
    with pytest.raises(UsageError, match="DS625"), memory.lent(1 << 30, None):
        pass


def test_what_is_lent_is_known_by_its_session():
    cancel = Cancel()
    account = SimpleNamespace(id=7, work=SimpleNamespace(cancel=cancel))
    session = SimpleNamespace(account=account, unprocessed=5, unread=0)
    memory = Memory(1 << 30, lambda: [session])  # type: ignore[list-item]
    with memory.lent(LEAST, cancel):
        assert MemoryLine("statements", "session 7", LEAST) in memory.lines()
        assert MemoryLine("requests", "session 7", 5) in memory.lines()


def test_a_look_that_takes_long_is_seldom():
    now = [10.0]
    memory = ledger(100)

    def held() -> list[MemoryLine]:
        now[0] += 0.5
        return [MemoryLine("queries", "q", 60), MemoryLine("queries", "p", 50)]

    finished(memory.looking(held, lambda: now[0]))
    assert memory.parts()["queries"] == 110
    assert not memory.is_due(now[0] + 49)
    assert memory.is_due(now[0] + 51)
    with pytest.raises(UsageError, match="DS625"):
        memory.check("rows")


# ---------------------------------------------------------------- the machine


def machine(root: Path, files: dict[str, str]) -> int | None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return default_share(root)


MACHINE = {"proc/meminfo": "MemTotal:       8388608 kB\nMemFree: 1 kB\n"}


@pytest.mark.parametrize(
    ("files", "megabytes"),
    [
        ({}, 8192),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n"}, 1024),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "536870912\n"}, 512),
        ({"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 8192),
        (
            {
                "proc/self/cgroup": "4:cpu,memory:/c\n",
                "sys/fs/cgroup/memory/c/memory.limit_in_bytes": "268435456\n",
            },
            256,
        ),
        (
            {
                "proc/self/cgroup": "4:cpu:/c\n",
                "sys/fs/cgroup/memory/c/memory.limit_in_bytes": "268435456\n",
            },
            8192,
        ),
    ],
)
def test_the_default_is_a_share_of_what_the_process_may_have(
    tmp_path: Path, files: dict[str, str], megabytes: int
):
    assert machine(tmp_path, MACHINE | files) == megabytes * MB * 3 // 4


def test_where_the_system_does_not_say_there_is_no_limit(tmp_path: Path):
    assert default_share(tmp_path) is None


def test_what_nobody_has_asked_to_keep_gives_way(serve):
    made = serve(make_engine(Config(retain_default_bytes=30 * MB)), memory=32 * MB)
    with made.peer() as peer:
        assert "error" not in peer.ask("execute", sql=SCRIPT.replace(" RETAIN 1 DAY", ""))
        for k in range(30):
            assert "error" not in fill(peer, k * 2000)
            peer.ask("heartbeat", stream="s", ts=(k + 1) * 2_000_000 - 1)
            made.on_loop(lambda: setattr(made.server.memory, "_next_look", 0.0))
            wait_until(lambda: not made.server.memory.is_due(1e-9), "a look at what is held")
        assert 0 < made.server.memory.parts()["kept"] <= 24 * MB
        said = peer.ask("execute", sql="SELECT COUNT(*) AS n FROM s")
        (answer,) = said["results"]
        assert answer["since"] > 0


def test_much_that_is_let_go_of_goes_back_to_the_system_once() -> None:
    given: list[int] = []
    freed = Freed(100, lambda: given.append(1))
    for held in (50, 140, 60, 41):  # 99 fewer than there were
        freed.look(held)
    assert not given
    for held in (40, 30, 20):
        freed.look(held)
    assert given == [1]
    for held in (120, 20):
        freed.look(held)
    assert given == [1, 1]
    to_the_system()


def test_much_that_has_come_is_a_reason_to_look() -> None:
    memory = Memory(1600, lambda: ())
    finished(memory.looking(lambda: (), lambda: 5.0))
    assert not memory.is_due(5.1) and memory.is_due(6.1)
    memory.arrived += 99
    assert not memory.is_due(5.1)
    memory.arrived += 1
    assert memory.is_due(5.1)
    finished(memory.looking(lambda: (), lambda: 5.0))
    assert not memory.is_due(5.1)


def test_rows_count_as_what_the_engine_grows_by_for_them() -> None:
    """A GROUP BY over new keys takes many times their size: refused before it is too much."""
    memory, held = Memory(500 * MB, lambda: ()), 0
    with pytest.raises(UsageError, match="DS625"):
        for _ in range(1000):
            memory.take_rows(MB // 4)
            held += 5 * MB  # for a quarter of a MB of rows
            if memory.is_due(1e-9):
                finished(memory.looking([MemoryLine("queries", "q", held)].copy, lambda: 0.0))
    assert 400 * MB < held <= 564 * MB
    finished(memory.looking(lambda: [MemoryLine("queries", "q", held // 2)], lambda: 0.0))
    memory.take_rows(MB)


def test_rows_that_come_are_counted_until_the_next_look(running: Running) -> None:
    running.on_loop(lambda: setattr(running.server.memory, "_next_look", float("inf")))
    with running.peer() as peer:
        fill(peer, 0, 500)
        assert 500_000 < running.server.memory.arrived < running.server.memory.limit // 16
        fill(peer, 500, 2000)
        wait_until(lambda: not running.server.memory.is_due(1e-9), "a look at what is held")
        assert {line[1] for line in shown(peer, "streams")} == {"s"}
