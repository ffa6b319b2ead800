"""What is kept of streams without RETAIN: what SELECT answers from it, and since when it says that
this is complete."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.api import Rows
from dsms.engine import Engine
from dsms.errors import DsmsError, QueryError, UsageError
from dsms.settings import Settings
from dsms.sql import logical as lp
from dsms.sql.ast import SelectStatement
from dsms.sql.binder import bind_query
from dsms.sql.parser import parse_one
from dsms.sql.types import ALWAYS
from dsms.state.batch import Batch
from dsms.state.recent import Recent, size
from dsms.state.ring import Ring
from dsms.tables import versioned
from tests.archives import killed
from tests.effort import examples
from tests.generate.stories import one_time
from tests.oracle import Oracle
from tests.oracle.values import canons
from tests.stories import text
from tests.stories.judge import followed, take_in
from tests.stories.model import Story
from tests.stories.play import Way, feed, rows_of

S = 1_000_000
STREAM = "CREATE STREAM s (v INT, t TIMESTAMP) TIMESTAMP BY t"
OFF = {"retain_default": 0, "retain_default_rows": 0}


def engine_with(count: int = 0, clauses: str = "", data: Any = None, **given: Any) -> Engine:
    """Rows 0, 1, ... at 0 s, 1 s, ..., and the clock at the last."""
    engine = Engine(data, Settings(**given))
    engine.execute(f"{STREAM} {clauses}")
    fill(engine, 0, count)
    return engine


def fill(engine: Engine, first: int, stop: int) -> None:
    for k in range(first, stop):
        engine.ingest("s", [[k, k * S]])
    if stop > first:
        engine.heartbeat("s", (stop - 1) * S)


def ask(engine: Engine, sql: str) -> tuple[list[Any], int | None]:
    """The first column of the answer, and since when it is complete (µs)."""
    (rows,) = engine.execute(sql)
    assert isinstance(rows, Rows)
    return rows.data.column(0).to_pylist(), rows.since


def shown(engine: Engine, what: str = "STREAMS") -> list[dict[str, Any]]:
    (rows,) = engine.execute(f"SHOW {what}")
    assert isinstance(rows, Rows)
    return rows.data.to_pylist()


# ---------------------------------------------------------------- the newest rows by themselves


def batch(first: int, stamps: list[int]) -> Batch:
    ts = np.array(stamps, np.int64)
    numbers = np.arange(first, first + len(ts), dtype=np.int64)
    return Batch(ts, None, None, (numbers,), (pa.array(numbers),))


@settings(max_examples=examples(200))
@given(
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), max_size=30),
    st.integers(0, 12),
    st.integers(0, 12),
    st.lists(st.integers(0, 29), max_size=3),
    st.randoms(use_true_random=False),
)
def test_what_is_held_is_what_came_behind_what_went(steps, length, rows, drops, random) -> None:
    recent, came, clock, last = Recent(), [], 0, 0
    for k, gaps in enumerate(steps):
        stamps = [clock := clock + gap for gap in gaps]
        recent.add(batch(len(came), stamps))
        came += stamps
        last = max(last, clock)
        recent.keep(length, rows)
        if k in drops and recent.count:
            recent.drop()
        held = [int(n) for b in recent.rows(ALWAYS) for n in b.number]
        # no row behind `reach` is missing, none before it is there
        assert held == [n for n, ts in enumerate(came) if ts > recent.reach]
        since, upto = sorted((random.randint(-1, clock + 1), random.randint(-1, clock + 1)))
        found = [int(n) for b in recent.rows(since, upto) for n in b.number]
        assert found == [n for n in held if since < came[n] <= upto]
        if not drops:  # what the budget asks for is there
            assert set(held) >= {n for n, ts in enumerate(came) if ts > clock - length} - {
                n for n, ts in enumerate(came) if ts <= recent.reach and n < len(came) - rows
            }
            assert recent.reach <= clock - length or len(came) <= rows or recent.reach == ALWAYS
    assert recent.nbytes == sum(k.taken for k in (*recent._large, *recent._joined, *recent._small))


def test_small_batches_are_put_together_in_order() -> None:
    recent = Recent()
    for k in range(10_000):
        recent.add(batch(k, [k]))
    recent.add(batch(10_000, list(range(10_000, 20_000))))
    recent.add(batch(20_000, [20_000]))
    assert [int(n) for b in recent.rows(ALWAYS) for n in b.number] == list(range(20_001))
    assert len(recent.rows(ALWAYS)) < 200
    assert recent.nbytes == sum(k.taken for k in (*recent._large, *recent._joined, *recent._small))


def test_no_memory_of_arrival_numbers_is_held() -> None:
    """Not even by the one row of an instant that others may still follow, a piece of many."""
    engine = engine_with()
    for first in range(0, 3_000, 1_000):
        engine.ingest("s", {"v": range(first, first + 1_000), "t": np.arange(first, first + 1_000)})
    recent = engine.runtime.recents.streams["s"]
    assert [len(k.rows) for k in recent._large] == [999, 1, 999, 1, 999]
    assert all(kept.rows.ids == () for kept in recent._large)
    (part,) = recent.rows(1_500, 1_700)
    assert part.number.tolist() == list(range(1_501, 1_701))


def test_what_is_written_down_has_its_arrival_numbers() -> None:
    recent = Recent()
    recent.add(batch(7, [1]))
    recent.add(batch(8, list(range(2, 1_002))))
    recent.add(batch(1_008, [1_002]))
    state = recent.__getstate__()
    (_, (rows, _)), ((last, _),) = state["_large"], state["_small"]
    assert (rows.number[0], rows.number[-1], last.number[0]) == (8, 1_007, 1_008)
    again = object.__new__(Recent)
    again.__setstate__(state)
    assert again.nbytes == recent.nbytes and again.count == recent.count
    assert [b.number.tolist() for b in again.rows(3, 5)] == [[10, 11]]


def test_of_a_batch_that_is_too_large_the_newest_rows_are_copied() -> None:
    recent = Recent()
    recent.add(batch(0, [0, 1]))
    rows = batch(2, list(range(2, 10_002)))
    recent.add(rows, size(rows) // 3)
    (held,) = recent.rows(ALWAYS)
    assert 4_000 < len(held) <= 5_000 and int(held.ts[-1]) == 10_001
    assert recent.reach == int(held.ts[0]) - 1 and recent.nbytes <= size(rows) // 3 + 1024
    recent.add(batch(10_002, [10_002] * 10_000), 1_000)  # of one instant: all or nothing
    assert recent.rows(ALWAYS) == [] and recent.reach == 10_002


# ---------------------------------------------------------------- against the oracle


RETAINS = ("", "", "RETAIN 3 s SUBWINDOW 1 s", "RETAIN 7 s SUBWINDOW 2 s")


@st.composite
def budgets(draw: Any) -> dict[str, int]:
    """Small ones, and none."""
    return {
        "retain_default": draw(st.sampled_from([0, 1, 2 * S, 5 * S, 600 * S])),
        "retain_default_rows": draw(st.sampled_from([0, 1, 3, 8, 1_000_000])),
        "retain_default_bytes": draw(st.sampled_from([0, 3_000, 9_000, 256 << 20])),
    }


@settings(max_examples=examples(120))
@given(one_time(), budgets(), st.sampled_from(RETAINS), st.integers(0, 9999))
def test_answers_are_those_over_the_rows_that_are_kept(
    pair: tuple[Story, str], budget: dict[str, int], retain: str, seed: int
) -> None:
    story, sql = pair
    declared = text.resolve(story)
    came = take_in(declared, story)
    statement = parse_one(sql)
    assert isinstance(statement, SelectStatement)
    output = bind_query(statement, declared.catalog, persistent=False)
    at = followed(output, came)
    engine = Engine(settings=Settings(**budget))
    for section in story.of("sql"):
        engine.execute(re.sub(r"RETAIN 1 HOUR", retain, section.body))
    feed(engine, declared, list(story.events()), Way(cut="random", seed=seed))
    streams: dict[str, Recent | Ring] = dict(
        engine.runtime.rings if retain else engine.runtime.recents.streams
    )
    try:
        (rows,) = engine.execute(sql)
    except UsageError as error:
        assert error.code == "DS407" and not streams, error
        return
    except QueryError as error:
        assert error.code in ("DS701", "DS702", "DS703"), error
        return
    assert isinstance(rows, Rows)
    found = Counter(map(canons, rows_of(rows.data)))
    if rows.since is None:
        assert found == answer(output, came.streams, came.tables, at)
    if not streams or any(t.forgotten > ALWAYS for t in engine.runtime.tables.values()):
        return  # rows go that a non-retroactive table has forgotten
    reach = {name: streams[name.casefold()].reach for name in came.streams}
    kept = {n: [r for r in rs if r.ts > reach[n]] for n, rs in came.streams.items()}
    assert found == answer(output, kept, came.tables, at), text.render(story, declared)
    if rows.since is not None:  # never too early: what else has come since then changes nothing
        more = {
            n: [r for r in rs if r.ts > reach[n] or r.ts >= rows.since]
            for n, rs in came.streams.items()
        }
        assert found == answer(output, more, came.tables, at)
    with_all = sql + " WITH (complete = required)"
    if rows.since is not None:
        with pytest.raises(UsageError, match="DS407"):
            engine.execute(with_all)
    else:
        engine.execute(with_all)


def answer(output: lp.Output, streams: Any, tables: Any, at: int) -> Counter:
    return Counter(canons(f.values) for f in Oracle(output, streams, tables).answer(at))


# ---------------------------------------------------------------- statements


def test_a_newcomer_sees_what_he_has_sent() -> None:
    engine = engine_with(5)
    assert ask(engine, "SELECT v FROM s") == ([0, 1, 2, 3, 4], None)
    assert ask(engine, "SELECT v FROM s [RANGE 2 s]") == ([3, 4], None)
    assert ask(engine, "SELECT v FROM s WITH (complete = required)") == ([0, 1, 2, 3, 4], None)
    (line,) = shown(engine)
    assert (line["kept"], line["since"]) == (5, None)


def test_what_has_gone_is_told() -> None:
    engine = engine_with(10, retain_default=3 * S, retain_default_rows=0)
    assert ask(engine, "SELECT v FROM s [RANGE 3 s]") == ([7, 8, 9], None)
    assert ask(engine, "SELECT v FROM s [RANGE 4 s]") == ([7, 8, 9], 6 * S + 1)
    assert ask(engine, "SELECT v FROM s [ROWS 3]") == ([7, 8, 9], None)
    assert ask(engine, "SELECT v FROM s [ROWS 4]") == ([7, 8, 9], 6 * S + 1)
    assert ask(engine, "SELECT COUNT(*) FROM s") == ([3], 6 * S + 1)
    (line,) = shown(engine)
    assert (line["kept"], line["since"]) == (3, 6 * S + 1)
    with pytest.raises(UsageError, match=r"DS407.*newest rows, which are complete from 1970-01"):
        engine.execute("SELECT COUNT(*) FROM s WITH (complete = required)")
    engine.execute("CREATE TABLE r (v INT)")  # whose rows could not say it
    with pytest.raises(UsageError, match="DS407"):
        engine.execute("INSERT INTO r SELECT v FROM s")
    engine.execute("INSERT INTO r SELECT v FROM s [RANGE 2 s]")
    assert sorted(ask(engine, "SELECT v FROM r")[0]) == [8, 9]


def test_the_newest_rows_stay_however_old_they_are() -> None:
    engine = engine_with(10, retain_default=3 * S, retain_default_rows=5)
    assert ask(engine, "SELECT v FROM s")[0] == [5, 6, 7, 8, 9]
    engine.heartbeat("s", 1_000 * S)
    assert ask(engine, "SELECT v FROM s")[0] == [5, 6, 7, 8, 9]


def test_off_there_is_nothing() -> None:
    engine = engine_with(3, **OFF)
    with pytest.raises(UsageError, match=r"DS407.*keeps no rows"):
        engine.execute("SELECT v FROM s")
    (line,) = shown(engine)
    assert (line["kept"], line["since"]) == (0, 2 * S + 1)


def test_what_windows_of_continuous_queries_reach_is_there() -> None:
    engine = engine_with(0, retain_default=3 * S, retain_default_rows=0)
    engine.execute("CREATE QUERY q AS SELECT SUM(v) FROM s [RANGE 8 s]")
    engine.execute("CREATE QUERY p AS SELECT v FROM s [ROWS 2]")
    fill(engine, 0, 20)
    assert ask(engine, "SELECT v FROM s [RANGE 8 s]") == (list(range(12, 20)), None)
    engine.execute("DROP QUERY q")
    fill(engine, 20, 21)
    assert ask(engine, "SELECT v FROM s [RANGE 8 s]")[0] == [18, 19, 20]
    engine.execute("CREATE QUERY last AS SELECT SUM(v) FROM s [ROWS 6]")
    fill(engine, 21, 30)
    assert ask(engine, "SELECT v FROM s [ROWS 6]") == (list(range(24, 30)), None)


def test_the_stream_that_holds_most_makes_room() -> None:
    engine = engine_with(4, retain_default_bytes=20_000)
    engine.execute("CREATE STREAM big (x STRING)")
    engine.advance(0)
    for k in range(50):
        engine.advance(k * S)
        engine.ingest("big", [["x" * 100]] * 20)
    assert ask(engine, "SELECT v FROM s") == ([0, 1, 2, 3], None)
    held = {line["holder"]: line["bytes"] for line in shown(engine, "MEMORY LIKE 'kept'")}
    assert set(held) == {"s", "big"} and sum(held.values()) <= 20_000
    assert engine.runtime.recents.nbytes == sum(held.values())
    engine.execute("DROP STREAM big")
    assert engine.runtime.recents.nbytes == held["s"]
    assert engine.give_way(0) == 0 and engine.give_way(1) > 1
    assert ask(engine, "SELECT v FROM s") == ([1, 2, 3], 1)
    assert engine.give_way(1 << 30) == held["s"] // 4 * 3
    assert ask(engine, "SELECT v FROM s") == ([], 3 * S + 1)
    assert engine.give_way(1 << 30) == engine.runtime.recents.nbytes == 0


def test_a_stream_with_retain_keeps_what_it_says() -> None:
    engine = engine_with(10, "RETAIN 2 s SUBWINDOW 1 s")
    assert engine.runtime.recents.streams == {}
    assert ask(engine, "SELECT v FROM s") == ([8, 9], 7 * S + 1)


def test_streams_on_system_time_and_derived_ones() -> None:
    engine = Engine()
    engine.execute("CREATE STREAM s (v INT); CREATE STREAM d AS SELECT Istream(v + 1 AS w) FROM s")
    for k in range(3):
        engine.advance(k * S)
        engine.ingest("s", [[k]])
    engine.advance(10 * S)
    assert ask(engine, "SELECT v FROM s") == ([0, 1, 2], None)
    assert ask(engine, "SELECT w FROM d") == ([1, 2, 3], None)


def test_late_rows_are_where_they_go() -> None:
    engine = Engine()
    engine.execute(
        f"CREATE STREAM late (v INT, t TIMESTAMP) TIMESTAMP BY t; {STREAM} LATE INTO late"
    )
    engine.ingest("s", [[1, 5 * S], [2, 1 * S], [3, 6 * S]])
    engine.heartbeat("s", 6 * S)
    engine.heartbeat("late", 6 * S)
    assert ask(engine, "SELECT v FROM s") == ([1, 3], None)
    assert ask(engine, "SELECT v FROM late") == ([2], None)


def test_conditions_and_confidentiality_hold() -> None:
    engine = Engine(settings=Settings(retain_default=6 * S, retain_default_rows=0))
    engine.execute(
        "CREATE USER ann PASSWORD 'secret secret'; CREATE USER bob PASSWORD 'secret secret';"
        f"CREATE ROLE desk; {STREAM} CONFIDENTIAL FOR 4 s TO desk;"
        "GRANT SELECT ON s TO bob; GRANT desk TO ann; GRANT SELECT ON s TO ann WHERE v > 7"
    )
    fill(engine, 0, 10)
    found = {}
    for user in ("ann", "bob"):
        (rows,) = engine.execute("SELECT v FROM s", user=user)
        assert isinstance(rows, Rows)
        found[user] = (rows.data.column(0).to_pylist(), rows.since)
        (streams,) = engine.execute("SHOW STREAMS", user=user)
        assert isinstance(streams, Rows)
        told = streams.data.to_pylist()[0]
        assert (told["kept"] is None) == (user == "bob")
    # bob sees what is 4 s old; when younger rows have gone is not for him
    assert found == {"ann": ([8, 9], 3 * S + 1), "bob": ([4, 5], 3 * S + 1)}
    fill(engine, 10, 12)
    engine.heartbeat("s", 30 * S)
    engine.ingest("s", [[40, 40 * S]])
    engine.heartbeat("s", 41 * S)
    (rows,) = engine.execute("SELECT v FROM s", user="bob")
    assert isinstance(rows, Rows) and (rows.data.num_rows, rows.since) == (0, 11 * S + 1)


def test_the_clock_is_set_back() -> None:
    engine = engine_with(3)
    engine.heartbeat("s", 1_000 * S)
    engine.execute("ALTER STREAM s SET CLOCK TO 3 s")
    fill(engine, 3, 5)
    assert ask(engine, "SELECT v FROM s") == ([0, 1, 2, 3, 4], None)


def test_a_non_retroactive_table_is_not_asked_of_what_it_has_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(versioned, "_COMPACT_FROM", 1)
    engine = engine_with(1)
    engine.execute("CREATE TABLE n (v INT PRIMARY KEY, w INT) NON RETROACTIVE")
    engine.execute("INSERT INTO n VALUES (1, 10) AT '1970-01-01 00:00:00'")
    joined = "SELECT w FROM s, n WHERE n.v = 1"
    fill(engine, 1, 3)
    assert ask(engine, joined) == ([10, 10, 10], None)
    for k in range(3, 9):
        engine.execute(f"UPDATE n SET w = {k} WHERE v = 1 AT '1970-01-01 00:00:0{k}'")
        fill(engine, k, k + 1)
        engine.runtime.forget()
    forgotten = engine.runtime.tables["n"].forgotten
    assert forgotten > 5 * S
    assert ask(engine, joined) == (list(range(forgotten // S, 9)), forgotten)
    assert ask(engine, "SELECT v FROM s")[1] is None
    assert ask(engine, f"SELECT SUM(w) FROM ({joined.replace('s,', 's [NOW],')}) q")[1] is None


def test_what_was_kept_at_a_stop_is_there_again(tmp_path: Any) -> None:
    engine = engine_with(5, data=str(tmp_path))
    engine.close()
    again = Engine(str(tmp_path))
    assert ask(again, "SELECT v FROM s") == ([0, 1, 2, 3, 4], None)
    fill(again, 5, 8)
    assert ask(again, "SELECT v FROM s") == ([0, 1, 2, 3, 4, 5, 6, 7], None)
    killed(again)
    again = Engine(str(tmp_path), Settings(retain_default=0, retain_default_rows=6))
    assert ask(again, "SELECT v FROM s [ROWS 6]") == ([2, 3, 4, 5, 6, 7], None)
    assert again.runtime.recents.nbytes == again.runtime.recents.streams["s"].nbytes
    again.close()
    off = Engine(str(tmp_path), Settings(**OFF))
    with pytest.raises(UsageError, match=r"DS407.*keeps no rows"):
        off.execute("SELECT v FROM s")
    off.close()
    on = Engine(str(tmp_path))  # the last stop had nothing to write down
    assert ask(on, "SELECT v FROM s") == ([2, 3, 4, 5, 6, 7], S + 1)
    on.close()


def test_after_a_crash_there_is_what_the_journal_repeats(tmp_path: Any) -> None:
    engine = engine_with(5, data=str(tmp_path))
    assert engine.saver is not None
    engine.saver.checkpointer.make(wait=False)  # as when the journal has grown
    fill(engine, 5, 8)
    killed(engine)
    again = Engine(str(tmp_path))
    assert ask(again, "SELECT v FROM s") == ([5, 6, 7], 4 * S + 1)
    assert ask(again, "SELECT v FROM s [RANGE 3 s]") == ([5, 6, 7], None)
    assert again.saver is not None
    again.saver.checkpointer.make(wait=False)
    again.close()  # nothing has come since, but what is kept is not written down yet
    last = Engine(str(tmp_path))
    assert ask(last, "SELECT v FROM s") == ([5, 6, 7], 4 * S + 1)
    last.close()


def test_options_of_a_select_are_known() -> None:
    engine = engine_with(1)
    for wrong, code in (("complet = required", "DS214"), ("complete = maybe", "DS215")):
        with pytest.raises(DsmsError, match=code):
            engine.execute(f"SELECT v FROM s WITH ({wrong})")
    with pytest.raises(DsmsError, match="DS214"):
        engine.execute("CREATE QUERY q AS SELECT v FROM s WITH (complete = required)")
    assert ask(engine, "SELECT v FROM s WITH (complete = any)") == ([0], None)


def test_a_data_frame_is_never_silently_a_part() -> None:
    pytest.importorskip("pyspark")
    from dsms_client.results import RowSet
    from dsms_spark.source_server import whole

    message = {"columns": ["a"], "types": ["INT"], "rows": [[1]], "as_of": 5}
    assert list(map(tuple, whole(RowSet(message)).rows)) == [(1,)]
    with pytest.raises(UsageError, match=r"DS407.*from 1970-01-01T00:00:00\.000003Z on only"):
        whole(RowSet({**message, "since": 3}))
