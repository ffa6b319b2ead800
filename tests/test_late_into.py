"""LATE INTO: the other stream takes late rows as they come, whatever its own clock says, and
nothing is lost."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import QueryError
from dsms.oneshot.pushdown import needed
from dsms.sql.binder import bind_query
from dsms.sql.binder.definitions import bind_create_stream
from dsms.sql.catalog import Catalog
from dsms.sql.parser import parse_one
from dsms.sql.types import MAX_INSTANT
from tests.effort import examples
from tests.generate.draws import Draws
from tests.stories import text
from tests.stories.compare import complaint, same_lines
from tests.stories.crashing import play as play_crashing
from tests.stories.judge import expected, take_in
from tests.stories.model import Arrival, Beat, Event, Section, Story
from tests.stories.play import CUTS, Way, play, rows_of

S = 1_000_000
CONTINUOUS = (
    "SELECT a, ts FROM {}",
    "SELECT Rstream(a) FROM {} [RANGE 3 s]",
    "SELECT COUNT(*) FROM {} [ROWS 3]",
    "SELECT a, COUNT(*) FROM {} [RANGE 2 s] GROUP BY a",
)
PERIODIC = (
    "SELECT COUNT(*), MAX(ts) FROM {} [RANGE 4 s SLIDE 2 s]",
    "SELECT a FROM {} [ROWS 2 SLIDE 2]",
)


@st.composite
def chains(draw: Any) -> Story:
    """s gives its late rows to l, and l those that come to itself to m; all are written to, and
    have clocks."""
    d = Draws(draw)
    options = [f"{d.pick(('', ' SLACK 2 s'))}{d.pick(('', ' MAX FUTURE 9 s'))}" for _ in "sl"]
    sql = f"""CREATE STREAM m (a INT, ts TIMESTAMP) TIMESTAMP BY ts;
        CREATE STREAM l (a INT, ts TIMESTAMP) TIMESTAMP BY ts{options[0]} LATE INTO m;
        CREATE STREAM s (a INT, ts TIMESTAMP) TIMESTAMP BY ts{options[1]} LATE INTO l;"""
    events: list[Event] = []
    for number in range(d.number(1, 25)):
        name = d.pick("sssslm")
        at = d.number(0, 30) * S // 2
        events.append(Beat(name, at) if d.chance(8) else Arrival(name, at, (number, at)))
    names = ("m", "l", "s")
    queries = [
        Section("query", f"of_{n}", body=d.pick(CONTINUOUS + PERIODIC).format(n)) for n in names
    ]
    return Story(
        sections=[
            Section("sql", body=sql),
            *queries,
            Section("input", events=[*events, Beat(None, 40 * S)]),
            *(Section("pushes", f"of_{n}") for n in names),
        ]
    )


@settings(max_examples=examples(60))
@given(chains(), st.integers(0, 9999))
def test_chains_agree_with_the_definition(story: Story, seed: int) -> None:
    declared = text.resolve(story)
    came = take_in(declared, story)
    for cut in CUTS:
        played = play(story, declared, Way(cut=cut, seed=seed))
        for name, output in declared.queries.items():
            want = expected(output, came)
            assert same_lines(want, played.pushes[name]), complaint(
                story, declared, name, want, played.pushes[name], cut
            )


@settings(max_examples=examples(15), deadline=None)
@given(chains(), st.integers(0, 9999))
def test_chains_come_back_after_crashes(story: Story, seed: int) -> None:
    declared = text.resolve(story)
    came = take_in(declared, story)
    with TemporaryDirectory() as data:
        host = play_crashing(story, declared, Way(cut="random", seed=seed), data, Random(seed))
        host.engine.close()
    for name, output in declared.queries.items():
        want = expected(output, came)
        assert same_lines(want, host.pushes[name]), complaint(
            story, declared, name, want, host.pushes[name], "crashes"
        )


def status(engine: Engine) -> dict[str, dict[str, Any]]:
    (rows,) = engine.execute("SHOW STREAMS")
    return {r["stream"]: r for r in rows.data.to_pylist()}  # type: ignore[union-attr]


def test_as_many_rows_arrive_as_were_late() -> None:
    """The reference's own example: the stream of the late rows has a clock, too."""
    engine = Engine()
    engine.execute(
        "CREATE STREAM l (a INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;"
        "CREATE STREAM s (a INT, t TIMESTAMP) TIMESTAMP BY t SLACK 2 s LATE INTO l"
    )
    report = engine.ingest("s", [[1, 100 * S], [2, 50 * S], [3, 20 * S], [4, 60 * S]])
    assert (report.accepted, report.late) == (1, 3)
    assert status(engine)["l"]["accepted"] == 3 and status(engine)["l"]["late"] == 0
    engine.heartbeat("l", 99 * S)
    (rows,) = engine.execute("SELECT a, t FROM l [RANGE 1 h]")
    assert sorted(rows_of(rows.data)) == [(2, 50 * S), (3, 20 * S), (4, 60 * S)]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("declared", "before", "reason"),
    [
        ("(a INT, t TIMESTAMP) TIMESTAMP BY t", lambda e: e.end("l"), "late rows after the end"),
        ("(a INT, t TIMESTAMP)", lambda e: None, "late rows before the engine's time is known"),
        (
            "(a INT NOT NULL, t TIMESTAMP) TIMESTAMP BY t",
            lambda e: None,
            "NULL in a NOT NULL column",
        ),
    ],
)
def test_what_the_other_stream_can_not_take_is_counted_there_and_harms_no_writer(
    declared: str, before: Any, reason: str
) -> None:
    engine = Engine()
    engine.execute(
        f"CREATE STREAM l {declared}; CREATE STREAM s (a INT, t TIMESTAMP) TIMESTAMP BY t LATE "
        "INTO l"
    )
    engine.execute("CREATE QUERY q AS SELECT a FROM s")
    reader = engine.subscribe("q")
    before(engine)
    report = engine.ingest("s", [[1, 9 * S], [None, 5 * S], [2, 10 * S]])
    assert (report.accepted, report.late) == (2, 1)
    assert engine.runtime.inputs["l"].counts.refused == {reason: 1}
    assert [rows_of(p.data) for p in reader.take()] == [[(1,), (2,)]]
    assert status(engine)["l"]["refused"] == 1


