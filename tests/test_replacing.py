"""CREATE OR REPLACE QUERY: readers keep up, whatever comes in between; on any error the old query
is as it was."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.api import Cancel, Done
from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.running import inheriting, net_change, pipeline
from tests.cancelling import told
from tests.changing_world import QUERIES, Reading, World, canons_of, come, engine
from tests.effort import examples

S = 1_000_000
rows = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), min_size=1, max_size=4)
coming = st.tuples(st.just("come"), st.sampled_from("su"), rows, st.integers(0, 3))
queries = st.integers(0, len(QUERIES) - 1)
steps = st.one_of(
    coming,
    coming,
    st.tuples(st.just("replace"), queries),
    st.tuples(st.just("between"), queries, st.lists(coming | st.just(("beat",)), max_size=4)),
    st.tuples(st.sampled_from(["beat", "pause", "resume", "restart"])),
)


@pytest.mark.parametrize("slice_", [1, 1 << 16])
@given(queries, st.lists(steps, max_size=14))
@settings(max_examples=examples(300), deadline=None)
def test_its_readers_keep_up_with_the_oracle(slice_: int, at: int, todo: list[tuple]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "SLICE", slice_)
        world = World(Path(folder) / "db", at)
        for name, *given_ in todo:
            getattr(world, name)(*given_)
            world.check()


def replaced(db: Engine, query: str, user: str | None = None) -> Done:
    (done,) = db.execute(f"CREATE OR REPLACE QUERY q AS {query}", user=user)
    assert isinstance(done, Done)
    return done


def status(db: Engine) -> dict[str, Any]:
    rows = db.execute("SHOW QUERIES FULL LIKE 'q'")[0].data.to_pylist()  # type: ignore[union-attr]
    assert len(rows) == 1
    return rows[0]


GROUPED = "SELECT k, COUNT(*) AS n FROM s [RANGE 4 s] GROUP BY k"
SUMS = "SELECT k, SUM(v) AS n FROM s [RANGE 4 s] GROUP BY k"
LONG = "SELECT k, COUNT(*) AS n FROM s [RANGE 91 s] GROUP BY k"


def test_readers_are_told_the_net_change_at_one_instant() -> None:
    db = engine(GROUPED)
    come(db, 0, 6)
    reader = db.subscribe("q")
    reader.take()
    assert replaced(db, f"{GROUPED} HAVING k = 1") == Done("query q replaced")
    first = db.next_seq("q") - 1
    assert told(reader) == [(first, "delete", 5 * S, 0, 2)]
    come(db, 6, 1)
    assert told(reader) == []


def test_where_there_is_none_it_is_registered() -> None:
    db = engine(GROUPED)
    (done,) = db.execute(f"CREATE OR REPLACE QUERY other AS {GROUPED}")
    assert done == Done("query other registered")
    for name in ("s", "d"):
        db.execute("CREATE TABLE IF NOT EXISTS d (k INT)")
        with pytest.raises(DsmsError, match="DS213"):
            db.execute(f"CREATE OR REPLACE QUERY {name} AS {GROUPED}")


def test_the_same_again_changes_nothing_and_rebuilds_nothing(tmp_path: Path) -> None:
    db = engine(GROUPED, clauses="", folder=str(tmp_path / "db"))
    come(db, 0, 6)
    reader, running = db.subscribe("q"), db.runtime.queries["q"]
    reader.take()
    for same in (GROUPED, f"{GROUPED} WITH (result_log = 7)", f"({GROUPED})"):
        assert replaced(db, same) == Done("query q is as it was")
    assert db.runtime.queries["q"] is running and reader.take() == []
    assert running.log.limit == 100_000
    db.close()
    db = Engine(str(tmp_path / "db"))
    come(db, 6, 1)
    assert status(db)["live_rows"] == 2 and status(db)["partial"] is None


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, COUNT(*) AS m FROM s [RANGE 4 s] GROUP BY k",
        "SELECT k, AVG(v) AS n FROM s [RANGE 4 s] GROUP BY k",
        "SELECT Istream(k, v AS n) FROM s [RANGE 4 s]",
        "SELECT k, COUNT(*) AS n FROM s [RANGE 4 s SLIDE 2 s] GROUP BY k",
        "SELECT k, COUNT(*) AS n FROM s [RANGE 4 s] GROUP BY k ON LOOKUP",
        "SELECT k, COUNT(*) AS n FROM s [RANGE 4 s SLIDE 2 s] GROUP BY k WITH (path = ws)",
    ],
)
def test_results_of_another_kind_end_subscriptions_and_are_numbered_on(query: str) -> None:
    db = engine(GROUPED)
    come(db, 0, 6)
    reader, seq = db.subscribe("q"), db.next_seq("q")
    reader.take()
    replaced(db, query)
    assert [(p.kind, p.code) for p in reader.take()] == [("end", "DS435")]
    if "LOOKUP" in query:
        assert db.execute("LOOKUP q")[0].data.num_rows == 2  # type: ignore[union-attr]
    else:
        with pytest.raises(DsmsError, match="DS409"):
            db.subscribe("q", seq - 1)
        later = db.subscribe("q", seq)
        db.ingest("s", [[0, 1, t * S] for t in range(6, 9)])
        assert [line[0] for line in told(later)][:2] == [seq, seq + 1]
    assert replaced(db, GROUPED) == Done("query q replaced")
    assert status(db)["live_rows"] == 2
    assert not any("query q" in who for ring in db.runtime.rings.values() for who in ring.needs)


def test_one_with_slide_tells_no_boundary_twice_and_leaves_none_out() -> None:
    for before, after in (("", ""), (" WITH (path = ws)", ""), ("", " WITH (path = 'is')")):
        db = engine(f"SELECT COUNT(*) AS n FROM s [RANGE 4 s SLIDE 2 s]{before}")
        come(db, 0, 6)
        db.heartbeat("s", 6 * S - 1)
        reader = db.subscribe("q", 0)
        replaced(db, f"SELECT SUM(v) AS n FROM s [RANGE 4 s SLIDE 2 s]{after}")
        come(db, 6, 5)
        lines = [(line[2] // S, line[3]) for line in told(reader)]
        assert lines == [(2, 2), (4, 4), (6, 4), (8, 4 + 5 + 6 + 7), (10, 6 + 7 + 8 + 9)]


def test_one_over_tables() -> None:
    db = Engine()
    db.execute("CREATE TABLE d (k INT PRIMARY KEY); INSERT INTO d VALUES (1), (2), (3)")
    db.execute("CREATE QUERY q AS SELECT k FROM d WHERE k < 3")
    replaced(db, "SELECT k FROM d WHERE k > 1")
    lines = [(line[1], line[3]) for line in told(db.subscribe("q", 0))]
    assert lines == [("insert", 1), ("insert", 2), ("delete", 1), ("insert", 3)]


def test_one_that_feeds_a_stream_goes_on_feeding_it(tmp_path: Path) -> None:
    db = engine(GROUPED, folder=str(tmp_path / "db"))
    db.execute("CREATE STREAM big (v INT, w INT, t TIMESTAMP) TIMESTAMP BY t")
    feeds = "INSERT INTO big ({}) SELECT Istream({}) FROM s [RANGE 9 s] WHERE v > 1"
    db.execute(f"CREATE OR REPLACE QUERY f AS {feeds.format('v, w', 'v, k')}")
    db.execute("CREATE QUERY after AS SELECT Istream(v, w) FROM big [RANGE 1 h]")
    come(db, 0, 5)
    db.execute(f"CREATE OR REPLACE QUERY f AS {feeds.format('w', 'v')}")
    come(db, 5, 2)
    expected = [(2, 0), (3, 1), (4, 0), (None, 5), (None, 6)]
    for again in (False, True):
        if again:
            db.close()
            db = Engine(str(tmp_path / "db"))
        assert [line[3:] for line in told(db.subscribe("after", 0))] == expected
    for query in ("SELECT v FROM s", feeds.format("v", "v").replace("big", "s")):
        with pytest.raises(DsmsError, match=r"DS438|DS419"):
            db.execute(f"CREATE OR REPLACE QUERY f AS {query}")
    with pytest.raises(DsmsError, match="DS438"):
        replaced(db, feeds.format("v", "v"))
    come(db, 7, 1)
    assert told(db.subscribe("after", 5))[0][3:] == (None, 7)


def test_what_an_archive_or_a_stream_is_of_is_not_replaced(tmp_path: Path) -> None:
    db = engine(f"{GROUPED} ARCHIVE", folder=str(tmp_path / "db"))
    db.execute("CREATE STREAM big AS SELECT Istream(v) FROM s [RANGE 3 s]")
    (feeder,) = db.runtime.inputs["big"].fed_by
    db.execute(f"CREATE QUERY r AS {GROUPED}")
    for text in (
        f"QUERY q AS {SUMS}",
        f"QUERY r AS {GROUPED} ARCHIVE",
        f"QUERY {feeder} AS SELECT Istream(v) FROM s [RANGE 5 s]",
    ):
        with pytest.raises(DsmsError, match="DS438"):
            db.execute(f"CREATE OR REPLACE {text}")
    come(db, 0, 6)
    assert status(db)["live_rows"] == 2


def test_whose_it_is_then() -> None:
    db = engine(GROUPED)
    for name in ("alice", "bob"):
        db.execute(f"CREATE USER {name} TOKEN '{'x' * 40}{name}'")
        db.execute(f"GRANT CREATE ON ALL TO {name}")
    db.execute("GRANT SELECT (k, t) ON s TO bob; GRANT SELECT ON s TO alice")
    db.execute(f"CREATE QUERY a AS {GROUPED}", user="alice")
    with pytest.raises(DsmsError, match=r"DS670|DS213"):
        db.execute(f"CREATE OR REPLACE QUERY a AS {GROUPED}", user="bob")
    db.execute("GRANT ADMIN ON a TO bob", user="alice")
    with pytest.raises(DsmsError, match="DS2"):
        db.execute("CREATE OR REPLACE QUERY a AS SELECT v FROM s", user="bob")
    db.execute(f"CREATE OR REPLACE QUERY a AS {GROUPED} HAVING k > 0", user="bob")
    assert db.rights.owners["a"] == "bob"
    db.execute("REVOKE SELECT ON s FROM bob")
    assert db.runtime.queries["a"].failure is not None


def test_an_error_leaves_the_old_one(tmp_path: Path) -> None:
    db = engine(GROUPED, folder=str(tmp_path / "db"))
    come(db, 0, 6)
    old = db.runtime.queries["q"]
    for query, code in (
        ("SELECT nn FROM s", "DS201"),
        ("SELECT k FROM nn", "DS2"),
        (f"{GROUPED} WITH (max_state = 1)", "DS630"),
        (f"{SUMS} WITH (max_state = 1)", "DS630"),
        ("SELECT Rstream(1 / (v - v) AS n) FROM s [RANGE 4 s] WITH (on_error = stop)", "DS701"),
    ):
        with pytest.raises(DsmsError, match=code):
            replaced(db, query)
        assert db.runtime.queries["q"] is old and list(db.runtime.queries) == ["q"]
    db.execute(f"EXPLAIN CREATE OR REPLACE QUERY q AS {SUMS}")
    come(db, 6, 1)
    assert status(db)["status"] == "running"
    expected = told(db.subscribe("q", 0))
    db.close()
    db = Engine(str(tmp_path / "db"))
    assert told(db.subscribe("q", 0)) == expected and list(db.runtime.queries) == ["q"]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "SLICE", 7)


def _replaced(db: Engine, query: str, between, cancel: Cancel | None = None) -> int:
    slices = db.slices(f"CREATE OR REPLACE QUERY q AS {query}", cancel)
    for n in range(10_000):
        try:
            next(slices)
        except StopIteration:
            return n
        between(n)
    raise AssertionError("no end")


def test_the_old_one_answers_until_the_new_one_does(small: None, tmp_path: Path) -> None:
    """Also where the engine dies in between: then there is the old one or the new one, and its
    numbers go on."""
    db = engine(GROUPED, folder=str(tmp_path / "a"))
    come(db, 0, 80)
    reader, copies = db.subscribe("q", 0), []

    def between(n: int) -> None:
        if len(copies) < 5:
            come(db, 80 + 5 * len(copies), 5)
            copies.append(shutil.copytree(tmp_path / "a", tmp_path / f"copy{n}"))
        if db.runtime.beginnings:
            assert status(db)["clock"] == (79 + 5 * len(copies)) * S
            for text in ("PAUSE QUERY q", "ALTER QUERY q RENAME TO r", "RESUME QUERY q", "X"):
                if text == "RESUME QUERY q":
                    continue
                with pytest.raises(DsmsError, match="DS436"):
                    db.execute(text if text != "X" else f"CREATE OR REPLACE QUERY q AS {GROUPED}")
            with pytest.raises(DsmsError, match="DS405"):
                db.execute("DROP STREAM s CASCADE")

    assert _replaced(db, LONG, between) > 8
    come(db, 105, 5)
    expected = told(reader)
    assert [line[0] for line in expected] == list(range(len(expected)))
    db.close()
    for n, copy in enumerate([*copies, tmp_path / "a"]):
        again = Engine(str(copy))
        assert list(again.runtime.queries) == ["q"]
        if n < len(copies):
            notes = again.recovered.notes  # type: ignore[union-attr]
            assert notes in ([], ["query q is as it was before it was changed"])
            assert told(again.subscribe("q", 0)) == expected[: again.next_seq("q")]
            replaced(again, LONG)
            come(again, 85 + 5 * n, 25 - 5 * n)
            assert status(again)["live_rows"] == 2
        else:
            assert told(again.subscribe("q", 0)) == expected
        again.close()


def test_rows_come_behind_any_piece(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also between the looks at the two answers that are compared."""
    monkeypatch.setattr(net_change, "LARGE", 0)
    for stop in range(_replaced(_filled(None), LONG, lambda n: None)):
        db = _filled(None)
        reader = db.subscribe("q", 0)
        _replaced(db, LONG, lambda n, db=db, stop=stop: come(db, 80, 15) if n == stop else None)
        come(db, 95, 5)
        answer: Counter[tuple[object, ...]] = Counter()
        for _, kind, _, *values in told(reader):
            answer[tuple(values)] += 1 if kind == "insert" else -1
        assert +answer == Counter(line[3:] for line in told(db.subscribe("q")))
        assert not -answer


