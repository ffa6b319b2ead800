"""A view that is kept as a table of PostgreSQL, and what a source reads from there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.connectors.brokers import HOST, Postgres
from tests.connectors.world import world
from tests.waiting import wait_until

URL = f"url = 'postgresql://root@{HOST}/test'"
STREAM = "CREATE STREAM s (k INT, v FLOAT, t TIMESTAMP) TIMESTAMP BY t"


@pytest.fixture
def db() -> Iterator[Postgres]:
    Postgres.check()
    made = Postgres()
    made.begin()
    yield made
    made.end()


def rows(db: Postgres, what: str = "*") -> list[tuple]:
    return db._db.execute(f"SELECT {what} FROM {db.place}out ORDER BY 1, 2").fetchall()


@pytest.mark.parametrize("key", ["", ", key = 'k'"])
def test_a_view_is_followed(db, key):
    with world() as it:
        it.run(
            STREAM,
            "CREATE QUERY q AS SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 10 s] "
            "GROUP BY k",
        )
        it.client.ingest("s", {"k": [1, 2], "v": [1.0, 2.0], "t": [0, 0]})
        it.client.heartbeat("s", 1)
        it.run(f"CREATE SINK t FROM q TO postgres WITH ({URL}, table = '{db.place}out'{key})")
        it.until("t", "sink", state="running")
        wait_until(lambda: rows(db) == [(1, 1, 1.0), (2, 1, 2.0)])
        it.client.ingest("s", {"k": [1, 3], "v": [1.5, None], "t": [5_000_000, 5_000_000]})
        it.client.heartbeat("s", 6_000_000)
        wait_until(lambda: rows(db) == [(1, 2, 2.5), (2, 1, 2.0), (3, 1, None)])
        it.client.heartbeat("s", 12_000_000)
        wait_until(lambda: rows(db) == [(1, 1, 1.5), (3, 1, None)])
        it.client.heartbeat("s", 20_000_000)
        wait_until(lambda: rows(db) == [])
        assert it.line("t", "sink")["restarts"] == 0


def test_a_table_of_another_shape_is_somebodys_concern(db):
    with world() as it:
        it.run(STREAM, "CREATE QUERY q AS SELECT k, v, t FROM s")
        it.run(f"CREATE SINK t FROM q TO postgres WITH ({URL}, table = '{db.place}')")
        it.until("t", "sink", state="running")
        it.client.ingest("s", {"k": [1], "v": [1.0], "t": [0]})
        it.client.heartbeat("s", 1)
        assert it.until("t", "sink", state="failed")["last_error"].startswith("DS665: ")


def test_notify_says_that_there_is_more(db):
    with world() as it:
        it.run(
            "CREATE STREAM s (k INT, v FLOAT)",
            f"CREATE SOURCE b INTO s FROM postgres WITH ({URL}, table = '{db.place}', cursor = id, "
            f"every = 1 h, listen = '{db.place}')",
        )
        it.until("b", state="running", lag=0)
        db.put([{"k": 1, "v": 0.5}])
        db._db.execute(f"NOTIFY {db.place}")
        it.until("b", rows=1)


def test_a_query_may_be_read_and_a_source_may_begin_at_the_end(db):
    db.put([{"k": k, "v": 0.5} for k in range(5)])
    with world() as it:
        query = f"(SELECT id, k * 10 AS k FROM {db.place} WHERE k <> 6)"
        it.run(
            "CREATE STREAM s (k INT)",
            f"CREATE SOURCE b INTO s FROM postgres WITH ({URL}, table = '{query}', cursor = id, "
            "every = 20 ms, begin = 'end')",
        )
        it.until("b", state="running", lag=0)
        db.put([{"k": k, "v": 0.5} for k in (5, 6, 7)])
        it.until("b", rows=2)
        assert it.values("SELECT k FROM s [RANGE UNBOUNDED] ORDER BY k") == [50, 70]
