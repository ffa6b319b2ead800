"""Work comes in bounded pieces: it can be left between them, and nothing depends on where they
end."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pyarrow as pa
import pytest

from dsms.api import Cancel, Rows
from dsms.engine import Engine
from dsms.errors import UsageError
from dsms.oneshot.run import OneShot
from dsms.oneshot.steps import STRETCH
from dsms.operators import group, join, pieces
from dsms.state import intern
from tests.cancelling import (
    CROSS,
    WIDE,
    Tripped,
    counted,
    filled,
    sizes,
    standing,
    through_operators,
)
from tests.waiting import WAIT


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


# -- one-time queries ------------------------------------------------------------------------------


def test_a_cross_join_stops_when_another_thread_says_so():
    """8 000 000 000 results would take hours."""
    engine, looked, caught = filled(2000), threading.Event(), []
    cancel = Tripped(1 << 62, lambda n: looked.set() if n == 30 else None)

    def ask() -> None:
        try:
            engine.execute(CROSS, cancel=cancel)
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
        f"SELECT a.v FROM a {WIDE} WHERE NOT EXISTS (SELECT * FROM b {WIDE} WHERE b.v - a.v < 0)",
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
        engine.execute(f"INSERT INTO r SELECT a.v FROM a {WIDE}, b {WIDE}", cancel=Tripped(4))
    assert counted(engine, "SELECT COUNT(*) FROM r") == [0]


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
        engine.execute(sql, cancel=whole)
        engine.execute("DROP QUERY q")
        for after in (1, 2, whole.looks // 2, whole.looks - 1):
            with pytest.raises(UsageError, match="DS610"):
                engine.execute(sql, cancel=Tripped(after))
            assert not engine.runtime.queries
            assert not engine.runtime.catalog.queries
        engine.execute(sql)
    engine.execute("INSERT INTO r VALUES (90) AT '2020-01-01'")
    assert len(standing(engine, "q")) == 91 * 90 / 2


def test_a_table_of_keys_that_grows_can_be_left(monkeypatch):
    monkeypatch.setattr(intern, "MOST", 1000)
    looks: list[int] = []
    keys = intern.Intern(1)
    keys.codes([pa.array(np.arange(5000))], 5000)
    codes = keys.codes([pa.array(np.arange(40_000))], 40_000, lambda: looks.append(keys.fresh))
    assert codes.tolist() == list(range(40_000))
    assert len(looks) > 30
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
