"""Read transactions in the engine: one-time queries one sub-window at a time while windows slide
under them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from dsms.api import Cancel, Rows
from dsms.commands.select import answer_of
from dsms.commands.slices import Statement
from dsms.engine import Engine
from dsms.errors import DsmsError, QueryError, UsageError
from dsms.schedulers.transactions import KINDS
from dsms.settings import Settings
from dsms.sql.ast import SelectStatement
from dsms.sql.binder import bind_query
from dsms.sql.parser import parse_piece
from dsms.sql.script import pieces
from tests.effort import sampled, thinned
from tests.oracle import Oracle, Row
from tests.oracle.values import canons

S = 1_000_000
LATEST = ("lws", "ttu")
DDL = (
    "CREATE STREAM s (k INT, v INT, ts TIMESTAMP) TIMESTAMP BY ts RETAIN 40 SECONDS SUBWINDOW 2 "
    "SECONDS;CREATE STREAM r (k INT, v INT, ts TIMESTAMP) TIMESTAMP BY ts RETAIN 40 SECONDS "
    "SUBWINDOW 1500 MILLISECONDS"
)
ASKED = [
    "SELECT k, SUM(v), COUNT(*) FROM s [RANGE 20 SECONDS] WHERE v % 3 <> 0 GROUP BY k",
    "SELECT k + 1, v * 2 FROM s [RANGE 17 SECONDS] WHERE v > 5 AND k <> 1",
    "SELECT k, v FROM s [RANGE 13 SECONDS] ORDER BY v DESC, k LIMIT 4",
    "SELECT SUM(v), AVG(v) FROM s [ROWS 7]",
    "SELECT v FROM (SELECT v + 1 AS v FROM s) [ROWS 5 UNTIL 2 AGO]",
    "SELECT k, LAST(v), MEDIAN(v) FROM s [RANGE 11 SECONDS UNTIL 3 SECONDS AGO] WHERE v <> 4 "
    "GROUP BY k",
    "SELECT a.k, a.v, b.v FROM s [RANGE 6 SECONDS] AS a, r [RANGE 12 SECONDS] AS b WHERE a.k = "
    "b.k AND a.v < b.v",
    "SELECT a.v, b.v FROM s [RANGE 9 SECONDS] AS a LEFT JOIN s [RANGE 21 SECONDS] AS b ON a.v = "
    "b.v + 3",
    "SELECT DISTINCT v FROM r [RANGE 10 SECONDS] WHERE v < 8 EXCEPT SELECT v FROM s [RANGE 10 "
    "SECONDS]",
    "SELECT COUNT(*) FROM s [NOW]",
    "SELECT v FROM s [RANGE 8 SECONDS] UNION ALL SELECT k FROM r [RANGE 25 SECONDS] WHERE v > 2",
    "SELECT k, COUNT(*) FROM (SELECT k, v FROM s [RANGE 20 SECONDS] WHERE v > 1) WHERE v < 9 "
    "GROUP BY k",
]


def fresh(kind: str = "ttu", **more: object) -> Engine:
    engine = Engine(settings=Settings(transaction_scheduler=kind, **more))  # type: ignore[arg-type]
    engine.execute(DDL)
    return engine


def rows_of(rows: object) -> list[tuple]:
    assert isinstance(rows, Rows)
    return list(zip(*(c.to_pylist() for c in rows.data.columns), strict=True))


def bound(engine: Engine, sql: str):
    statement = parse_piece(next(iter(pieces(sql))))
    assert isinstance(statement, SelectStatement)
    return bind_query(statement, engine.runtime.catalog, persistent=False)


def fill(engine: Engine, upto: int, since: int = 0, stream: str = "s") -> None:
    """A row a second, and the clock."""
    seconds = range(since, upto)
    data = {
        "k": [t % 3 for t in seconds],
        "v": [t % 10 for t in seconds],
        "ts": [t * S for t in seconds],
    }
    engine.ingest(stream, data)
    engine.heartbeat(stream, upto * S - 1)


def finish(statement: Statement) -> list[tuple]:
    while not statement.step():
        pass
    return rows_of(statement.result)


def one_go(engine: Engine, sql: str) -> list[tuple]:
    batch, _ = answer_of(engine.runtime, bound(engine, sql))
    return list(zip(*(c.to_pylist() for c in batch.columns), strict=True))


# ---------------------------------------------------------------- any interleaving


@dataclass
class Play:
    """Rows come, statements are begun and stepped, at random."""

    engine: Engine
    chance: random.Random
    now: dict[str, int] = field(default_factory=lambda: {"s": 0, "r": 0})
    came: dict[str, list[Row]] = field(default_factory=lambda: {"s": [], "r": []})
    running: list[tuple[str, int | None, Statement]] = field(default_factory=list)
    answered: list[tuple[str, int | None, int | None, list[tuple]]] = field(default_factory=list)

    def clock(self, sql: str) -> int | None:
        both = " r " in sql and " s " in sql
        return self.engine.runtime.clock_of(
            ["r", "s"] if both else ["r"] if " r " in sql else ["s"]
        )

    def rows(self) -> None:
        stream = self.chance.choice("ssr")
        ahead = self.now["s"] - self.now["r"]
        stream = stream if abs(ahead) < 5 * S else "r" if ahead > 0 else "s"
        fresh = []
        for _ in range(self.chance.randrange(1, 6)):
            self.now[stream] += self.chance.randrange(0, 2 * S)
            values = (self.chance.randrange(3), self.chance.randrange(12), self.now[stream])
            fresh.append(values)
            self.came[stream].append(Row(self.now[stream], len(self.came[stream]), values))
        self.engine.ingest(stream, fresh)
        if self.chance.random() < 0.7:
            self.now[stream] += self.chance.randrange(1, S)
            self.engine.heartbeat(stream, self.now[stream] - 1)

    def begin(self) -> None:
        sql = self.chance.choice(ASKED)
        self.running.append(
            (sql, self.clock(sql), self.engine.begin(sql, self.chance.randrange(2)))
        )

    def step(self) -> None:
        sql, begun, statement = self.chance.choice(self.running)
        if statement.step():
            self.running.remove((sql, begun, statement))
            rows = statement.result
            assert isinstance(rows, Rows)
            self.answered.append((sql, begun, rows.as_of, rows_of(rows)))

    def on(self, times: int) -> None:
        for _ in range(times):
            what = self.chance.random()
            if what < 0.15:
                self.rows()
            elif what < 0.25 and len(self.running) < 4:
                self.begin()
            elif what < 0.26 and self.running:
                self.running.pop(self.chance.randrange(len(self.running)))[2].close()
            elif self.running:
                self.step()
        while self.running:
            self.step()


@thinned()
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", sampled(range(3), 3))
def test_whatever_comes_between_each_answer_is_that_of_its_instant(kind: str, seed: int) -> None:
    play = Play(fresh(kind), random.Random(f"{kind} {seed}"))
    for _ in range(30):
        play.rows()
    play.on(350)
    assert len(play.answered) > 6
    oracles: dict[str, Oracle] = {}
    for sql, begun, as_of, got in play.answered:
        assert as_of is not None and begun is not None and as_of >= begun
        oracle = oracles.setdefault(sql, Oracle(bound(play.engine, sql), play.came, {}))
        want = [canons(f.values) for f in oracle.answer(as_of)]
        assert Counter(map(canons, got)) == Counter(want), (sql, as_of)
        if "GROUP" not in sql and "DISTINCT" not in sql:
            assert list(map(canons, got)) == want
    counts = play.engine.runtime.transactions.counters()
    assert counts.begun == counts.committed + counts.cancelled
    assert play.engine.runtime.transactions.waiting() == 0
    if kind in ("serial", "ws"):
        assert counts.aborted == 0


@thinned()
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sql", ASKED)
def test_the_scheduler_changes_no_answer(kind: str, sql: str) -> None:
    engine = fresh(kind)
    for stream in "sr":
        fill(engine, 60, stream=stream)
    assert finish(engine.begin(sql)) == one_go(engine, sql)


# ---------------------------------------------------------------- what the schedulers differ in


COUNT = "SELECT COUNT(*), MIN(ts), MAX(ts) FROM s [RANGE 20 SECONDS] WHERE v >= 0"


def slid(kind: str, reads_between: int) -> tuple[Engine, Rows]:
    """A query that reads ten sub-windows, while the window slides by one after every few of
    them."""
    engine, now = fresh(kind), 40
    fill(engine, now)
    statement, n = engine.begin(COUNT), 0
    while not statement.step():
        n += 1
        if n % reads_between == 0 and now < 100:
            fill(engine, now + 2, now)
            now += 2
    assert isinstance(statement.result, Rows)
    return engine, statement.result


@pytest.mark.parametrize("kind", ["ws", "lws", "ttu"])
def test_the_window_is_that_of_the_begin_or_that_of_the_commit(kind: str) -> None:
    _, rows = slid(kind, 4)
    assert rows.as_of is not None
    assert (rows.as_of > 40 * S - 1) is (kind != "ws")
    first = (rows.as_of + 1) // S - 20
    assert rows_of(rows) == [(20, first * S, (first + 19) * S)]


def test_a_transaction_that_runs_alone_is_not_interrupted_at_all() -> None:
    engine = fresh("serial")
    fill(engine, 40)
    statement = engine.begin(COUNT)
    assert statement.step() and rows_of(statement.result) == [(20, 20 * S, 39 * S)]


def test_youngest_first_aborts_nobody_where_storage_order_does() -> None:
    aborted = {
        kind: sum(slid(kind, n)[0].stats()["transactions_aborted"] for n in range(1, 9))
        for kind in KINDS
    }
    assert aborted["lws"] > 0
    assert aborted["ttu"] == aborted["ws"] == aborted["serial"] == 0


def test_one_time_queries_suspend_those_of_less_priority() -> None:
    engine = fresh()
    fill(engine, 40)
    low, high = engine.begin(COUNT), engine.begin(COUNT, priority=1)
    low.step()
    for _ in range(9):
        assert not low.step()  # which read for the other one
    fill(engine, 42, 40)
    assert finish(high) == [(20, 20 * S, 39 * S)]
    assert finish(low) == [(20, 22 * S, 41 * S)]


def test_a_plan_is_offered_to_other_threads_even_if_somebody_else_has_done_the_reading() -> None:
    engine = fresh()
    fill(engine, 40)
    one, two = engine.begin(COUNT), engine.begin(COUNT)
    assert not one.ready
    for _ in range(50):
        assert not two.step() or two.result is not None
        if two.ready:
            break
    assert one.ready and two.ready and not one.step()  # a last look at it before it would run here
    one.run()
    assert one.step() and rows_of(one.result) == [(20, 20 * S, 39 * S)]


# ---------------------------------------------------------------- disturbances


def test_another_scheduler_by_set_restarts_who_reads() -> None:
    engine = fresh("lws")
    fill(engine, 40)
    statement = engine.begin(COUNT)
    for kind in ("ws", "ttu", "lws", "ttu"):
        statement.step()
        engine.execute(f"SET transaction_scheduler = {kind}")
    fill(engine, 44, 40)
    assert finish(statement) == [(20, 24 * S, 43 * S)]
    assert engine.stats()["transactions_aborted"] == 4


def test_other_sub_windows_restart_who_reads() -> None:
    engine = fresh()
    fill(engine, 40, stream="r")
    statement = engine.begin(COUNT.replace("FROM s", "FROM r"))
    for _ in range(3):
        statement.step()
    engine.execute(
        "CREATE QUERY q AS SELECT * FROM r [RANGE 7 SECONDS SLIDE 7 SECONDS] WITH (path = ws)"
    )
    assert finish(statement) == [(20, 20 * S, 39 * S)]


@pytest.mark.parametrize("kind", KINDS)
def test_cancelling_leaves_nothing(kind: str) -> None:
    engine, cancel = fresh(kind), Cancel()
    fill(engine, 40)
    statement = engine.begin(COUNT, cancel=cancel)
    if kind != "serial":
        for _ in range(5):
            statement.step()
    cancel.set()
    with pytest.raises(UsageError, match="DS610"):
        statement.step()
    assert engine.runtime.transactions.waiting() == 0
    assert engine.stats()["transactions_cancelled"] == 1
    fill(engine, 60, 40)
    assert rows_of(engine.execute(COUNT)[0]) == [(20, 40 * S, 59 * S)]


@pytest.mark.parametrize("kind", ["ws", "lws", "ttu"])
@pytest.mark.parametrize("again", [False, True])
def test_what_is_dropped_meanwhile_is_an_error(kind: str, again: bool) -> None:
    engine = fresh(kind)
    fill(engine, 40)
    statement = engine.begin(COUNT)
    for _ in range(4):
        statement.step()
    engine.execute("DROP STREAM s")
    if again:
        engine.execute(DDL.split(";")[0].replace("k INT, v INT", "k STRING, v FLOAT"))
    with pytest.raises(DsmsError, match="DS411: s was dropped"):
        finish(statement)
    assert engine.runtime.transactions.waiting() == 0


def test_a_table_is_read_as_of_the_same_instant_as_the_windows() -> None:
    sql = "SELECT COUNT(*), SUM(w) FROM s [RANGE 20 SECONDS], t WHERE s.k = t.k"
    for kind in ("ws", *LATEST):
        engine = fresh(kind)
        engine.execute(
            "CREATE TABLE t (k INT PRIMARY KEY, w INT); INSERT INTO t VALUES (0, 1), (1, 10)"
        )
        fill(engine, 40)
        before = one_go(engine, sql)
        statement = engine.begin(sql)
        for _ in range(3):
            statement.step()
        engine.execute("UPDATE t SET w = 100 WHERE k = 1; DELETE FROM t WHERE k = 0")
        fill(engine, 42, 40)
        after = one_go(engine, sql)
        assert before != after
        assert finish(statement) == (before if kind == "ws" else after)


@pytest.mark.parametrize("kind", ["ws", "lws", "ttu"])
def test_a_row_that_fails_counts_only_within_the_window_of_the_answer(kind: str) -> None:
    engine = fresh(kind)
    engine.ingest("s", {"k": [0], "v": [77], "ts": [20 * S]})
    fill(engine, 40, 21)
    sql = "SELECT SUM(1 / (v - 77)) FROM s [RANGE 20 SECONDS]"
    with pytest.raises(QueryError, match="DS701"):
        finish(engine.begin(sql))
    leaving = engine.begin(sql)
    for _ in range(9):
        leaving.step()
    fill(engine, 41, 40)  # within the open sub-window: the row leaves, nothing is aborted
    if kind == "ws":
        with pytest.raises(QueryError, match="DS701"):
            finish(leaving)
    else:
        assert finish(leaving) == one_go(engine, sql)


def test_a_window_that_nobody_keeps_is_refused_at_the_beginning() -> None:
    engine = fresh()
    fill(engine, 60)
    with pytest.raises(UsageError, match="DS407"):
        engine.begin("SELECT COUNT(*) FROM s [RANGE 1 HOUR] WITH (complete = required)")
    assert engine.runtime.transactions.waiting() == 0


def test_what_reads_would_copy_is_limited() -> None:
    engine = fresh(statement_bytes=4096)
    fill(engine, 40)
    engine.ingest("s", {"k": [1] * 2000, "v": [1] * 2000, "ts": [40 * S] * 2000})
    engine.heartbeat("s", 60 * S)
    with pytest.raises(UsageError, match="DS633"):
        finish(engine.begin("SELECT k * 2, v + 1 FROM s [RANGE 30 SECONDS]"))
    assert engine.runtime.transactions.waiting() == 0


def test_a_script_in_slices() -> None:
    engine = fresh()
    fill(engine, 40)
    slices = engine.slices(f"{COUNT}; CREATE TABLE t (a INT); {COUNT}")
    assert sum(1 for _ in _drained(slices)) > 20
    with pytest.raises(UsageError, match="DS400"):
        engine.begin("SHOW QUERIES; SHOW WINDOWS")
    with pytest.raises(QueryError):
        engine.begin("SELECT nothing FROM s [NOW]")
    open_ = engine.slices(COUNT)
    next(open_)
    open_.close()
    assert engine.runtime.transactions.waiting() == 0


def _drained(slices) -> Iterator[Statement]:
    results = yield from slices
    assert [type(r).__name__ for r in results] == ["Rows", "Done", "Rows"]


# ---------------------------------------------------------------- periodic scans


SCANNED = (
    "CREATE QUERY q AS SELECT k, MEDIAN(v), COUNT(*) FROM (SELECT k, v FROM s [RANGE 20 SECONDS "
    "SLIDE 2 SECONDS] WHERE v <> 5) GROUP BY k WITH (boundaries = elastic, path = ws)"
)


def periodic(kind: str) -> Engine:
    engine = fresh(kind, deferred=True)
    fill(engine, 40)
    engine.execute(SCANNED)
    fill(engine, 42, 40)
    return engine


def answer_at(engine: Engine, at: int) -> list[tuple]:
    """The answer of a boundary in seconds, by another engine that knows what had come until
    then."""
    other = fresh()
    fill(other, at)
    return one_go(
        other, "SELECT k, MEDIAN(v), COUNT(*) FROM s [RANGE 20 SECONDS] WHERE v <> 5 GROUP BY k"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_an_elastic_scan_is_a_transaction_that_rows_may_interrupt(kind: str) -> None:
    engine = periodic(kind)
    reader, now, told = engine.subscribe("q", 0), 42, []
    for n in range(300):
        engine.work()
        if n % 4 == 3 and now < 90:
            fill(engine, now + 2, now)
            now += 2
        told += [
            (p.at // S, list(zip(*(c.to_pylist() for c in p.data.columns), strict=True)))
            for p in reader.take()
            if p.at is not None and p.data is not None
        ]
    assert not engine.has_work() and told[-1][0] == 90
    assert [at for at, _ in told] == sorted({at for at, _ in told})
    for at, rows in told:
        assert rows == answer_at(engine, at), at


def test_one_time_queries_suspend_periodic_scans() -> None:
    engine = periodic("ttu")
    for _ in range(3):
        assert engine.work()
    asked = engine.begin(COUNT)
    while not asked.step():
        pass
    assert rows_of(asked.result) == [(20, 22 * S, 41 * S)]
    assert (
        engine.stats()["transactions_waiting"] == 1
        and engine.stats()["transactions_suspended"] >= 1
    )
    while engine.work():
        pass
    assert rows_of(engine.execute("SELECT * FROM q")[0]) == answer_at(engine, 42)


@pytest.mark.parametrize("kind", KINDS)
def test_a_query_that_is_dropped_while_it_scans_leaves_nothing(kind: str) -> None:
    engine = periodic(kind)
    engine.execute(SCANNED.replace("QUERY q", "QUERY other"))
    fill(engine, 44, 42)
    engine.work()
    engine.execute("DROP QUERY q")
    engine.work()
    engine.execute("SET query_scheduler = none; SET transaction_scheduler = ttu")
    fill(engine, 46, 44)
    while engine.work():
        pass
    assert engine.stats()["transactions_waiting"] == 0
    assert rows_of(engine.execute("SELECT * FROM other")[0]) == answer_at(engine, 46)
