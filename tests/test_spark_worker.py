"""A server with a real Spark process: rows are archived, updated and asked while the server goes on
with its work."""

from __future__ import annotations

import threading

import pytest

import dsms
from dsms.api import Cancel
from dsms.errors import DsmsError, UsageError
from dsms.settings import Settings
from dsms_client import connect
from dsms_client.results import RowSet
from dsms_server.spark import Spark, worker_command
from tests.effort import SLOW
from tests.server.harness import Running
from tests.waiting import WAIT, wait_until

pytestmark = pytest.mark.xdist_group("spark")
S = 1_000_000
STREAM = (
    "CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t ARCHIVE FOR 1 h CLUSTER BY k UPDATE "
    "EVERY 10 s"
)


@pytest.fixture
def spark(tmp_path):
    from dsms_spark.java import find_java

    pytest.importorskip("pyspark", reason="PySpark is not installed (pip install '.[spark]')")
    try:
        find_java()
    except UsageError as problem:
        pytest.skip(problem.message)
    command, gate = worker_command("local[2]", "1g"), tmp_path / "begin"
    held = Spark(
        lambda: [
            "sh",
            "-c",
            f'until [ -e "{gate}" ]; do sleep 0.1; done; exec "$@"',
            "sh",
            *command(),
        ]
    )
    held.gate = gate  # until it is there, Spark does not begin to start
    yield held
    held.stop()


@SLOW
def test_archives_are_updated_and_asked_while_the_server_works(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("dsms_server.server.worker_command", lambda master, memory: None)
    monkeypatch.setattr("dsms_server.server.Spark", lambda command: spark)
    server = Running(dsms.Engine(settings=Settings(archive=str(tmp_path), archive_due=spark.due)))
    try:
        with connect("127.0.0.1", server.port) as db, connect("127.0.0.1", server.port) as other:
            db.execute(STREAM)
            db.ingest("s", [[i % 4, i * S] for i in range(95)])
            wait_until(
                lambda: server.engine.runtime.archivings["s"].landed_rows == 90,
                "nine landing files",
            )
            answers: list[RowSet | DsmsError] = []
            asking = threading.Thread(
                target=lambda: answers.append(_asked(db, "SELECT COUNT(*) FROM ARCHIVE s"))
            )
            asking.start()
            wait_until(lambda: "execute: " in spark.state(), "the question")
            for i in range(20):  # nobody waits for Spark but who asked
                other.ingest("s", [[1, (95 + i) * S]])
                assert other.query("SELECT 1").rows == [(1,)]
            assert asking.is_alive()
            spark.gate.touch()
            wait_until(
                lambda: "Spark to start" in spark.state() or not asking.is_alive(),
                "Spark's first word",
            )
            _cancelled_while_it_starts(spark)
            asking.join(WAIT)
            assert isinstance(answers[0], RowSet) and answers[0].rows == [(90,)]
            assert spark.updates.quiet(WAIT) and spark.updates.figures["s"].rows >= 90
            live = "SELECT k, COUNT(*) AS n FROM s [RANGE 1 h ARCHIVE] GROUP BY k ORDER BY k"
            # the last instant is open
            assert db.query(live).rows == [(0, 24), (1, 24 + 19), (2, 24), (3, 23)]
            wait_until(lambda: spark.state() == "ready", "the end of all work")
            assert (spark.starts, spark.deaths) == (1, 0)
    finally:
        server.stop()


def _asked(db, sql: str) -> RowSet | DsmsError:
    try:
        return db.query(sql)
    except DsmsError as problem:
        return problem


def _cancelled_while_it_starts(spark: Spark) -> None:
    cancel = Cancel()
    cancel.set()
    with pytest.raises(UsageError, match=r"cancelled while it waited for") as caught:
        spark.ask("start", {}, cancel)
    assert caught.value.code == "DS610"
