"""CONFIDENTIAL FOR d TO role: who sees rows late, what is told of that, and what else could tell of
young rows.  What windows hold: `test_ageing_equivalence`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dsms.engine import Engine
from dsms.errors import DsmsError
from tests.test_archive_seam import S, archiving

COLUMNS = "(k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t"
USERS = """CREATE ROLE desk; CREATE ROLE chiefs; CREATE USER ann TOKEN; CREATE USER bob TOKEN;
GRANT desk TO chiefs; GRANT chiefs TO ann; GRANT CREATE ON ALL TO ann, bob;
"""
STREAM = f"CREATE STREAM s {COLUMNS} RETAIN 1 HOUR CONFIDENTIAL FOR 5 s TO desk;"
GRANTS = "GRANT SELECT ON s TO ann, bob"


@pytest.fixture
def engine() -> Engine:
    made = Engine()
    made.execute(USERS + STREAM + GRANTS)
    return made


def fill(engine: Engine, first: int, last: int) -> None:
    """A row a second; what was stamped `last` s has come, and all before it."""
    for second in range(first, last + 1):
        engine.ingest("s", {"k": ["abc"[second % 3]], "v": [second], "t": [second * S]})
    engine.heartbeat("s", last * S)


def rows(engine: Engine, text: str, user: str | None) -> list[dict[str, Any]]:
    return engine.execute(text, user=user)[-1].data.to_pylist()


def values(engine: Engine, text: str, user: str | None) -> list[Any]:
    return [next(iter(row.values())) for row in rows(engine, text, user)]


def code(engine: Engine, text: str, user: str | None = None) -> str:
    with pytest.raises(DsmsError) as caught:
        engine.execute(text, user=user)
    return str(caught.value.code)


def status(engine: Engine, query: str) -> str:
    return next(r["status"] for r in rows(engine, "SHOW QUERIES FULL", None) if r["query"] == query)


# ---------------------------------------------------------------- who sees them at once


def test_members_owners_and_administrators_see_rows_at_once(engine: Engine) -> None:
    engine.execute("CREATE USER eve TOKEN; GRANT SELECT ON s TO eve; GRANT ADMIN ON s TO eve")
    engine.execute("CREATE USER root TOKEN; GRANT ADMIN ON ALL TO root")
    fill(engine, 0, 9)
    for user in ("ann", "eve", "root", None):
        assert values(engine, "SELECT v FROM s [ROWS 2]", user) == [8, 9], user
    assert values(engine, "SELECT v FROM s [ROWS 2]", "bob") == [3, 4]


def test_who_made_it_owns_it() -> None:
    engine = Engine()
    engine.execute(USERS)
    engine.execute(STREAM, user="bob")
    engine.execute(GRANTS)
    fill(engine, 0, 9)
    assert values(engine, "SELECT v FROM s [ROWS 1]", "bob") == [9]
    engine.execute("CREATE USER eve TOKEN; GRANT SELECT ON s TO eve")
    assert values(engine, "SELECT v FROM s [ROWS 1]", "eve") == [4]


def test_a_right_to_everything_but_ADMIN_is_no_trust(engine: Engine) -> None:
    engine.execute("CREATE USER eve TOKEN; GRANT SELECT, INSERT ON ALL TO eve")
    fill(engine, 0, 9)
    assert values(engine, "SELECT v FROM s [ROWS 1]", "eve") == [4]


def test_a_row_is_there_from_its_timestamp_and_d_on(engine: Engine) -> None:
    engine.execute("CREATE QUERY q AS SELECT Istream(v) FROM s [RANGE 9 s]", user="bob")
    reader = engine.subscribe("q", 0)
    engine.ingest("s", {"k": ["a"], "v": [7], "t": [10 * S]})
    engine.heartbeat("s", 15 * S - 1)
    assert [p for p in reader.take() if p.kind == "insert"] == []
    engine.heartbeat("s", 15 * S)
    (push,) = [p for p in reader.take() if p.kind == "insert"]
    assert push.ats.to_pylist() == [15 * S] if push.ats is not None else push.at == 15 * S


@pytest.mark.parametrize(
    ("window", "held"),
    [
        ("", [3, 4, 6, 7]),
        ("[ROWS 2]", [6, 7]),
        ("[RANGE 9 s]", [4, 6, 7]),
        ("[PARTITION BY k ROWS 1]", [4, 6, 7]),
    ],
)
def test_conditions_and_masks_hold_besides(engine: Engine, window: str, held: list[int]) -> None:
    engine.execute(
        "REVOKE SELECT ON s FROM bob; "
        "GRANT SELECT ON s TO bob MASK (k AS 'x') WHERE v > 2 AND v <> 5"
    )
    if "PARTITION" in window:  # of what is shown
        held = held[-1:]
    fill(engine, 0, 12)
    text = f"SELECT v, k FROM s {window}"
    engine.execute(f"CREATE QUERY q AS SELECT Rstream(v) FROM s {window}", user="bob")
    found = rows(engine, text, "bob")
    assert sorted(r["v"] for r in found) == held and {r["k"] for r in found} == {"x"}
    assert sorted(values(engine, "SELECT * FROM q", "bob")) == held


def test_a_query_shows_what_its_creator_sees(engine: Engine) -> None:
    for user in ("ann", "bob"):
        engine.execute(f"CREATE QUERY of_{user} AS SELECT Rstream(v) FROM s [ROWS 1]", user=user)
    engine.execute("GRANT SELECT ON of_ann TO bob; GRANT SELECT ON of_bob TO ann")
    fill(engine, 0, 9)
    assert values(engine, "SELECT * FROM of_ann", "bob") == [9]
    assert values(engine, "SELECT * FROM of_bob", "ann") == [4]


def test_on_lookup_and_insert_select(engine: Engine) -> None:
    engine.execute("CREATE TABLE d (v INT); GRANT INSERT ON d TO bob")
    for name, path in (("synopsis", "auto"), ("waiting", "'is'")):
        text = "SELECT COUNT(*) AS n, MAX(v) AS x FROM s [RANGE 8 s] ON LOOKUP"
        engine.execute(f"CREATE QUERY {name} AS {text} WITH (path = {path})", user="bob")
    fill(engine, 0, 9)
    engine.heartbeat("s", 9 * S + S // 2)
    for name in ("synopsis", "waiting"):
        assert rows(engine, f"LOOKUP {name}", "bob") == [{"n": 3, "x": 4}]
        assert engine.execute(f"LOOKUP {name}", user="bob")[0].waiting is None
    engine.execute("INSERT INTO d SELECT v FROM s [ROWS 2]", user="bob")
    assert sorted(values(engine, "SELECT v FROM d", None)) == [3, 4]


# ---------------------------------------------------------------- the clause


def test_the_role_must_be_there_and_stay() -> None:
    engine = Engine()
    assert code(engine, STREAM) == "DS671"
    engine.execute("CREATE ROLE desk; CREATE USER ann TOKEN; GRANT desk TO ann")
    engine.execute(STREAM.replace("TO desk", "TO DESK"))
    assert code(engine, "DROP ROLE Desk") == "DS405"
    engine.execute("DROP STREAM s; DROP ROLE desk")


def test_a_window_that_holds_nothing_is_refused(engine: Engine) -> None:
    windows = ("[NOW]", "[RANGE 5 s]", "[RANGE 1 s SLIDE 1 s]", "[RANGE 3 s INTERNAL]")
    for window in windows:
        assert code(engine, f"SELECT * FROM s {window}", "bob") == "DS307", window
        engine.execute(f"CREATE QUERY q AS SELECT * FROM s {window}; DROP QUERY q", user="ann")
    assert code(engine, "SELECT k FROM s WINDOW 5 s", "bob") == "DS307"
    text = "SELECT 1 WHERE NOT EXISTS (SELECT * FROM s [NOW])"
    assert code(engine, text, "bob") == "DS307"
    assert code(engine, "CREATE QUERY q AS SELECT * FROM s [ROWS 2 SLIDE 2]", "bob") == "DS308"


def test_d_and_SLIDE_need_a_common_unit() -> None:
    engine = Engine()
    engine.execute(USERS + STREAM.replace("5 s", "5.000001 s") + GRANTS)
    text = "CREATE QUERY q AS SELECT COUNT(*) AS n FROM s [RANGE 1 h SLIDE 1 min]"
    assert code(engine, text, "bob") == "DS310"
    engine.execute(text, user="ann")


@pytest.mark.parametrize(
    ("change", "back"),
    [
        ("GRANT desk TO bob", "REVOKE desk FROM bob"),
        ("GRANT ADMIN ON s TO bob", "REVOKE ADMIN ON s FROM bob"),
        ("GRANT chiefs TO bob", "REVOKE desk FROM chiefs"),
    ],
)
def test_queries_stop_when_their_creator_sees_otherwise(
    engine: Engine, change: str, back: str
) -> None:
    text = "AS SELECT v FROM s [ROWS 2]"
    engine.execute(f"CREATE QUERY q {text}", user="bob")
    engine.execute("CREATE STREAM r (v INT)")
    engine.execute("GRANT SELECT ON r TO bob")
    engine.execute("CREATE QUERY other AS SELECT v FROM r [ROWS 2]", user="bob")
    engine.execute(change)
    assert "DS673" in status(engine, "q") and status(engine, "other") == "running"
    engine.execute(f"CREATE QUERY again {text}", user="bob")
    engine.execute(back)
    assert "DS673" in status(engine, "again")


def test_what_changes_no_view_stops_nothing(engine: Engine) -> None:
    engine.execute("CREATE QUERY q AS SELECT v FROM s [ROWS 2]", user="ann")
    engine.execute("GRANT desk TO ann")  # by chiefs she has it already
    engine.execute("REVOKE chiefs FROM ann")
    assert status(engine, "q") == "running"


# ---------------------------------------------------------------- what is told


def test_describe_and_show_grants(engine: Engine) -> None:
    assert [r["note"] for r in rows(engine, "DESCRIBE s", "bob")] == [
        "seen after 5 s",
        None,
        "event time",
    ]
    told = rows(engine, "DESCRIBE s", "ann")[0]["note"]
    assert told == "rows are confidential for 5 s to desk"
    for user, shown in (("ann", 1), (None, 1), ("bob", 0)):
        lines = [r for r in rows(engine, "SHOW GRANTS", user) if r["right"] == "CONFIDENTIAL"]
        assert len(lines) == shown
        assert all((r["grantee"], r["object"]) == ("desk", "s") for r in lines)


def test_numbers_of_rows_are_not_for_who_sees_them_late(engine: Engine) -> None:
    engine.execute("CREATE QUERY q AS SELECT v FROM s [RANGE 9 s]", user="bob")
    engine.execute("CREATE QUERY p AS SELECT v FROM s [RANGE 9 s]", user="ann")
    engine.execute("GRANT ADMIN ON p TO bob")
    fill(engine, 0, 9)
    counts = ("newest", "accepted", "late", "refused", "waiting")
    (line,) = rows(engine, "SHOW STREAMS", "bob")
    assert [line[c] for c in counts] == [None] * 5 and line["complete"] is not None
    (line,) = rows(engine, "SHOW STREAMS", "ann")
    assert None not in [line[c] for c in counts]
    for line in rows(engine, "SHOW QUERIES FULL", "bob"):
        assert [line[c] for c in ("state_bytes", "cost", "waiting")] == [None] * 3
    (line,) = rows(engine, "SHOW QUERIES FULL", "ann")
    assert line["state_bytes"] is not None and line["waiting"] == 0
    used = {
        u: {r["quota"]: r["used"] for r in rows(engine, "SHOW QUOTAS", u)} for u in ("ann", "bob")
    }
    assert used["bob"]["state"] is None and used["bob"]["queries"] == 1
    assert used["ann"]["state"] > 0
    engine.execute("ALTER USER bob WITH (state = 1); ALTER USER ann WITH (state = 1)")
    for user, told in (("bob", False), ("ann", True)):
        with pytest.raises(DsmsError, match="DS681") as caught:
            engine.execute("CREATE QUERY r AS SELECT v FROM s [RANGE 9 s]", user=user)
        assert ("are used" in caught.value.message) is told
    engine.execute("ALTER USER bob WITH (state = NULL)")
    assert engine.execute("SELECT v FROM s", user="bob")[0].waiting is None
    assert engine.execute("SELECT v FROM s", user="ann")[0].waiting == 0
    for text in ("EXPLAIN QUERY q", "EXPLAIN ANALYZE QUERY q", "EXPLAIN ANALYZE QUERY p"):
        assert code(engine, text, "bob") == "DS670", text
    (plan,) = engine.execute("EXPLAIN SELECT v FROM s [RANGE 9 s]", user="bob")
    assert "RANGE 9 s UNTIL 5 s AGO" in str(plan.data.to_pydict())
    for form in ("TEXT", "MERMAID", "GRAPHVIZ"):
        text = f"EXPLAIN FORMAT {form} SELECT COUNT(*) AS n FROM s [RANGE 9 s SLIDE 1 s]"
        told = {user: str(rows(engine, text, user)) for user in ("ann", "bob")}
        assert "rows/s" in told["ann"] and "rows/s" not in told["bob"]
        assert "row operations" not in told["bob"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 / (v - 7) AS x FROM s [RANGE 9 s]",
        "SELECT SUM(1 / (v - 7)) AS x FROM s [RANGE 9 s SLIDE 1 s]",
        "SELECT v FROM s [RANGE 9 s] WHERE 1 / (v - 7) < 1",
        "SELECT SUM(v) AS x FROM s [RANGE 9 s SLIDE 1 s] WHERE 1 / (v - 7) < 1",
        "SELECT k, COUNT(*) AS n FROM s [ROWS 2] GROUP BY k HAVING SUM(1 / (v - 7)) < 1",
    ],
)
def test_young_rows_are_not_felt_by_errors(engine: Engine, text: str) -> None:
    engine.execute(f"CREATE QUERY q AS {text}", user="bob")
    engine.execute(f"CREATE QUERY p AS {text} WITH (on_error = stop)", user="bob")
    fill(engine, 0, 11)
    engine.heartbeat("s", 12 * S - 1)
    errors = {r["query"]: r["errors"] for r in rows(engine, "SHOW QUERIES FULL", "bob")}
    assert errors == {"q": 0, "p": 0} and status(engine, "p") == "running"
    engine.heartbeat("s", 14 * S)
    assert rows(engine, "SHOW QUERIES FULL LIKE 'q'", "bob")[0]["errors"] > 0
    assert status(engine, "p").startswith("stopped")


# ---------------------------------------------------------------- what is kept


def test_kept_rows_suffice_for_windows_of_the_last_ones() -> None:
    """The ring has let go of old rows, and still has enough that are old enough."""
    engine = Engine()
    engine.execute(USERS + STREAM.replace("1 HOUR", "20 s SUBWINDOW 1 s") + GRANTS)
    fill(engine, 0, 100)
    assert values(engine, "SELECT v FROM s [ROWS 3]", "bob") == [93, 94, 95]
    assert values(engine, "SELECT v FROM s [ROWS 15]", "bob") == list(range(81, 96))
    whole = " WITH (complete = required)"
    assert code(engine, "SELECT v FROM s [ROWS 25]" + whole, "bob") == "DS407"
    assert code(engine, "SELECT v FROM s" + whole, "bob") == "DS407"
    assert values(engine, "SELECT v FROM s", "bob") == values(
        engine, "SELECT v FROM s [ROWS 25]", "bob"
    )
    assert values(engine, "SELECT v FROM s [RANGE 9 s]", "bob") == [92, 93, 94, 95]


def test_a_query_says_until_when_its_last_rows_are_missing() -> None:
    engine = Engine()
    engine.execute(USERS + STREAM.replace("1 HOUR", "20 s SUBWINDOW 1 s") + GRANTS)
    fill(engine, 0, 100)
    found = engine.execute("CREATE QUERY a AS SELECT Rstream(v) FROM s [ROWS 3]", user="bob")[0]
    assert not [w for w in found.warnings if "gone" in w]
    found = engine.execute("CREATE QUERY b AS SELECT Rstream(v) FROM s [ROWS 19]", user="bob")[0]
    (told,) = [w for w in found.warnings if "gone" in w]
    assert "until more rows are old enough" in told
    text = "SELECT a.v FROM s [ROWS 30] a, r [RANGE 1 h SLIDE 1 s] b"
    engine.execute(f"CREATE STREAM r {COLUMNS}; GRANT SELECT ON r TO bob")
    engine.execute(f"CREATE QUERY c AS {text}", user="bob")
    engine.execute(f"CREATE QUERY d AS {text} WITH (path = ws)", user="bob")
    engine.ingest("r", {"k": ["a"], "v": [0], "t": [100 * S]})
    shown = []
    for second in range(101, 131):  # young rows say nothing, one by one
        fill(engine, second, second)
        engine.heartbeat("r", second * S)
        shown.append([r["partial"] for r in rows(engine, "SHOW QUERIES FULL", "bob")])
        assert [r["partial_until"] for r in rows(engine, "SHOW QUERIES FULL", "bob")] == [None] * 4
    until = "until more rows are old enough"
    # rows of 81 to 95 s are there; those of up to 99 and 110 s are old enough 5 s later, and in an
    # answer of operators at the boundary behind that
    assert [[line[k] for line in shown].count(until) for k in range(4)] == [0, 3, 15, 14]
    for name, n in (("a", 3), ("b", 19)):
        assert values(engine, f"SELECT * FROM {name}", "bob") == list(range(126 - n, 126))


def test_scans_keep_rows_until_they_are_seen() -> None:
    """A window scan reads the newest rows of d ago: the ring has them, and not all that came."""
    engine = Engine()
    stream = STREAM.replace("RETAIN 1 HOUR", "SUBWINDOW 1 s")
    engine.execute(USERS + stream + f"CREATE STREAM r {COLUMNS};" + GRANTS)
    engine.execute("GRANT SELECT ON r TO bob")
    text = "SELECT a.v FROM s [ROWS 3] a, r [RANGE 2 s SLIDE 1 s] b"
    engine.execute(f"CREATE QUERY q AS {text} WITH (path = ws)", user="bob")
    for second in range(200):
        fill(engine, second, second)
        engine.ingest("r", {"k": ["a"], "v": [0], "t": [second * S]})
        engine.heartbeat("r", second * S)
    (line,) = [r for r in rows(engine, "SHOW WINDOWS", None) if r["stream"] == "s"]
    assert line["rows"] < 30
    assert sorted(set(values(engine, "SELECT * FROM q", "bob"))) == [191, 192, 193]


def test_it_is_there_again_after_a_restart(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    engine = Engine(data)
    engine.execute(USERS + STREAM + GRANTS)
    engine.execute("CREATE QUERY q AS SELECT Rstream(v) FROM s [ROWS 2]", user="bob")
    fill(engine, 0, 6)
    plan = rows(engine, "EXPLAIN QUERY q", None)
    assert values(engine, "SELECT * FROM q", "bob") == [0, 1]
    engine.close()
    engine = Engine(data)
    assert rows(engine, "EXPLAIN QUERY q", None) == plan and status(engine, "q") == "running"
    assert rows(engine, "DESCRIBE s", "bob")[0]["note"] == "seen after 5 s"
    fill(engine, 7, 9)
    assert values(engine, "SELECT * FROM q", "bob") == [3, 4]
    assert values(engine, "SELECT v FROM s [ROWS 2]", "bob") == [3, 4]
    assert code(engine, "DROP ROLE desk") == "DS405"
    engine.execute("ALTER STREAM s SET CLOCK TO '1970-01-01 00:00:09.5'")
    assert rows(engine, "EXPLAIN QUERY q", None) == plan
    engine.close()


# ---------------------------------------------------------------- archives


@pytest.mark.parametrize(
    ("text", "seen", "known"),
    [
        ("SELECT MAX(v) AS x FROM s [RANGE 80 s ARCHIVE]", 59, 89),
        ("SELECT COUNT(*) AS n FROM s [RANGE 80 s ARCHIVE]", 50, 80),
        ("SELECT MAX(v) AS x FROM s [RANGE UNBOUNDED ARCHIVE]", 59, 89),
        ("SELECT MIN(v) AS x FROM s [ROWS 4 ARCHIVE]", 56, 86),
        ("SELECT MIN(v) AS x FROM s [PARTITION BY k ROWS 2 ARCHIVE]", 54, 84),
        ("SELECT COUNT(*) AS x FROM s [SINCE 50 s ARCHIVE]", 10, 40),
        ("SELECT MAX(v) AS x FROM ARCHIVE s", 59, 89),
        ("SELECT MIN(v) AS x FROM ARCHIVE s [ROWS 4]", 56, 86),
        ("SELECT COUNT(*) AS x FROM ARCHIVE s [RANGE 40 s]", 10, 40),
    ],
)
def test_archives(text: str, seen: int, known: int, tmp_path: Path) -> None:
    """Rows of 0 to 89 s, the clock at 89.999999, what has left windows archived; d is 30 s."""
    ddl = STREAM.replace("RETAIN 1 HOUR", "ARCHIVE CLUSTER BY k UPDATE EVERY 10 s")
    engine, _ = archiving(tmp_path, "CREATE STREAM unused (a INT)")
    engine.execute(USERS + ddl.replace("FOR 5 s", "FOR 30 s") + GRANTS)
    for second in range(90):
        engine.ingest("s", [["abc"[second % 3], second, second * S]])
        engine.heartbeat("s", (second + 1) * S - 1)
    assert values(engine, text, "bob") == [seen]
    assert values(engine, text, "ann") == [known]
    (line,) = rows(engine, "SHOW ARCHIVES", "bob")
    assert line["waiting"] is None and line["index_rows"] is None and line["seam"] is not None
