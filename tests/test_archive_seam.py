"""Windows over live and archived rows while both move: no row is missing, none comes twice.
(Without Spark.)"""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest

import dsms
from dsms.api import Rows
from dsms.errors import DsmsError, UsageError
from dsms.settings import Settings
from dsms.storage.archive.landing import Landing
from dsms.storage.archive.manifest import Archive
from tests.archive_local import Local
from tests.archives import Later
from tests.effort import sampled, thinned

S = 1_000_000
STREAM = "CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t"
ARCHIVED = f"{STREAM} ARCHIVE FOR 1 h CLUSTER BY k UPDATE EVERY 10 s"


def archiving(folder: Path, ddl: str = ARCHIVED, **settings: Any) -> tuple[dsms.Engine, Local]:
    runner = Local()
    engine = dsms.Engine(
        settings=Settings(
            archive=str(folder), archive_runner=runner, archive_local_bytes=-1, **settings
        )
    )
    engine.execute(ddl)
    return engine, runner


def ask(engine: dsms.Engine, sql: str) -> tuple[list[tuple], int | None]:
    (rows,) = engine.execute(sql)
    (here,) = engine.execute(f"{sql} WITH (archive = duckdb)")  # in this process: the same
    assert isinstance(rows, Rows) and isinstance(here, Rows)
    assert repr(here.data.to_pylist()) == repr(rows.data.to_pylist()) and here.as_of == rows.as_of
    return list(zip(*(c.to_pylist() for c in rows.data.columns), strict=True)), rows.as_of


def feed(engine: dsms.Engine, *seconds: float, stream: str = "s") -> None:
    engine.ingest(stream, [[round(t) % 3, round(t * 2), round(t * S)] for t in seconds])


# columns that come later, and the same ones that were there from the beginning
LATER = (
    "c INT DEFAULT 7",
    "d DECIMAL(6,2) DEFAULT 1.5",
    "e TIMESTAMP DEFAULT TIMESTAMP '1970-01-01 00:00:09'",
    "f STRING DEFAULT NULL",
    "g BOOL NOT NULL DEFAULT TRUE",
)


QUERIES = (
    "SELECT COUNT(*), SUM(v), MIN(t) FROM s [RANGE {n} s{a}]",
    "SELECT k, v FROM s [RANGE {n} s{a}] WHERE k = 1",
    "SELECT v FROM s [RANGE {n} s UNTIL 5 s AGO{a}]",
    "SELECT FIRST(v), LAST(v), COUNT(*) FROM s [ROWS {n}{a}]",
    "SELECT k, MAX(v) FROM s [RANGE UNBOUNDED{a}] WHERE v > {n} GROUP BY k",
    "SELECT v FROM s [SINCE TIMESTAMP '1970-01-01 00:00:20'{a}] WHERE t > TIMESTAMP '1970-01-01 "
    "00:01:00' OR k = 2",
    "SELECT a.v, b.v FROM s [RANGE {n} s{a}] a, s [RANGE 5 s] b WHERE a.k = b.k AND a.v < b.v",
    "SELECT k, v FROM s [PARTITION BY k ROWS 2{a}]",
    "SELECT v FROM s [RANGE {n} s{a}] a WHERE NOT EXISTS (SELECT * FROM s [RANGE 9 s] b WHERE a.k "
    "= b.k)",
)


