"""Queries of users read what their creators may, and all of it comes back after a restart."""

from __future__ import annotations

import shutil

import pytest

from dsms.engine import Engine
from dsms.rights.secrets import fits
from dsms.running.writers import FramePart, Writers
from tests.users import DECLARED, SECOND, declared, rows


@pytest.fixture
def engine() -> Engine:
    return declared()


# -- queries of users


def test_a_query_reads_what_its_creator_may(engine: Engine):
    engine.execute("GRANT SELECT ON s TO alice WHERE v < 4; GRANT CREATE ON ALL TO alice")
    engine.execute("CREATE QUERY mine AS SELECT k, v FROM s [RANGE 1 HOUR]", user="alice")
    engine.execute("GRANT SELECT ON mine TO bob", user="alice")
    assert [r["v"] for r in rows(engine, "SELECT * FROM mine", "bob")] == [1, 3]
    assert [r["v"] for r in rows(engine, "SELECT * FROM mine", None)] == [1, 3]


@pytest.mark.parametrize(
    "change",
    [
        "REVOKE SELECT ON s FROM alice",
        "GRANT SELECT ON s TO alice WHERE v < 2",
        "GRANT SELECT ON s TO alice",
        "DROP USER alice",
    ],
)
def test_a_query_stops_when_that_changes(engine: Engine, change: str):
    engine.execute(
        "GRANT SELECT ON s TO alice WHERE v < 4; GRANT CREATE ON ALL TO alice; GRANT SELECT ON d "
        "TO alice"
    )
    engine.execute("CREATE QUERY mine AS SELECT k, v FROM s [RANGE 1 HOUR]", user="alice")
    engine.execute(
        "CREATE QUERY sums AS SELECT k, SUM(v) FROM s [RANGE 2 s SLIDE 1 s] GROUP BY k",
        user="alice",
    )
    engine.execute("CREATE QUERY other AS SELECT * FROM d", user="alice")
    reader = engine.subscribe("mine")
    reader.take()
    (done,) = engine.execute(change)
    stopped = ["mine", "other", "sums"] if change.startswith("DROP") else ["mine", "sums"]
    assert done.warnings[0].endswith(
        ": " + ", ".join(n for n in ("mine", "sums", "other") if n in stopped)
    )
    status = {r["query"]: r["status"][:14] for r in rows(engine, "SHOW QUERIES FULL", None)}
    assert {name for name, said in status.items() if said == "stopped: DS673"} == set(stopped)
    engine.ingest("s", {"k": ["new"], "v": [1], "t": [4 * SECOND]})
    engine.heartbeat("s", 9 * SECOND)
    assert [(p.kind, p.code) for p in reader.take()] == [("end", "DS673")]
    # the last answer
    assert [r["k"] for r in rows(engine, "SELECT * FROM mine", None)] == ["a", "b"]


def test_queries_with_different_conditions_share_nothing(engine: Engine):
    engine.execute(
        "GRANT CREATE ON ALL TO alice, bob;GRANT SELECT ON s TO alice WHERE v < 4; GRANT SELECT "
        "ON s TO bob WHERE v > 1"
    )
    text = "SELECT SUM(v) AS x, COUNT(*) AS n FROM s [RANGE 10 s SLIDE 1 s]"
    for user in ("alice", "bob", None):
        engine.execute(f"CREATE QUERY of_{user} AS {text}", user=user)
    readers = {user: engine.subscribe(f"of_{user}") for user in ("alice", "bob", None)}
    engine.ingest(
        "s", {"k": ["d"] * 5, "v": [1, 2, 3, 4, 5], "t": [4 * SECOND + i for i in range(5)]}
    )
    engine.heartbeat("s", 5 * SECOND)
    last = {
        user: [p for p in r.take() if p.data is not None][-1].data.to_pylist()
        for user, r in readers.items()
    }
    assert last == {
        "alice": [{"x": 1 + 3 + 1 + 2 + 3, "n": 5}],
        "bob": [{"x": 3 + 5 + 2 + 3 + 4 + 5, "n": 6}],
        None: [{"x": 1 + 3 + 5 + 1 + 2 + 3 + 4 + 5, "n": 8}],
    }


