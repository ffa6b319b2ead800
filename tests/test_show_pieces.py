"""SHOW of much comes a piece at a time: others come in between, and each line is as things are
then."""

from __future__ import annotations

import numpy as np
import pytest

from dsms.engine import Engine
from dsms.operators.pieces import finished

QUERIES = 12


def engine() -> Engine:
    db = Engine()
    db.execute("CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t")
    for i in range(QUERIES):
        db.execute(f"CREATE QUERY q{i} AS {('looked', 'grouped', 'shared', 'periodic')[i % 4]}"
                   .replace("looked", f"SELECT v FROM s [RANGE 1 h] WHERE k = {i}")
                   .replace("grouped", "SELECT k, COUNT(*) AS n FROM s [RANGE 1 h] GROUP BY k")
                   .replace("shared", "SELECT DISTINCT k FROM s [RANGE 1 h]")
                   .replace("periodic", f"SELECT COUNT(*) AS n FROM s [RANGE {i} s SLIDE 1 s]")
                   )  # words  # fmt: skip
    at = np.arange(100)
    db.ingest("s", {"k": at % 7, "v": at, "t": at * 1_000_000})
    return db


def shown(db: Engine, sql: str, between=lambda n: None) -> tuple[list[dict], int]:
    """The lines, and the number of pieces."""
    slices, n = db.slices(sql), 0
    while True:
        try:
            next(slices)
        except StopIteration as end:
            return end.value[0].data.to_pylist(), n
        between(n)
        n += 1


MANY = {
    "SHOW QUERIES": QUERIES,
    "SHOW QUERIES FULL": QUERIES,
    "SHOW MEMORY": 2 * QUERIES,
    "SHOW QUOTAS": 2 * QUERIES,
    "SHOW SHARING": 2 * QUERIES,
    "SHOW CREATE ALL": QUERIES,
}


@pytest.mark.parametrize("sql", MANY)
def test_a_piece_is_for_one_thing(sql):
    db = engine()
    lines, pieces = shown(db, sql)
    assert pieces >= MANY[sql]
    assert lines == db.execute(sql)[0].data.to_pylist()


@pytest.mark.parametrize("sql", MANY)
def test_all_may_go_and_come_again_in_between(sql):
    db = engine()

    def between(n):
        if n % 3 == 1 and n < 10:
            q = f"q{n // 3}"
            db.execute(f"DROP QUERY {q}; CREATE QUERY new{q} AS SELECT v FROM s [RANGE 1 min]")
        if n == 10:
            db.execute("DROP STREAM s CASCADE")

    shown(db, sql, between)


def test_a_query_that_is_dropped_meanwhile_is_not_shown_and_others_are():
    db = engine()

    def between(n):
        if n == 2:
            db.execute("DROP QUERY q9; PAUSE QUERY q10; ALTER QUERY q11 RENAME TO last")
            db.ingest("s", {"k": [1], "v": [1], "t": [200_000_000]})

    lines, _ = shown(db, "SHOW QUERIES", between)
    told = {line["query"]: line["status"] for line in lines}
    assert set(told) == {f"q{i}" for i in range(9)} | {"q10", "last"}
    assert told["q10"] == "paused" and lines[-1]["clock"] > lines[0]["clock"]


def test_what_is_made_of_another_meanwhile_is_not_told_to_who_may_not_know_of_it():
    db = engine()
    db.execute("CREATE USER ann TOKEN 'a-token-that-is-anns-own-12'; GRANT ADMIN ON q5 TO ann")
    assert [x["query"] for x in db.execute("SHOW QUERIES", user="ann")[0].data.to_pylist()] == [
        "q5"
    ]
    slices = db.slices("SHOW QUERIES", user="ann")
    next(slices)
    db.execute("DROP QUERY q5; CREATE QUERY q5 AS SELECT v FROM s [RANGE 1 min]")
    (found,) = finished(slices)
    assert found.data.num_rows == 0


def test_what_is_dumped_is_what_there_was_at_first():
    db = engine()
    before = db.execute("SHOW CREATE ALL")[0].data.to_pylist()

    def between(n):
        if n == 4:
            db.execute("DROP QUERY q11; CREATE TABLE d (k INT PRIMARY KEY)")

    assert shown(db, "SHOW CREATE ALL", between)[0] == before


def test_metrics_are_counted_a_query_at_a_time():
    db = engine()
    whole, pieces = db.stats(), db.counting()
    assert sum(1 for _ in db.counting()) >= QUERIES + 1
    assert finished(pieces) == whole
    pieces = db.counting()
    next(pieces)
    db.execute("DROP QUERY q0")
    assert set(finished(pieces)["queries"]) == {f"q{i}" for i in range(1, QUERIES)}


def test_how_many_rows_an_answer_has_is_counted_without_making_them(monkeypatch):
    db = engine()
    db.execute(
        "CREATE QUERY few AS SELECT k + 1 AS l, COUNT(*) AS n FROM s [RANGE 1 h] GROUP BY k;"
        "CREATE QUERY some AS SELECT k, COUNT(*) AS n FROM s [RANGE 1 h] GROUP BY k "
        "HAVING COUNT(*) > 1"
    )
    at = np.arange(100, 110)
    db.ingest("s", {"k": at % 7, "v": at, "t": at * 1_000_000})
    rows = {q["query"]: q["live_rows"] for q in shown(db, "SHOW QUERIES")[0]}
    assert rows["some"] == 3
    monkeypatch.setattr(
        type(db.runtime.queries["few"].pipeline), "answer", lambda self: pytest.fail("made")
    )
    assert db.runtime.queries["few"].answer_rows() == rows["few"] == 7
