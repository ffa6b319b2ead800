"""ALTER QUERY ... RENAME TO and COMMENT ON: who reads a query, what it feeds and who may do
something with it follow its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.settings import Settings
from tests.cancelling import told
from tests.effort import thinned

S = 1_000_000
GROUPED = "SELECT k, COUNT(*) AS n FROM s [RANGE 4 s] GROUP BY k"


def engine(folder: str | None = None, settings: Settings | None = None) -> Engine:
    db = Engine(folder, settings)
    db.execute("CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h")
    return db


def come(db: Engine, first: int, n: int) -> None:
    db.ingest("s", [[i % 2, i, i * S] for i in range(first, first + n)])
    db.heartbeat("s", (first + n - 1) * S)


def shown(db: Engine, what: str = "QUERIES FULL") -> dict[str, dict[str, Any]]:
    rows = db.execute(f"SHOW {what}")[0].data.to_pylist()  # type: ignore[union-attr]
    return {next(iter(r.values())): r for r in rows}


@thinned()
@pytest.mark.parametrize(
    "select",
    [
        GROUPED,
        "SELECT v FROM s WHERE k = 1",
        "SELECT k, COUNT(*) AS n FROM s [RANGE 4 s SLIDE 2 s] GROUP BY k",
        "SELECT v FROM s [RANGE 4 s SLIDE 2 s] WHERE k = 1 WITH (path = ws)",
        "SELECT MAX(v) AS n FROM s [RANGE 4 s SLIDE 2 s] WITH (boundaries = elastic)",
    ],
)
@pytest.mark.parametrize("deferred", [False, True])
def test_results_go_on_under_the_other_name(select: str, deferred: bool, tmp_path: Path) -> None:
    db = engine(str(tmp_path / "db"), Settings(deferred=deferred))
    other = engine(None, Settings(deferred=deferred))
    for one in (db, other):
        one.execute(f"CREATE QUERY first AS SELECT v FROM s; CREATE QUERY q AS {select}")
        one.execute(f"CREATE QUERY last AS {GROUPED}")
        come(one, 0, 7)
    reader, same = db.subscribe("q", 0), other.subscribe("q", 0)
    db.execute("ALTER QUERY q RENAME TO R")
    assert list(db.runtime.queries) == list(db.runtime.catalog.queries) == ["first", "r", "last"]
    assert "R" in shown(db) and "q" not in shown(db)
    with pytest.raises(DsmsError, match="DS401"):
        db.subscribe("q")
    for one in (db, other):
        come(one, 7, 5)
        while one.work():
            pass
    expected = told(same)
    assert told(reader) == expected and reader.query == "q" and reader.source == "R"
    assert told(db.subscribe("r", 0)) == expected
    db.unsubscribe(reader)
    assert db.runtime.queries["r"].readers[0] is not reader
    again = Engine(str(_copied(tmp_path)), Settings(deferred=deferred))
    if not deferred:
        assert told(again.subscribe("r", 0)) == expected
    again.close()
    db.close()
    again = Engine(str(tmp_path / "db"), Settings(deferred=deferred))
    assert told(again.subscribe("R", 0)) == expected
    again.execute("PAUSE QUERY r; ALTER QUERY r RENAME TO q; RESUME QUERY q; DROP QUERY q")
    assert not any("query q" in who for ring in again.runtime.rings.values() for who in ring.needs)
    assert not any("query R" in who for ring in again.runtime.rings.values() for who in ring.needs)


def _copied(folder: Path) -> Path:
    import shutil

    return shutil.copytree(folder / "db", folder / "copy")


def test_progress_bears_the_name_that_was_asked_for() -> None:
    db = engine()
    db.execute("CREATE QUERY q AS SELECT v FROM s [RANGE 4 s SLIDE 2 s] WHERE v > 100")
    reader = db.subscribe("q")
    db.execute("ALTER QUERY q RENAME TO r")
    come(db, 0, 9)
    db.execute("DROP QUERY r")
    pushes = reader.take()
    assert {p.kind for p in pushes} == {"progress", "end"} and {p.query for p in pushes} == {"q"}


def test_parts_stay_shared() -> None:
    db = engine()
    for name in ("a", "b", "c"):
        db.execute(f"CREATE QUERY {name} AS {GROUPED} HAVING COUNT(*) > {ord(name) - 97}")
    come(db, 0, 5)
    parts = list(db.runtime.dispatch.parts)
    assert parts
    db.execute("ALTER QUERY a RENAME TO z")
    assert list(db.runtime.dispatch.parts) == parts
    come(db, 5, 5)
    db.execute("DROP QUERY b; DROP QUERY c")
    come(db, 10, 5)
    assert shown(db)["z"]["live_rows"] == 2
    db.execute("DROP QUERY z")
    assert not db.runtime.dispatch.parts and not db.runtime.parts.known


def test_what_it_feeds_follows(tmp_path: Path) -> None:
    db = engine(str(tmp_path / "db"))
    db.execute("CREATE STREAM big (v INT, t TIMESTAMP) TIMESTAMP BY t")
    db.execute("CREATE QUERY q AS INSERT INTO big SELECT Istream(v) FROM s [RANGE 9 s] WHERE v > 1")
    db.execute("CREATE QUERY after AS SELECT COUNT(*) AS n FROM big [RANGE UNBOUNDED]")
    come(db, 0, 5)
    db.execute("ALTER QUERY q RENAME TO feeder")
    come(db, 5, 5)
    assert db.execute("SELECT * FROM after")[0].data.to_pylist() == [{"n": 8}]  # type: ignore[union-attr]
    assert "feeder" in shown(db, "STREAMS")["big"]["clock"]
    db.close()
    db = Engine(str(tmp_path / "db"))
    come(db, 10, 1)
    db.execute("DROP QUERY feeder")
    assert not db.runtime.feeding.order
    assert db.execute("SELECT * FROM after")[0].data.to_pylist() == [{"n": 9}]  # type: ignore[union-attr]


def test_rights_follow(tmp_path: Path) -> None:
    db = engine(str(tmp_path / "db"))
    for name in ("alice", "bob"):
        db.execute(f"CREATE USER {name} TOKEN '{'x' * 40}{name}'")
    db.execute("GRANT CREATE ON ALL TO alice; GRANT SELECT ON s TO alice")
    db.execute(f"CREATE QUERY q AS {GROUPED}", user="alice")
    db.execute("GRANT SUBSCRIBE ON q TO bob", user="alice")
    db.execute("ALTER QUERY q RENAME TO r", user="alice")
    db.check_request("bob", "subscribe", "r")
    with pytest.raises(DsmsError, match="DS401"):
        db.check_request("bob", "subscribe", "q")
    with pytest.raises(DsmsError, match="DS670"):
        db.execute("ALTER QUERY r RENAME TO q", user="bob")
    db.execute("CREATE QUERY q AS SELECT v FROM s")
    with pytest.raises(DsmsError, match="DS401"):
        db.check_request("bob", "subscribe", "q")
    db.close()
    db = Engine(str(tmp_path / "db"))
    db.check_request("bob", "subscribe", "r")
    db.execute("DROP QUERY r", user="alice")
    assert "r" not in db.rights.owners and not any(key == "r" for _, key, _ in db.rights.grants)


def test_names_that_it_can_not_have(tmp_path: Path) -> None:
    db = engine(str(tmp_path / "db"))
    db.execute("CREATE TABLE d (k INT)")
    db.execute(f"CREATE QUERY q AS {GROUPED}; CREATE QUERY kept AS {GROUPED} ARCHIVE")
    db.execute("CREATE STREAM big AS SELECT Istream(v) FROM s [RANGE 3 s]")
    (feeder,) = db.runtime.inputs["big"].fed_by
    for text, code in (
        ("ALTER QUERY q RENAME TO s", "DS213"),
        ("ALTER QUERY q RENAME TO D", "DS213"),
        ("ALTER QUERY q RENAME TO kept", "DS213"),
        ("ALTER QUERY nn RENAME TO mm", "DS401"),
        ("ALTER QUERY s RENAME TO mm", "DS401"),
        (f"ALTER QUERY q RENAME TO {'n' * 300}", "DS415"),
        ("ALTER QUERY kept RENAME TO mm", "DS433"),
        (f"ALTER QUERY {feeder} RENAME TO mm", "DS433"),
    ):
        with pytest.raises(DsmsError, match=code):
            db.execute(text)
    db.execute('ALTER QUERY q RENAME TO Q; ALTER QUERY q RENAME TO "my own"')
    assert "my own" in shown(db)


def test_a_clock_is_set_back_under_the_other_name() -> None:
    db = engine()
    db.execute(f"CREATE QUERY q AS {GROUPED}")
    come(db, 0, 3)
    db.heartbeat("s", 100 * S)
    db.execute(
        "ALTER QUERY q RENAME TO \"R\"; ALTER STREAM s SET CLOCK TO TIMESTAMP '1970-01-01 00:00:05'"
    )
    assert shown(db)["R"]["live_rows"] == 2


# ---------------------------------------------------------------- options


def test_the_log_is_shortened_and_lengthened(tmp_path: Path) -> None:
    db = engine(str(tmp_path / "db"))
    db.execute("CREATE QUERY q AS SELECT v FROM s")
    for i in range(20):
        come(db, i, 1)
    db.execute("ALTER QUERY q SET (result_log = 5, description = 'few')")
    assert [line[3] for line in told(db.subscribe("q", 15))] == [15, 16, 17, 18, 19]
    with pytest.raises(DsmsError, match="DS409"):
        db.subscribe("q", 14)
    db.execute("ALTER QUERY q SET (result_log = 50)")
    for i in range(20, 40):
        come(db, i, 1)
    for again in (False, True):
        if again:
            db.close()
            db = Engine(str(tmp_path / "db"))
        assert len(told(db.subscribe("q", 15))) == 25
        assert dict(db.runtime.queries["q"].definition.options)["result_log"] == 50


def test_a_query_may_keep_more_or_less() -> None:
    db = engine()
    db.execute("CREATE QUERY q AS SELECT v, COUNT(*) AS n FROM s [RANGE 1 h] GROUP BY v")
    come(db, 0, 3000)
    with pytest.raises(DsmsError, match="bytes of state already"):
        db.execute("ALTER QUERY q SET (max_state = 1000)")
    db.execute(f"ALTER QUERY q SET (max_state = {db.runtime.queries['q'].nbytes() + 1000})")
    come(db, 3000, 5000)
    assert shown(db)["q"]["status"].startswith("stopped: DS630")
    db.execute("ALTER QUERY q SET (max_state = 1000000000); RESUME QUERY q")
    assert shown(db)["q"]["live_rows"] == 3600


@pytest.mark.parametrize("start", ["null", "stop"])
def test_what_a_failing_row_does_is_changed(start: str) -> None:
    db = engine()
    db.execute(f"CREATE QUERY q AS SELECT 6 / v AS x FROM s WHERE k = 0 WITH (on_error = {start})")
    db.execute("CREATE QUERY other AS SELECT 6 / v AS x FROM s WHERE k = 0")
    come(db, 1, 4)
    db.execute("ALTER QUERY q SET (on_error = null)")
    db.ingest("s", [[0, 0, 10 * S], [0, 2, 11 * S]])
    assert shown(db)["q"]["errors"] == 1
    db.execute("ALTER QUERY q SET (on_error = stop)")
    db.ingest("s", [[0, 3, 12 * S], [0, 0, 13 * S], [0, 6, 14 * S]])
    db.heartbeat("s", 20 * S)
    assert shown(db)["q"]["status"].startswith("stopped: DS701")
    assert [line[3] for line in told(db.subscribe("q", 0)) if len(line) > 2] == [3, 1, None, 3, 2]
    assert shown(db)["other"]["errors"] == 2 and shown(db)["other"]["result_rows"] == 7


def test_boundaries_are_answered_one_by_one_or_when_there_is_time() -> None:
    db = engine(None, Settings(deferred=True))
    db.execute(
        "CREATE QUERY q AS SELECT COUNT(*) AS n FROM s [RANGE 4 s SLIDE 1 s] "
        "WITH (boundaries = elastic)"
    )
    come(db, 0, 10)
    while db.work():
        pass
    few = len(told(db.subscribe("q", 0)))
    assert few < 5
    db.execute("ALTER QUERY q SET (boundaries = every, priority = 3)")
    come(db, 10, 10)
    lines = told(db.subscribe("q", 0))
    assert len(lines) == few + 9 + 1
    db.execute("ALTER QUERY q SET (boundaries = elastic)")
    come(db, 20, 10)
    while db.work():
        pass
    assert len(told(db.subscribe("q", 0))) < len(lines) + 5


def test_what_the_plan_rests_on_is_not_set() -> None:
    db = engine()
    db.execute("CREATE QUERY q AS SELECT v FROM s")
    db.execute("CREATE QUERY p AS SELECT COUNT(*) FROM s [RANGE 4 s SLIDE 2 s]")
    for text, code in (
        ("ALTER QUERY q SET (strategy = nt)", "DS432"),
        ("ALTER QUERY q SET (result_log = 7, optimize = FALSE)", "DS432"),
        ("ALTER QUERY p SET (path = ws)", "DS432"),
        ("ALTER QUERY p SET (on_error = stop)", "DS432"),
        ("ALTER QUERY q SET (max_sate = 1)", "DS214"),
        ("ALTER QUERY q SET (max_state = 'much')", "DS215"),
        ("ALTER QUERY q SET (durability = sync)", "DS214"),
        ("ALTER QUERY nn SET (max_state = 1)", "DS401"),
        ("ALTER QUERY q SET (priority = 1, priority = 2)", "DS109"),
    ):
        with pytest.raises(DsmsError, match=code):
            db.execute(text)
    assert dict(db.runtime.queries["q"].definition.options) == {}


def test_a_paused_query_is_set() -> None:
    db = engine()
    db.execute(f"CREATE QUERY q AS {GROUPED} WITH (max_state = 50000000, optimize = TRUE)")
    come(db, 0, 5)
    db.execute("PAUSE QUERY q; ALTER QUERY q SET (max_state = 60000000); RESUME QUERY q")
    query = db.runtime.queries["q"]
    assert query.state_limit == 60000000
    assert dict(query.definition.options) == {"optimize": True, "max_state": 60000000}
    assert db.runtime.catalog.queries["q"] is query.definition


# ---------------------------------------------------------------- comments


def test_comments_are_shown_and_kept(tmp_path: Path) -> None:
    db = engine(str(tmp_path / "db"))
    db.execute(f"CREATE TABLE d (k INT PRIMARY KEY); CREATE QUERY q AS {GROUPED}")
    db.execute(
        "COMMENT ON STREAM s IS 'rows of cars'; COMMENT ON TABLE d IS 'it''s small';"
        "COMMENT ON QUERY Q IS 'one'; COMMENT ON QUERY q IS 'how many'"
    )
    for again in (False, True):
        if again:
            db.close()
            db = Engine(str(tmp_path / "db"))
        assert shown(db, "STREAMS")["s"]["comment"] == "rows of cars"
        assert shown(db, "TABLES")["d"]["comment"] == "it's small"
        assert shown(db)["q"]["comment"] == "how many"
        notes = [r["note"] for r in db.execute("DESCRIBE d")[0].data.to_pylist()]  # type: ignore[union-attr]
        assert notes == ["primary key; it's small"]
    db.execute("ALTER QUERY q RENAME TO r; COMMENT ON TABLE d IS NULL; DROP STREAM s CASCADE")
    assert shown(db, "TABLES")["d"]["comment"] is None and not db.runtime.comments
    db.execute("COMMENT ON TABLE d IS ''")


def test_comments_that_can_not_be() -> None:
    db = engine()
    for text, code in (
        ("COMMENT ON QUERY s IS 'x'", "DS401"),
        ("COMMENT ON STREAM ss IS 'x'", "DS401"),
        (f"COMMENT ON STREAM s IS '{'x' * 5000}'", "DS437"),
    ):
        with pytest.raises(DsmsError, match=code):
            db.execute(text)