def test_it_is_cancelled_at_any_piece(small: None, tmp_path: Path) -> None:
    steps = _replaced(_filled(None), LONG, lambda n: None)
    for stop in range(1, steps - 2, 3):
        db, cancel = _filled(str(tmp_path / str(stop))), Cancel()

        def between(n: int, cancel: Cancel = cancel, stop: int = stop) -> None:
            if n == stop:
                cancel.set()

        with pytest.raises(DsmsError, match="DS610"):
            _replaced(db, LONG, between, cancel)
        assert list(db.runtime.queries) == ["q"] and not db.runtime.beginnings
        come(db, 80, 10)
        expected = told(db.subscribe("q", 0))
        db.close()
        db = Engine(str(tmp_path / str(stop)))
        assert told(db.subscribe("q", 0)) == expected
        assert db.recovered is not None and not db.recovered.notes
        replaced(db, LONG)
        db.close()


def _filled(folder: str | None) -> Engine:
    db = engine(GROUPED, folder=folder)
    come(db, 0, 80)
    return db


def test_a_checkpoint_or_a_drop_in_between(small: None, tmp_path: Path) -> None:
    db = _filled(str(tmp_path / "a"))

    def checkpoint(n: int) -> None:
        if n == 2:
            assert db.saver is not None and db.saver.checkpoint()

    _replaced(db, LONG, checkpoint)
    assert status(db)["status"] == "running"
    come(db, 80, 5)
    expected = told(db.subscribe("q", 0))
    again = Engine(str(shutil.copytree(tmp_path / "a", tmp_path / "b")))
    assert told(again.subscribe("q", 0)) == expected
    slices = db.slices(f"CREATE OR REPLACE QUERY q AS {SUMS}")
    for _ in range(4):
        next(slices)
    with pytest.raises(DsmsError, match="DS436"):
        db.execute("DROP QUERY q")
    slices.close()
    db.execute("DROP QUERY q")
    assert not db.runtime.queries


