"""Continuous queries that are registered over kept rows: what they begin with, and what they say is
missing.

Whole stories of it, against the oracle: `test_equivalence`, `test_recovery_equivalence`,
tests/golden/kept.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.api import Done, Rows
from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.running.beginning import partial
from dsms.settings import Settings
from dsms.sql.types import ALWAYS, FOREVER
from tests.archives import killed
from tests.effort import examples, thinned
from tests.generate.stories import kept_stories
from tests.oracle import Oracle
from tests.oracle.values import canons
from tests.stories import text
from tests.stories.judge import clock, kind, registered, take_in
from tests.stories.model import Story
from tests.stories.play import Way, feed, rows_of, snapshot, taken, with_options

S = 1_000_000
STREAM = "CREATE STREAM s (v INT, t TIMESTAMP) TIMESTAMP BY t"


def engine_with(clauses: str = "RETAIN 1 h", rows: int = 2, **given: Any) -> Engine:
    """Rows 1, 2, ... at 0 s, 1 s, ..., and the clock one second behind the last."""
    engine = Engine(**given)
    engine.execute(f"{STREAM} {clauses}")
    engine.ingest("s", [[k + 1, k * S] for k in range(rows)])
    engine.heartbeat("s", rows * S)
    return engine


def created(engine: Engine, select: str, name: str = "q") -> Done:
    (done,) = engine.execute(f"CREATE QUERY {name} AS {select}")
    assert isinstance(done, Done)
    return done


def told(engine: Engine, name: str = "q") -> list[tuple]:
    """(instant in s, sign, values) of all result rows so far."""
    return [(line.at / S, line.sign, *line.values) for line in taken(engine.subscribe(name, 0), 0)]  # type: ignore[operator]


def partial_until(engine: Engine, name: str = "q") -> Any:
    (shown,) = engine.execute("SHOW QUERIES FULL")
    return next(r["partial_until"] for r in shown.data.to_pylist() if r["query"] == name)  # type: ignore[union-attr]


# ---------------------------------------------------------------- what it begins with


def test_it_begins_with_kept_rows_and_goes_on() -> None:
    engine = engine_with()
    assert created(engine, "SELECT SUM(v) FROM s [RANGE 10 s]").warnings == ()
    assert snapshot(engine.subscribe("q")) == [(3,)]
    engine.ingest("s", [[10, 3 * S]])
    engine.heartbeat("s", 3 * S)
    assert told(engine) == [(2, "+", 3), (3, "-", 3), (3, "+", 13)]
    assert partial_until(engine) is None


@pytest.mark.parametrize(
    ("select", "later"),
    [
        ("SELECT Istream(v) FROM s [RANGE 10 s]", [(3, "+", 10)]),
        ("SELECT v FROM s WHERE v > 1", [(3, "+", 10)]),
        (
            "SELECT Istream(SUM(v)) FROM s [RANGE 10 s]",
            [(3, "+", 13), (10, "+", 12), (11, "+", 10), (13, "+", None)],
        ),
        ("SELECT Dstream(v) FROM s [RANGE 10 s]", [(10, "+", 1), (11, "+", 2), (13, "+", 10)]),
        ("SELECT Istream(DISTINCT v) FROM s", [(3, "+", 10)]),
        ("SELECT Istream(MAX(v)) FROM s [RANGE 10 s INTERNAL]", [(3, "+", 10), (13, "+", None)]),
        (
            "SELECT Istream(v) FROM s [RANGE 4 s UNTIL 3 s AGO]",
            [(3, "+", 1), (4, "+", 2), (6, "+", 10)],
        ),
    ],
)
def test_istream_and_dstream_tell_what_enters_and_leaves_from_then_on(
    select: str, later: list[tuple]
) -> None:
    engine = engine_with()
    created(engine, select)
    assert told(engine) == []
    engine.ingest("s", [[10, 3 * S]])
    engine.heartbeat("s", 100 * S)
    assert told(engine) == later


@pytest.mark.parametrize("kind", ["Istream", "Rstream", "Dstream"])
def test_what_a_block_has_appended_is_missed_for_ever(kind: str) -> None:
    """However short the windows are that it was appended from."""
    for clauses in ("SUBWINDOW 1 s RETAIN 3 s", ""):
        engine = engine_with(clauses, 16)
        select = f"SELECT {kind}(SUM(v)) FROM (SELECT Istream(v) FROM s [ROWS 1]) x"
        (note,) = created(engine, select).warnings
        assert note.endswith("partial for ever")


def test_rows_that_wait_count_once() -> None:
    """Some rows are complete, some settled, some not even that; each counts when its instant is
    complete."""
    engine = Engine()
    engine.execute(f"{STREAM} SLACK 2 s RETAIN 1 h")
    engine.ingest("s", [[1, 0], [2, 5 * S], [3, 4 * S], [4, 3 * S]])
    created(engine, "SELECT COUNT(*), SUM(v) FROM s [RANGE 1 min]")
    created(engine, "SELECT v FROM s WHERE v > 0", "each")
    engine.heartbeat("s", 9 * S)
    last = told(engine)[-1]
    assert last == (5, "+", 4, 10)
    assert [row[2] for row in told(engine, "each")] == [4, 3, 2]  # that of 0 s was there before


def test_a_row_of_the_newest_instant_is_told_by_a_query_registered_behind_it() -> None:
    engine = Engine()
    engine.execute(STREAM)
    engine.ingest("s", [[1, 0], [2, S]])
    created(engine, "SELECT v FROM s WHERE v > 0", "passing")
    created(engine, "SELECT Istream(v) FROM s [ROWS 1]", "waiting")
    engine.ingest("s", [[3, S], [4, 2 * S]])
    engine.heartbeat("s", 9 * S)
    assert told(engine, "passing") == [(1, "+", 2), (1, "+", 3), (2, "+", 4)]
    assert told(engine, "waiting") == [(1, "+", 3), (2, "+", 4)]


def test_a_stream_that_is_ahead_of_the_query() -> None:
    """Rows that a stream has handed on before the query's clock wait in its ring for the others."""
    engine = Engine()
    engine.execute(f"{STREAM} RETAIN 1 h; {STREAM.replace('STREAM s', 'STREAM r')} RETAIN 1 h")
    engine.ingest("s", [[1, 0], [2, 5 * S], [3, 7 * S]])
    engine.ingest("r", [[1, 0], [2, S]])
    created(engine, "SELECT s.v FROM s [RANGE 1 min], r [RANGE 1 min] WHERE s.v = r.v")
    assert told(engine) == [(0.999999, "+", 1)]
    engine.heartbeat("r", 9 * S)
    assert told(engine)[1:] == [(5, "+", 2)]


