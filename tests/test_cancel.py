"""Work comes in bounded pieces: it can be left between them, and nothing depends on where they
end."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import numpy as np
import pyarrow as pa
import pytest

from dsms.api import Cancel, Chunk, Rows, Subscription
from dsms.engine import Engine
from dsms.errors import UsageError
from dsms.oneshot.run import OneShot
from dsms.oneshot.steps import STRETCH
from dsms.operators import group, join, nrr, pieces, semijoin
from dsms.reads.watch import watching
from dsms.running import pipeline
from dsms.running.prepare import prepare
from dsms.settings import Settings
from dsms.sql import logical as lp
from dsms.sql.ast import SelectStatement
from dsms.sql.binder import bind_query
from dsms.sql.catalog import QueryDef
from dsms.sql.parser import parse_one
from dsms.sql.types import ALWAYS
from dsms.state import intern
from tests.effort import effort, sampled
from tests.waiting import WAIT

STREAMS = "".join(
    f"CREATE STREAM {s} (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;" for s in "abc"
)
TABLE = "".join(
    f"CREATE TABLE {r} (k INT PRIMARY KEY, w INT) {kind};INSERT INTO {r} VALUES (0, 1), (1, 2), "
    "(2, 3) AT '1970-01-01';"
    for r, kind in (("r", ""), ("n", "NON RETROACTIVE"))
)
WIDE = "[RANGE 1 h]"
CROSS = f"SELECT a.v, b.v, c.v FROM a {WIDE}, b {WIDE}, c {WIDE}"


class Tripped(Cancel):
    """Cancelled from the n-th look on; `seen(look number)` is called at each."""

    def __init__(self, after: int, seen=lambda n: None) -> None:
        super().__init__()
        self.left, self.looks, self.seen = after, 0, seen

    def check(self) -> None:
        self.looks += 1
        self.seen(self.looks)
        if self.looks > self.left:
            self.set()
        super().check()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all batches of join results."""
    sizes: list[int] = []
    results = join.JoinOp._results

    def counted(self, *args):
        out = results(self, *args)
        sizes.append(len(out))
        return out

    monkeypatch.setattr(join.JoinOp, "_results", counted)
    return sizes


def rows(n: int, step: int = 10, first: int = 0) -> pa.RecordBatch:
    at = np.arange(first, first + n)
    return pa.record_batch({"k": at % 3, "v": at, "t": at * step})


def filled(n: int, step_rows: int = 1 << 22) -> Engine:
    engine = Engine(settings=Settings(step_rows=step_rows))
    engine.execute(STREAMS)
    for s in "abc":
        engine.ingest(s, rows(n))
        engine.heartbeat(s, 10 * n)
    return engine


def counted(engine: Engine, sql: str) -> list[int]:
    (result,) = engine.execute(sql)
    assert isinstance(result, Rows)
    return result.data.column(0).to_pylist()


def standing(engine: Engine, query: str) -> list[int]:
    answer = engine.runtime.queries[query].answer()
    assert answer is not None
    return answer.column(0).to_pylist()


def through_operators(engine: Engine, sql: str, cancel: Cancel) -> None:
    """A SELECT once through the operators that persistent queries run."""
    statement = parse_one(sql)
    assert isinstance(statement, SelectStatement)
    bound = bind_query(statement, engine.runtime.catalog, persistent=False)
    core = bound.child.child if isinstance(bound.child, lp.Sort) else bound.child
    plan = engine.runtime.plan(lp.Output(core, "rstream", True, False, None, core.schema))
    running = prepare(engine.runtime, QueryDef("", ""), plan)
    for leaf, stream in running.streams.items():
        for batch in engine.runtime.rings[stream].rows(ALWAYS):
            running.pipeline.sources[leaf].push(batch)
    with watching(running, engine.runtime.settings.statement_bytes, cancel) as look:
        running.start()
        running.advance(engine.runtime.clock_of(sorted(set(running.streams.values()))))
        running.check()
        look()


# -- one-time queries ------------------------------------------------------------------------------


