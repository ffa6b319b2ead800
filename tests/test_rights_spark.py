"""Who may see a part of a stream sees no more of it through Spark: archives that Spark reads for a
server, and the data source that asks one."""

from __future__ import annotations

from pathlib import Path

import pytest

import dsms
import dsms_spark
from tests.archive_local import Local
from tests.server.harness import Running
from tests.test_archive_spark import World

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]
S = 1_000_000
GRANT = "GRANT SELECT ON s TO alice MASK (n AS upper(n), v AS v % 10) WHERE k <> 1"
SEEN = "(SELECT k, v % 10 AS v, x, upper(n) AS n, t FROM ARCHIVE s WHERE k <> 1)"
QUESTIONS = [
    "SELECT k, COUNT(*) AS c, SUM(v) AS v, MAX(n) AS n FROM {} GROUP BY k ORDER BY k",
    "SELECT v, n FROM {} WHERE k < 2 AND v > 4 ORDER BY v, n",
    "SELECT COUNT(*) AS c FROM {} WHERE k = 1 OR n = 'a'",
    "SELECT a.k, COUNT(*) AS c FROM {} a JOIN r ON a.k = r.k GROUP BY a.k ORDER BY a.k",
]


def test_archives_that_spark_reads_show_what_was_granted(spark, tmp_path: Path) -> None:
    world = World(spark, tmp_path)
    world.engine.execute(f"CREATE USER alice TOKEN; {GRANT}; GRANT SELECT ON r TO alice")
    settings = world.engine.runtime.settings
    piped = settings.archive_runner
    for question in QUESTIONS:
        told = []
        for runner in (piped, Local()):
            settings.archive_runner = runner
            (rows,) = world.engine.execute(question.format("ARCHIVE s"), user="alice")
            told.append(rows.data.to_pylist())
        settings.archive_runner = piped
        (wanted,) = world.engine.execute(question.format(SEEN))
        assert told[0] == told[1] == wanted.data.to_pylist() != [], question
    assert {row["k"] for row in told[0]} == {0}  # of r's 0 and 1


def test_the_data_source_shows_what_was_granted(spark) -> None:
    source, engine = dsms_spark.register(spark), dsms.Engine()
    engine.execute(
        "CREATE STREAM s (k INT, v INT, x FLOAT, n STRING, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;"
        "CREATE QUERY q AS SELECT k, COUNT(*) AS c FROM s [RANGE 1 h] GROUP BY k;"
        f"CREATE USER alice TOKEN 'a-token-that-is-alices-alone'; {GRANT};"
        "GRANT SUBSCRIBE ON q TO alice"
    )
    engine.ingest("s", [[t % 5, t, t / 2, "abc"[t % 3], t * S] for t in range(60)])
    engine.heartbeat("s", 60 * S)
    running = Running(engine, auth=True, token="the-token-of-the-administrator")
    try:
        where = f"127.0.0.1:{running.port}"

        def read(**options: str):
            known = {"server": where, "token": "a-token-that-is-alices-alone", **options}
            return source.read.format("dsms").options(**known).load()

        back = read(stream="s", window="RANGE 1 HOUR").orderBy("t").collect()
        assert [(r.k, r.v, r.n) for r in back] == [
            (t % 5, t % 10, "ABC"[t % 3]) for t in range(60) if t % 5 != 1
        ]
        sums = read(sql="SELECT COUNT(*) AS c, MAX(v) AS v FROM s [RANGE 1 HOUR]")
        assert [tuple(row) for row in sums.collect()] == [(48, 9)]
        now = "SELECT * FROM s [NOW]"
        for wrong, code in (
            ({"sql": now, "token": "wrong"}, "DS605"),
            ({"sql": "SELECT * FROM hidden [NOW]"}, "DS203"),
        ):
            with pytest.raises(Exception, match=code):
                read(**wrong).collect()
    finally:
        running.stop()