@pytest.mark.parametrize(
    "keeper", ["SELECT MEDIAN(v) FROM s [RANGE 20 s SLIDE 20 s] WITH (path = ws)"]
)
def test_rows_that_other_queries_keep(keeper: str) -> None:
    engine = Engine()
    engine.execute(f"{STREAM}; CREATE QUERY keeper AS {keeper}")
    engine.ingest("s", [[1, 0], [2, S]])
    engine.heartbeat("s", 2 * S)
    assert created(engine, "SELECT SUM(v) FROM s [RANGE 10 s]").warnings == ()
    assert told(engine) == [(2, "+", 3)]


def test_a_query_that_fails_on_its_past_is_registered_as_failed() -> None:
    engine = Engine()
    engine.execute(f"{STREAM} RETAIN 1 h")
    engine.ingest("s", [[2**62, 0], [2**62, S]])
    engine.heartbeat("s", 2 * S)
    created(engine, "SELECT SUM(v) FROM s [RANGE 10 s]")
    (shown,) = engine.execute("SHOW QUERIES FULL")
    assert isinstance(shown, Rows)
    assert shown.data.to_pylist()[0]["status"].startswith("stopped: DS7")
    assert [line.sign for line in taken(engine.subscribe("q", 0), 0)] == ["!"]
    engine.execute("DROP QUERY q")


def test_a_row_of_the_past_that_fails_is_counted_once() -> None:
    engine = engine_with(rows=3)
    created(engine, "SELECT 6 / (v - 2) AS x FROM s [RANGE 10 s]")
    assert sorted(map(repr, snapshot(engine.subscribe("q")))) == ["(-6,)", "(6,)", "(None,)"]
    (shown,) = engine.execute("SHOW QUERIES FULL")
    assert isinstance(shown, Rows) and shown.data.to_pylist()[0]["errors"] == 1