def test_a_cross_join_stops_when_another_thread_says_so():
    """8 000 000 000 results would take hours."""
    engine, looked, caught = filled(2000), threading.Event(), []
    cancel = Tripped(1 << 62, lambda n: looked.set() if n == 30 else None)

    def ask() -> None:
        try:
            engine.execute(CROSS, cancel)
        except UsageError as error:
            caught.append(error.code)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    assert looked.wait(WAIT)
    cancel.set()
    asking.join(WAIT)
    assert caught == ["DS610"]
    assert counted(engine, "SELECT COUNT(*) FROM a [RANGE 1 h]") == [2000]


@pytest.mark.parametrize(
    "query",
    [
        CROSS,
        CROSS.replace("SELECT", "SELECT DISTINCT"),
        f"{CROSS} ORDER BY a.v",
        f"SELECT a.v, b.v FROM a {WIDE} LEFT JOIN b {WIDE} ON a.v < b.v",
        f"SELECT a.v FROM a {WIDE} WHERE NOT EXISTS (SELECT * FROM b {WIDE} WHERE b.v < a.v)",
    ],
)
def test_few_results_are_made_between_two_looks(query, made, monkeypatch):
    monkeypatch.setattr(join, "PART", 1000)
    engine, at_look = filled(60), [0]
    cancel = Tripped(1 << 62, lambda n: at_look.append(sum(made)))
    through_operators(engine, query, cancel)
    most = 1000 + 60 * 60  # a piece ends behind the row that fills it
    assert sum(made) >= 1770
    assert max(np.diff([*at_look, sum(made)])) <= most
    for after in (0, 1, 5, cancel.looks // 2, cancel.looks - 1):
        with pytest.raises(UsageError, match="DS610"):
            through_operators(engine, query, Tripped(after))


def test_what_a_cancelled_query_has_kept_is_given_back_at_once():
    engine = filled(60)
    kept: list[weakref.ref[np.ndarray]] = []

    def look(n: int) -> None:
        kept.extend(
            weakref.ref(o.head) for o in gc.get_objects() if isinstance(o, join.JoinOp) and n == 8
        )

    gc.collect()
    gc.disable()
    try:
        with pytest.raises(UsageError, match="DS610"):
            through_operators(engine, CROSS, Tripped(20, look))
        assert kept
        assert all(ref() is None for ref in kept)
    finally:
        gc.enable()


def test_an_insert_of_a_cancelled_query_changes_nothing():
    engine = filled(50)
    engine.execute("CREATE TABLE r (v INT PRIMARY KEY)")
    with pytest.raises(UsageError, match="DS610"):
        engine.execute(f"INSERT INTO r SELECT a.v FROM a {WIDE}, b {WIDE}", Tripped(4))
    assert counted(engine, "SELECT COUNT(*) FROM r") == [0]


# -- persistent queries ----------------------------------------------------------------------------

QUERIES = (
    "SELECT a.v, b.v FROM a [RANGE 1 ms], b [RANGE 1 ms] WHERE a.k = b.k",
    "SELECT a.v, b.v FROM a [RANGE 300 us], b [RANGE 1 ms], c [ROWS 3] WHERE a.k = b.k AND b.k <= "
    "c.k",
    "SELECT a.v, b.v FROM a [RANGE 300 us] FULL JOIN b [ROWS 7] ON a.k < b.k",
    "SELECT k, COUNT(*), MAX(v) FROM (SELECT a.k, b.v FROM a [RANGE 1 ms], b [RANGE 500 us]) "
    "GROUP BY k",
    "SELECT DISTINCT a.v, c.k FROM a [ROWS 9], c [RANGE 300 us] WHERE a.k < c.v",
    "SELECT a.v FROM a [RANGE 1 ms] WHERE NOT EXISTS (SELECT * FROM b [RANGE 200 us] WHERE b.k < "
    "a.k)",
    "SELECT a.k FROM a [RANGE 1 ms] EXCEPT ALL SELECT b.k FROM b [RANGE 300 us], c [RANGE 50 us]",
    "SELECT a.v FROM a [RANGE 1 ms] WHERE a.k IN (SELECT b.k FROM b [RANGE 10 us])",
    "SELECT a.v FROM a [RANGE 1 ms] WHERE a.k NOT IN (SELECT b.k FROM b [RANGE 10 us] WHERE b.k < "
    "2)",
    "SELECT DISTINCT a.k, b.v / 9 FROM a [RANGE 300 us], b [ROWS 20]",
    "SELECT MAX(v) - MIN(v), SUM(v) FROM a [RANGE 200 us] GROUP BY v / 7",
    "SELECT a.v, b.v, n.w FROM a [RANGE 300 us], b [RANGE 100 us], n WHERE n.w <= a.k",
    "SELECT a.v, n.w FROM a LEFT JOIN n ON n.k < a.k",
    "SELECT a.v, n.w FROM a [ROWS 5] LEFT JOIN n ON n.k <= a.k",
    "SELECT c.v, n.w FROM a [ROWS 3], c [RANGE 50 us], n WHERE n.k = a.k AND a.k = c.k",
    "SELECT a.v, r.w FROM a [RANGE 100 us], b [RANGE 1 ms], r WHERE a.k = r.k AND a.k = b.k",
)


# of steps, of pieces; up to which halves of joins are cut; how many results make a step smaller
SIZES = (
    (1, 1, None, None),
    (7, 10, None, None),
    (100, 1, None, None),
    (100, 7, 5, 30),
    (100, 50, 1 << 20, None),
)
GROWTH = 1.5 if effort() else 4  # how much later each ingest is cancelled


@contextmanager
def sizes(
    slice_: int, part: int, halves: int | None = None, many: int | None = None
) -> Iterator[None]:
    """Steps of so many rows, pieces of so many results."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "SLICE", slice_)
        for module in (join, nrr, semijoin):
            patch.setattr(module, "PART", part)
        patch.setattr(pieces, "STRETCH", part)
        patch.setattr(group, "SLICE", part)
        patch.setattr(pipeline, "MANY", many or pipeline.MANY)
        if halves is not None:
            patch.setattr(join, "SPARE_CORE", True)
            patch.setattr(join, "HALVES_FROM", 2)
            patch.setattr(join, "HALVES_UNTIL", halves)
        yield


def started(
    query: str, strategy: str = "upa", step_rows: int = 1 << 22
) -> tuple[Engine, Subscription]:
    engine = Engine(settings=Settings(step_rows=step_rows))
    engine.execute(STREAMS + TABLE)
    engine.execute(f"CREATE QUERY q AS {query} WITH (strategy = {strategy})")
    return engine, engine.subscribe("q")


def feed(engine: Engine, cancel_after: int | None = None) -> int:
    """Rows for all streams, table changes between; how many ingests were cancelled."""
    cancelled = 0
    for part in range(3):
        for s in "abc":
            try:
                cancel = None if cancel_after is None else Tripped(cancel_after)
                engine.ingest(s, rows(40, {"a": 10, "b": 9, "c": 11}[s], 40 * part), cancel=cancel)
            except UsageError as error:
                assert error.code == "DS610"
                cancelled += 1
        engine.execute(f"UPDATE r SET w = w + 1 WHERE k = {part}")
    for s in "abc":
        engine.heartbeat(s, 10_000)
    return cancelled


def told(reader: Subscription) -> list[tuple[object, ...]]:
    out: list[tuple[object, ...]] = []
    for push in reader.take():
        at = (
            [push.at] * (push.data.num_rows if push.data else 0)
            if push.ats is None
            else push.ats.to_pylist()
        )
        values = zip(*(c.to_pylist() for c in push.data.columns), strict=True) if push.data else []
        lines = [
            (push.seq + i, push.kind, t, *v)
            for i, (t, v) in enumerate(zip(at, values, strict=False))
        ]
        out += lines or [(push.kind, push.code)]
    return out


@pytest.mark.parametrize(
    ("strategy", "query"),
    [*(("upa", q) for q in QUERIES), *sampled((("nt", q) for q in QUERIES), 4)],
)
def test_answers_do_not_depend_on_the_sizes_of_steps_and_pieces(strategy, query):
    engine, reader = started(query, strategy)
    feed(engine)
    expected = told(reader)
    assert len(expected) > 20
    at = QUERIES.index(query)
    for slice_, part, halves, many in SIZES if effort() else (SIZES[at % 5], SIZES[(at + 2) % 5]):
        with sizes(slice_, part, halves, many):
            engine, reader = started(query, strategy)
            feed(engine)
        assert told(reader) == expected


@pytest.mark.parametrize("query", sampled(QUERIES, 2))
def test_a_cancelled_ingest_loses_nothing(query):
    plain, reader = started(query)
    feed(plain)
    expected = told(reader)
    for after in (round(GROWTH**n) for n in count()):
        with sizes(7, 20):
            engine, reader = started(query)
            engine.execute("CREATE QUERY other AS SELECT COUNT(*) FROM a")
            cancelled = feed(engine, after)
        if "r.w" not in query:  # the table changes at another instant where rows wait
            assert told(reader) == expected
        assert counted(engine, "SELECT COUNT(*) FROM a [RANGE 1 h]") == [120]
        assert standing(engine, "other") == [120]
        if not cancelled:
            assert after > 3
            return


def test_what_is_left_of_a_step_keeps_its_tables():
    """A change of the table can't come before what the interrupted step has read."""
    with sizes(100, 5):
        engine, reader = started(
            "SELECT a.v, b.v, r.w FROM a [RANGE 1 ms], b [RANGE 1 ms], r WHERE a.k = r.k"
        )
        engine.ingest("a", rows(50))
        with pytest.raises(UsageError, match="DS610"):
            engine.ingest("b", rows(50), cancel=Tripped(3))
        query = engine.runtime.queries["q"]
        assert query.clock < query.begun == 489
        with pytest.raises(UsageError, match="DS523"):
            engine.execute(
                f"UPDATE r SET w = 0 AT TIMESTAMP '1970-01-01 00:00:00.{query.begun:06}'"
            )
        engine.execute("UPDATE r SET w = 0")
        engine.heartbeat("a", 5000)
        engine.heartbeat("b", 5000)
    plain, whole = started(
        "SELECT a.v, b.v, r.w FROM a [RANGE 1 ms], b [RANGE 1 ms], r WHERE a.k = r.k"
    )
    plain.ingest("a", rows(50))
    plain.ingest("b", rows(50))
    plain.execute("UPDATE r SET w = 0")
    plain.heartbeat("a", 5000)
    plain.heartbeat("b", 5000)
    assert told(reader) == told(whole)


def burst(n: int, at: int) -> dict[str, list[int]]:
    return {"k": [0] * n, "v": list(range(n)), "t": [at] * n}


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT a.v FROM a {WIDE}, b {WIDE} WHERE a.k = b.k",
        "SELECT a.v FROM a [ROWS 100], b [ROWS 100]",
        f"SELECT a.v, b.v FROM a {WIDE} LEFT JOIN b {WIDE} ON a.k = b.k",
        f"SELECT COUNT(*) FROM a {WIDE}, b {WIDE} WHERE a.v <= b.v + 100",
        f"SELECT a.v FROM a {WIDE}, b {WIDE} WHERE a.k = b.k EXCEPT SELECT c.v + 7 FROM c {WIDE}",
    ],
)
def test_an_explosive_instant_stops_its_query_and_no_other(query):
    """65² - 25² new results at 100 µs are too many, 400 and 225 before are not, wherever steps and
    pieces end."""
    stories = []
    for slice_, part, halves, most in (
        (100, 1 << 18, None, 3599),
        (1, 1, None, 3599),
        (7, 50, 20, 500),
    ):
        with sizes(slice_, part, halves):
            engine, reader = started(query, step_rows=most)
            engine.execute("CREATE QUERY other AS SELECT COUNT(*) FROM a")
            for s in "abc":
                engine.ingest(s, burst(20, 50))
            for s in "abc":
                engine.heartbeat(s, 60)
            for s in "abc":
                engine.ingest(
                    s,
                    {
                        name: [*values, *burst(40, 100)[name]]
                        for name, values in burst(5, 70).items()
                    },
                )
            for s in "abc":
                engine.heartbeat(s, 200)
        stories.append(told(reader))
        assert standing(engine, "other") == [65]
        failure = engine.runtime.queries["q"].failure
        assert failure and failure.code == "DS631"
        engine.execute("DROP QUERY q")
        engine.ingest("a", burst(1, 300))
    assert stories[0][-1] == ("end", "DS631")
    assert len(stories[0]) > 2
    assert all(story == stories[0] for story in stories)