@thinned()
@pytest.mark.parametrize("scheduler", ["serial", "ws", "lws", "ttu"])
@pytest.mark.parametrize("seed", sampled(range(4), 2))
def test_the_seam_does_not_show(seed: int, scheduler: str, tmp_path: Path) -> None:
    pick, writer = Random(seed), Later()
    ddl = f"{STREAM} ARCHIVE CLUSTER BY k UPDATE EVERY 10 s"
    engine, runner = archiving(
        tmp_path, ddl, archive_writer=writer, transaction_scheduler=scheduler
    )
    plain = dsms.Engine()
    plain.execute(f"{STREAM} RETAIN 1 h")
    now, seams = 0.0, set()
    for _ in range(40):
        stamps = sorted(now + pick.choice((0, 0.5, 1, 2, 7)) for _ in range(pick.randint(1, 9)))
        now = stamps[-1]
        for one in (engine, plain):
            feed(one, *stamps)
            one.heartbeat("s", round(now * S))
        if pick.random() < 0.4:
            writer.work()
        if pick.random() < 0.5:
            sql = pick.choice(QUERIES)
            n = pick.choice((6, 11, 25, 60, 200))
            assert ask(engine, sql.format(n=n, a=" ARCHIVE")) == ask(
                plain, sql.format(n=n, a="")
            ), (sql, n)
            seams |= {s.seam for s in runner.jobs[-1].sources.values()}
    assert len(seams) > 3
    assert not engine.runtime.archivings["s"].holds


def test_sliced_reads_hold_the_seam(tmp_path: Path) -> None:
    """Rows land while a query is at work: it keeps reading them live."""
    engine, runner = archiving(tmp_path)
    feed(engine, *range(25))
    statement = engine.begin("SELECT COUNT(*), MIN(v), MAX(v) FROM s [RANGE 1 h ARCHIVE]")
    before = engine.runtime.archivings["s"].seam
    assert not statement.step()
    feed(engine, *range(25, 80))
    assert engine.runtime.archivings["s"].seam > before and engine.runtime.archivings["s"].holds
    while not statement.step():
        if statement.ready:
            assert not engine.runtime.archivings["s"].holds
    assert statement.result.data.to_pylist()[0] == {"COUNT(*)": 79, "MIN(v)": 0, "MAX(v)": 156}
    assert runner.jobs[-1].sources[0].seam == before


def test_a_query_that_is_given_up_holds_nothing(tmp_path: Path) -> None:
    engine, _ = archiving(tmp_path)
    feed(engine, *range(25))
    statement = engine.begin("SELECT COUNT(*) FROM s [RANGE 1 h ARCHIVE]")
    statement.step()
    statement.close()
    assert not engine.runtime.archivings["s"].holds


def test_the_archived_part_alone_ends_at_the_seam(tmp_path: Path) -> None:
    engine, runner = archiving(tmp_path)
    assert ask(engine, "SELECT COUNT(*) FROM ARCHIVE s") == ([(0,)], None)
    feed(engine, *range(35))
    assert engine.runtime.archivings["s"].seam == 30 * S - 1
    assert ask(engine, "SELECT COUNT(*), MAX(v) FROM ARCHIVE s") == ([(30, 58)], 34 * S - 1)
    # of (24 s, 34 s)
    assert ask(engine, "SELECT COUNT(*) FROM ARCHIVE s [RANGE 10 s]")[0] == [(6,)]
    assert ask(engine, "SELECT v FROM ARCHIVE s [ROWS 2]")[0] == [(56,), (58,)]
    assert [f.number for f in runner.jobs[-1].sources[0].read.landed] == [1, 2, 3]
    assert ask(engine, "SELECT v FROM ARCHIVE s WHERE t = TIMESTAMP '1970-01-01 00:00:12'")[0] == [
        (24,)
    ]
    # the others were not opened
    assert [f.number for f in runner.jobs[-1].sources[0].read.landed] == [2]


def test_what_has_expired_from_an_archive_is_gone(tmp_path: Path) -> None:
    engine, _ = archiving(tmp_path, f"{STREAM} ARCHIVE FOR 30 s UPDATE EVERY 10 s")
    feed(engine, *range(100))
    engine.heartbeat("s", 99 * S)
    assert ask(engine, "SELECT MIN(v), COUNT(*) FROM s [RANGE 30 s ARCHIVE]") == (
        [(140, 30)],
        99 * S,
    )
    assert ask(engine, "SELECT MIN(v) FROM ARCHIVE s")[0] == [(140,)]
    assert ask(engine, "SELECT COUNT(*) FROM s [ROWS 30 ARCHIVE]")[0] == [(30,)]
    with pytest.raises(UsageError, match=r"DS392.*began earlier"):
        ask(engine, "SELECT COUNT(*) FROM s [SINCE TIMESTAMP '1970-01-01 00:00:20' ARCHIVE]")
    young, _ = archiving(tmp_path / "young", f"{STREAM} ARCHIVE FOR 30 s UPDATE EVERY 10 s")
    feed(young, *range(20))
    assert ask(young, "SELECT COUNT(*) FROM s [SINCE TIMESTAMP '1970-01-01 00:00:05' ARCHIVE]")[
        0
    ] == [(14,)]