def test_tables_are_read_as_of_their_times() -> None:
    engine = Engine()
    engine.execute(f"{STREAM} RETAIN 1 h")
    engine.execute(
        "CREATE TABLE n (k INT PRIMARY KEY, w INT) NON RETROACTIVE; CREATE TABLE r (k INT PRIMARY "
        "KEY, w INT)"
    )
    engine.execute("INSERT INTO n VALUES (1, 10); INSERT INTO r VALUES (1, 10)")
    engine.ingest("s", [[1, 0]])
    engine.execute("UPDATE n SET w = 20 WHERE k = 1; UPDATE r SET w = 20 WHERE k = 1")
    engine.ingest("s", [[1, 2 * S]])
    engine.execute(
        "UPDATE n SET w = 30 AT '1970-01-01 00:00:01'; UPDATE r SET w = 30 AT '1970-01-01 00:00:01'"
    )
    engine.heartbeat("s", 3 * S)
    for table in "nr":
        created(engine, f"SELECT s.t, w FROM s [RANGE 10 s], {table} WHERE v = k", f"q{table}")
    # 20: at 0 s, where the first row came
    assert [row[3] for row in told(engine, "qn")] == [20, 30]
    assert [row[3] for row in told(engine, "qr")] == [30, 30]
    created(engine, "SELECT w FROM s [RANGE 10 s INTERNAL], r WHERE v = k", "appended")
    engine.heartbeat("s", 4 * S)
    assert told(engine, "appended") == []


@settings(max_examples=examples(60))
@given(kept_stories(), st.integers(0, 9999))
def test_a_view_begins_with_what_the_same_select_answers(story: Story, seed: int) -> None:
    declared = text.resolve(story)
    output = declared.queries["q"]
    ddl, before, query = story.sections[:3]
    off = Settings(retain_default=0, retain_default_rows=0)  # which views don't begin with
    engine, way = Engine(settings=off), Way(cut="random", seed=seed)
    engine.execute(text.expand(ddl.body))
    feed(engine, declared, before.events, way)
    if kind(output) != "rstream" or registered(story, declared, "q") == ALWAYS:
        return
    try:
        (rows,) = engine.execute(query.body)
    except DsmsError as error:  # DS416: can't be asked once; DS7xx: where a query gives NULL
        assert error.code in ("DS407", "DS416", "DS701", "DS702", "DS703"), error
        return
    assert isinstance(rows, Rows)
    engine.execute(f"CREATE QUERY q AS {with_options(query.body, way)}")
    begun = Counter(map(canons, snapshot(engine.subscribe("q"))))
    assert begun == Counter(map(canons, rows_of(rows.data))), text.render(story, declared)


# ---------------------------------------------------------------- what is missing


@pytest.mark.parametrize(
    ("select", "note"),
    [
        ("SELECT SUM(v) FROM s [RANGE 10 s]", "until 1970-01-01T00:00:12Z"),
        ("SELECT COUNT(*) FROM s", "for ever"),
        ("SELECT COUNT(*) FROM s [SINCE 1 s]", "for ever"),
        ("SELECT COUNT(*) FROM s [SINCE 3 s]", None),
        ("SELECT v FROM s [ROWS 5]", "until 5 more rows come"),
        ("SELECT Istream(v) FROM s [ROWS 5]", None),
        ("SELECT Istream(v) FROM s [RANGE 10 s]", None),
        ("SELECT v FROM s WHERE v > 1", None),
        ("SELECT Istream(COUNT(*)) FROM s [RANGE 10 s INTERNAL]", "until 1970-01-01T00:00:12Z"),
        (
            "SELECT SUM(Wstream(COUNT(*))[RANGE 5 s]) FROM s [RANGE 10 s]",
            "until 1970-01-01T00:00:17Z",
        ),
    ],
)
def test_what_was_not_kept_is_told(select: str, note: str | None) -> None:
    gone = "its windows reach back to rows that are gone{}: answers are partial {}"
    off = Settings(retain_default=0, retain_default_rows=0)
    for settings_, aside in ((off, ""), (Settings(), ", or kept for SELECT alone")):
        engine = engine_with("", settings=settings_)
        warnings = created(engine, select).warnings
        assert [w for w in warnings if "partial" in w] == (
            [] if note is None else [gone.format(aside, note)]
        )
    assert (partial_until(engine) is not None) == (note is not None and note.endswith("Z"))