def test_late_rows_of_a_stream_that_is_not_durable_come_back_with_the_other_one(
    tmp_path: Path,
) -> None:
    engine = Engine(str(tmp_path))
    engine.execute(
        "CREATE STREAM l (a INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h WITH (durability = sync)"
    )
    engine.execute(
        "CREATE STREAM s (a INT, t TIMESTAMP) TIMESTAMP BY t LATE INTO l WITH (durability = none)"
    )
    engine.ingest("s", [[1, 100 * S], [2, 50 * S], [3, 20 * S]])
    engine.heartbeat("l", 60 * S)
    engine.saver.durable.close()  # type: ignore[union-attr]
    engine.saver.catalog.close()  # type: ignore[union-attr]
    engine = Engine(str(tmp_path))
    (rows,) = engine.execute("SELECT a FROM l [RANGE 1 h]")
    assert rows_of(rows.data) == [(2,), (3,)]  # type: ignore[union-attr]
    assert engine.runtime.inputs["l"].moved_up
    engine.close()


def test_a_condition_on_the_timestamp_column_skips_no_late_rows_of_an_archive() -> None:
    """Their instants are later than the column says, so `t < x` says nothing of when they came."""
    catalog = Catalog()
    found = bind_create_stream(
        parse_one("CREATE STREAM l (a INT, t TIMESTAMP) TIMESTAMP BY t ARCHIVE"), catalog
    )  # type: ignore[arg-type]
    catalog.streams["l"] = found
    asked = (
        "SELECT a FROM ARCHIVE l WHERE t BETWEEN TIMESTAMP '1970-01-01 00:00:05' AND "
        "TIMESTAMP '1970-01-01 00:00:09'"
    )
    plan = bind_query(parse_one(asked), catalog, persistent=False).child  # type: ignore[arg-type]
    (narrow,) = needed(plan, 100 * S).values()
    (wide,) = needed(plan, 100 * S, {"l"}).values()
    assert (narrow.since, narrow.upto) == (5 * S - 1, 9 * S)
    assert (wide.since, wide.upto) == (5 * S - 1, 100 * S)


def test_late_rows_after_the_last_instant_are_refused() -> None:
    """None is left at which they could come."""
    engine = Engine()
    engine.execute("CREATE STREAM l (v INT, t TIMESTAMP) TIMESTAMP BY t")
    engine.execute("CREATE STREAM s (v INT, t TIMESTAMP) TIMESTAMP BY t LATE INTO l")
    engine.ingest("s", [[1, 10]])
    engine.heartbeat("l", MAX_INSTANT)
    assert engine.ingest("s", [[2, 5]]).late == 1
    counts = engine.runtime.inputs["l"].counts
    assert (counts.accepted, dict(counts.refused)) == (0, {"late rows after the last instant": 1})


def test_columns_of_one_name_stand_at_one_place() -> None:
    engine = Engine()
    engine.execute("CREATE STREAM l (b INT, a INT, ts TIMESTAMP)")
    with pytest.raises(QueryError) as problem:
        engine.execute("CREATE STREAM s (A INT, b INT, ts TIMESTAMP) TIMESTAMP BY ts LATE INTO l")
    assert "late rows have `A` as column 1, and l has it as column 2" in str(problem.value)
    engine.execute("CREATE STREAM s (x INT, y INT, ts TIMESTAMP) TIMESTAMP BY ts LATE INTO l")
