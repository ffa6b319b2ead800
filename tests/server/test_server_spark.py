"""A server whose streams are archived: rows land beside its work, and its Spark process is told to
update."""

from __future__ import annotations

import re
import sys
import urllib.request
from pathlib import Path

import pytest

import dsms
from dsms.errors import UsageError
from dsms.settings import Settings
from dsms_client import connect
from dsms_server import config
from tests.server.harness import Running
from tests.test_spark_process import FAKE
from tests.waiting import WAIT, wait_until

S = 1_000_000
STREAM = "CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t ARCHIVE FOR 1 h UPDATE EVERY 10 s"


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setattr("dsms_server.server.worker_command", lambda master, memory: lambda: FAKE)
    monkeypatch.setattr("dsms_server.core.LANDING_SECONDS", 0.01)
    running = Running(dsms.Engine(settings=Settings(archive=str(tmp_path))), http_port=0)
    running.engine.runtime.settings.archive_due = running.server.spark.due
    yield running
    running.stop()


def metrics(server: Running) -> dict[str, float]:
    with urllib.request.urlopen(
        f"http://127.0.0.1:{server.server.http_port}/metrics", timeout=WAIT
    ) as page:
        lines = [line for line in page.read().decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def feed(db, seconds: range) -> None:
    db.ingest("s", [[i, i * S] for i in seconds])


def test_rows_land_and_the_index_is_updated(server, tmp_path):
    """Nothing happens after the rows: files land one after the other all the same."""
    with connect("127.0.0.1", server.port) as db:
        db.execute(STREAM)
        assert metrics(server)["dsms_spark_up"] == 0 and server.server.spark.starts == 0
        feed(db, range(95))
        wait_until(
            lambda: len(list((tmp_path / "s" / "landing").glob("*.parquet"))) == 9,
            "the ninth landing file",
        )
        wait_until(lambda: _update(db).startswith("done "), "the end of the updates")
    updates = 'dsms_archive_updates_total{archive="s",outcome="done"}'
    wait_until(
        lambda: (seen := metrics(server)).get(updates) and not seen["dsms_archive_updates_due"],
        "all updates",
    )
    seen = metrics(server)
    assert (
        seen["dsms_spark_up"] == seen["dsms_spark_starts"] == 1 and seen["dsms_spark_deaths"] == 0
    )
    assert seen['dsms_archive_update_rows_total{archive="s"}'] >= 10  # the fake takes ten each time


def _update(db) -> str:
    shown = db.query("SHOW ARCHIVES")
    return shown.rows[0][shown.columns.index("update")] or ""


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("wait-1", r"at work: Spark, step 2 of 5 \(for \d+ s\)"),
        ("fail-1", r"failed, again in \d+ s: DS955 .* can't be used"),
    ],
)
def test_show_archives_tells_what_updates_wait_for_and_why_they_failed(server, tmp_path, url, told):
    with connect("127.0.0.1", server.port) as db:
        db.execute(STREAM)
        assert _update(db) == ""
        server.server.spark.due("s", str(tmp_path / url))
        wait_until(lambda: re.fullmatch(told, _update(db)) is not None)


def test_a_query_that_waits_for_spark_holds_nobody_up_and_can_be_cancelled(server, tmp_path):
    with connect("127.0.0.1", server.port) as db, server.peer() as peer:
        db.execute(STREAM)
        feed(db, range(25))
        wait_until(lambda: server.engine.runtime.archivings["s"].seam > 0)
        asked = "SELECT COUNT(*) FROM ARCHIVE s WITH (archive = spark)"
        waiting = peer.send("execute", sql=asked)
        wait_until((tmp_path / "s.asked").exists)
        feed(db, range(25, 30))
        assert db.query("SELECT 1").rows == [(1,)]
        peer.send("cancel", request=waiting)
        error = peer.reply(waiting)["error"]
    assert (
        error["code"] == "DS610"
        and "while it waited for Spark, step 2 of 5 (for " in error["message"]
    )
    wait_until(lambda: not (tmp_path / "s.asked").exists())


def test_files_that_could_not_be_written_are_written_later_though_nothing_comes(server, tmp_path):
    with connect("127.0.0.1", server.port) as db:
        db.execute(STREAM)
        landing = tmp_path / "s" / "landing"
        if landing.exists():
            landing.rmdir()
        landing.write_text("a file where a folder should be")
        feed(db, range(35))
        wait_until(lambda: server.engine.runtime.archivings["s"].failures > 1)
        landing.unlink()
        wait_until(lambda: len(list(landing.glob("*.parquet"))) == 3)


def test_stopping_with_an_update_under_way(server, tmp_path):
    with connect("127.0.0.1", server.port) as db:
        db.execute(STREAM)
        feed(db, range(15))  # its own update comes before or after
    server.server.spark.due("another", str(tmp_path / "wait-here"))
    wait_until((tmp_path / "wait-here.waits").exists)  # and the fixture stops the server


def test_options(tmp_path):
    built = config.build({"archive": "s3://b/a", "spark_master": "local[2]", "spark_memory": "2g"})
    assert (built.archive, built.spark_master, built.spark_memory) == ("s3://b/a", "local[2]", "2g")
    with pytest.raises(UsageError, match="spark_memory is a size such as 512m or 4g"):
        config.build({"spark_memory": "lots"})
    file = tmp_path / "dsms.toml"
    file.write_text('spark-memory = "512m"\narchive = "/a"\n')
    assert config.build(config.from_file(str(file))).spark_memory == "512m"


def test_engine_of_a_server_knows_where_archives_are_and_whom_to_tell(tmp_path):
    from dsms_server.serve import make_engine
    from dsms_server.spark import Spark

    spark = Spark(lambda: [sys.executable, "-c", ""])
    engine = make_engine(config.build({"archive": str(tmp_path / "a")}), spark)
    engine.execute(STREAM)
    engine.ingest("s", [[i, i * S] for i in range(15)])
    engine.close()
    assert Path(tmp_path / "a" / "s" / "landing").is_dir() and spark.updates.waiting == 1
