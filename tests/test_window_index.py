"""Indices over windows: against the rows themselves, and one-time queries with and without them."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.api import Rows
from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.running import indices
from dsms.settings import Settings
from dsms.sql.types import FOREVER
from dsms.state import stores
from dsms.state.batch import Batch
from dsms.state.index import WindowIndex
from dsms.state.ring import Need, Ring
from dsms.state.stores import BUCKETS, Buckets, buckets_of
from tests.effort import examples

SECOND = 1_000_000

# ---------------------------------------------------------------- one sub-window

COLUMNS = {
    "ints": pa.array([5, None, 7, 5, -(2**63), 7, 7], pa.int64()),
    "texts": pa.array(["b", "", None, "a", "b", "ab" * 50, ""], pa.string()),
    "bytes": pa.array([b"b", b"", None, b"a", b"b", b"\x00", b""], pa.binary()),
    "decimals": pa.array([Decimal("1.50"), None, Decimal("-1.50"), Decimal("1.50")]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_buckets_hold_each_row_once_and_equal_values_together(name):
    whole = COLUMNS[name]
    for col in (whole, whole.slice(2), whole.slice(1, 2), whole.slice(0, 0)):
        store = Buckets.of(col, np.full(BUCKETS, -1, np.int32))
        rows = [store.rows(k).tolist() for k in range(len(store.present))]
        assert sorted(place for bucket in rows for place in bucket) == list(range(len(col)))
        assert all(r == sorted(r) for r in rows)
        for value in col.drop_null():
            bucket = buckets_of(pa.array([value.as_py()], col.type))[0]
            held = rows[store.present.tolist().index(bucket)]
            assert {k for k, v in enumerate(col.to_pylist()) if v == value.as_py()} <= set(held)


def test_places_of_a_large_sub_window_take_more_than_16_bits():
    col = pa.array(np.arange(stores.NARROW + 10) % 1000)
    store = Buckets.of(col, np.full(BUCKETS, -1, np.int32))
    assert store.places.dtype == np.int32 and sorted(store.places.tolist()) == list(range(len(col)))


# ---------------------------------------------------------------- a ring


class Held:
    """A ring of rows (k, ts), beside an index of it that may lag behind."""

    def __init__(self) -> None:
        self.ring, self.index, self.rows = Ring(), WindowIndex(0), 0
        self.ring.keep("x", Need(100, span=10))

    def add(self, keys: list[int | None], ts: list[int]) -> None:
        n = len(keys)
        ids = np.arange(self.rows, self.rows + n)
        self.rows += n
        cols = (pa.array(keys, pa.int64()),)
        self.ring.add(Batch(np.array(ts, np.int64), None, None, (ids,), cols))

    def check(self, most: int) -> None:
        done = self.index.follow(self.ring, most)
        parts = self.index.parts
        assert done == (len(parts) == len(self.ring.closed))
        assert [p.number for p in parts] == [s.number for s in self.ring.closed][: len(parts)]
        for values in ([3], [1, 4, 77]):
            found = self.index.find(pa.array(values))
            for sub in self.ring.closed:
                if self.index.covers(sub):
                    keys = sub.rows.cols[0].to_pylist()
                    expected = [k for k, key in enumerate(keys) if key in values]
                    assert found.rows(sub).tolist() == expected
                    assert not expected or sub.number in found.places


@given(st.integers(0, 2**32))
@settings(max_examples=examples(300), deadline=None)
def test_an_index_finds_what_is_in_the_ring(seed):
    pick, held, now = Random(seed), Held(), 0
    for _ in range(pick.randint(1, 25)):
        match pick.randint(0, 9):
            case 0:
                held.ring.keep("y", Need(pick.choice([50, 100, 200]), span=pick.choice([4, 5, 6])))
            case 1:
                held.ring.release("y")
            case 2:
                held.ring.drop()
            case 3:
                now = max(now - pick.randint(0, 30), 0)
                held.ring.set_back(now)
            case 4:
                now += pick.randint(0, 60)
                held.ring.move(now)
            case 5:
                held.ring.let_go(now - pick.randint(0, 80))
            case _:
                n = pick.randint(1, 12)
                ts = sorted(pick.randint(now, now + 15) for _ in range(n))
                keys = [pick.choice([None, *range(6)]) for _ in range(n)]
                held.add(keys, ts)
                now = ts[-1]
        held.check(pick.choice([0, 3, FOREVER]))


def test_a_probe_passes_over_sub_windows_without_the_value():
    held = Held()
    for k in range(100):
        held.add([k % 50], [k])
    held.check(FOREVER)
    assert sorted(held.index.find(pa.array([7])).places) == [0, 5]


# ---------------------------------------------------------------- one-time queries

DDL = "CREATE STREAM s (k INT, w STRING, d DECIMAL(6,2), v INT, ts TIMESTAMP) TIMESTAMP BY ts"
CLAUSES = (
    "SLACK 3 s RETAIN 20 s SUBWINDOW 2 s",
    "RETAIN 20 s",
    "LATE DROP RETAIN 1 min SUBWINDOW 7 s",
    "SUBWINDOW 1 s",
)
HOLDING = "CREATE QUERY held AS SELECT v FROM s {} WITH (path = WS)"
TABLE = "CREATE TABLE t (k INT PRIMARY KEY, w STRING)"
ASKED = (
    "SELECT * FROM s {} WHERE k = 3",
    "SELECT v, k FROM s {} WHERE k IN (1, 4, 99) AND v > 2",
    "SELECT v FROM s {} WHERE w = 'b' AND k = 2",
    "SELECT v / (k - 3) FROM s {} WHERE w = 'a' AND 10 / (k - 3) > 0",
    "SELECT v FROM s {} WHERE 10 / (k - 3) > 0 AND w = 'a'",
    "SELECT x.v, y.v FROM s {0} x, s {0} y WHERE x.k = 3 AND x.v = y.k AND y.w = 'a'",
    "SELECT COUNT(*), SUM(v) FROM s {} WHERE d = 1.50",
    "SELECT w, COUNT(*) FROM s {} WHERE k = 3 GROUP BY w",
    "SELECT v FROM s {} WHERE k = 3 ORDER BY v LIMIT 2",
    "SELECT DISTINCT w FROM s {} WHERE k = 3 OR k = 4",
    "SELECT k FROM (SELECT v, k FROM s {}) x WHERE k = 5",
    "SELECT s.v, t.w FROM s {} JOIN t ON s.k = t.k WHERE t.w = 'b'",
    "SELECT v FROM s {} WHERE k IN (SELECT k FROM t)",
    "SELECT t.k, s.v FROM t LEFT JOIN s {} ON s.k = t.k",
    "SELECT COUNT(DISTINCT k) FROM s {}",
    "SELECT k, COUNT(*) FROM s {} GROUP BY k",
    "SELECT w, COUNT(*), SUM(v), MIN(v) FROM s {} GROUP BY w",
    "SELECT DISTINCT w FROM s {}",
    "SELECT k FROM s {0} INTERSECT SELECT v FROM s {0}",
    "SELECT k FROM s {0} UNION SELECT v FROM s {0}",
    "SELECT k FROM s {0} EXCEPT SELECT v FROM s {0}",
)
WINDOWS = ("[RANGE 10 s]", "[RANGE 3 s]", "[ROWS 9]", "[NOW]", "[RANGE 8 s UNTIL 2 s AGO]")


class Pair:
    """The same stream in an engine with indices and in one without."""

    def __init__(self, pick: Random, folder) -> None:
        self.pick, self.folder, self.now, self.rows = pick, folder, 0, 0
        self.engines = [self.opened(on) for on in (True, False)]
        by = pick.choice(["", " INDEX BY (k)", " INDEX BY (w, k, d)"])
        ddl = f"{DDL} {pick.choice(CLAUSES)}"
        for engine, more in zip(self.engines, (by, ""), strict=True):
            engine.execute(f"{ddl}{more}; {TABLE}; INSERT INTO t VALUES (1, 'a'), (3, 'b')")
        self.both(HOLDING.format(pick.choice(("[ROWS 12 SLIDE 4]", "[RANGE 12 s SLIDE 4 s]"))))

    def opened(self, on: bool) -> Engine:
        folder = None if self.folder is None else self.folder / str(on)
        return Engine(folder, Settings(window_index=on, transaction_scheduler=self.kind()))

    def kind(self) -> str:
        return Random(repr(self.pick.getstate()[1][:3])).choice(("serial", "ws", "lws", "ttu"))

    def both(self, sql: str) -> list:
        return [_told(engine, sql) for engine in self.engines]

    def step(self) -> None:
        match self.pick.randint(0, 9):
            case 0 if self.folder is not None:
                for k, on in enumerate((True, False)):
                    self.engines[k].close()
                    self.engines[k] = self.opened(on)
            case 1:
                self.now += self.pick.randint(0, 9 * SECOND)
                for engine in self.engines:
                    engine.heartbeat("s", self.now)
            case _:
                self.come()

    def come(self) -> None:
        pick, rows = self.pick, []
        for _ in range(pick.randint(1, 9)):
            self.now += pick.randint(0, 2 * SECOND)
            at = self.now - pick.choice([0, 0, 2 * SECOND, 5 * SECOND])
            word = pick.choice(["a", "b", "", None, "ab"])
            d = pick.choice(["1.50", "2", None])
            rows.append([pick.choice([None, *range(7)]), word, d, pick.randint(0, 6), max(at, 0)])
        for engine in self.engines:
            engine.ingest("s", rows)

    def close(self) -> None:
        for engine in self.engines:
            engine.close()


def _told(engine: Engine, sql: str) -> object:
    try:
        (found,) = engine.execute(sql)
    except DsmsError as error:
        return error.code, error.message
    if not isinstance(found, Rows):
        return found
    return found.data.schema, found.data.to_pylist(), found.types, found.as_of, found.waiting


def _play(pick: Random, folder=None) -> Counter:
    pair, seen = Pair(pick, folder), Counter()
    for _ in range(pick.randint(2, 10)):
        pair.step()
        for _ in range(3):
            sql = pick.choice(ASKED).format(pick.choice(WINDOWS))
            with_index, without = pair.both(sql)
            assert with_index == without, sql
            seen[len(with_index)] += 1
    pair.close()
    return seen


@pytest.fixture
def eager(monkeypatch):
    """Limits so small that all ways are gone."""
    monkeypatch.setattr(indices, "CATCH_UP", 6)
    monkeypatch.setattr(indices, "FEW", 5)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(150), deadline=None)
def test_answers_are_the_same_with_and_without_indices(seed):
    _play(Random(seed))


def test_answers_are_the_same_where_indices_lag_behind(eager):
    for seed in range(examples(120)):
        _play(Random(seed))


def test_answers_are_the_same_after_restarts(tmp_path):
    for seed in range(examples(40)):
        _play(Random(seed), tmp_path / str(seed))


# ---------------------------------------------------------------- what is told of them


def _filled(more: str = "", rows: int = 60) -> Engine:
    engine = Engine()
    engine.execute(f"{DDL} SUBWINDOW 1 s RETAIN 1 h{more}")
    _come(engine, 0, rows)
    return engine


def _come(engine: Engine, first: int, n: int) -> None:
    keys = range(first, first + n)
    engine.ingest("s", [[k % 20, f"w{k}", "1", k, k * SECOND // 2] for k in keys])


def _shown(engine: Engine, sql: str) -> list[dict]:
    return engine.execute(sql)[0].data.to_pylist()


def test_explain_says_what_the_index_finds():
    engine = _filled(" INDEX BY (k)")
    lines = _shown(engine, "EXPLAIN SELECT v FROM s [RANGE 20 s] WHERE k = 3 AND v > 0")
    assert lines[-1]["plan"] == "asked once: index k: 2 of 21 sub-windows, 2 rows"
    lines = _shown(engine, "EXPLAIN SELECT v FROM s [RANGE 2 h] WHERE k IN (3, 99)")
    assert lines[-1]["plan"] == "asked once: index k: 3 of 30 sub-windows, 3 rows"
    assert not any("index" in r["plan"] for r in _shown(engine, "EXPLAIN SELECT k FROM s [NOW]"))


def test_show_windows_and_memory_tell_of_declared_indices():
    engine = _filled(" INDEX BY (w, k)")
    shown = [w for w in _shown(engine, "SHOW WINDOWS") if w["kind"] == "index"]
    assert [(w["holds"], w["subwindows"], w["rows"], w["for"]) for w in shown] == [
        ("w", 29, 58, "INDEX BY"),
        ("k", 29, 58, "INDEX BY"),
    ]
    (held,) = _shown(engine, "SHOW MEMORY LIKE 'indices'")
    assert held["holder"] == "s" and held["bytes"] == sum(w["bytes"] for w in shown)


def _automatic(engine: Engine) -> list[str]:
    kinds = _shown(engine, "SHOW WINDOWS")
    return [w["holds"] for w in kinds if w["for"] == "one-time queries"]


def test_what_is_asked_for_often_gets_an_index(monkeypatch):
    monkeypatch.setattr(indices, "SHARE", 0)
    engine = _filled()
    for n in range(1, 4):
        engine.execute("EXPLAIN SELECT v FROM s [RANGE 1 h] WHERE k = 3")
        engine.execute(f"SELECT v FROM s [RANGE 1 h] WHERE k = {n} AND v > 2")
        assert _automatic(engine) == (["k"] if n == 3 else [])
    _come(engine, 60, 4)
    assert _automatic(engine) == ["k"]


def test_an_index_that_takes_too_much_goes_for_long():
    engine = _filled()
    for _ in range(9):
        engine.execute("SELECT v FROM s [RANGE 1 h] WHERE k = 3")
    _come(engine, 60, 4)
    assert _automatic(engine) == []
    for _ in range(9):
        engine.execute("SELECT v FROM s [RANGE 1 h] WHERE k = 3")
    assert _automatic(engine) == []


def test_who_sees_a_stream_in_part_is_not_told_how_many_rows_there_are(tmp_path):
    engine = _filled(" INDEX BY (k)")
    engine.execute("CREATE USER root PASSWORD 'a b c d e f g'; GRANT ADMIN ON ALL TO root")
    engine.execute(
        "CREATE USER ann PASSWORD 'a b c d e f g'; GRANT SELECT ON s TO ann WHERE v < 30"
    )
    sql = "SELECT v FROM s [RANGE 1 h] WHERE k = 3"
    (rows,) = engine.execute(sql, user="ann")
    assert rows.data.to_pylist() == [{"v": 3}, {"v": 23}]
    (plan,) = engine.execute(f"EXPLAIN {sql}", user="ann")
    assert not any("index k" in line for line in plan.data["plan"].to_pylist())
