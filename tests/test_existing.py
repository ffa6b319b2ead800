"""CREATE ... IF NOT EXISTS of what exists: a note says how the statement differs, to those who may
know."""

from __future__ import annotations

import pytest

from dsms import Engine
from dsms.api import Done

MADE = """
CREATE STREAM l (k INT, v FLOAT, t TIMESTAMP) TIMESTAMP BY t;
CREATE STREAM s (k INT, v FLOAT NOT NULL, t TIMESTAMP) TIMESTAMP BY t SLACK 1 min INDEX BY (k);
CREATE TABLE r (k INT PRIMARY KEY, n STRING);
CREATE QUERY q AS SELECT k FROM s [RANGE 1 min];
CREATE STREAM d TIMESTAMP BY u AS SELECT k FROM s;
CREATE ROLE reader WITH (queries = 2)
"""

SAME = [
    "CREATE STREAM s (K INTEGER, v DOUBLE PRECISION NOT NULL, t TIMESTAMP) INDEX BY (k) "
    "TIMESTAMP BY t SLACK 60 s",
    "CREATE TABLE r (k INT NOT NULL, n STRING, PRIMARY KEY (k)) RETROACTIVE",
    "CREATE QUERY q AS select k from s [RANGE 1 min]",
    "CREATE STREAM d TIMESTAMP BY u AS SELECT k FROM s",
    "CREATE ROLE reader WITH (queries = 2)",
]

OTHER = [
    (
        "CREATE STREAM s (k FLOAT, w INT, v FLOAT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h",
        "a column w, k FLOAT where there is INT, v NULL, SLACK, RETAIN, INDEX BY",
    ),
    ("CREATE STREAM s (k INT, v FLOAT NOT NULL, t TIMESTAMP) INDEX BY (k)", "TIMESTAMP BY, SLACK"),
    (
        "CREATE STREAM l (k INT, v FLOAT, t TIMESTAMP) TIMESTAMP BY t LATE INTO nowhere",
        "it would be refused (DS203)",
    ),
    (
        "CREATE TABLE r (n STRING, k INT) NON RETROACTIVE",
        "k NULL, the order of its columns, PRIMARY KEY, NON RETROACTIVE",
    ),
    ("CREATE QUERY q AS SELECT v FROM s [RANGE 1 min]", "its text is another"),
    ("CREATE QUERY q AS SELECT k FROM s [RANGE 1 min] ON LOOKUP", "its text is another"),
    ("CREATE STREAM d TIMESTAMP BY u AS SELECT v FROM s", "no column k, a column v, its SELECT"),
    ("CREATE STREAM d (k INT, u TIMESTAMP) TIMESTAMP BY u", "its SELECT"),
    ("CREATE ROLE reader WITH (sessions = 1)", "the quota queries, sessions"),
]


@pytest.fixture(scope="module")
def engine() -> Engine:
    made = Engine()
    made.execute(MADE)
    return made


def _absent(sql: str) -> str:
    kind, what = sql.split(" ", 2)[1:]
    return f"CREATE {kind} IF NOT EXISTS {what}"


def _done(engine: Engine, sql: str, user: str | None = None) -> Done:
    (done,) = engine.execute(sql, user=user)
    assert isinstance(done, Done)
    assert done.message.endswith(" is there already")
    return done


@pytest.mark.parametrize("sql", SAME)
def test_what_is_as_it_says_is_not_remarked_upon(engine: Engine, sql: str) -> None:
    assert _done(engine, _absent(sql)).warnings == ()


@pytest.mark.parametrize(("sql", "differs"), OTHER)
def test_a_note_says_how_the_statement_differs(engine: Engine, sql: str, differs: str) -> None:
    note = f"it stays as it is, and the statement differs: {differs}"
    assert _done(engine, _absent(sql)).warnings == (note,)


def test_of_what_is_anothers_nothing_is_told() -> None:
    engine = Engine()
    engine.execute("CREATE TABLE r (k INT PRIMARY KEY, secret STRING)")
    engine.execute("CREATE USER ann PASSWORD 'a long one'; GRANT CREATE ON ALL TO ann")
    engine.execute("GRANT SELECT (k) ON r TO ann")
    sql = "CREATE TABLE IF NOT EXISTS r (k INT)"
    assert _done(engine, sql, "ann").warnings == ()
    engine.execute("GRANT ADMIN ON r TO ann")
    assert "no column secret" in _done(engine, sql, "ann").warnings[0]


def test_it_is_not_written_down(tmp_path: object) -> None:
    for _ in range(2):
        engine = Engine(str(tmp_path))
        engine.execute("CREATE TABLE IF NOT EXISTS r (k INT PRIMARY KEY)")
        engine.execute("CREATE TABLE IF NOT EXISTS r (k INT)")
        assert engine.names()["tables"].keys() == {"r"}
        engine.close()