def test_results_of_a_query_are_read_with_their_lives(tmp_path: Path) -> None:
    engine, _ = archiving(tmp_path)
    engine.execute(
        "CREATE QUERY q AS SELECT k, v FROM s [RANGE 5 s] WHERE k = 0 ARCHIVE FOR 1 h UPDATE "
        "EVERY 10 s"
    )
    engine.execute(
        "CREATE QUERY brief AS SELECT v FROM s [RANGE 5 s] WHERE k = 0 ARCHIVE FOR 0 s UPDATE "
        "EVERY 10 s"
    )
    feed(engine, *range(40))
    engine.heartbeat("s", 39 * S)
    seam = engine.runtime.archivings["q"].seam
    threes = [(2 * t,) for t in range(0, 40, 3) if t * S <= seam]
    assert threes and ask(engine, "SELECT v FROM ARCHIVE q") == (threes, 39 * S)
    assert ask(engine, "SELECT v FROM ARCHIVE brief")[0] == [
        (v,) for (v,) in threes if v / 2 + 5 > 39
    ]
    assert ask(engine, "SELECT q.v FROM ARCHIVE q [RANGE 15 s], s [NOW] n WHERE q.k = n.k")[0] == [
        (v,) for (v,) in threes if v / 2 > 24
    ]


def test_live_streams_and_tables_stand_beside_archives(tmp_path: Path) -> None:
    engine, _ = archiving(tmp_path)
    engine.execute(
        "CREATE TABLE r (k INT PRIMARY KEY, name STRING); INSERT INTO r VALUES (0, 'zero'), (1, "
        "'one')"
    )
    engine.execute("CREATE STREAM u (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h")
    feed(engine, *range(40))
    feed(engine, *range(36), stream="u")
    both = (
        "SELECT r.name, COUNT(*) FROM ARCHIVE s a, u [RANGE 3 s] b, r WHERE a.k = b.k AND r.k "
        "= b.k GROUP BY r.name"
    )
    rows, at = ask(engine, both)
    assert at == 35 * S - 1 and rows == [("one", 10), ("zero", 10)]


def test_a_non_retroactive_table_is_asked_only_while_it_remembers(tmp_path: Path) -> None:
    engine, _ = archiving(tmp_path)
    engine.execute(
        "CREATE TABLE n (k INT PRIMARY KEY, w INT) NON RETROACTIVE; INSERT INTO n VALUES (0, 0), "
        "(1, 1)"
    )
    feed(engine, *range(40))
    query = "SELECT SUM(w) FROM ARCHIVE s a, n WHERE a.k = n.k"
    assert ask(engine, query)[0] == [(10,)]
    for w in range(600):
        engine.execute(f"UPDATE n SET w = {w} WHERE k = 1")
        feed(engine, 40 + w)
    with pytest.raises(UsageError, match="DS407: table n has forgotten"):
        ask(engine, query)


def test_an_archive_that_was_updated_meanwhile_is_read_as_it_was(tmp_path: Path) -> None:
    engine, runner = archiving(tmp_path)
    feed(engine, *range(40))
    archive = Archive(str(tmp_path / "s"))
    statement = engine.begin("SELECT COUNT(*) FROM s [RANGE 1 h ARCHIVE]")
    statement.step()
    feed(engine, *range(40, 90))
    manifest = archive.manifest()
    archive.publish(manifest.next(upto=Landing(archive).upto(), landed=Landing(archive).last()))
    while not statement.step():
        pass
    assert statement.result.data.to_pylist() == [{"COUNT(*)": 89}]
    assert runner.jobs[-1].sources[0].seam == 30 * S - 1


