"""Synopses that periodic queries share are filled, and boundaries of many queries answered, piece
by piece: others come in between, and answers are those of one go."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from dsms.aggregates import buckets
from dsms.api import Cancel
from dsms.engine import Engine
from dsms.errors import UsageError
from dsms.settings import Settings
from dsms.sharing import feed, lowering, portions, stream_group
from dsms.synopses import interval
from tests.cancelling import told
from tests.effort import thinned
from tests.test_beginning_pieces import answers, created, engine, later, rows

QUERIES = {
    "sum": "SELECT k, SUM(v) AS x, COUNT(*) AS n FROM s [RANGE 90 ms SLIDE 10 ms] GROUP BY k",
    "median": "SELECT k, MEDIAN(v) AS x FROM s [RANGE 60 ms SLIDE 20 ms] GROUP BY k",
    "global": "SELECT MAX(v) AS m FROM s [RANGE 50 ms SLIDE 10 ms] WHERE v % 2 = 0",
    "istream": "SELECT Istream(COUNT(*) AS n) FROM s [RANGE 50 ms SLIDE 5 ms]",
    "histogram": (
        "SELECT k, HISTOGRAM(v, [40, 90, 200]) AS h FROM s [RANGE 80 ms SLIDE 20 ms] GROUP BY k"
    ),
    "counts": "SELECT HISTOGRAM(v, [40, 90, 200]) AS h FROM s [RANGE 80 ms SLIDE 20 ms]",
    "counted": "SELECT SUM(v) AS x FROM s [ROWS 30 SLIDE 10]",
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(stream_group, "PIECE", 7)
    monkeypatch.setattr(feed, "ENOUGH", 7)
    monkeypatch.setattr(feed, "CELLS", 6)
    monkeypatch.setattr(portions, "CELLS", 4)
    monkeypatch.setattr(lowering, "PIECE", 2)
    monkeypatch.setattr(interval, "PART", 3)


@pytest.mark.parametrize("name", QUERIES)
def test_synopses_hold_what_they_held_if_filled_at_once(name, tmp_path):
    whole = engine()
    whole.execute(f"CREATE QUERY q AS {QUERIES[name]}")
    for n in range(3):
        later(whole, n)
    whole.heartbeat("s", 400_000)
    expected = answers(whole)
    folder, copies = str(tmp_path / "db"), []
    cut, came = engine(folder), []
    cut.pause_with(lambda: True)

    def between(step):
        if step >= 2 and len(came) < 3:
            later(cut, len(came))
            came.append(step)
            copies.append((shutil.copytree(folder, tmp_path / f"copy{step}"), len(came)))

    assert created(cut, QUERIES[name], between) >= 5
    for n in range(len(came), 3):
        later(cut, n)
    cut.heartbeat("s", 400_000)
    while cut.catch_up():
        pass
    assert answers(cut) == expected
    cut.close()
    for copy, n in [*copies, (folder, 3)]:  # the engine has died there
        again = Engine(data=str(copy))
        for k in range(n, 3):
            later(again, k)
        again.heartbeat("s", 400_000)
        assert answers(again) == expected
        again.close()


@pytest.mark.parametrize("second", QUERIES)
def test_another_query_comes_to_a_group_that_is_being_filled(second):
    def both(between) -> list:
        db = engine()
        created(db, QUERIES["sum"], lambda n: between(db, n))
        between(db, -1)
        for n in range(3):
            later(db, n)
        db.heartbeat("s", 400_000)
        return [told(db.subscribe(q, 0)) for q in ("q", "r")]

    def after(db, n):
        if n == -1:
            db.execute(f"CREATE QUERY r AS {QUERIES[second]}")

    def during(db, n):
        if n == 3:
            db.execute(f"CREATE QUERY r AS {QUERIES[second]}")

    assert both(during) == both(after)


@thinned(2)
@pytest.mark.parametrize("name", QUERIES)
def test_cancelled_at_any_piece_it_leaves_nothing(name, tmp_path):
    steps = created(engine(), QUERIES[name])
    for stop in range(1, steps - 1, 4):
        db, cancel = engine(str(tmp_path / f"db{stop}")), Cancel()

        def between(n, stop=stop, cancel=cancel):
            if n == stop:
                cancel.set()

        with pytest.raises(UsageError, match="DS610"):
            created(db, QUERIES[name], between, cancel)
        assert not len(db.execute("SHOW QUERIES FULL")[0].data)
        db.execute("CREATE QUERY q AS SELECT COUNT(*) AS n FROM s [RANGE 50 ms SLIDE 10 ms]")
        later(db, 0)
        found = answers(db)
        db.close()
        again = Engine(data=str(tmp_path / f"db{stop}"))
        assert answers(again) == found
        again.close()


@pytest.mark.parametrize("drop", [False, True])
def test_a_boundary_of_many_queries_in_turns(drop):
    """A turn ends after each piece."""

    def run(pause) -> dict:
        db = Engine(settings=Settings(pause=pause))
        db.execute("CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t")
        for i in range(12):
            kind = (f"SUM(v) AS x, {i // 3} AS i", "COUNT(*) AS x", "MEDIAN(v) AS x")[i % 3]
            db.execute(
                f"CREATE QUERY q{i} AS SELECT k, {kind} FROM s "
                f"[RANGE {10 * (1 + i % 4)} ms SLIDE {10 * (1 + i // 8)} ms] GROUP BY k"
            )
        for n in range(8):
            db.ingest("s", rows(15 * n, 15))
            if n == 4 and drop:
                db.execute("DROP QUERY q3")
        while db.catch_up():
            pass
        return {q.name: told(db.subscribe(q.name, 0)) for q in db.runtime.queries.values()}

    assert run(lambda: True) == run(None)


@pytest.mark.parametrize("window", ["RANGE 80 ms SLIDE 10 ms", "RANGE 20 ms SLIDE 20 ms"])
def test_of_broad_cells_fewer_are_answered_at_once(window, monkeypatch):
    """As many counters as there are cells of other aggregates: a cell has one for each range."""
    monkeypatch.setattr(lowering, "PIECE", 60)
    edges, seen = list(range(0, 400, 10)), []
    lower = buckets.BucketCells.lower

    def counted(self, state):
        seen.append(state.counts.size)
        return lower(self, state)

    monkeypatch.setattr(buckets.BucketCells, "lower", counted)
    db = Engine()
    db.execute("CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t")
    db.execute(
        f"CREATE QUERY q AS SELECT k, HISTOGRAM(v, {edges}) AS h FROM s [{window}] GROUP BY k"
    )
    db.ingest("s", {**rows(0, 100), "k": np.arange(100) % 9})
    db.heartbeat("s", 90_000)
    assert len(told(db.subscribe("q", 0))) > 1
    assert seen and max(seen) <= 60 and seen.count(41) > 9