@pytest.mark.parametrize("window", ["", " [ROWS 5000]"])
def test_results_with_a_table_at_one_instant_are_bounded(window, monkeypatch):
    """Whether the results of each row are kept or not; 60 rows x 30 are too many, 20 x 30 were
    not."""
    for room, part in ((1 << 12, 1 << 18), (1, 10), (7, 40)):
        monkeypatch.setattr(nrr, "PART", part)
        engine = Engine(settings=Settings(step_rows=1000))
        engine.execute(STREAMS + "CREATE TABLE n (k INT PRIMARY KEY, w INT) NON RETROACTIVE")
        engine.execute(
            "INSERT INTO n VALUES " + ",".join(f"({i}, 0)" for i in range(30)) + " AT '1970-01-01'"
        )
        engine.execute(f"CREATE QUERY q AS SELECT a.v, n.w FROM a{window}, n WHERE n.w <= a.v")
        for stage in engine.runtime.queries["q"].pipeline.stages:
            if hasattr(stage.operator, "room"):
                stage.operator.room = room
        reader = engine.subscribe("q")
        engine.ingest("a", {"k": [0] * 80, "v": [0] * 80, "t": [100] * 20 + [200] * 60})
        engine.heartbeat("a", 1000)
        pushed = told(reader)
        assert len(pushed) == 601 + (window != "")
        assert pushed[-1] == ("end", "DS631")