def overtake(archive: Archive) -> None:
    """What was before is no longer kept, as after two updates."""
    before = [Path(archive.url) / name for name in archive.names() if name.startswith("manifest")]
    archive.publish(archive.manifest().next(upto=Landing(archive).upto()))
    for file in before:
        file.unlink()


@pytest.mark.parametrize("live", ["FROM s [RANGE 1 h ARCHIVE]", "FROM ARCHIVE s"])
def test_a_query_that_updates_overtake_begins_anew(live: str, tmp_path: Path) -> None:
    engine, _ = archiving(tmp_path)
    feed(engine, *range(40))
    statement = engine.begin(f"SELECT COUNT(*) {live}")
    while not statement.ready:
        assert not statement.step()
    feed(engine, *range(40, 90))
    overtake(Archive(str(tmp_path / "s")))
    while not statement.step():
        pass
    (rows,) = engine.execute(f"SELECT COUNT(*) {live}")
    assert (statement.result.data, statement.result.as_of) == (rows.data, 89 * S - 1)
    assert not engine.runtime.archivings["s"].holds


def test_a_query_that_is_always_overtaken_says_so(tmp_path: Path) -> None:
    engine, runner = archiving(tmp_path)
    feed(engine, *range(40))
    tries = []

    def run(job: Any, cancel: Any) -> Any:
        tries.append(job)
        raise UsageError("DS954", "updated", hint="ask again")

    runner.run = run
    with pytest.raises(UsageError, match="DS954"):
        engine.execute("SELECT COUNT(*) FROM ARCHIVE s")
    assert len(tries) == 5
    assert not engine.runtime.archivings["s"].holds
    assert ask(engine, "SELECT COUNT(*) FROM s [ROWS 1]") == ([(1,)], 39 * S - 1)


@pytest.mark.parametrize("again", [False, True])
def test_an_archive_that_is_dropped_while_it_is_read(again: bool, tmp_path: Path) -> None:
    engine, _ = archiving(tmp_path)
    feed(engine, *range(40))
    statement = engine.begin("SELECT COUNT(*) FROM s [RANGE 1 h ARCHIVE]")
    while not statement.ready:
        assert not statement.step()
    if again:
        feed(engine, *range(40, 90))
        overtake(Archive(str(tmp_path / "s")))
        statement.run()
    engine.execute("DROP STREAM s")
    if again:
        with pytest.raises(DsmsError, match="DS203"):
            statement.step()
        return
    while not statement.step():
        pass
    assert statement.result.data.to_pylist() == [{"COUNT(*)": 39}]