def test_what_is_missing_in_time_and_what_is_counted_are_told_together() -> None:
    """And each for itself, once the other is whole."""
    engine = Engine()
    for name in "ab":
        engine.execute(f"CREATE STREAM {name} (k INT, t TIMESTAMP) TIMESTAMP BY t")
        engine.ingest(name, [(1, 1_000_000)])
        engine.heartbeat(name, 5_000_000)
    sql = "SELECT COUNT(*) AS n FROM a [ROWS 3], b [RANGE 7 s] WHERE a.k = b.k"
    (warning,) = created(engine, sql).warnings

    def partial() -> str | None:
        return engine.execute("SHOW QUERIES FULL")[0].data.to_pylist()[0]["partial"]

    both = "until 1970-01-01T00:00:12Z and until 3 more rows come"
    assert warning.endswith(f"partial {both}") and partial() == both
    engine.ingest("a", [(1, 6_000_000)])
    engine.heartbeat("a", 6_000_000)
    assert partial() == "until 1970-01-01T00:00:12Z and until 2 more rows come"
    for name in "ab":
        engine.heartbeat(name, 20_000_000)
    assert partial() == "until 2 more rows come"
    engine.ingest("a", [(1, 21_000_000), (1, 21_000_001)])
    engine.heartbeat("a", 22_000_000)
    assert partial() is None


def test_what_has_passed_is_told_no_more() -> None:
    """`partial_until` stood there for ever."""
    engine = engine_with("", settings=Settings(retain_default=0, retain_default_rows=0))
    created(engine, "SELECT COUNT(*) FROM s [RANGE 10 s]")
    for at, until in ((11 * S, 12 * S), (12 * S, None), (30 * S, None)):
        engine.heartbeat("s", at)
        assert partial_until(engine) == until


def test_what_is_missing_in_time_alone_is_left_when_rows_have_come() -> None:
    engine = Engine()
    for name in "ab":
        engine.execute(f"CREATE STREAM {name} (k INT, t TIMESTAMP) TIMESTAMP BY t")
        engine.ingest(name, [(1, 1_000_000)])
        engine.heartbeat(name, 5_000_000)
    created(engine, "SELECT COUNT(*) AS n FROM a [ROWS 1], b [RANGE 7 s] WHERE a.k = b.k")
    engine.ingest("a", [(1, 6_000_000)])
    engine.heartbeat("a", 6_000_000)
    (shown,) = engine.execute("SHOW QUERIES FULL")
    assert shown.data.to_pylist()[0]["partial"] == "until 1970-01-01T00:00:12Z"


def test_some_rows_of_a_count_window_are_kept() -> None:
    engine = engine_with("SUBWINDOW 1 s RETAIN 2 s", rows=9)
    (warning,) = created(engine, "SELECT v FROM s [ROWS 5]").warnings
    assert warning.endswith("until 4 more rows come")
    assert snapshot(engine.subscribe("q")) == [(9,)]


def test_a_stream_younger_than_the_window_misses_nothing() -> None:
    engine = Engine()
    engine.execute(STREAM)
    engine.heartbeat("s", 5 * S)
    assert created(engine, "SELECT SUM(v) FROM s [RANGE 10 s]").warnings == ()


@pytest.mark.parametrize("checkpoint", [False, True])
def test_after_a_restart_it_has_begun_with_what_an_elastic_query_had_left(
    tmp_path: Path, checkpoint: bool
) -> None:
    """When elastic queries read their rows depends on the load, and so does what a ring lets go
    of."""
    deferred = Settings(deferred=True, checkpoint_bytes=0)
    engine = Engine(str(tmp_path), deferred)
    engine.execute(f"{STREAM} SUBWINDOW 1 s")
    engine.execute(
        "CREATE QUERY slow AS SELECT MEDIAN(v) FROM s [RANGE 2 s SLIDE 2 s] WITH (path = ws, "
        "boundaries = elastic)"
    )
    for k in range(10):
        engine.ingest("s", [[k, k * S]])
        while engine.work():
            pass
    engine.heartbeat("s", 10 * S)
    (warning,) = created(engine, "SELECT COUNT(*), SUM(v) FROM s [RANGE 9 s]").warnings
    engine.ingest("s", [[10, 11 * S]])
    if checkpoint:
        engine.saver.checkpoint()  # type: ignore[union-attr]
    engine.heartbeat("s", 14 * S)
    before, whole = told(engine), engine.runtime.queries["q"].partial_until
    assert before[0][2] < 9 and "partial until" in warning
    killed(engine)
    again = Engine(str(tmp_path), deferred)
    assert told(again) == before and again.runtime.queries["q"].partial_until == whole > ALWAYS


