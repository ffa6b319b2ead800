"""Streams and their archives: at every moment what has landed and what is live are all rows, each
once."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import dsms
from dsms.archiving import archiving as core
from dsms.errors import DsmsError
from dsms.storage.archive.landing import Landing
from dsms.storage.archive.manifest import Archive
from tests.archives import (
    STREAM,
    Later,
    S,
    check_once,
    feed,
    files,
    fresh,
    full_disk,
    landed,
    live,
    shown,
)
from tests.effort import sampled

# ---------------------------------------------------------------- streams


def test_rows_go_as_their_sub_windows_end_and_files_as_steps_do(tmp_path: Path) -> None:
    engine = fresh(tmp_path)
    feed(engine, range(1, 9))
    assert landed(tmp_path) == [] and len(live(engine)) == 7
    feed(engine, range(9, 35))
    assert [r["v"] for r in landed(tmp_path)] == [1] * 29 and engine.runtime.archivings[
        "s"
    ].seam == 30 * S - 1
    check_once(engine, tmp_path, 33)
    engine.heartbeat("s", 99 * S)
    assert (
        len(landed(tmp_path)) == 34 and live(engine) == [] and engine.runtime.rings["s"].count == 0
    )
    assert engine.runtime.archivings["s"].seam >= 90 * S - 1


def test_rows_that_a_window_or_retain_needs_are_live(tmp_path: Path) -> None:
    engine = fresh(tmp_path)
    engine.execute(
        "CREATE QUERY q AS SELECT COUNT(*) FROM s [RANGE 30 SLIDE 10] WITH (path = 'ws')"
    )
    feed(engine, range(1, 60))
    first = min(
        b.ts[0] for b in engine.runtime.rings["s"].rows(engine.runtime.archivings["s"].seam)
    )
    assert first <= 29 * S and 9 <= len(landed(tmp_path)) <= 19
    check_once(engine, tmp_path, 58)
    engine.execute("DROP QUERY q")
    feed(engine, range(60, 62))
    assert len(landed(tmp_path)) == 59
    check_once(engine, tmp_path, 60)


def test_when_a_stream_has_ended_all_that_nobody_needs_lands(tmp_path: Path) -> None:
    engine = fresh(tmp_path)
    feed(engine, range(1, 34))
    engine.end("s")
    assert (
        len(landed(tmp_path)) == 33
        and live(engine) == []
        and engine.runtime.archivings["s"].seam == 33 * S
    )
    kept = fresh(tmp_path / "kept", STREAM.replace("ARCHIVE", "RETAIN 10 s ARCHIVE"))
    feed(kept, range(1, 34))
    kept.end("s")
    assert live(kept) == list(range(23, 33))
    check_once(kept, tmp_path / "kept", 33)


def test_late_rows_of_one_stream_in_the_archive_of_another(tmp_path: Path) -> None:
    engine = fresh(tmp_path, STREAM.replace("STREAM s", "STREAM late"))
    engine.execute("CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t LATE INTO late")
    for second in range(1, 60):
        # the second row of each makes the first of the next one late
        feed(engine, range(second, second + 2))
        feed(engine, range(max(1, second - 5), second))
    count = engine.runtime.inputs["late"].counts.accepted
    engine.execute("DROP STREAM s; DROP STREAM late")
    assert len(landed(tmp_path, "late")) == count > 50


def test_many_rows_of_one_step_land_before_it_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core, "ROWS", 100)
    monkeypatch.setattr(core, "LARGEST", 150)
    engine = fresh(tmp_path, STREAM.replace("10 s", "1 h"))
    for second in range(1, 60):
        engine.ingest("s", {"k": [1] * 40, "v": list(range(40)), "t": [second * S] * 40})
    sizes = [pq.ParquetFile(p).metadata.num_rows for p in files(tmp_path)]
    assert len(sizes) > 10 and min(sizes) >= 100 and max(sizes) < 300
    assert sorted([r["__id"] for r in landed(tmp_path)] + live(engine)) == list(range(58 * 40))


WINDOWS = (
    "SELECT COUNT(*) FROM s [RANGE 7 SLIDE 2] WITH (path = 'ws')",
    "SELECT k, SUM(v) FROM s [RANGE 20 SLIDE 5] GROUP BY k WITH (path = 'is')",
    "SELECT MEDIAN(v) FROM s [RANGE 15 SLIDE 3]",
    "SELECT v FROM s [RANGE 9]",
    "SELECT SUM(v) FROM s [ROWS 12 SLIDE 4]",
    "SELECT COUNT(*) FROM s [ROWS 9] WITH (path = 'auto')",
)


@pytest.mark.parametrize("seed", sampled(range(12), 3))
def test_at_every_moment_each_row_is_on_one_side(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pick = random.Random(seed)
    monkeypatch.setattr(core, "ROWS", pick.choice([5, 30, 1 << 17]))
    monkeypatch.setattr(core, "PIECES", pick.choice([3, 512]))
    clauses = pick.choice(
        ["", "RETAIN 12 s ", "SUBWINDOW 2 s ", "SLACK 3 s RETAIN 5 s ", "SUBWINDOW 7 s SLACK 1 s "]
    )
    writer = Later() if seed % 3 == 2 else None
    engine = fresh(tmp_path, STREAM.replace("ARCHIVE", f"{clauses}ARCHIVE"), archive_writer=writer)
    now, names, holds = 1.0, [f"q{k}" for k in range(3)], list[Any]()
    for _ in range(120):
        match pick.choices(
            ("rows", "beat", "query", "drop", "read", "write"), (12, 2, 1.5, 1, 2, 4)
        )[0]:
            case "rows":
                stamps = [
                    now := now + pick.choice([0, 0, 0.3, 1.5]) for _ in range(pick.randint(1, 12))
                ]
                now = stamps[-1]
                engine.ingest(
                    "s",
                    {
                        "k": [1] * len(stamps),
                        "v": [7] * len(stamps),
                        "t": [int(t * S) for t in stamps],
                    },
                )
            case "beat":
                now += pick.choice([1, 5, 40])
                engine.heartbeat("s", int(now * S))
            case "query" if free := [n for n in names if n not in engine.runtime.queries]:
                engine.execute(f"CREATE QUERY {free[0]} AS {pick.choice(WINDOWS)}")
            case "drop" if engine.runtime.queries:
                engine.execute(f"DROP QUERY {pick.choice(sorted(engine.runtime.queries))}")
            case "read":
                holds.append((engine.runtime.archivings["s"].hold(), live(engine)))
                if len(holds) > 3:
                    holds.pop(0)[0].release()
            case "write" if writer is not None:
                writer.work()
        entry = engine.runtime.inputs["s"]
        waiting = sum(len(b) for b in entry._held)
        check_once(engine, tmp_path, entry.next_arrival - waiting)
        for hold, before in holds:
            there = {int(i) for b in engine.runtime.rings["s"].rows(hold.seam) for i in b.ids[0]}
            assert there >= set(before)
    assert len(landed(tmp_path)) > 20 or writer is not None
    if writer is not None:
        writer.work()


# ---------------------------------------------------------------- what goes wrong


def test_what_can_not_be_written_stays_and_is_written_later(tmp_path: Path) -> None:
    engine = fresh(tmp_path)
    feed(engine, range(1, 15))
    with full_disk():
        for second in range(15, 200):
            feed(engine, range(second, second + 1))
            check_once(engine, tmp_path, second - 1)
        line = shown(engine)
        assert "No space left" in line["last_error"] and line["waiting"] > 150
        assert engine.stats()["archives"]["s"]["failures"] > 2
    feed(engine, range(200, 300))
    for second in range(300, 400):
        feed(engine, range(second, second + 1))
    assert shown(engine)["last_error"] is None
    check_once(engine, tmp_path, 398)
    assert len(landed(tmp_path)) == 389


def test_past_the_limit_rows_are_refused_until_it_can_be_written(tmp_path: Path) -> None:
    engine = fresh(tmp_path, archive_waiting_bytes=20_000)
    engine.execute("CREATE STREAM other (v INT, t TIMESTAMP) TIMESTAMP BY t")
    with full_disk():
        second = 1
        with pytest.raises(DsmsError, match=r"wait to be archived.*No space left") as caught:
            while second < 10_000:
                feed(engine, range(second, second + 1))
                second += 1
        assert caught.value.code == "DS570" and second < 1000
        engine.ingest("other", {"v": [1], "t": [5 * S]})
        engine.heartbeat("s", (second + 20) * S)
        check_once(engine, tmp_path, second - 1)
    feed(engine, range(second + 21, second + 60))
    check_once(engine, tmp_path, second + 38 - 1)
    assert shown(engine)["last_error"] is None and len(landed(tmp_path)) >= second - 1


def test_a_drop_that_would_lose_rows_is_refused(tmp_path: Path) -> None:
    engine = fresh(tmp_path, STREAM.replace("ARCHIVE", "RETAIN 1 min ARCHIVE"))
    feed(engine, range(1, 100))
    with full_disk():
        with pytest.raises(DsmsError, match="rows of stream s can't be archived") as caught:
            engine.execute("DROP STREAM s")
        assert caught.value.code == "DS573"
    (done,) = engine.execute("DROP STREAM s")
    assert (
        "its archive stays in" in done.message
        and "complete up to 1970-01-01T00:01:39" in done.message
    )
    assert [r["__id"] for r in landed(tmp_path)] == list(range(99))
    assert engine.runtime.archivings == {}


def test_the_search_key_is_described(tmp_path: Path) -> None:
    engine = fresh(tmp_path, STREAM.replace("UPDATE", "CLUSTER BY k UPDATE"))
    notes = {r["column"]: r["note"] for r in engine.execute("DESCRIBE s")[0].data.to_pylist()}
    assert notes == {"k": "the archive is clustered by it", "v": None, "t": "event time"}
    assert Archive(str(tmp_path / "s")).manifest().key == "k"


def test_a_writer_that_has_stopped_loses_nothing(tmp_path: Path) -> None:
    writer = ThreadPoolExecutor(1)
    engine = fresh(tmp_path, archive_writer=writer)
    feed(engine, range(1, 25))
    engine.runtime.archivings["s"].flush()
    writer.shutdown()
    feed(engine, range(25, 45))
    assert "shutdown" in shown(engine)["last_error"]
    check_once(engine, tmp_path, 43)


def test_there_must_be_a_place(tmp_path: Path) -> None:
    engine = dsms.Engine()
    with pytest.raises(DsmsError, match="neither a data folder nor") as caught:
        engine.execute(STREAM)
    assert caught.value.code == "DS572" and engine.runtime.catalog.streams == {}


def test_time_that_was_set_back_stamps_nothing_twice(tmp_path: Path) -> None:
    sql = "CREATE STREAM s (v INT) ARCHIVE UPDATE EVERY 10 s"
    engine = fresh(tmp_path, sql)
    for second in range(100, 150):
        engine.advance(second * S)
        engine.ingest("s", {"v": [second]})
    engine.close()
    count = len(landed(tmp_path))
    again = fresh(tmp_path, sql)
    again.advance(50 * S)
    with pytest.raises(DsmsError, match="the clock was set back") as caught:
        again.ingest("s", {"v": [1]})
    assert caught.value.code == "DS571" and count > 40
    again.advance(200 * S)
    again.ingest("s", {"v": [1]})
    again.advance(300 * S)
    assert [r["v"] for r in landed(tmp_path)][count:] == [1]


# ---------------------------------------------------------------- another life


def test_an_archive_that_is_there_is_taken_over(tmp_path: Path) -> None:
    engine = fresh(tmp_path)
    feed(engine, range(1, 50))
    engine.execute("DROP STREAM s")
    again = fresh(tmp_path, "SET query_scheduler = none")
    (done,) = again.execute(STREAM.replace("10 s", "30 s"))
    assert (
        "which was there, complete up to" in done.message
        and "updated every 10 s, as it was made" in done.message
    )
    report = again.ingest("s", {"k": [1, 1], "v": [1, 2], "t": [20 * S, 90 * S]})
    assert (report.accepted, report.late) == (1, 1)
    again.heartbeat("s", 200 * S)
    assert [r["v"] for r in landed(tmp_path)] == [1] * 49 + [2]


def test_a_file_that_was_not_noted_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash between the file and the note that it is there."""
    engine = fresh(tmp_path)
    feed(engine, range(1, 25))
    noted = (tmp_path / "s/landing/upto.json").read_bytes()
    feed(engine, range(25, 45))
    (tmp_path / "s/landing/upto.json").write_bytes(noted)
    (tmp_path / "s/landing/.000000000009.parquet.part").write_bytes(b"half")
    again = fresh(tmp_path)
    assert again.runtime.archivings["s"].seam == 20 * S - 1
    again.ingest("s", {"k": [0] * 30, "v": [7] * 30, "t": [t * S for t in range(20, 50)]})
    again.execute("DROP STREAM s")
    assert [r["v"] for r in landed(tmp_path)] == [1] * 19 + [7] * 30
    assert len(Landing(Archive(str(tmp_path / "s"))).files()) == len(files(tmp_path))
    assert not list((tmp_path / "s/landing").glob(".*"))


