"""A query is filled with what is kept piece by piece: others come in between, and its answers are
those of one that was filled at once."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from dsms.api import Cancel
from dsms.engine import Engine
from dsms.errors import QueryError, UsageError
from dsms.running import pipeline
from tests.cancelling import told

ROWS = 120
QUERIES = {
    "rows": "SELECT v FROM s [RANGE 1 h] WHERE v % 2 = 0",
    "group": "SELECT k, COUNT(*) AS n, SUM(v) AS x FROM s [RANGE 90 ms] GROUP BY k",
    "join": "SELECT a.v, b.v AS w FROM s [RANGE 10 ms] AS a, s [ROWS 5] AS b WHERE a.k = b.k",
    "unbounded": "SELECT COUNT(*) AS n FROM s [RANGE UNBOUNDED]",
    "count": "SELECT MAX(v) AS m FROM s [ROWS 30]",
    "table": "SELECT s.v, d.name FROM s [RANGE 50 ms], d WHERE s.k = d.k",
    "stream": "SELECT k, v FROM s",
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(pipeline, "SLICE", 7)


def rows(first: int, n: int) -> dict:
    at = np.arange(first, first + n)
    return {"k": at % 3, "v": at, "t": at * 1000}


def engine(folder: str | None = None) -> Engine:
    db = Engine(data=folder)
    db.execute(
        "CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 100 ms SUBWINDOW 10 ms;"
        "CREATE TABLE d (k INT PRIMARY KEY, name STRING);"
        "INSERT INTO d VALUES (0, 'a'), (1, 'b') AT '1970-01-01'"
    )
    db.ingest("s", rows(0, ROWS))
    db.heartbeat("s", 1000 * (ROWS - 10))
    return db


def later(db: Engine, n: int) -> None:
    """Something that moves the clock."""
    first = ROWS + 10 * n
    db.ingest("s", rows(first, 10))
    if n == 1:
        db.execute("UPDATE d SET name = 'c' WHERE k = 0")


def answers(db: Engine) -> tuple:
    reader = db.subscribe("q", 0)
    (counted,) = db.execute("SELECT COUNT(*) AS n FROM s [RANGE 50 ms]")[0].data.to_pylist()
    return told(reader), counted


def created(db: Engine, query: str, between=lambda n: None, cancel: Cancel | None = None) -> int:
    slices = db.slices(f"CREATE QUERY q AS {query}", cancel)
    for n in range(10_000):
        try:
            next(slices)
        except StopIteration:
            return n
        between(n)
    raise AssertionError("no end")


@pytest.mark.parametrize("name", QUERIES)
def test_it_answers_as_if_it_had_been_filled_at_once(name, tmp_path):
    whole = engine()
    whole.execute(f"CREATE QUERY q AS {QUERIES[name]}")
    for n in range(3):
        later(whole, n)
    whole.heartbeat("s", 400_000)
    expected = answers(whole)
    folder, copies = str(tmp_path / "db"), []
    cut, came = engine(folder), []

    def between(step):
        if step >= 2 and len(came) < 3:
            later(cut, len(came))
            came.append(step)
            copies.append((shutil.copytree(folder, tmp_path / f"copy{step}"), len(came)))

    steps = created(cut, QUERIES[name], between)
    assert steps >= 5 or name == "stream"
    for n in range(len(came), 3):
        later(cut, n)
    cut.heartbeat("s", 400_000)
    assert answers(cut) == expected
    cut.close()
    for copy, n in copies:  # the engine has died there
        again = Engine(data=str(copy))
        for k in range(n, 3):
            later(again, k)
        again.heartbeat("s", 400_000)
        assert answers(again) == expected
        again.close()
    again = Engine(data=folder)
    assert answers(again) == expected
    again.close()


def test_others_do_not_know_of_it_before_the_end():
    db, seen = engine(), []

    def between(step):
        if not db.runtime.beginnings:
            return
        seen.append(len(db.execute("SHOW QUERIES FULL")[0].data))
        with pytest.raises(UsageError, match="DS401"):
            db.subscribe("q")
        with pytest.raises((QueryError, UsageError), match="DS401"):
            db.execute("DROP QUERY q")
        with pytest.raises(QueryError, match="DS203"):
            db.execute("SELECT * FROM q")
        for taken in ("QUERY q AS SELECT v FROM s", "TABLE q (k INT)", "STREAM q (k INT)"):
            with pytest.raises(QueryError, match="DS213"):
                db.execute(f"CREATE {taken}")
        with pytest.raises(UsageError, match="DS405"):
            db.execute("DROP STREAM s")
        with pytest.raises(UsageError, match="DS405"):
            db.execute("DROP STREAM s CASCADE")

    created(db, QUERIES["group"], between)
    assert len(seen) > 5 and set(seen) == {0}
    assert len(db.execute("SHOW QUERIES FULL")[0].data) == 1


def test_it_is_cancelled_at_any_piece_and_leaves_nothing(tmp_path):
    steps = created(engine(), QUERIES["group"])
    for stop in range(1, steps - 1, 4):
        folder, cancel = str(tmp_path / str(stop)), Cancel()
        db = engine(folder)

        def between(n, cancel=cancel, stop=stop):
            if n == stop:
                cancel.set()

        with pytest.raises(UsageError, match="DS610"):
            created(db, QUERIES["group"], between, cancel)
        assert not db.runtime.queries and not db.runtime.beginnings
        later(db, 0)
        db.close()
        again = Engine(data=folder)
        assert not again.runtime.queries
        again.execute(f"CREATE QUERY q AS {QUERIES['group']}; DROP QUERY q; DROP STREAM s")
        again.close()


def test_one_that_is_given_up_is_dropped():
    db = engine()
    slices = db.slices(f"CREATE QUERY q AS {QUERIES['group']}")
    for _ in range(6):
        next(slices)
    assert db.runtime.beginnings
    slices.close()
    assert not db.runtime.queries and not db.runtime.beginnings
    db.execute("DROP STREAM s")


@pytest.mark.parametrize(
    "what",
    [
        lambda db: db.execute("ALTER STREAM s SET CLOCK TO TIMESTAMP '1970-01-01 00:00:00.12'"),
        lambda db: db.saver.checkpoint(),
        lambda db: db.close(),
        lambda db: db.execute("DELETE FROM d"),
    ],
)
def test_what_needs_all_queries_fills_it_to_the_end_first(what, tmp_path):
    db = engine(str(tmp_path))
    slices = db.slices(f"CREATE QUERY q AS {QUERIES['table']}")
    while not db.runtime.beginnings:
        next(slices)
    next(slices)
    db.heartbeat("s", 10_000_000)
    what(db)
    assert not db.runtime.beginnings
    for _ in slices:
        pass
    assert len(db.execute("SHOW QUERIES FULL")[0].data) == 1