@settings(max_examples=examples(60))
@given(kept_stories(), st.sampled_from((1, 3, 8)), st.integers(0, 9999))
def test_from_partial_until_on_the_view_is_whole(story: Story, kept: int, seed: int) -> None:
    """Streams keep a few seconds; what was dropped matters until then, and no longer."""
    declared = text.resolve(story)
    output = declared.queries["q"]
    ddl, before, query, after = story.sections[:4]
    came = take_in(declared, story)
    oracle = Oracle(output, came.streams, came.tables)
    if oracle.kind != "rstream" or text.inexact(story):
        return
    engine, way = Engine(), Way(cut="random", seed=seed)
    engine.execute(text.expand(ddl.body.replace("RETAIN 1 HOUR", f"RETAIN {kept} s")))
    feed(engine, declared, before.events, way)
    engine.execute(f"CREATE QUERY q AS {with_options(query.body, way)}")
    whole = engine.runtime.queries["q"].partial_until
    if "row" in (partial(engine.runtime, engine.runtime.queries["q"]) or ""):
        return  # it counts some that are missing, too
    reader = engine.subscribe("q", 0)
    feed(engine, declared, after.events, way)
    last = clock(output, came)
    if whole == FOREVER or last < whole:
        return
    view: Counter = Counter()
    lines = list(taken(reader, 0))
    for at in sorted({line.at for line in lines} | {whole, last}):  # type: ignore[type-var]
        for line in (x for x in lines if x.at == at):
            view[canons(line.values)] += 1 if line.sign == "+" else -1
        if at is not None and at >= max(whole, registered(story, declared, "q")):
            now = Counter(canons(f.values) for f in oracle.answer(at))
            assert +view == now, f"at {at}: {text.render(story, declared)}"


@thinned()
@pytest.mark.parametrize(
    ("window", "retain", "missing"),
    [
        ("ROWS 30", "", 30),
        ("ROWS 30 SLIDE 10", "", 30),
        ("ROWS 30 SLIDE 10", "RETAIN 7 s", 23),
        ("ROWS 30 SLIDE 10", "RETAIN 1 h", 0),
        ("ROWS 6 SLIDE 10", "", 0),  # full again by its first answer, at row 30
        ("ROWS 7 SLIDE 10", "", 7),
    ],
)
@pytest.mark.parametrize("path", ["auto", "ws", "is", "ss"])
def test_windows_of_rows_say_until_when_they_miss_some(
    window: str, retain: str, missing: int, path: str
) -> None:
    engine = Engine()
    engine.execute(f"CREATE STREAM s (v INT, t TIMESTAMP) TIMESTAMP BY t {retain}")
    engine.ingest("s", [[n, n * 1_000_000] for n in range(25)])  # the last is not complete yet
    if path != "auto" and "SLIDE" not in window:
        pytest.skip("the path of a continuous query")
    (done,) = engine.execute(
        f"CREATE QUERY q AS SELECT COUNT(*) FROM s [{window}] WITH (path = '{path}')"
        if path != "auto"
        else f"CREATE QUERY q AS SELECT COUNT(*) FROM s [{window}]"
    )
    said = f"partial until {missing} more rows come"
    assert any(said in note for note in done.warnings) == (missing > 0)
    for come in range(1, 40):
        row = 24 + come
        engine.ingest("s", [[row, row * 1_000_000]])
        (shown,) = engine.execute("SHOW QUERIES FULL")
        left = missing - come
        words = f"until {left} more {'row comes' if left == 1 else 'rows come'}"
        assert shown.data.to_pylist()[0]["partial"] == (words if left > 0 else None)


def test_what_is_partial_for_ever_is_told_from_what_is_whole() -> None:
    engine = Engine()
    engine.execute("CREATE STREAM s (v INT, t TIMESTAMP) TIMESTAMP BY t")
    engine.ingest("s", [[n, n * 1_000_000] for n in range(25)])
    engine.execute(
        "CREATE QUERY ever AS SELECT COUNT(*) FROM s [RANGE UNBOUNDED];"
        "CREATE QUERY while AS SELECT COUNT(*) FROM s [RANGE 30 s];"
        "CREATE QUERY whole AS SELECT Istream(v) FROM s"
    )
    (shown,) = engine.execute("SHOW QUERIES FULL")
    assert [r["partial"] for r in shown.data.to_pylist()] == [
        "for ever",
        "until 1970-01-01T00:00:53.999999Z",
        None,
    ]
    engine.heartbeat("s", 60_000_000)
    (shown,) = engine.execute("SHOW QUERIES FULL LIKE 'while'")
    assert shown.data.to_pylist()[0]["partial"] is None
