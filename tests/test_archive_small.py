"""Archives that are small are read in this process: any query over them answers as over live rows,
without Spark."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dsms.api import Cancel
from dsms.engine import Engine
from dsms.errors import DsmsError, UsageError
from dsms.oneshot.pushdown import needed
from dsms.oneshot.reads import reads
from dsms.oneshot.run import OneShot
from dsms.plan.identity import by_value
from dsms.plan.paths import from_past
from dsms.plan.planner import plan
from dsms.reads.small_archives import run_here
from dsms.settings import Settings
from tests.archive_runs import from_archives, job_of
from tests.effort import examples
from tests.generate.stories import stories
from tests.oneshot_runs import values
from tests.oracle import Oracle
from tests.oracle.values import canons
from tests.stories import text
from tests.stories.judge import take_in
from tests.stories.model import Story

S = 1_000_000
ONESHOT = OneShot(1 << 30)
DDL = """
CREATE STREAM s (k INT, w STRING, t TIMESTAMP) TIMESTAMP BY t ARCHIVE FOR 1 h UPDATE EVERY 10 s;
CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 10 s] GROUP BY k ARCHIVE UPDATE EVERY 10 s
"""


@settings(max_examples=examples(120), deadline=None, suppress_health_check=list(HealthCheck))
@given(story=stories(), seed=st.integers(0, 9999))
def test_any_query_answers_as_the_oracle_does(tmp_path_factory, story: Story, seed: int) -> None:
    declared = text.resolve(story)
    output, came = declared.queries["q"], take_in(declared, story)
    why = from_past(output)
    if why is not None and "INTERNAL" not in why:
        return
    node = from_archives(plan(output).node)
    if not any(r.kind == "archive" for r in reads(node).values()):
        return
    oracle = Oracle(output, came.streams, came.tables)
    at = oracle.instants[seed % len(oracle.instants)]
    want = [canons(f.values) for f in oracle.answer(at)]
    job = job_of(tmp_path_factory.mktemp("a"), node, came.streams, came.tables, at, 10 * S)
    got = list(map(canons, values(run_here(ONESHOT, job, needed(node, at), None))))
    shown = text.render(story, declared)
    assert Counter(got) == Counter(want), f"at {at}: {got}\nnot {want}\n{shown}"
    if not by_value(output.child):
        assert got == want, f"order at {at}: {got}\nnot {want}\n{shown}"


def filled(folder: Path, **options) -> Engine:
    engine = Engine(settings=Settings(archive=str(folder), **options))
    engine.execute(DDL)
    engine.ingest("s", [[k % 3, "a'b"[k % 3], k * S] for k in range(120)])
    engine.heartbeat("s", 120 * S)
    return engine


def ask(engine: Engine, sql: str, **more) -> list[tuple]:
    return [tuple(r.values()) for r in engine.execute(sql, **more)[-1].data.to_pylist()]


def test_an_engine_needs_no_spark_for_little(tmp_path: Path) -> None:
    engine = filled(tmp_path)
    whole = "SELECT COUNT(*) AS n, MIN(t) AS first, MAX(k) AS k FROM s [RANGE 1 h ARCHIVE]"
    assert ask(engine, whole) == [(120, 0, 2)]
    assert ask(engine, "SELECT w, t FROM ARCHIVE s [ROWS 2] WHERE k = 1")  # by what is archived
    assert 0 < ask(engine, "SELECT COUNT(*) AS n FROM ARCHIVE q")[0][0] < 300
    assert ask(engine, f"EXPLAIN {whole}") and ("runs on DuckDB in this process, once",) in ask(
        engine, f"EXPLAIN {whole}"
    )
    engine.runtime.settings.archive_local_bytes = 10
    for sql in (whole, f"{whole} WITH (archive = spark)"):
        with pytest.raises(UsageError, match="DS412"):
            engine.execute(sql)
    assert ("runs on Spark, once",) in ask(engine, f"EXPLAIN {whole}")
    assert ask(engine, f"{whole} WITH (archive = duckdb)") == [(120, 0, 2)]
    engine.ingest("s", [[0, "late", 4000 * S]])
    engine.heartbeat("s", 4000 * S)  # the first rows have expired
    (kept,) = ask(engine, "SELECT COUNT(*) AS n FROM ARCHIVE s WITH (archive = duckdb)")[0]
    assert kept < 120
    with pytest.raises(UsageError, match="DS392"):
        engine.execute("SELECT * FROM s [ROWS 119 ARCHIVE] WITH (archive = duckdb)")


def test_rights_hold(tmp_path: Path) -> None:
    engine = filled(tmp_path)
    engine.execute(
        "CREATE USER ann TOKEN; GRANT SELECT (t, w) ON s TO ann MASK (w AS '*') WHERE k = 1"
    )
    seen = ask(engine, "SELECT DISTINCT w FROM s [RANGE 1 h ARCHIVE]", user="ann")
    assert seen == [("*",)]
    assert ask(engine, "SELECT COUNT(*) FROM s [RANGE 1 h ARCHIVE]", user="ann") == [(40,)]
    for sql in ("SELECT k FROM ARCHIVE s", "SELECT * FROM ARCHIVE q"):
        with pytest.raises(DsmsError):
            engine.execute(sql, user="ann")


def test_what_goes_wrong_is_said(tmp_path: Path) -> None:
    engine, cancel = filled(tmp_path), Cancel()
    sql = "SELECT k, w FROM ARCHIVE s"
    cancel.set()
    with pytest.raises(UsageError, match="DS610"):
        engine.execute(sql, cancel=cancel)
    with pytest.raises(UsageError, match="DS633"):
        filled(tmp_path / "small", statement_bytes=100).execute(sql)
    (some, *_) = sorted((tmp_path / "s" / "landing").glob("*.parquet"))
    shutil.copy(some, tmp_path / "kept")
    data = bytearray(some.read_bytes())
    data[20:60] = bytes(40)
    some.write_bytes(bytes(data))
    with pytest.raises(DsmsError, match=r"DS95[58]"):
        engine.execute(sql)
    some.unlink()
    with pytest.raises(DsmsError, match=r"DS95[58]"):
        engine.execute(sql)
