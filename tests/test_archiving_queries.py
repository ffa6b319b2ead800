"""Queries and their archives: what has landed is what they have reported, with its lifetimes."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dsms
from dsms.archiving.lives import Lives
from dsms.errors import DsmsError
from dsms.settings import Settings
from dsms.sql.types import FOREVER
from tests.archives import STREAM, Later, S, check_once, feed, fresh, full_disk, killed, landed
from tests.effort import sampled, thinned

BORN = (  # whose rows' deaths are known when they are born
    "SELECT k, v FROM s [RANGE 4]",
    "SELECT k, v FROM s WHERE v > 2",
    "SELECT a.v AS x, b.v AS y FROM s [RANGE 3] a, r [RANGE 5] b WHERE a.k = b.k",
    "SELECT DISTINCT k FROM s [RANGE 4]",
    "SELECT k FROM s [RANGE 2] UNION ALL SELECT k FROM r [RANGE 6]",
    "SELECT Istream(k, v) FROM s [RANGE 4]",
    "SELECT s.v AS x, fixed.w AS y FROM s [RANGE 4], fixed WHERE s.k = fixed.k",
)
LEFT = (  # whose rows land when they have left
    "SELECT k, COUNT(*) AS n, SUM(v) AS x FROM s [RANGE 4] GROUP BY k",
    "SELECT COUNT(*) AS n FROM s [RANGE 4]",
    "SELECT v FROM s [ROWS 5]",
    "SELECT k FROM s [RANGE 5] EXCEPT SELECT k FROM r [RANGE 5]",
    "SELECT a.v AS x, b.v AS y FROM s [RANGE 3] a LEFT JOIN r [RANGE 3] b ON a.k = b.k",
    "SELECT Istream(k, COUNT(*) AS n) FROM s [RANGE 4] GROUP BY k",
    "SELECT Istream(k) FROM s [RANGE 5] EXCEPT SELECT k FROM r [RANGE 5]",
    "SELECT k, MAX(v) AS m FROM s [ROWS 6] GROUP BY k HAVING MAX(v) > 2",
    "SELECT s.v AS x, plain.w AS y FROM s [RANGE 4], plain WHERE s.k = plain.k",
)
KEEP = 3600 * S


def changes(rows: list[tuple[int, int, tuple]], upto: int) -> dict[tuple, int]:
    """(instant, row) -> how many more there are from then on, of (born, dead, row)."""
    found: Counter = Counter()
    for born, dead, row in rows:
        for at, n in ((max(born, 0), 1), (dead, -1)):
            found[at, row] += n if at <= upto else 0
    return {k: n for k, n in found.items() if n}


def reported(pushes: list[Any]) -> dict[tuple, int]:
    """The same, of what was reported."""
    found: Counter = Counter()
    for push in pushes:
        if push.data is None:
            continue
        ats = [push.at or 0] * push.data.num_rows if push.ats is None else push.ats.to_pylist()
        for at, row in zip(ats, push.data.to_pylist(), strict=True):
            found[max(at, 0), tuple(row.values())] += 1 if push.kind == "insert" else -1
    return {k: n for k, n in found.items() if n}


def random_world(
    folder: Path, query: str, seed: int, options: str = "", kept: bool = False, **settings: Any
) -> tuple[dsms.Engine, Any]:
    """An engine in which the query has run over random rows, and a reader of its answer from the
    start.

    kept  the streams keep their rows, and the query comes when a quarter of them is there"""
    pick = random.Random(seed)
    engine = dsms.Engine(settings=Settings(archive=str(folder), **settings))
    for name in ("s", "r"):
        engine.execute(
            f"CREATE STREAM {name} (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t{' RETAIN 1 h' * kept}"
        )
    engine.execute(
        "CREATE TABLE plain (k INT PRIMARY KEY, w INT); INSERT INTO plain VALUES (0, 1), (1, 2) "
        "AT '1970-01-01'"
    )
    engine.execute("CREATE TABLE fixed (k INT PRIMARY KEY, w INT) NON RETROACTIVE")
    engine.execute("INSERT INTO fixed VALUES (0, 1), (2, 3) AT '1970-01-01'")
    now = {"s": 1.0, "r": 1.0}
    for turn in range(80):
        if turn == 20 * kept:
            reader = _created(engine, query, options)
        name = pick.choice(["s", "s", "r"])
        steps = [pick.choice([0, 0, 0.5, 1]) for _ in range(pick.randint(1, 6))]
        stamps = [now[name] + step for step in accumulate(steps)]
        now[name] = stamps[-1]
        rows = {
            "k": [pick.randint(0, 3) for _ in stamps],
            "v": [pick.randint(0, 5) for _ in stamps],
        }
        engine.ingest(name, rows | {"t": [int(t * S) for t in stamps]})
        if pick.random() < 0.1:
            engine.execute(f"UPDATE plain SET w = w + 1 WHERE k = {pick.randint(0, 1)}")
        if pick.random() < 0.1:
            now = dict.fromkeys(now, max(now.values()) + 3)
            for name in now:
                engine.heartbeat(name, int(now[name] * S))
    return engine, reader


def _created(engine: dsms.Engine, query: str, options: str) -> Any:
    engine.execute(f"CREATE QUERY q AS {query} ARCHIVE FOR 1 h UPDATE EVERY 10 s {options}")
    told = query if "SLIDE" in query else query.replace("Istream(", "Rstream(")
    engine.execute(f"CREATE QUERY twin AS {told} {options}")
    return engine.subscribe("twin", 0)


STRATEGIES = [
    (q, s) for q in (*BORN[:4], BORN[5], LEFT[0], LEFT[3], LEFT[5]) for s in ("nt", "direct")
]
WAYS = [(q, "", 1 + k % 2) for k, q in enumerate(BORN + LEFT)]
WAYS += [(q, f"WITH (strategy = {s})", 3) for q, s in STRATEGIES]


@thinned(2)
@pytest.mark.parametrize(("query", "options", "seed"), WAYS)
def test_what_a_query_has_reported_is_archived_with_its_lifetimes(
    tmp_path: Path, query: str, options: str, seed: int
) -> None:
    engine, reader = random_world(tmp_path, query, seed, options)
    clock = min(engine.runtime.queries[q].clock for q in ("q", "twin"))
    told = {k: n for k, n in reported(reader.take()).items() if k[0] <= clock}
    assert (clock // S) > 20 and len(told) > 15
    before = len(landed(tmp_path, "q"))
    assert before > 10
    (done,) = engine.execute("DROP QUERY q")
    assert f"its archive stays in {tmp_path}/q" in done.message
    rows = landed(tmp_path, "q")
    lives = []
    for row in rows:
        born, dies = row.pop("__ts"), row.pop("__exp")
        row.pop("__id")
        lives.append((born, FOREVER if query == BORN[1] else dies - KEEP, tuple(row.values())))
        assert dies > born
    assert changes(lives, clock) == told


@thinned(2)
@pytest.mark.parametrize(
    ("query", "options", "seed"), [w for w in WAYS if w[0] not in (BORN[1], BORN[5])]
)
def test_what_a_query_begins_with_is_born_then(
    tmp_path: Path, query: str, options: str, seed: int
) -> None:
    """Nothing is archived of how its first answer came about."""
    engine, reader = random_world(tmp_path, query, seed, options, kept=True)
    clock = min(engine.runtime.queries[q].clock for q in ("q", "twin"))
    told = {k: n for k, n in reported(reader.take()).items() if k[0] <= clock}
    begun = min(at for at, _ in told)
    assert begun > 5 * S and sum(n for (at, _), n in told.items() if at == begun) > 0
    engine.execute("DROP QUERY q")
    lives = [
        (r.pop("__ts"), r.pop("__exp") - KEEP, r.pop("__id"), r) for r in landed(tmp_path, "q")
    ]
    assert (
        changes([(born, dead, tuple(row.values())) for born, dead, _, row in lives], clock) == told
    )


@pytest.mark.parametrize("writer", [None, "later"])
def test_answers_at_boundaries_are_archived(tmp_path: Path, writer: str | None) -> None:
    slow = None if writer is None else Later()
    sql = "SELECT k, COUNT(*) AS n FROM s [RANGE 6 SLIDE 2] GROUP BY k"
    engine, reader = random_world(tmp_path, sql, 3, archive_writer=slow)
    told = Counter(
        (p.at, tuple(r.values()))
        for p in reader.take()
        if p.kind == "result"
        for r in p.data.to_pylist()
    )
    if slow is not None:
        assert landed(tmp_path, "q") == []
        archiving = engine.runtime.archivings["q"]
        while archiving.flying is not None or archiving.edge > archiving.seam + 10 * S:
            slow.work()
            engine.runtime._tidy()
    engine.execute("DROP QUERY q") if slow is None else None
    rows = landed(tmp_path, "q")
    seam = engine.runtime.archivings["q"].seam if slow else FOREVER
    assert Counter((r["__ts"], (r["k"], r["n"])) for r in rows) == {
        k: n for k, n in told.items() if k[0] <= seam
    }
    assert all(r["__exp"] == r["__ts"] + KEEP for r in rows)
    assert [r["__id"] for r in rows] == list(range(len(rows)))


PERIODIC = (
    ("SELECT k, COUNT(*) AS n FROM s [RANGE 6 SLIDE 2] GROUP BY k", "WITH (path = 'is')"),
    ("SELECT k, COUNT(*) AS n FROM s [RANGE 6 SLIDE 2] GROUP BY k", "WITH (path = 'ss')"),
    ("SELECT MEDIAN(v) AS n FROM s [RANGE 7 SLIDE 3]", "WITH (path = 'ws')"),
    ("SELECT Istream(k, v) FROM s [RANGE 6 SLIDE 2]", ""),
    ("SELECT SUM(v) AS n FROM s [ROWS 6 SLIDE 2]", ""),
    (
        "SELECT a.k, COUNT(*) AS n FROM s [RANGE 4 SLIDE 2] a, r [RANGE 4 SLIDE 2] b WHERE a.k = "
        "b.k GROUP BY a.k",
        "",
    ),
    ("SELECT k, v FROM s [RANGE 6 SLIDE 2] ORDER BY v, k LIMIT 3", ""),
    ("SELECT COUNT(*) AS n FROM s [RANGE 6 SLIDE 1]", "WITH (boundaries = elastic)"),
)


@thinned(2)
@pytest.mark.parametrize(("query", "options"), PERIODIC)
@pytest.mark.parametrize("later", [False, True])
def test_answers_of_every_access_path_are_archived(
    tmp_path: Path, query: str, options: str, later: bool
) -> None:
    writer = ThreadPoolExecutor(1) if later else None
    engine, reader = random_world(
        tmp_path, query, 5, options, archive_writer=writer, archive_waiting_bytes=5000
    )
    told = [
        (p.at, *r.values()) for p in reader.take() if p.kind == "result" for r in p.data.to_pylist()
    ]
    engine.execute("DROP QUERY q")
    rows = [
        (r.pop("__ts"), r.pop("__exp"), r.pop("__id"), *r.values()) for r in landed(tmp_path, "q")
    ]
    assert [(r[0], *r[3:]) for r in rows] == told and len(told) > 5
    assert all(r[1] == r[0] + KEEP for r in rows) and [r[2] for r in rows] == list(range(len(rows)))
    if writer is not None:
        writer.shutdown()


def test_dstream_rows_count_from_when_they_left(tmp_path: Path) -> None:
    engine, reader = random_world(tmp_path, "SELECT Dstream(k, v) FROM s [RANGE 4]", 4)
    told = reported(reader.take())
    engine.execute("DROP QUERY q")
    rows = landed(tmp_path, "q")
    assert Counter((r["__ts"], (r["k"], r["v"])) for r in rows) == told
    assert all(r["__exp"] == r["__ts"] + KEEP for r in rows)


def test_results_that_pile_up_hold_up_the_streams_they_come_from(tmp_path: Path) -> None:
    engine = dsms.Engine(settings=Settings(archive=str(tmp_path), archive_waiting_bytes=20_000))
    engine.execute("CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t")
    engine.execute("CREATE QUERY q AS SELECT v FROM s [RANGE 5] ARCHIVE UPDATE EVERY 10 s")
    with full_disk(), pytest.raises(DsmsError, match="of query q wait to be archived"):
        for second in range(1, 2000):
            feed(engine, range(second, second + 1))
    feed(engine, range(3000, 3001))
    assert engine.runtime.archivings["q"].error is None
    assert {r["__exp"] for r in landed(tmp_path, "q")} == {FOREVER}


@thinned(2)
@pytest.mark.parametrize("seed", sampled(range(4), 2))
def test_an_engine_that_comes_back_archives_nothing_twice(tmp_path: Path, seed: int) -> None:
    """Killed (never closed) and opened again, many times, from journal and checkpoints."""
    pick = random.Random(seed)
    data, folder = tmp_path / "data", tmp_path / "archive"

    def opened(writer: Later | None = None) -> dsms.Engine:
        every = pick.choice([1, 3000, 1 << 30])
        return dsms.Engine(
            str(data), Settings(archive=str(folder), checkpoint_bytes=every, archive_writer=writer)
        )

    engine = opened()
    engine.execute(STREAM.replace("ARCHIVE", f"{pick.choice(['', 'RETAIN 15 s '])}ARCHIVE"))
    for name, sql in (
        ("born", BORN[0]),
        ("gone", LEFT[0]),
        ("told", "SELECT SUM(v) AS x FROM s [RANGE 6 SLIDE 2]"),
    ):
        engine.execute(f"CREATE QUERY {name} AS {sql} ARCHIVE FOR 1 h UPDATE EVERY 7 s")
    second = 1
    for life in range(12):
        for _ in range(pick.randint(1, 12)):
            step = pick.randint(1, 4)
            feed(engine, range(second, second + step))
            second += step
            if (
                writer := engine.runtime.settings.archive_writer
            ) is not None and pick.random() < 0.4:
                writer.work()  # at the end perhaps, so that the engine never comes to know
        if pick.random() < 0.3:
            engine.saver.checkpoint()  # type: ignore[union-attr]
        killed(engine)
        engine = opened(Later() if life < 11 and pick.random() < 0.7 else None)
        check_once(engine, folder, engine.runtime.inputs["s"].next_complete)
    engine.execute("DROP QUERY born; DROP QUERY gone; DROP QUERY told; DROP STREAM s")
    assert [r["__id"] for r in landed(folder)] == list(range(second - 1))
    twin = dsms.Engine(settings=Settings(archive=str(tmp_path / "twin")))
    twin.execute(STREAM)
    for name, sql in (
        ("born", BORN[0]),
        ("gone", LEFT[0]),
        ("told", "SELECT SUM(v) AS x FROM s [RANGE 6 SLIDE 2]"),
    ):
        twin.execute(f"CREATE QUERY {name} AS {sql} ARCHIVE FOR 1 h UPDATE EVERY 7 s")
    for at in range(1, second):
        feed(twin, range(at, at + 1))
    twin.execute("DROP QUERY born; DROP QUERY gone; DROP QUERY told")
    for name in ("born", "gone", "told"):
        assert landed(folder, name) == landed(tmp_path / "twin", name)


@pytest.mark.parametrize("writes", [True, False])
@pytest.mark.parametrize("more", [0, 1])
def test_what_waited_at_a_checkpoint_is_archived_by_a_drop(
    tmp_path: Path, more: int, writes: bool
) -> None:
    """A checkpoint leaves to the ring what it holds anyway; no row has come since to hand it on
    again."""
    data, settings = str(tmp_path / "data"), Settings(archive=str(tmp_path / "archive"))
    engine = dsms.Engine(data, settings if writes else replace(settings, archive_writer=Later()))
    engine.execute(STREAM)
    engine.execute(f"CREATE QUERY q AS {LEFT[0]} ARCHIVE FOR 1 h UPDATE EVERY 10 s")
    feed(engine, range(1, 19))
    assert engine.saver is not None and engine.saver.checkpoint()
    for second in range(19, 19 + more):
        feed(engine, range(second, second + 1))
    killed(engine)
    engine = dsms.Engine(data, settings)
    engine.execute("DROP QUERY q; DROP STREAM s")
    assert [r["__id"] for r in landed(tmp_path / "archive")] == list(range(18 + more))
    twin = fresh(tmp_path / "twin")
    twin.execute(f"CREATE QUERY q AS {LEFT[0]} ARCHIVE FOR 1 h UPDATE EVERY 10 s")
    feed(twin, range(1, 19 + more))
    twin.execute("DROP QUERY q")
    assert landed(tmp_path / "archive", "q") == landed(tmp_path / "twin", "q")


# ---------------------------------------------------------------- births and deaths by value


@pytest.mark.parametrize("seed", range(3))
def test_the_oldest_of_equal_rows_leaves_first(seed: int) -> None:
    pick, lives = random.Random(seed), Lives(2)
    model: dict[tuple, list[int]] = defaultdict(list)
    at = 0
    for _ in range(30):
        rows, sign, ats, want = [], [], [], []
        for _ in range(pick.randint(0, 200)):
            at += pick.randint(0, 2)
            alive = [row for row, births in model.items() if births]
            if alive and pick.random() < 0.5:
                row = pick.choice(alive)
                want.append((row, model[row].pop(0)))
                sign.append(-1)
            else:
                row = (
                    pick.choice([None, *range(pick.choice([3, 3000]))]),
                    pick.choice(["a", None, "ü"]),
                )
                model[row].append(at)
                sign.append(1)
            rows.append(row)
            ats.append(at)
        cols = [
            pa.array([r[0] for r in rows], pa.int64()),
            pa.array([r[1] for r in rows], pa.string()),
        ]
        ended, born = lives.step(cols, np.array(sign, np.int8), np.array(ats, np.int64))
        assert [(rows[i], b) for i, b in zip(ended.tolist(), born.tolist(), strict=True)] == want
        assert lives.live == sum(map(len, model.values()))


# ---------------------------------------------------------------- declarations


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT k, v AS k FROM s [RANGE 4] ARCHIVE", "DS574"),
        ("SELECT k, v AS __ts FROM s [RANGE 4] ARCHIVE", "DS574"),
        ("SELECT COUNT(*) AS n FROM s [RANGE 4] ON LOOKUP ARCHIVE", "DS329"),
        ("SELECT k FROM s [RANGE 4] ARCHIVE CLUSTER BY v", "DS201"),
    ],
)
def test_what_can_not_be_archived_is_refused(tmp_path: Path, sql: str, code: str) -> None:
    engine = fresh(tmp_path)
    with pytest.raises(DsmsError) as caught:
        engine.execute(f"CREATE QUERY q AS {sql}")
    assert caught.value.code == code
    assert engine.runtime.queries == {} and list(engine.runtime.archivings) == ["s"]


def test_the_folder_of_another_kind_is_refused(tmp_path: Path) -> None:
    fresh(tmp_path).close()
    engine = dsms.Engine(settings=Settings(archive=str(tmp_path)))
    engine.execute("CREATE STREAM x (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t")
    with pytest.raises(DsmsError, match="is the archive of a stream, and s is a query") as caught:
        engine.execute("CREATE QUERY s AS SELECT k FROM x [RANGE 4] ARCHIVE")
    assert caught.value.code == "DS575"


def test_for_zero_is_exactly_the_lifetime(tmp_path: Path) -> None:
    engine = dsms.Engine(settings=Settings(archive=str(tmp_path)))
    engine.execute("CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t")
    engine.execute("CREATE QUERY q AS SELECT k FROM s [RANGE 4] ARCHIVE FOR 0 s UPDATE EVERY 5 s")
    feed(engine, range(1, 20))
    rows = landed(tmp_path, "q")
    assert len(rows) == 14 and all(r["__exp"] == r["__ts"] + 4 * S for r in rows)