def test_late_rows_go_where_their_owner_may_write_now(engine: Engine):
    """And MAX FUTURE binds him there by that way, too."""
    engine.execute("GRANT CREATE ON ALL TO alice; GRANT INSERT ON s TO alice")
    engine.execute(
        "CREATE STREAM x (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t LATE INTO s", user="alice"
    )
    hour = 3600 * SECOND

    def late(at: int) -> int:
        assert engine.ingest("x", [["x", 0, at]]).late == 1
        return rows(engine, "SELECT COUNT(*) AS n FROM s [RANGE UNBOUNDED]", None)[0]["n"]

    engine.ingest("x", [["x", 0, 9 * hour]])
    assert late(4 * hour) == 3, "an hour ahead is the most"
    assert late(3 * SECOND + 1) == 3
    engine.heartbeat("s", hour // 2)
    assert rows(engine, "SELECT COUNT(*) AS n FROM s [RANGE 1 h]", None)[0]["n"] == 4
    engine.execute("REVOKE INSERT ON s FROM alice")
    late(hour // 2 + 1)
    engine.heartbeat("s", hour // 2 + 2)
    assert rows(engine, "SELECT COUNT(*) AS n FROM s [RANGE 1 h]", None)[0]["n"] == 4


# -- restarts


@pytest.mark.parametrize("crash", [False, True])
def test_users_and_rights_come_back(tmp_path, crash: bool):
    folder = tmp_path / "data"
    engine = Engine(str(folder))
    engine.execute(DECLARED)
    engine.execute(
        "CREATE USER carl PASSWORD 'correct horse'; CREATE USER dora TOKEN "
        "'a-token-of-my-own-making-1'"
    )
    engine.execute(
        "GRANT CREATE ON ALL TO alice; GRANT SELECT ON s TO alice MASK (k AS UPPER(k)) WHERE k <> "
        "CURRENT_USER()"
    )
    engine.execute("CREATE QUERY mine AS SELECT k, v FROM s [RANGE 1 HOUR]", user="alice")
    engine.execute("CREATE QUERY doomed AS SELECT v FROM s [RANGE 1 HOUR]", user="alice")
    engine.execute("CREATE STREAM gone (a INT)", user="alice")
    engine.execute(
        "GRANT SELECT ON gone TO bob; DROP STREAM gone; GRANT staff TO bob; DROP USER bob"
    )
    engine.ingest("s", {"k": ["a", "alice"], "v": [1, 2], "t": [0, 1]}, client="w", seq=1)
    if crash:
        shutil.copytree(folder, tmp_path / "copy")
        folder = tmp_path / "copy"
    before = engine.rights
    engine.close()
    held = b"".join(p.read_bytes() for p in folder.rglob("*") if p.is_file())
    assert b"correct horse" not in held and b"a-token-of-my-own-making-1" not in held
    engine = Engine(str(folder))
    assert engine.recovered.notes == [] and engine.rights == before
    assert engine.ingest(
        "s", {"k": ["a", "alice"], "v": [1, 2], "t": [0, 1]}, client="w", seq=1
    ).repeated
    engine.ingest("s", {"k": ["b", "alice"], "v": [3, 4], "t": [2, 3]})
    engine.heartbeat("s", 5)
    assert [r["k"] for r in rows(engine, "SELECT * FROM mine")] == ["A", "B"]
    engine.execute("REVOKE SELECT ON s FROM alice; DROP QUERY doomed")
    assert fits("correct horse", engine.rights.users["carl"].password)
    engine.close()


# -- writers


def test_no_user_uses_up_the_numbers_of_another():
    writers = Writers(limit=10)
    writers.note(FramePart("alice\x1fw", 7, 1, True), "s")
    for n in range(100):
        writers.note(FramePart(f"bob\x1f{n}", 1, 1, True), "s")
    assert writers.applied("alice\x1fw", "s", 7) is None and len(writers.newest) == 10
    assert writers.applied("bob\x1f0", "s", 1) == 0 and writers.applied("bob\x1f99", "s", 1) is None
    old = Writers(3, writers.newest)  # of a state of earlier versions
    old.note(FramePart("w", 1, 1, True), "s")
    assert old.applied("alice\x1fw", "s", 7) is None and len(old.newest) == 3
    old.forget("s")
    assert not old.newest and not old.by_user