def test_what_its_owner_may_read_changes_in_between(small: None) -> None:
    db = _filled(None)
    db.execute(f"CREATE USER alice TOKEN '{'x' * 40}'; GRANT CREATE ON ALL TO alice")
    db.execute("GRANT SELECT ON s TO alice; GRANT ADMIN ON q TO alice")
    slices = db.slices(f"CREATE OR REPLACE QUERY q AS {LONG}", user="alice")
    for _ in range(4):
        next(slices)
    (done,) = db.execute("REVOKE SELECT ON s FROM alice")
    assert "q" in done.warnings[0]  # type: ignore[union-attr]
    for _ in slices:
        pass
    assert status(db)["status"].startswith("stopped: DS673")


@pytest.mark.parametrize("stop", [False, True])
def test_large_answers_are_compared_apart(stop: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(net_change, "LARGE", 0)
    db = _filled(None)
    reader = Reading(db.subscribe("q"))
    slices = db.slices(f"CREATE OR REPLACE QUERY q AS {SUMS}")
    statement = next(slices)
    while not statement.ready:
        statement = next(slices)
    statement.run()
    come(db, 80, 3)
    if stop:
        slices.close()
    for _ in slices:
        pass
    come(db, 83, 1)
    reader.take()
    (rows,) = db.execute("SELECT * FROM q")
    assert reader.view == Counter(canons_of(rows.data)) and reader.view  # type: ignore[union-attr]
    assert db.runtime.queries["q"].readers == [reader.reader]
    assert (status(db)["live_rows"], len(db.runtime.queries)) == (2, 1)


def test_what_is_gone_of_its_windows_is_missing_and_said() -> None:
    db = engine(GROUPED, clauses="RETAIN 3 s SUBWINDOW 1 s")
    come(db, 0, 20)
    done = replaced(db, "SELECT k, SUM(v) AS n FROM s [RANGE 10 s] GROUP BY k")
    assert "answers are partial until 1970-01-01T00:00:26" in done.warnings[0]
    come(db, 20, 7)
    assert status(db)["partial"] is None


# ---------------------------------------------------------------- state is taken over

VARIANTS = (
    "SELECT k, COUNT(*) AS n FROM s [RANGE 9 s] GROUP BY k",
    "SELECT k, COUNT(*) AS n FROM s [RANGE 9 s] GROUP BY k HAVING COUNT(*) > 2",
    "SELECT k + 1 AS k, COUNT(*) * 2 AS n FROM s [RANGE 9 s] GROUP BY k HAVING COUNT(*) < 5",
    "SELECT x.k, x.n + u.v AS n FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 9 s] GROUP BY k) x, "
    "u [RANGE 1 s] WHERE x.k = u.k",
    "SELECT k, n FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 9 s] GROUP BY k) x "
    "EXCEPT SELECT k, v FROM u [RANGE 1 s]",
    "SELECT k, n FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 9 s] GROUP BY k) x "
    "WHERE k IN (SELECT v FROM u [RANGE 1 s])",
)
changes = st.one_of(
    coming,
    coming,
    st.tuples(st.just("replace"), st.integers(0, len(VARIANTS) - 1)),
    st.tuples(
        st.just("between"),
        st.integers(0, len(VARIANTS) - 1),
        st.lists(coming | st.just(("beat",)), max_size=4),
    ),
    st.tuples(st.sampled_from(["beat", "restart"])),
)


@pytest.mark.parametrize("slice_", [1, 1 << 16])
@given(st.integers(0, 2), st.lists(changes, max_size=14))
@settings(max_examples=examples(200), deadline=None)
def test_state_is_taken_over_where_nothing_is_kept(slice_: int, at: int, todo: list[tuple]) -> None:
    """Of s nothing is held but what the query counts."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "SLICE", slice_)
        world = World(Path(folder) / "db", at, pool=VARIANTS, kept="")
        for name, *given_ in todo:
            getattr(world, name)(*given_)
            world.check()


def test_what_is_taken_over_is_not_partial_and_runs_for_the_new_one_alone() -> None:
    db = engine("SELECT k, COUNT(*) AS n FROM s [RANGE 9 s] GROUP BY k", clauses="")
    come(db, 0, 20)
    assert replaced(db, f"{VARIANTS[0]} HAVING COUNT(*) > 4").warnings == ()
    assert status(db)["partial"] is None and status(db)["live_rows"] == 1
    (part,) = db.runtime.dispatch.parts.values()
    assert len(part.feeds) == 1
    assert replaced(db, VARIANTS[0].replace("9", "8")).warnings != ()
    assert not db.runtime.dispatch.parts
    db.execute("DROP QUERY q")


@pytest.mark.parametrize(("clauses", "parts"), [("", 1), ("RETAIN 1 h", 0)])
def test_many_groups_are_built_anew_if_that_misses_nothing(
    clauses: str, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inheriting, "MANY", 3)
    query = "SELECT v, COUNT(*) AS n FROM s [RANGE 9 s] GROUP BY v"
    db = engine(query, clauses)
    come(db, 0, 20)
    assert replaced(db, f"{query} HAVING COUNT(*) > 0").warnings == ()
    assert status(db)["live_rows"] == 9 and len(db.runtime.dispatch.parts) == parts