def test_a_damaged_landing_file_is_told_never_left_out(tmp_path: Path) -> None:
    engine, _ = archiving(tmp_path)
    feed(engine, *range(40))
    (tmp_path / "s" / "landing" / "000000000002.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(UsageError, match=r"(?s)DS958.*000000000002.parquet.*dsms archive update"):
        ask(engine, "SELECT COUNT(*) FROM ARCHIVE s")


def explained(engine: dsms.Engine, sql: str) -> list[str]:
    (rows,) = engine.execute(f"EXPLAIN {sql}")
    return [r["plan"] for r in rows.data.to_pylist()]


def test_explain_shows_what_is_skipped_without_spark(tmp_path: Path) -> None:
    engine, runner = archiving(tmp_path)
    feed(engine, *range(40))
    lines = explained(
        engine,
        "SELECT COUNT(*) FROM s [RANGE 1 h ARCHIVE] WHERE k = 1 AND t >= TIMESTAMP '1970-01-01 "
        "00:00:21'",
    )
    assert "runs on Spark, once" in lines
    ask = "SELECT * FROM ARCHIVE s WITH (archive = duckdb)"
    assert "runs on DuckDB in this process, once" in explained(engine, ask)
    at = lines.index("archive s: archived up to 1970-01-01 00:00:29.999999, later rows live")
    assert lines[at + 1].startswith("  sub-indices: 0 of 0 (layout ")
    assert lines[at + 2].startswith("  files: 1 of 3, ") and "; skipped 2, " in lines[at + 2]
    assert lines[at + 3].startswith("  landing files: 1 that no update has taken over yet, ")
    assert lines[at + 4] == (
        "  pushed down: inserted after 1970-01-01 00:00:20.999999, inserted up to 1970-01-01 "
        "00:00:38.999999, not expired at 1970-01-01 00:00:38.999999, k = 1, t >= TIMESTAMP "
        "'1970-01-01 00:00:21'"
    )
    assert any("Stream and archive s" in line for line in lines) and not runner.jobs
    empty, _ = archiving(tmp_path / "empty")
    assert "archive s: nothing is archived yet" in explained(empty, "SELECT * FROM ARCHIVE s")


def test_columns_that_come_later_have_their_defaults_in_what_is_archived(tmp_path: Path) -> None:
    """Beside a stream that had them from the beginning; over kills, after which rows land anew."""
    runner, columns = Local(), ", ".join(("t TIMESTAMP", *LATER))
    whole = ARCHIVED.replace("t TIMESTAMP", columns).replace(" s (", " w (")

    def opened(name: str) -> dsms.Engine:
        return dsms.Engine(str(tmp_path / name), Settings(archive_runner=runner))

    engine = opened("0")
    engine.execute(f"{ARCHIVED}; {whole}; CREATE QUERY q AS SELECT * FROM s [RANGE 15 s]")
    for k, column in enumerate(LATER):
        for stream in "sw":
            feed(engine, *range(20 * k, 20 * k + 20), stream=stream)
        engine.execute(f"ALTER STREAM s ADD COLUMN {column}")
        if k == 2:  # later columns get the others' names, and the key its own
            engine.execute("ALTER STREAM s RENAME COLUMN v TO vv; ALTER STREAM s RENAME TO z")
            engine.execute("ALTER STREAM z RENAME COLUMN k TO kk; ALTER STREAM z RENAME TO s")
        shutil.copytree(tmp_path / str(k), tmp_path / str(k + 1))
        engine.close()
        engine = opened(str(k + 1))
    rows = [
        [1, 2, 100 * S, 8, "2.25", 3, "x", False],
        [1, 2, 101 * S, None, None, None, None, False],
    ]
    for stream in "sw":
        engine.ingest(stream, rows)
        engine.heartbeat(stream, 150 * S)
    for window in ("[RANGE 1 h ARCHIVE]", "[RANGE 70 s ARCHIVE]", "[ROWS 110 ARCHIVE]"):
        was = ask(engine, f"SELECT k, v, c, d, e, f, g FROM w {window}")[0]
        is_ = ask(engine, f"SELECT kk, vv, c, d, e, f, g FROM s {window}")[0]
        assert sorted(map(repr, is_)) == sorted(map(repr, was)) and len(was) > 20
    for where in ("c = 7", "d > 1", "f IS NULL", "e < TIMESTAMP '1970-01-01 00:00:10'", "NOT g"):
        was = ask(engine, f"SELECT k, v FROM ARCHIVE w WHERE {where} AND k <> 2")[0]
        is_ = ask(engine, f"SELECT kk, vv FROM ARCHIVE s WHERE {where} AND kk <> 2")[0]
        assert sorted(map(repr, is_)) == sorted(map(repr, was))
    assert engine.runtime.catalog.streams["s"].archive_cluster == "kk"
    for name in ("ADD COLUMN v INT", "ADD COLUMN k INT DEFAULT 3", "RENAME COLUMN c TO v"):
        with pytest.raises(DsmsError, match=r"DS574|DS439"):
            engine.execute(f"ALTER STREAM s {name}")
    engine.execute("ALTER STREAM s RENAME COLUMN vv TO v; ALTER STREAM s RENAME COLUMN v TO vv")
    with pytest.raises(DsmsError, match="DS574"):
        engine.execute("ALTER STREAM s ADD COLUMN __ts INT")
    engine.close()