def test_one_row_with_too_many_partners_is_refused():
    for n, code in ((1000, None), (1001, "DS631")):
        engine, _ = started(f"SELECT a.v FROM a {WIDE}, b {WIDE}", step_rows=1000)
        engine.ingest("a", rows(n))
        engine.ingest("b", burst(1, 10 * n))
        for s in "ab":
            engine.heartbeat(s, 100_000)
        failure = engine.runtime.queries["q"].failure
        assert (failure and failure.code) == code


def test_steps_get_smaller_where_rows_make_many_and_larger_again():
    with sizes(64, 1 << 18, many=400):
        engine, _ = started("SELECT a.v FROM a [RANGE 200 us], b [RANGE 1 s] WHERE a.k = b.k")
        steps = engine.runtime.queries["q"].pipeline
        engine.ingest("b", rows(64, 1))
        engine.ingest("a", rows(64, 1))
        engine.heartbeat("b", 90)
        engine.heartbeat("a", 90)
        engine.ingest("a", rows(64, 1, 100))
        engine.ingest("b", rows(1, 1, 1000))
        engine.heartbeat("a", 10_000)
        small = steps.rows
        assert small < 16
        engine.heartbeat("b", 3_000_000)
        for part in range(10):
            engine.ingest("a", rows(64, 1, 4_000_000 + 100 * part))
            engine.heartbeat("a", 4_000_099 + 100 * part)
            engine.heartbeat("b", 4_000_099 + 100 * part)
        assert steps.rows > small


