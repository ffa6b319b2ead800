"""`waiting` of one-time answers: accepted rows behind the clock of the streams that are read; what
SHOW says of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.api import Rows
from dsms.engine import Engine
from dsms.settings import Settings
from tests.effort import examples
from tests.stories.play import rows_of

MIN = 60_000_000
DECLARED = """
    CREATE STREAM a (v INT, t TIMESTAMP) TIMESTAMP BY t SLACK 15 MIN RETAIN 1 h;
    CREATE STREAM b (v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;
    CREATE TABLE r (v INT);
    CREATE QUERY view AS SELECT Rstream(COUNT(*)) FROM a [RANGE 1 h];
    CREATE QUERY each AS SELECT COUNT(*) FROM a [RANGE 1 h SLIDE 10 min];
    CREATE QUERY asked AS SELECT COUNT(*) FROM a [RANGE 1 h] ON LOOKUP"""

DECLARED_BARE = """
    CREATE STREAM a (v INT, t TIMESTAMP) TIMESTAMP BY t;
    CREATE STREAM b (v INT, t TIMESTAMP) TIMESTAMP BY t"""


def answer(engine: Engine, sql: str) -> Rows:
    (rows,) = engine.execute(sql)
    assert isinstance(rows, Rows)
    return rows


@pytest.mark.parametrize(
    ("sql", "as_of", "waiting"),
    [
        ("SELECT COUNT(*) FROM a [RANGE 1 h]", 24 * MIN - 1, 16),
        ("SELECT COUNT(*) FROM b [ROWS 3]", 29 * MIN - 1, 1),
        # those of b are complete, and wait for a
        ("SELECT COUNT(*) FROM a [RANGE 1 h], b [NOW]", 24 * MIN - 1, 22),
        ("SELECT * FROM view", 24 * MIN - 1, 16),
        ("SELECT * FROM each", 20 * MIN - 1, 16),
        ("SELECT COUNT(*) FROM each, b [NOW]", 20 * MIN - 1, 22),
        ("LOOKUP asked", 24 * MIN - 1, 16),
        ("SELECT v FROM r", None, None),
        ("SELECT 1", None, None),
        ("SHOW STREAMS", None, None),
    ],
)
@pytest.mark.parametrize("scheduler", ["serial", "ws", "ttu"])
def test_answers_say_what_is_not_in_them(
    sql: str, as_of: int | None, waiting: int | None, scheduler: str
) -> None:
    engine = Engine()
    engine.execute(f"SET transaction_scheduler = {scheduler}; {DECLARED}")
    engine.ingest("a", [[n, n * MIN] for n in range(40)])
    engine.ingest("b", [[n, n * MIN] for n in range(30)])
    rows = answer(engine, sql)
    assert (rows.as_of, rows.waiting) == (as_of, waiting)
    for stream in "ab":
        engine.end(stream)
    assert answer(engine, sql).waiting in (None, 0)


@pytest.mark.parametrize(
    ("sql", "answer_"),
    [
        ("SELECT COUNT(*) FROM a [RANGE 1 h]", (30,)),
        ("SELECT MEDIAN(v) FROM a [RANGE 1 h]", (14.5,)),
        ("SELECT SUM(v) FROM a [ROWS 5]", (135,)),
        ("SELECT COUNT(*) FROM a [RANGE 1 h], b [RANGE 1 h]", (900,)),
        ("SELECT MAX(a.v) FROM a [RANGE 1 h] WHERE v < 3", (2,)),
    ],
)
def test_look_ups_go_on_when_all_has_ended(sql: str, answer_: tuple) -> None:
    """Nothing follows, so the last sub-window is complete."""
    engine = Engine()
    engine.execute(f"{DECLARED}; CREATE QUERY k AS {sql} ON LOOKUP")
    for stream in "ab":
        engine.ingest(stream, [[n, n * MIN] for n in range(30)])
        engine.end(stream)
    for _ in range(2):
        rows = answer(engine, "LOOKUP k")
        assert (rows_of(rows.data), rows.waiting) == ([answer_], 0)
    assert rows_of(answer(engine, sql).data) == [answer_]


def test_before_any_clock_everything_waits() -> None:
    engine = Engine()
    engine.execute(DECLARED)
    engine.ingest("b", [[1, 0], [2, MIN]])
    rows = answer(engine, "SELECT COUNT(*) FROM a [RANGE 1 h], b [RANGE 1 h]")
    assert (rows_of(rows.data), rows.as_of, rows.waiting) == ([(0,)], None, 2)


EVENTS = st.lists(st.tuples(st.sampled_from("abAB"), st.integers(0, 40)), max_size=40)


@settings(max_examples=examples(40))
@given(EVENTS)
def test_what_is_in_an_answer_and_what_waits_is_all_that_was_accepted(
    events: list[tuple[str, int]],
) -> None:
    """Capital letters: heartbeats."""
    engine = Engine()
    engine.execute(DECLARED)
    for name, at in events:
        if name.isupper():
            engine.heartbeat(name.lower(), at * MIN)
        else:
            engine.ingest(name, [[1, at * MIN]])
    for streams in (["a"], ["b"], ["a", "b"]):
        union = " UNION ALL ".join(f"SELECT v FROM {s} [RANGE 1 h]" for s in streams)
        rows = answer(engine, union)
        accepted = sum(engine.runtime.inputs[s].counts.accepted for s in streams)
        assert rows.data.num_rows + (rows.waiting or 0) == accepted


def test_show_says_why_an_answer_is_short() -> None:
    engine = Engine()
    engine.execute(
        DECLARED + "; CREATE QUERY joined AS SELECT a.v FROM a [RANGE 1 h], b [RANGE 1 h];"
        "CREATE QUERY tables AS SELECT v FROM r"
    )
    engine.ingest("a", [[n, n * MIN] for n in range(40)])

    def shown(what: str) -> dict[str, dict[str, Any]]:
        rows = answer(engine, f"SHOW {what}{' FULL' * (what == 'QUERIES')}").data.to_pylist()
        return {
            r[what.lower().replace("queries", "query").replace("streams", "stream")]: r
            for r in rows
        }

    needs = "a row after 1970-01-01T00:39:00Z, or a heartbeat"
    assert (shown("STREAMS")["a"]["waits_for"], shown("STREAMS")["a"]["waiting"]) == (needs, 16)
    queries = shown("QUERIES")
    assert {q: (r["waits_for"], r["waiting"]) for q, r in queries.items()} == {
        "view": (f"a: {needs}", 16),
        "each": (f"a: {needs}", 16),
        "asked": (f"a: {needs}", 16),
        "joined": ("b: its first row, or a heartbeat", 40),
        "tables": (None, None),
    }
    engine.end("a")
    engine.end("b")
    assert {r["waits_for"] for q, r in shown("QUERIES").items() if q != "tables"} == {
        "nothing: all its streams have ended"
    }


def test_rows_that_are_gone_do_not_wait() -> None:
    """Of a stream that is ahead of another and has no RETAIN, those that are kept do: the
    row of a, and the last two of b."""
    engine = Engine(settings=Settings(retain_default=0, retain_default_rows=1))
    engine.execute(DECLARED_BARE)
    engine.ingest("a", [[1, 1_000_000]])
    for n in range(2, 12):
        engine.ingest("b", [[n, n * 1_000_000]])
    rows = answer(engine, "SELECT a.v FROM a [RANGE 9 s] JOIN b [RANGE 9 s] ON a.v = b.v")
    assert rows.waiting == 3