def test_columns_may_be_added_and_types_may_not_change(tmp_path: Path) -> None:
    fresh(tmp_path).close()
    with pytest.raises(DsmsError, match=r"column v of the archive .* is INT, not STRING") as caught:
        fresh(tmp_path, STREAM.replace("v INT", "v STRING"))
    assert caught.value.code == "DS956"
    engine = fresh(tmp_path, STREAM.replace("v INT", "more FLOAT, w STRING"))
    engine.ingest("s", {"k": [1], "more": [0.5], "w": ["x"], "t": [S]})
    engine.close()
    engine.execute("DROP STREAM s")
    (row,) = landed(tmp_path)
    assert (row["k"], row["more"], row["w"], row["v"]) == (1, 0.5, "x", None)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        (STREAM.replace("v INT", "__exp INT"), "DS574"),
        (STREAM.replace("v INT", "__ID INT"), "DS574"),
    ],
)
def test_names_that_the_archive_needs_are_refused(tmp_path: Path, sql: str, code: str) -> None:
    with pytest.raises(DsmsError, match="needs columns of different names") as caught:
        fresh(tmp_path, sql)
    assert caught.value.code == code


def test_an_archive_that_has_gone_is_named_and_rows_stay(tmp_path: Path) -> None:
    engine = dsms.Engine(str(tmp_path))
    engine.execute(STREAM)
    feed(engine, range(1, 35))
    assert files(tmp_path / "archive") != []
    engine.close()
    (tmp_path / "archive").rename(tmp_path / "elsewhere")
    again = dsms.Engine(str(tmp_path))
    feed(again, range(35, 60))
    assert (
        "there is no archive at" in shown(again)["last_error"]
        and shown(again)["index_rows"] is None
    )
    assert len(live(again)) >= 25
    (tmp_path / "elsewhere").rename(tmp_path / "archive")
    for second in range(60, 80):
        feed(again, range(second, second + 1))
    assert shown(again)["last_error"] is None
    check_once(again, tmp_path / "archive", 78)


def test_an_update_is_asked_for_when_a_step_is_over(tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []
    engine = fresh(tmp_path, archive_due=lambda name, url: asked.append((name, url)))
    feed(engine, range(1, 9))
    assert asked == []
    for second in range(9, 35):
        feed(engine, range(second, second + 1))
    assert asked == [("s", f"{tmp_path}/s")] * 3
    engine.close()
    del asked[:]
    fresh(tmp_path, archive_due=lambda name, url: asked.append((name, url)))
    assert asked == [("s", f"{tmp_path}/s")]  # nobody has updated it meanwhile