def test_a_cancelled_heartbeat_stands_and_the_next_call_goes_on():
    with sizes(7, 20):
        engine, reader = started(QUERIES[0])
        engine.ingest("a", rows(60))
        engine.ingest("b", {"k": [0], "v": [0], "t": [0]})
        with pytest.raises(UsageError, match="DS610"):
            engine.heartbeat("b", 10_000, Tripped(2))
        assert engine.runtime.inputs["b"].completed == 10_000
        assert engine.runtime.queries["q"].clock < 590
        engine.heartbeat("a", 600)
        assert engine.runtime.queries["q"].clock == 600
    assert [line[3] for line in told(reader) if line[1] == "insert"] == list(range(0, 60, 3))


def test_a_table_that_every_row_matches_is_no_way_around():
    for most, code in ((299, "DS631"), (300, None)):
        with sizes(100, 40):
            engine, reader = started("SELECT a.v FROM a, n", step_rows=most)
            engine.ingest("a", burst(10, 50))
            engine.ingest("a", burst(100, 60))
            engine.ingest("a", burst(1, 70))
        failure = engine.runtime.queries["q"].failure
        assert (failure and failure.code) == code
        assert sum(line[1] == "insert" for line in told(reader)) == 30 + (
            300 if code is None else 0
        )


def test_rows_that_come_and_go_together_are_handed_on_bit_by_bit():
    with sizes(1000, 500):
        engine, reader = started(
            f"SELECT a.v FROM a {WIDE} WHERE NOT EXISTS (SELECT * FROM b [RANGE 1 us] WHERE b.k = "
            "a.k)"
        )
        engine.ingest("a", burst(200, 10))
        engine.heartbeat("a", 10_000)
        engine.heartbeat("b", 10)
        engine.ingest("b", {"k": [0] * 50, "v": [0] * 50, "t": list(range(100, 600, 10))})
        engine.heartbeat("b", 1000)
    chunks = [len(item) for item in reader.take_chunks() if isinstance(item, Chunk)]
    assert sum(chunks) == 200 + 50 * 2 * 200
    assert max(chunks) <= 500 + 200


