"""Indices over windows: one-time queries and look-ups with and without them, and what is told of
them."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.api import Rows
from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.running import indices, picks
from dsms.settings import Settings
from tests.effort import examples

SECOND = 1_000_000

# ---------------------------------------------------------------- one-time queries

DDL = "CREATE STREAM s (k INT, w STRING, d DECIMAL(6,2), v INT, ts TIMESTAMP) TIMESTAMP BY ts"
CLAUSES = (
    "SLACK 3 s RETAIN 20 s SUBWINDOW 2 s",
    "RETAIN 20 s",
    "LATE DROP RETAIN 1 min SUBWINDOW 7 s",
    "SUBWINDOW 1 s",
)
HOLDING = "CREATE QUERY held AS SELECT v FROM s {} WITH (path = WS)"
TABLE = (
    "CREATE TABLE t (k INT PRIMARY KEY, w STRING); "
    "CREATE TABLE n (k INT PRIMARY KEY, w STRING) NON RETROACTIVE; "
    "INSERT INTO n VALUES (2, 'a'), (3, 'b') AT '1970-01-01 00:00:02'"
)
CHANGES = (
    "INSERT INTO t VALUES ({0}, 'a')",
    "DELETE FROM t WHERE k = {0}",
    "UPDATE n SET w = 'a' WHERE k = {0}",
    "INSERT INTO n VALUES ({0}, NULL)",
)
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
    "SELECT t.k, s.v FROM s {} RIGHT JOIN t ON s.k = t.k AND s.v > 2",
    "SELECT t.k, s.v FROM s {} LEFT JOIN t ON s.k = t.k WHERE s.v > 2",
    "SELECT t.k, s.v FROM s {} FULL JOIN t ON s.k = t.k",
    "SELECT s.v, 6 / (s.v - 3) FROM s {} JOIN t ON s.k = t.k",
    "SELECT s.v FROM s {} JOIN t ON s.k = t.k AND 6 / (s.v - 3) > 1",
    "SELECT x.w FROM (SELECT k, w FROM s {} WHERE 6 / (v - 3) > 1) x JOIN t ON x.k = t.k",
    "SELECT x.u FROM (SELECT k, 6 / (v - 3) AS u FROM s {} ) x JOIN t ON x.k = t.k",
    "SELECT x.kk, t.w FROM (SELECT k AS kk, w AS ww, v FROM s {}) x JOIN t ON t.w = x.ww "
    "WHERE t.k > 1",
    "SELECT x.k, y.v FROM s [RANGE 2 s] x JOIN s {} y ON x.v = y.k",
    "SELECT x.k, y.v, t.w FROM s {0} x JOIN s {0} y ON x.v = y.k JOIN t ON t.k = x.k",
    "SELECT x.k, y.v FROM t JOIN s {0} x ON t.k = x.k LEFT JOIN s {0} y ON x.v = y.k",
    "SELECT x.v FROM s {} x WHERE EXISTS (SELECT 1 FROM t WHERE t.k = x.k AND t.w = x.w)",
    "SELECT t.k FROM t WHERE t.k IN (SELECT k FROM s {})",
    "SELECT t.k FROM t WHERE t.k NOT IN (SELECT k FROM s {})",
    "SELECT t.k FROM t WHERE NOT EXISTS (SELECT 1 FROM s {} WHERE s.k = t.k)",
    "SELECT x.v FROM s {} x WHERE x.k NOT IN (SELECT k FROM t)",
    "SELECT s.v, n.w FROM s {} JOIN n ON s.k = n.k WHERE n.w = 'a'",
    "SELECT s.v, n.w FROM s {} LEFT JOIN n ON s.k = n.k",
    "SELECT t.k, COUNT(*) FROM t JOIN (SELECT k, v FROM s {}) x ON t.k = x.k GROUP BY t.k",
    "SELECT held.v, x.w FROM held JOIN s {} x ON x.k = held.v",
    "SELECT x.k FROM (SELECT DISTINCT k FROM t) x JOIN s {} ON s.k = x.k",
    "SELECT s.v FROM s {} JOIN (SELECT k FROM t UNION SELECT 4) x ON s.k = x.k",
    "SELECT COUNT(DISTINCT k), COUNT(DISTINCT k + 1), MAX(k) FROM s {}",
    "SELECT COUNT(*) AS n, w, COUNT(w), MIN(w) FROM s {} GROUP BY w HAVING COUNT(*) > 1",
    "SELECT COUNT(k), COUNT(*), k % 2 AS odd FROM s {} GROUP BY k % 2",
    "SELECT k, COUNT(*) FROM s {} GROUP BY k ORDER BY 2 DESC, k LIMIT 2",
    "SELECT d, COUNT(*) FROM s {} GROUP BY d",
    "SELECT COUNT(*), COUNT(w) FROM s {}",
    "SELECT k, COUNT(*), FIRST(k) FROM s {} GROUP BY k",
    "SELECT k, COUNT(*), COUNT(v) FROM s {} GROUP BY k",
    "SELECT 6 / (k - 3), COUNT(*) FROM s {} GROUP BY 6 / (k - 3)",
    "SELECT DISTINCT k, k AS l FROM s {}",
    "SELECT COUNT(*) FROM (SELECT DISTINCT w FROM s {}) x",
    "SELECT x.k, t.w FROM (SELECT DISTINCT k FROM s {}) x LEFT JOIN t ON x.k = t.k",
    "SELECT x.k, x.n, y.v FROM (SELECT k, COUNT(*) AS n FROM s {0} GROUP BY k) x JOIN s {0} y "
    "ON x.k = y.v",
    "SELECT k FROM s {0} INTERSECT SELECT v FROM s {0} EXCEPT SELECT k FROM t",
    "SELECT k FROM s {0} INTERSECT ALL SELECT v FROM s {0}",
    "SELECT COUNT(DISTINCT k) FROM s {}",
    "SELECT k, COUNT(*) FROM s {} GROUP BY k",
    "SELECT w, COUNT(*), SUM(v), MIN(v) FROM s {} GROUP BY w",
    "SELECT DISTINCT w FROM s {}",
    "SELECT k FROM s {0} INTERSECT SELECT v FROM s {0}",
    "SELECT k FROM s {0} UNION SELECT v FROM s {0}",
    "SELECT k FROM s {0} EXCEPT SELECT v FROM s {0}",
)
WINDOWS = (
    "[RANGE 10 s]",
    "[RANGE 3 s]",
    "[ROWS 9]",
    "[PARTITION BY k ROWS 2]",
    "[PARTITION BY w, k ROWS 2]",
    "[NOW]",
    "[RANGE 8 s UNTIL 2 s AGO]",
)


USERS = (
    "CREATE ROLE insiders; CREATE USER root PASSWORD 'a b c d e f g'; GRANT ADMIN ON ALL TO root; "
    "CREATE USER ann PASSWORD 'a b c d e f g'"
)
GRANTS = (
    "GRANT SELECT ON ALL TO ann",
    "GRANT SELECT ON s TO ann WHERE v < 5 AND w <> 'b'",
    "GRANT SELECT ON s TO ann MASK (k AS nullif(k, 3))",
    "GRANT SELECT ON s TO ann MASK (w AS 'a', v AS least(v, 3)) WHERE k > 1",
    "GRANT SELECT ON t TO ann WHERE k > 2",
    "GRANT SELECT ON t TO ann MASK (k AS greatest(k, 3))",
)


class Pair:
    """The same stream in an engine with indices and in one without; `user`: who asks."""

    ddl = DDL
    index_by: tuple[str, ...] = ("k", "w, k, d")

    def __init__(self, pick: Random, folder, user: str | None = None) -> None:
        self.pick, self.folder, self.now, self.rows = pick, folder, 0, 0
        self.engines = [self.opened(on) for on in (True, False)]
        self.user = user
        by = pick.choice(["", *(f" INDEX BY ({columns})" for columns in self.index_by)])
        ddl = f"{self.ddl} {pick.choice(CLAUSES)}"
        if user is not None:
            for engine in self.engines:
                engine.execute(USERS)
            ddl += pick.choice(["", " CONFIDENTIAL FOR 2 s TO insiders"])
        for engine, more in zip(self.engines, (by, ""), strict=True):
            engine.execute(f"{ddl}{more}; {TABLE}; INSERT INTO t VALUES (1, 'a'), (3, 'b')")
        if user is not None:
            grants = (GRANTS[0], *pick.sample(GRANTS[1:], 3))
            for engine in self.engines:
                engine.execute("; ".join(grants))
        self.both(HOLDING.format(pick.choice(("[ROWS 12 SLIDE 4]", "[RANGE 12 s SLIDE 4 s]"))))

    def opened(self, on: bool) -> Engine:
        folder = None if self.folder is None else self.folder / str(on)
        return Engine(folder, Settings(window_index=on, transaction_scheduler=self.kind()))

    def kind(self) -> str:
        return Random(repr(self.pick.getstate()[1][:3])).choice(("serial", "ws", "lws", "ttu"))

    def both(self, sql: str) -> list:
        return [_told(engine, sql) for engine in self.engines]

    def asked(self, sql: str) -> list:
        return [_told(engine, sql, self.user) for engine in self.engines]

    def step(self) -> None:
        match self.pick.randint(0, 9):
            case 0 if self.folder is not None:
                for k, on in enumerate((True, False)):
                    self.engines[k].close()
                    self.engines[k] = self.opened(on)
            case 2:
                self.both(self.pick.choice(CHANGES).format(self.pick.randint(0, 6)))
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
            rows.append(self.row(max(at, 0)))
        for engine in self.engines:
            engine.ingest("s", rows)

    def row(self, at: int) -> list:
        word, d = (
            self.pick.choice(["a", "b", "", None, "ab"]),
            self.pick.choice(["1.50", "2", None]),
        )
        return [self.pick.choice([None, *range(7)]), word, d, self.pick.randint(0, 6), at]

    def close(self) -> None:
        for engine in self.engines:
            engine.close()


def _told(engine: Engine, sql: str, user: str | None = None) -> object:
    try:
        *_, found = engine.execute(sql, user=user)
    except DsmsError as error:
        return error.code, error.message
    if not isinstance(found, Rows):
        return found
    return found.data.schema, found.data.to_pylist(), found.types, found.as_of, found.waiting


def play(pick: Random, folder=None, user: str | None = None, kind=Pair, asked=ASKED) -> Counter:
    """How often answers came of each length of what is told."""
    pair, seen = kind(pick, folder, user), Counter()
    for _ in range(pick.randint(2, 10)):
        pair.step()
        for _ in range(3):
            sql = pick.choice(asked).format(pick.choice(WINDOWS))
            with_index, without = pair.asked(sql)
            assert repr(with_index) == repr(without), sql  # NaN is not itself to Python
            seen[len(with_index)] += 1
    pair.close()
    return seen


@pytest.fixture
def eager(monkeypatch):
    """Limits so small that all ways are gone."""
    for room in (indices, picks):
        monkeypatch.setattr(room, "CATCH_UP", 6)
    monkeypatch.setattr(indices, "COUNT_UP", 2)
    monkeypatch.setattr(picks, "FEW", 5)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(150), deadline=None)
def test_answers_are_the_same_with_and_without_indices(seed):
    play(Random(seed))


def test_answers_are_the_same_to_who_sees_streams_in_part_or_late():
    for seed in range(examples(120)):
        play(Random(seed), user="ann")


def test_answers_are_the_same_where_indices_lag_behind(eager):
    for seed in range(examples(120)):
        play(Random(seed))


def test_answers_are_the_same_after_restarts(tmp_path):
    for seed in range(examples(40)):
        play(Random(seed), tmp_path / str(seed))


# ---------------------------------------------------------------- queries ON LOOKUP

LOOKUPS = (
    "SELECT v, w FROM s [RANGE 8 s] WHERE k = 3",
    "SELECT v, k FROM s [RANGE 20 s] WHERE k IN (1, 4) AND w = 'a' ORDER BY v DESC, k LIMIT 3",
    "SELECT DISTINCT w FROM s [RANGE 9 s UNTIL 2 s AGO] WHERE k = 2",
    "SELECT x.v, y.v FROM s [RANGE 9 s] x JOIN s [RANGE 5 s] y ON x.v = y.k WHERE x.k = 3",
    "SELECT s.v, t.w FROM s [RANGE 7 s] JOIN t ON s.k = t.k",
    "SELECT s.v, n.w FROM s [RANGE 7 s] JOIN n ON s.k = n.k WHERE n.w = 'a'",
    "SELECT t.w, MAX(s.v) FROM s [RANGE 7 s] JOIN t ON s.k = t.k GROUP BY t.w",
    "SELECT v FROM s [RANGE 9 s] WHERE k IN (SELECT k FROM t)",
    "SELECT v, 6 / (v - 3) FROM s [RANGE 9 s] WHERE k = 1",
    "SELECT v, k FROM s [ROWS 5]",
    "SELECT w, COUNT(*) FROM s [RANGE 8 s] WHERE k = 1 GROUP BY w",
)


def _look_up(pick: Random, folder=None) -> Counter:
    pair, paths = Pair(pick, folder), Counter()
    some = pick.sample(LOOKUPS, 3)
    for n, sql in enumerate(some):
        if pick.randint(0, 1):
            pair.step()
        synopses = "DISTINCT" in sql or "COUNT" in sql  # which answer as of a sub-window's end
        ways = "ws" if synopses else pick.choice(("auto", "ws")), "'is'"
        for engine, way in zip(pair.engines, ways, strict=True):
            engine.execute(f"CREATE QUERY l{n} AS {sql} ON LOOKUP WITH (path = {way})")
    for _ in range(pick.randint(2, 10)):
        pair.step()
        n = pick.randint(0, 2)
        with_index, without = pair.both(f"LOOKUP l{n}")
        assert with_index == without, some[n]
    for n in range(3):
        (plan,) = pair.engines[0].execute(f"EXPLAIN QUERY l{n}")
        paths[next(p[13:15] for p in plan.data["plan"].to_pylist() if "access path" in p)] += 1
    pair.both("DROP QUERY l0; DROP QUERY l1; DROP QUERY l2")
    pair.close()
    return paths


def test_look_ups_answer_the_same_with_and_without_indices(eager):
    seen = Counter()
    for seed in range(examples(150)):
        seen += _look_up(Random(seed))
    assert {"WS", "IS"} <= set(seen)


def test_look_ups_answer_the_same_after_restarts(tmp_path):
    for seed in range(examples(40)):
        _look_up(Random(seed), tmp_path / str(seed))


# ---------------------------------------------------------------- what is told of them


def _filled(more: str = "", rows: int = 60) -> Engine:
    engine = Engine()
    engine.execute(f"{DDL} SUBWINDOW 1 s RETAIN 1 h{more}")
    _come(engine, 0, rows)
    return engine


def _come(engine: Engine, first: int, n: int) -> None:
    keys = range(first, first + n)
    engine.ingest("s", [[k % 20, f"w{k}", "1", k, k * SECOND // 2] for k in keys])


def shown(engine: Engine, sql: str) -> list[dict]:
    return engine.execute(sql)[0].data.to_pylist()


def test_explain_says_what_the_index_finds():
    engine = _filled(" INDEX BY (k)")
    lines = shown(engine, "EXPLAIN SELECT v FROM s [RANGE 20 s] WHERE k = 3 AND v > 0")
    assert lines[-1]["plan"] == "asked once: index k: 2 of 21 sub-windows, 2 rows"
    lines = shown(engine, "EXPLAIN SELECT v FROM s [RANGE 2 h] WHERE k IN (3, 99)")
    assert lines[-1]["plan"] == "asked once: index k: 3 of 30 sub-windows, 3 rows"
    assert not any("index" in r["plan"] for r in shown(engine, "EXPLAIN SELECT k FROM s [NOW]"))


def test_explain_says_whose_keys_are_looked_up():
    engine = _filled(" INDEX BY (k)")
    engine.execute("CREATE TABLE t (id INT PRIMARY KEY, w STRING)")
    engine.execute("INSERT INTO t VALUES (3, 'a'), (4, 'a'), (5, 'b'), (99, 'a')")
    (line,) = _indexed(engine, "s [RANGE 1 h] JOIN t ON s.k = t.id WHERE t.w = 'a'")
    assert line == "asked once: index k by keys of t: 6 of 30 sub-windows, 6 rows"
    (line,) = _indexed(engine, "s [RANGE 1 h] x WHERE EXISTS (SELECT 1 FROM t WHERE id = x.k)")
    assert line == "asked once: index k by keys of t: 6 of 30 sub-windows, 9 rows"
    first, second = _indexed(
        engine,
        "s [RANGE 1 h] x JOIN s [RANGE 1 h] y ON x.v = y.k, t WHERE t.id = x.k AND t.w = 'b'",
    )
    assert first == "asked once: index k by keys of t: 3 of 30 sub-windows, 3 rows"
    assert second == "asked once: index k by keys of x: 3 of 30 sub-windows, 3 rows"
    assert not _indexed(engine, "s [RANGE 1 h] FULL JOIN t ON s.k = t.id")
    assert not _indexed(engine, "s [ROWS 5] JOIN t ON s.k = t.id")


def _indexed(engine: Engine, rest: str) -> list[str]:
    plan = shown(engine, f"EXPLAIN SELECT COUNT(*) FROM {rest}")
    return [line["plan"] for line in plan if "index" in line["plan"]]


def test_explain_says_that_a_look_up_reads_by_an_index():
    engine = _filled(" INDEX BY (k)")
    for name, window, where, path in (
        ("a", "[RANGE 1 h]", "k = 3", "WS"),
        ("b", "[RANGE 2 h]", "k = 3", "IS"),  # not kept
        ("c", "[RANGE 1 h]", "v = 3", "IS"),
        ("d", "[RANGE 1 h]", "k = 3 AND 1 / v > 0", "IS"),
    ):
        engine.execute(f"CREATE QUERY {name} AS SELECT v FROM s {window} WHERE {where} ON LOOKUP")
        lines = [r["plan"] for r in shown(engine, f"EXPLAIN QUERY {name}")]
        (told,) = (line for line in lines if line.startswith("access path"))
        assert told.startswith(f"access path: {path}")
    assert shown(engine, "LOOKUP a") == [{"v": 3}, {"v": 23}, {"v": 43}]
    (plan,) = (r["plan"] for r in shown(engine, "EXPLAIN QUERY a") if "access" in r["plan"])
    assert plan.endswith(": read when it is asked, by an index over s.k")


def test_a_look_up_goes_on_without_a_column_that_came_later():
    engine = _filled(" INDEX BY (k)")
    engine.execute("CREATE QUERY a AS SELECT * FROM s [RANGE 1 h] WHERE k = 3 ON LOOKUP")
    before = shown(engine, "LOOKUP a")
    engine.execute("ALTER STREAM s ADD COLUMN z INT")
    assert len(before) == 3 and shown(engine, "LOOKUP a") == before
    (first, *_) = shown(engine, "SELECT * FROM s [RANGE 1 h] WHERE k = 3")
    assert first["z"] is None


def test_joins_ask_for_columns_too(monkeypatch):
    monkeypatch.setattr(indices, "SHARE", 0)
    engine = _filled()
    engine.execute("CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (3)")
    for n in range(1, 4):
        (found,) = engine.execute("SELECT v FROM s [RANGE 1 h] JOIN t ON s.k = t.id")
        assert found.data["v"].to_pylist() == [3, 23, 43]
        assert automatic(engine) == (["k"] if n == 3 else [])


def test_show_windows_and_memory_tell_of_declared_indices():
    engine = _filled(" INDEX BY (w, k)")
    told = [w for w in shown(engine, "SHOW WINDOWS") if w["kind"] == "index"]
    assert [(w["holds"], w["subwindows"], w["rows"], w["for"]) for w in told] == [
        ("w", 29, 58, "INDEX BY"),
        ("k", 29, 58, "INDEX BY"),
    ]
    (held,) = shown(engine, "SHOW MEMORY LIKE 'indices'")
    assert held["holder"] == "s" and held["bytes"] == sum(w["bytes"] for w in told)


def test_a_text_that_is_known_means_what_it_says_now():
    engine = _filled(" INDEX BY (k)")
    engine.execute("CREATE USER root PASSWORD 'a b c d e f g'; GRANT ADMIN ON ALL TO root")
    engine.execute("CREATE USER ann PASSWORD 'a b c d e f g'; GRANT SELECT ON s TO ann")
    sql = "SELECT v FROM s [RANGE 1 h] WHERE k = 3"

    def found(user: str) -> list[int] | str:
        told = _told(engine, sql, user)
        return told[0] if isinstance(told[0], str) else [r["v"] for r in told[1]]

    for change, anns, roots in (
        ("SET transaction_scheduler = ws", [3, 23, 43], [3, 23, 43]),
        ("GRANT SELECT ON s TO ann WHERE v < 30", [3, 23], [3, 23, 43]),
        ("GRANT SELECT ON s TO ann MASK (v AS least(v, 30))", [3, 23, 30], [3, 23, 43]),
        ("GRANT SELECT (w, k) ON s TO ann", "DS201", [3, 23, 43]),
        ("REVOKE SELECT ON s FROM ann", "DS203", [3, 23, 43]),
        ("DROP STREAM s", "DS203", "DS203"),
        (f"{DDL.replace('v INT', 'v STRING')} RETAIN 1 h INDEX BY (k)", "DS203", []),
    ):
        engine.execute(change, user="root")
        for _ in range(2):
            assert (found("ann"), found("root")) == (anns, roots), change


def automatic(engine: Engine, kind: str = "index") -> list[str]:
    told = [w for w in shown(engine, "SHOW WINDOWS") if w["for"] == "one-time queries"]
    return [w["holds"] for w in told if w["kind"] == kind]


def test_values_that_are_asked_for_often_are_counted():
    engine = _filled()
    sql = "SELECT k, COUNT(*) AS n FROM s [RANGE 20 s] GROUP BY k"
    for n in range(1, 4):
        assert len(shown(engine, sql)) == 20
        assert automatic(engine, "counts") == (["k"] if n == 3 else [])
    lines = shown(engine, f"EXPLAIN {sql}")
    assert lines[-1]["plan"] == "asked once: counts of k: 19 of 21 sub-windows, 2 rows read"
    (held,) = shown(engine, "SHOW MEMORY LIKE 'indices'")
    assert held["holder"] == "s" and held["bytes"] > 0
    _come(engine, 60, 200)
    assert len(shown(engine, sql)) == 20
    engine.execute("SELECT COUNT(DISTINCT k) FROM s [RANGE 1 min]")
    assert automatic(engine, "counts") == ["k"]


def test_counts_that_nobody_asks_for_any_more_go():
    engine = Engine()
    engine.execute(f"{DDL} SUBWINDOW 1 s RETAIN 10 s INDEX BY (k)")
    _come(engine, 0, 60)
    engine.execute("SELECT COUNT(DISTINCT k) FROM s [RANGE 5 s]")
    assert automatic(engine, "counts") == ["k"]
    for first in range(60, 200, 4):
        _come(engine, first, 4)
    assert automatic(engine, "counts") == []


def test_what_is_asked_for_often_gets_an_index(monkeypatch):
    monkeypatch.setattr(indices, "SHARE", 0)
    engine = _filled()
    for n in range(1, 4):
        engine.execute("EXPLAIN SELECT v FROM s [RANGE 1 h] WHERE k = 3")
        engine.execute(f"SELECT v FROM s [RANGE 1 h] WHERE k = {n} AND v > 2")
        assert automatic(engine) == (["k"] if n == 3 else [])
    _come(engine, 60, 4)
    assert automatic(engine) == ["k"]


def test_an_index_that_takes_too_much_goes_for_long():
    engine = _filled()
    for _ in range(9):
        engine.execute("SELECT v FROM s [RANGE 1 h] WHERE k = 3")
    _come(engine, 60, 4)
    assert automatic(engine) == []
    for _ in range(9):
        engine.execute("SELECT v FROM s [RANGE 1 h] WHERE k = 3")
    assert automatic(engine) == []


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
