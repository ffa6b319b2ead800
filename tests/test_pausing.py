"""PAUSE QUERY and RESUME QUERY: what a paused query keeps, and how it begins again."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.api import Cancel
from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.running import pipeline
from dsms.settings import Settings
from tests.cancelling import told
from tests.changing_world import QUERIES, World, come, engine
from tests.effort import examples

S = 1_000_000
rows = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), min_size=1, max_size=4)
steps = st.one_of(
    st.tuples(st.just("come"), st.sampled_from("su"), rows, st.integers(0, 3)),
    st.tuples(st.sampled_from(["beat", "pause", "resume", "restart"])),
)


@given(st.integers(0, len(QUERIES) - 1), st.lists(steps, max_size=14))
@settings(max_examples=examples(200), deadline=None)
def test_its_readers_keep_up_with_the_oracle(at: int, todo: list[tuple]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder) / "db", at)
        for name, *given_ in todo:
            getattr(world, name)(*given_)
            world.check()


def status(db: Engine, name: str = "q") -> str:
    (shown,) = db.execute(f"SHOW QUERIES LIKE '{name}'")
    return shown.data.to_pylist()[0]["status"]  # type: ignore[union-attr]


LONG = "SELECT k, COUNT(*) AS n FROM s [RANGE 91 s] GROUP BY k"
GROUPED = "SELECT k, COUNT(*) AS n FROM s [RANGE 4 s] GROUP BY k"


def test_it_tells_nothing_and_keeps_nothing_but_its_answer() -> None:
    db = engine(GROUPED)
    come(db, 0, 100)
    held = db.runtime.queries["q"].nbytes()
    reader = db.subscribe("q")
    reader.take()
    (done,) = db.execute("PAUSE QUERY q")
    assert done.message == "query q paused" and status(db) == "paused"  # type: ignore[union-attr]
    come(db, 100, 10)
    assert reader.take() == [] and db.runtime.queries["q"].nbytes() < held
    (rows,) = db.execute("SELECT * FROM q")
    assert rows.as_of == 99 * S and len(rows.data) == 2  # type: ignore[union-attr]
    (done,) = db.execute("RESUME QUERY q")
    assert done.message == "query q resumed" and status(db) == "running"  # type: ignore[union-attr]
    assert reader.take() == []  # two of each key are alive as before
    db.heartbeat("s", 110 * S)
    assert [p.seq for p in reader.take()] == [db.next_seq("q") - 2, db.next_seq("q") - 1]


def test_the_net_change_has_one_instant() -> None:
    db = engine(GROUPED)
    come(db, 0, 3)
    reader = db.subscribe("q")
    reader.take()
    db.execute("PAUSE QUERY q")
    come(db, 3, 2)
    db.execute("RESUME QUERY q")
    first = db.next_seq("q") - 2
    assert told(reader) == [
        (first, "delete", 4 * S, 1, 1),
        (first + 1, "insert", 4 * S, 1, 2),
    ]


def test_it_is_paused_and_resumed_again_without_effect() -> None:
    db = engine(GROUPED)
    for text, said in (
        ("RESUME QUERY q", "query q is running"),
        ("PAUSE QUERY q", "query q paused"),
        ("PAUSE QUERY q", "query q is paused already"),
        ("RESUME QUERY Q", "query q resumed"),
    ):
        assert db.execute(text)[0].message == said  # type: ignore[union-attr]


def test_what_is_gone_of_its_windows_is_missing_and_said() -> None:
    db = engine(GROUPED, clauses="")
    come(db, 0, 10)
    db.execute("PAUSE QUERY q")
    come(db, 10, 3)
    (done,) = db.execute("RESUME QUERY q")
    assert "answers are partial until 1970-01-01T00:00:16" in done.warnings[0]  # type: ignore[union-attr]
    assert db.execute("SELECT * FROM q")[0].data.num_rows == 0  # type: ignore[union-attr]


def test_what_streams_tell_nothing_of_the_pause() -> None:
    db = engine("SELECT v FROM s WHERE v >= 0")
    come(db, 0, 3)
    db.execute("PAUSE QUERY q")
    come(db, 3, 3)
    db.execute("RESUME QUERY q")
    come(db, 6, 2)
    db.execute("PAUSE QUERY q; RESUME QUERY q")
    assert [line[3] for line in told(db.subscribe("q", 0))] == [0, 1, 2, 6, 7]


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ("SELECT COUNT(*) AS n FROM s [RANGE 4 s SLIDE 2 s]", [2, 4, 4, 4, 4]),
        ("SELECT Istream(v) FROM s [RANGE 4 s SLIDE 2 s]", [0, 1, 2, 3, *range(6, 14)]),
        ("SELECT Istream(v) FROM s [RANGE UNBOUNDED SLIDE 2 s]", list(range(14))),
        ("SELECT Dstream(v) FROM s [RANGE 4 s SLIDE 2 s]", [0, 1, 2, 3, 6, 7, 8, 9]),
        ("SELECT MAX(v) AS n FROM s [ROWS 4 SLIDE 2 ROWS]", [1, 3, 11, 13]),
    ],
)
def test_one_with_slide_goes_on_at_its_next_boundary(select: str, expected: list[int]) -> None:
    db = engine(select)
    come(db, 0, 4)
    if "ROWS" not in select:
        db.heartbeat("s", 4 * S - 1)
    db.execute("PAUSE QUERY q")
    assert not any("query q" in who for ring in db.runtime.rings.values() for who in ring.needs)
    come(db, 4, 6)
    db.heartbeat("s", 10 * S - 1)
    db.execute("RESUME QUERY q")
    come(db, 10, 4)
    db.heartbeat("s", 14 * S - 1)
    lines = told(db.subscribe("q", 0))
    assert [line[0] for line in lines] == list(range(len(lines)))
    assert [line[3] for line in lines] == expected


def test_a_look_up_is_refused_meanwhile() -> None:
    db = engine("SELECT COUNT(*) AS n FROM s [RANGE 4 s] ON LOOKUP")
    come(db, 0, 9)
    db.execute("PAUSE QUERY q")
    with pytest.raises(DsmsError, match="DS430"):
        db.execute("LOOKUP q")
    db.execute("RESUME QUERY q")
    assert db.execute("LOOKUP q")[0].data.to_pylist() == [{"n": 4}]  # type: ignore[union-attr]


def test_one_over_tables_is_told_what_has_changed() -> None:
    db = Engine()
    db.execute("CREATE TABLE d (k INT PRIMARY KEY); INSERT INTO d VALUES (1)")
    db.execute("CREATE QUERY q AS SELECT k FROM d")
    db.execute("PAUSE QUERY q; INSERT INTO d VALUES (2); DELETE FROM d WHERE k = 1")
    db.execute("RESUME QUERY q; INSERT INTO d VALUES (3)")
    lines = [(line[1], line[3]) for line in told(db.subscribe("q", 0))]
    assert lines == [("insert", 1), ("delete", 1), ("insert", 2), ("insert", 3)]


def test_a_stream_that_it_feeds_stands_still() -> None:
    db = engine(GROUPED)
    db.execute("CREATE STREAM big AS SELECT v FROM s WHERE v > 2")
    db.execute("CREATE QUERY after AS SELECT COUNT(*) AS n FROM big [RANGE UNBOUNDED]")
    come(db, 0, 5)
    (feeder,) = db.runtime.inputs["big"].fed_by
    db.execute(f"PAUSE QUERY {feeder}")
    come(db, 5, 5)
    shown = {r["stream"]: r for r in db.execute("SHOW STREAMS")[0].data.to_pylist()}  # type: ignore[union-attr]
    assert shown["big"]["complete"] == 4 * S and shown["big"]["accepted"] == 2
    db.execute(f"RESUME QUERY {feeder}")
    come(db, 10, 2)
    assert db.execute("SELECT * FROM after")[0].data.to_pylist() == [{"n": 4}]  # type: ignore[union-attr]
    with pytest.raises(DsmsError, match="DS405"):
        db.execute(f"DROP QUERY {feeder}")
    db.execute(f"PAUSE QUERY {feeder}; DROP STREAM big CASCADE")
    assert list(db.runtime.queries) == ["q"]


def test_what_it_reads_can_not_be_dropped_meanwhile() -> None:
    db = engine(GROUPED)
    db.execute("PAUSE QUERY q")
    with pytest.raises(DsmsError, match="DS405"):
        db.execute("DROP STREAM s")
    db.execute("DROP STREAM s CASCADE")
    assert not db.runtime.queries


def test_one_that_has_stopped_begins_anew() -> None:
    db = engine("SELECT k / v AS x FROM s WHERE k >= 0 WITH (on_error = stop)")
    come(db, 0, 2)
    assert status(db).startswith("stopped: DS701")
    with pytest.raises(DsmsError, match="DS431"):
        db.execute("PAUSE QUERY q")
    db.execute("RESUME QUERY q")
    assert status(db) == "running"
    come(db, 2, 1)
    assert [line[3] for line in told(db.subscribe("q", db.next_seq("q") - 1))] == [0]


def test_an_archived_query_is_not_paused(tmp_path: Path) -> None:
    db = engine(f"{GROUPED} ARCHIVE", folder=str(tmp_path / "db"))
    with pytest.raises(DsmsError, match="DS431"):
        db.execute("PAUSE QUERY q")
    assert status(db) == "running"


def test_there_is_no_such_query() -> None:
    for text in ("PAUSE QUERY nn", "RESUME QUERY nn"):
        with pytest.raises(DsmsError, match="DS401"):
            engine(GROUPED).execute(text)


def test_a_clock_that_is_set_back_does_not_resume_it() -> None:
    db = engine(GROUPED)
    come(db, 0, 3)
    db.heartbeat("s", 100 * S)
    db.execute("PAUSE QUERY q; ALTER STREAM s SET CLOCK TO TIMESTAMP '1970-01-01 00:00:05'")
    assert status(db) == "paused"
    db.execute("RESUME QUERY q")
    assert Counter(r["n"] for r in db.execute("SELECT * FROM q")[0].data.to_pylist()) == {1: 2}  # type: ignore[union-attr]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "SLICE", 7)


def _resumed(db: Engine, between, cancel: Cancel | None = None) -> int:
    slices = db.slices("RESUME QUERY q", cancel)
    for n in range(10_000):
        try:
            next(slices)
        except StopIteration:
            return n
        between(n)
    raise AssertionError("no end")


def test_others_come_in_while_it_begins_again(small: None, tmp_path: Path) -> None:
    """It is paused until it stands where its streams are, also for who asks in between; and after
    a crash in between it is paused, or has been resumed."""
    db = engine(LONG, folder=str(tmp_path / "a"))
    come(db, 0, 80)
    db.execute("PAUSE QUERY q")
    came, copies = [], []

    def between(n: int) -> None:
        if len(came) < 4:
            assert status(db) == "paused"
            for text in ("PAUSE QUERY q", "RESUME QUERY q"):
                if db.runtime.beginnings and text.startswith("RESUME"):
                    with pytest.raises(DsmsError, match="DS436"):
                        db.execute(text)
            come(db, 80 + 5 * len(came), 5)
            came.append(n)
            copies.append(shutil.copytree(tmp_path / "a", tmp_path / f"copy{n}"))

    assert _resumed(db, between) > 4
    come(db, 100, 5)
    expected = told(db.subscribe("q", 0))
    assert {line[2] for line in expected} >= {i * S for i in range(100, 105)}
    db.close()
    again = Engine(str(tmp_path / "a"))
    assert told(again.subscribe("q", 0)) == expected
    again.close()
    for n, copy in enumerate(copies):
        again = Engine(str(copy))
        assert status(again) == "paused" and not again.runtime.beginnings
        assert set(again.runtime.queries) == {"q"}
        come(again, 85 + 5 * n, 5)
        again.execute("RESUME QUERY q")
        (rows,) = again.execute("SELECT * FROM q")
        assert sum(r["n"] for r in rows.data.to_pylist()) == min(91, 90 + 5 * n)  # type: ignore[union-attr]
        again.close()
        third = Engine(str(copy))  # with the record that it was given up
        assert status(third) == "running" and not third.recovered.notes  # type: ignore[union-attr]
        third.close()


def test_a_cancelled_one_stays_paused(small: None, tmp_path: Path) -> None:
    db = engine(LONG, folder=str(tmp_path / "a"))
    come(db, 0, 80)
    db.execute("PAUSE QUERY q")
    cancel = Cancel()
    with pytest.raises(DsmsError, match="DS610"):
        _resumed(db, lambda n: cancel.set() if n == 3 else None, cancel)
    assert status(db) == "paused" and list(db.runtime.queries) == ["q"]
    slices = db.slices("RESUME QUERY q")
    for _ in range(3):
        next(slices)
    slices.close()
    assert status(db) == "paused" and not db.runtime.beginnings
    db.execute("RESUME QUERY q")
    assert status(db) == "running"


def test_a_checkpoint_in_between_has_it_resumed(small: None, tmp_path: Path) -> None:
    db = engine(LONG, folder=str(tmp_path / "a"))
    come(db, 0, 80)
    db.execute("PAUSE QUERY q")

    def between(n: int) -> None:
        if n == 2:
            assert db.saver is not None and db.saver.checkpoint()
            assert status(db) == "running"

    _resumed(db, between)
    assert db.saver is not None
    db.saver.catalog.close()


def test_one_that_would_keep_too_much_stays_paused(tmp_path: Path) -> None:
    db = Engine(str(tmp_path / "a"), Settings())
    db.execute("CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 d")
    db.execute(
        "CREATE QUERY q AS SELECT v, COUNT(*) AS n FROM s [RANGE 1 d] GROUP BY v "
        "WITH (max_state = 1000000)"
    )
    come(db, 0, 100)
    db.execute("PAUSE QUERY q")
    come(db, 100, 30000)
    with pytest.raises(DsmsError, match="DS630"):
        db.execute("RESUME QUERY q")
    assert status(db) == "paused" and list(db.runtime.queries) == ["q"]
    db.close()
    db = Engine(str(tmp_path / "a"))
    assert status(db) == "paused" and list(db.runtime.queries) == ["q"]