# -- what a statement may keep ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT DISTINCT a.v, b.v FROM a {WIDE}, b {WIDE}",
        f"SELECT a.v, b.v, COUNT(*) FROM a {WIDE}, b {WIDE} GROUP BY a.v, b.v",
        f"SELECT a.v, b.v FROM a {WIDE}, b {WIDE}",
        "INSERT INTO r SELECT a.v * 1000 + b.v, 0 FROM a [RANGE 1 h], b [RANGE 1 h]",
    ],
)
def test_a_statement_that_keeps_too_much_is_refused(query):
    engine = filled(200)
    engine.execute("CREATE TABLE r (k INT PRIMARY KEY, w INT)")
    engine.runtime.settings.statement_bytes = 1 << 20
    with pytest.raises(
        UsageError, match=r"DS633: running the query .* takes more than 1 MiB"
    ) as refused:
        engine.execute(query)
    assert "--statement-bytes" in (refused.value.hint or "")
    assert counted(engine, "SELECT COUNT(*) FROM r") == [0]
    engine.runtime.settings.statement_bytes = 1 << 30
    assert counted(engine, f"SELECT COUNT(*) FROM a {WIDE}, b {WIDE}") == [40_000]


def test_what_a_block_has_appended_is_bounded_too():
    engine = filled(20_000)
    engine.runtime.settings.statement_bytes = 1 << 20
    query = (
        "SELECT COUNT(*) FROM (SELECT a.v FROM a [RANGE 1 h INTERNAL], b [RANGE 1 h INTERNAL] "
        "WHERE a.v = b.v) AS q"
    )
    with pytest.raises(
        UsageError, match="DS632: the statement keeps more than 1 MiB while it runs"
    ) as refused:
        engine.execute(query)
    assert "--statement-bytes" in (refused.value.hint or "")


def test_a_query_cancelled_on_the_way_to_its_first_answer_is_not_there():
    engine, sql = Engine(), "CREATE QUERY q AS SELECT x.v, y.v FROM r AS x, r AS y WHERE x.v < y.v"
    engine.execute(
        "CREATE TABLE r (v INT PRIMARY KEY); INSERT INTO r VALUES "
        + ",".join(f"({i})" for i in range(90))
    )
    with sizes(100, 50):
        whole = Tripped(1 << 62)
        engine.execute(sql, whole)
        engine.execute("DROP QUERY q")
        for after in (1, 2, whole.looks // 2, whole.looks - 1):
            with pytest.raises(UsageError, match="DS610"):
                engine.execute(sql, Tripped(after))
            assert not engine.runtime.queries
            assert not engine.runtime.catalog.queries
        engine.execute(sql)
    engine.execute("INSERT INTO r VALUES (90) AT '2020-01-01'")
    assert len(standing(engine, "q")) == 91 * 90 / 2


def test_a_table_of_keys_that_grows_can_be_left(monkeypatch):
    monkeypatch.setattr(intern, "REFILL", 1000)
    looks: list[int] = []
    keys = intern.Intern(1)
    keys.codes([pa.array(np.arange(5000))], 5000)
    codes = keys.codes([pa.array(np.arange(40_000))], 40_000, lambda: looks.append(keys.fresh))
    assert codes.tolist() == list(range(40_000))
    assert len(looks) > 90
    assert max(np.diff(looks)) <= 1000


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, v, COUNT(*), MAX(v) FROM a [RANGE 1 h] GROUP BY k, v",
        "SELECT DISTINCT v FROM a [RANGE 1 h]",
        "SELECT v FROM a [RANGE 1 h] EXCEPT SELECT v + 1 FROM b [RANGE 1 h]",
    ],
)
def test_state_is_built_in_stretches(query, monkeypatch):
    engine = filled(2000)
    monkeypatch.setattr(pieces, "STRETCH", 100)
    monkeypatch.setattr(group, "SLICE", 100)
    whole = Tripped(1 << 62)
    through_operators(engine, query, whole)
    assert whole.looks > 20
    for after in range(5, whole.looks, 7):
        with pytest.raises(UsageError, match="DS610"):
            through_operators(engine, query, Tripped(after))


def test_a_cancel_between_two_chunks_of_rows_is_the_cancel():
    """What DuckDB's stream of rows says of an interruption then is an I/O error."""
    adhoc, cancel, seen = OneShot(), Cancel(), []

    def take(rows: pa.RecordBatch) -> None:
        seen.append(len(rows))
        cancel.set()
        adhoc._connection.interrupt()

    with pytest.raises(UsageError, match="DS610"):
        adhoc.sql(
            "SELECT a.range + b.range AS x FROM range(100000) a, range(100000) b WHERE a.range % "
            "7 = 1",
            {},
            take,
            cancel,
        )
    assert seen


class Counted(Cancel):
    """Counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def check(self) -> None:
        self.asked += 1
        super().check()


def many_rows(rows: int) -> Engine:
    """A stream with all its rows in one sub-window."""
    engine = Engine()
    engine.execute(
        "CREATE STREAM s (k INT, x STRING, t TIMESTAMP) TIMESTAMP BY t SUBWINDOW 1 h RETAIN 2 h"
    )
    t = np.arange(rows, dtype=np.int64)
    engine.ingest(
        "s", pa.table({"k": t % 7, "x": pa.array([f"abc{k % 977}" for k in range(rows)]), "t": t})
    )
    engine.heartbeat("s", rows)
    return engine


@pytest.mark.parametrize(
    ("sql", "answer"),
    [
        (
            "SELECT COUNT(*) AS n FROM s [RANGE 1 h] WHERE REGEXP_MATCHES(x, '[bc]+976$')",
            [{"n": 307}],
        ),
        (
            "SELECT k, COUNT(*) AS n FROM s [RANGE 1 h] WHERE UPPER(x) = 'ABC1' GROUP BY k HAVING "
            "k = 1",
            [{"k": 1, "n": 44}],
        ),
    ],
)
def test_a_condition_over_many_rows_looks_on_the_way(
    sql: str, answer: list[dict[str, int]]
) -> None:
    rows = 300_000
    engine, cancel = many_rows(rows), Counted()
    statement = engine.begin(sql, cancel=cancel)
    while not statement.ready:
        statement.step()
    read = cancel.asked  # until here the engine's thread: it has not worked on the rows
    statement.run()
    assert cancel.asked - read >= rows // STRETCH
    while not statement.step():
        pass
    assert isinstance(statement.result, Rows)
    assert statement.result.data.to_pylist() == answer


def test_small_sub_windows_are_worked_on_as_they_are_read() -> None:
    engine, cancel = many_rows(1000), Counted()
    statement = engine.begin(
        "SELECT COUNT(*) AS n FROM s [RANGE 1 h] WHERE REGEXP_MATCHES(x, '9$')", cancel=cancel
    )
    while not statement.step():
        pass
    assert isinstance(statement.result, Rows)
    assert statement.result.data.to_pylist() == [{"n": 99}]
