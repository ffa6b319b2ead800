"""Ranges of one-time queries by sorted lists: against the rows themselves, and with and without."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.running import indices, picks
from dsms.sql.types import FOREVER
from dsms.state import ranges
from dsms.state.batch import Batch
from dsms.state.ranges import COMPARE, Range, SortedColumn, Words, words_of
from dsms.state.ring import Need, Ring
from tests.effort import examples
from tests.test_window_index import SECOND, Pair, automatic, eager, play, shown
from tests.test_window_index_rows import shaken

__all__ = ["eager"]

# ---------------------------------------------------------------- words and sub-windows

VALUES = {
    pa.int64(): [0, 1, -1, 7, 2**63 - 1, -(2**63)],
    pa.float64(): [0.0, -0.0, 5e-324, -5e-324, 1.5, math.inf, -math.inf, math.nan, -math.nan],
    pa.decimal128(38, 2): [Decimal(k) for k in ("0", "1.50", "-1.50", "1e35", "-1e35", "2e35")],
    pa.string(): ["", "a", "a\0", "ab", "abcdefgh", "abcdefghi", "b", "é", "\U0010ffff"],
    pa.binary(): [b"", b"\0", b"a", b"\xff", b"\xff" * 9],
}


def _key(value):
    """By which values are compared: NaN equals itself and is above all numbers."""
    return (True, 0) if isinstance(value, float) and math.isnan(value) else (False, value)


def _meets(value, op: str, other) -> bool:
    a, b = _key(value), _key(other)
    return {"eq": a == b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[op]


@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_words_never_fall_where_values_rise(type_):
    values = sorted(VALUES[type_], key=_key)
    words = words_of(pa.array([None, *values], type_).slice(1))
    assert words.tolist() == sorted(words.tolist())
    for a, b, x, y in zip(values, values[1:], words, words[1:], strict=False):
        assert _key(a) != _key(b) or x == y
        assert _key(a) == _key(b) or x < y or type_ not in (pa.int64(), pa.float64())


class Held:
    """A ring of rows, beside sorted lists of it that may lag behind."""

    def __init__(self, type_: pa.DataType) -> None:
        self.ring, self.lists, self.type, self.rows = Ring(), SortedColumn(0), type_, 0
        self.ring.keep("x", Need(100, span=10))

    def add(self, values: list, ts: list[int]) -> None:
        ids = np.arange(self.rows, self.rows + len(ts))
        self.rows += len(ts)
        cols = (pa.array([None, *values], self.type).slice(1),)
        self.ring.add(Batch(np.array(ts, np.int64), None, None, (ids,), cols))

    def check(self, most: int, asked: list[tuple[str, object]]) -> None:
        done = self.lists.follow(self.ring, most)
        assert done == all(map(self.lists.covers, self.ring.closed))
        wanted = Range(tuple((op, pa.array([value], self.type)) for op, value in asked))
        found = self.lists.find(self.ring, wanted)
        for sub in self.ring.closed:
            values = sub.rows.cols[0].to_pylist()
            expected = [
                k
                for k, value in enumerate(values)
                if value is not None and all(_meets(value, op, other) for op, other in asked)
            ]
            assert found.matching(sub.rows).tolist() == expected
            if found.covers(sub):
                assert found.rows(sub).tolist() == expected
                (rows,) = [p.tolist() for _, p in found.among([sub])] or [[]]
                assert rows == expected if wanted.exact else set(expected) <= set(rows)

    def check_first(self, since: int, upto: int, count: int, descending: bool) -> None:
        """The first values of whole sub-windows that are sorted, by their words."""
        subs = [sub for sub in self.ring.subwindows() if self.lists.covers(sub)]
        whole = [s.rows for s in subs if s.rows.ts[0] > since and s.rows.ts[-1] <= upto]
        words = [words_of(b.cols[0].drop_null()).tolist() for b in whole]
        expected = sorted([w for some in words for w in some], reverse=descending)[:count]
        found = self.lists.top(self.ring.subwindows(), since, upto, count, descending)
        if len(expected) < count or not count:
            assert found == Words()
        else:
            assert (found.least if descending else found.most) == expected[-1]


@pytest.fixture
def unselective(monkeypatch):
    """Lists are used for any number of rows."""
    for room in (ranges, picks):
        monkeypatch.setattr(room, "MOST", 0)


@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_ranges_find_what_is_in_the_ring(unselective, type_):
    pick = Random(str(type_))
    for _ in range(examples(60)):
        held, now = Held(type_), 0
        for _ in range(pick.randint(2, 16)):
            at = shaken(pick, held.ring, now)
            if at is None:
                ts = sorted(pick.randint(now, now + 15) for _ in range(pick.randint(1, 9)))
                held.add([pick.choice([None, *VALUES[type_]]) for _ in ts], ts)
                at = ts[-1]
            now = at
            for _ in range(2):
                ops = pick.sample(sorted(COMPARE), pick.randint(1, 3))
                asked = [(op, pick.choice(VALUES[type_])) for op in ops]
                held.check(pick.choice([0, 3, FOREVER]), asked)
                since = now - pick.randint(0, 60)
                held.check_first(since, now - pick.choice([0, 4]), pick.randint(0, 6), now % 2 > 0)


def test_where_much_of_a_sub_window_lies_in_the_range_it_is_read_and_large_ones_are_not_sorted(
    monkeypatch,
):
    held = Held(pa.int64())
    for first in (0, 40, 80):
        held.add(list(range(first, first + 40)), [first // 4] * 40)
    held.lists.follow(held.ring, FOREVER)
    found = held.lists.find(held.ring, Range((("ge", pa.array([37])), ("le", pa.array([60])))))
    assert {n: len(p) for n, p in found.places.items()} == {0: 3} and found.count == 3 + 40
    monkeypatch.setattr(ranges, "LARGE", 40)
    assert not SortedColumn(0).follow(held.ring, FOREVER)


# ---------------------------------------------------------------- one-time queries

RANGES = (
    "SELECT * FROM s {} WHERE k BETWEEN 2 AND 3",
    "SELECT v, k FROM s {} WHERE k > 4",
    "SELECT v FROM s {} WHERE k >= 2 AND k < 4 AND v > 2",
    "SELECT v FROM s {} WHERE 3 > k AND w = 'b'",
    "SELECT v FROM s {} WHERE w LIKE 'a%'",
    "SELECT w FROM s {} WHERE w LIKE 'ab_%c' OR k > 7",
    "SELECT w FROM s {} WHERE w LIKE 'a!%%' ESCAPE '!'",
    "SELECT w FROM s {} WHERE w LIKE '\U0010ffff%' AND w NOT LIKE 'b%'",
    "SELECT w FROM s {} WHERE w LIKE 'ab' OR FALSE",
    "SELECT v FROM s {} WHERE w >= 'ab' AND w < 'b'",
    "SELECT v, d FROM s {} WHERE d > 1.5 AND d <= 2.00",
    "SELECT f FROM s {} WHERE f > 1.5",
    "SELECT f, v FROM s {} WHERE f <= 0.0 AND f >= -0.0",
    "SELECT f FROM s {} WHERE f = CAST('nan' AS FLOAT)",
    "SELECT f, b FROM s {} WHERE f < CAST('nan' AS FLOAT) AND b > FALSE",
    "SELECT f FROM s {} WHERE f = -0.0",
    "SELECT b FROM s {} WHERE b < TRUE AND k <> 3",
    "SELECT v FROM s {} WHERE ts > TIMESTAMP '1970-01-01 00:00:04'",
    "SELECT v FROM s {} WHERE 6 / (v - 3) > 1 AND k > 4",
    "SELECT v FROM s {} WHERE k > 4 AND 6 / (v - 3) > 1",
    "SELECT k, COUNT(*), MAX(f) FROM s {} WHERE k > 3 GROUP BY k",
    "SELECT k FROM s {} WHERE k > 3 AND k < 2",
    "SELECT v FROM s {} WHERE k > 1 ORDER BY v, k LIMIT 2",
    "SELECT x.v, y.k FROM s {0} x JOIN s {0} y ON x.v = y.k WHERE x.k >= 5 AND y.f > 0.0",
    "SELECT s.v, t.w FROM s {} JOIN t ON s.k = t.k WHERE s.k > 2",
    "SELECT k, v FROM s {} ORDER BY k LIMIT 3",
    "SELECT v, f FROM s {} ORDER BY f DESC, v LIMIT 2 OFFSET 1",
    "SELECT w AS x, k + 1 AS y FROM s {} ORDER BY w NULLS FIRST LIMIT 4",
    "SELECT w FROM s {} ORDER BY w LIMIT 0",
    "SELECT d, b FROM s {} ORDER BY d DESC NULLS LAST, k LIMIT 2",
    "SELECT k, 6 / (v - 3) FROM s {} ORDER BY k LIMIT 2",
    "SELECT k + 1 AS l FROM (SELECT v, k FROM s {}) x WHERE k > 5",
)


class Ranged(Pair):
    """With a FLOAT and a BOOL column."""

    ddl = (
        "CREATE STREAM s (k INT, w STRING, d DECIMAL(6,2), v INT, f FLOAT, b BOOL, ts TIMESTAMP) "
        "TIMESTAMP BY ts"
    )
    index_by = ("k, f", "w, k, d, ts")

    def row(self, at: int) -> list:
        k, word, d, v, _ = super().row(at)
        word = self.pick.choice([word, word, "a%", "abxc", "\U0010ffffz"])
        f = self.pick.choice([None, 0.0, -0.0, 1.5, 2.5, -3.0, math.nan, math.inf])
        return [k, word, d, v, f, self.pick.choice([None, True, False]), at]


def _play(pick: Random, folder=None, user: str | None = None) -> Counter:
    return play(pick, folder, user, Ranged, RANGES)


def test_answers_are_the_same_with_and_without_sorted_lists(unselective, eager):
    for seed in range(examples(120)):
        _play(Random(seed))


def test_answers_are_the_same_to_who_sees_streams_in_part_or_late(unselective):
    for seed in range(examples(60)):
        _play(Random(seed), user="ann")


def test_answers_are_the_same_after_restarts(tmp_path):
    for seed in range(examples(30)):
        _play(Random(seed), tmp_path / str(seed))


# ---------------------------------------------------------------- what is told of them

DDL = "CREATE STREAM s (k INT, w STRING, x FLOAT, t TIMESTAMP) TIMESTAMP BY t SUBWINDOW 10 s RETAIN"


def _filled(more: str = "1 h", rows: int = 600) -> Engine:
    engine = Engine()
    engine.execute(f"{DDL} {more}")
    _come(engine, 0, rows)
    return engine


def _come(engine: Engine, first: int, n: int) -> None:
    rows = range(first, first + n)
    engine.ingest("s", [[k * 7 % 600, f"w{k:04}", k / 2, k * SECOND // 10] for k in rows])


def _told(engine: Engine, where: str) -> list[str]:
    lines = shown(engine, f"EXPLAIN SELECT k FROM s [RANGE 1 h] WHERE {where}")
    return [line["plan"] for line in lines if "index" in line["plan"]]


def test_explain_says_what_a_range_finds():
    engine = _filled("1 h INDEX BY (k, w, x)")
    assert len(shown(engine, "SELECT k FROM s [RANGE 1 h] WHERE k BETWEEN 3 AND 9")) == 7
    for where, told in (
        ("k BETWEEN 3 AND 9", "k: range, 7 rows of 6 sub-windows"),
        ("k > 590 AND k <= 591", "k: range, 1 row of 1 sub-window"),
        ("w LIKE 'w000%'", "w: range, 10 rows of 1 sub-window"),
        ("x = 3.5", "x: range, 1 row of 1 sub-window"),
        ("x > 1000.0", "x: range, 0 rows of 0 sub-windows"),
        ("k = 3 AND x > 1.0", "k: 1 of 6 sub-windows, 1 row"),
    ):
        assert _told(engine, where) == [f"asked once: index {told}"], where
    assert not _told(engine, "k > 5")  # most rows are


def test_first_rows_are_found_by_lists_too():
    engine = _filled("1 h INDEX BY (k, w)")
    for sql, first in (
        ("SELECT w, k FROM s [RANGE 1 h] ORDER BY k LIMIT 1", {"w": "w0000", "k": 0}),
        ("SELECT k FROM s [RANGE 30 s] ORDER BY w DESC LIMIT 1 OFFSET 2", {"k": 596 * 7 % 600}),
    ):
        assert shown(engine, sql) == [first]
    assert automatic(engine, "sorted") == ["k", "w"]


def test_lists_are_made_when_ranges_are_asked_for_often_and_go_when_they_are_not(monkeypatch):
    monkeypatch.setattr(indices, "SHARE", 0)
    engine = _filled("30 s")
    for n in range(1, 4):
        assert len(shown(engine, "SELECT k FROM s [RANGE 25 s] WHERE k < 9")) < 9
        assert automatic(engine, "sorted") == (["k"] if n == 3 else [])
    (memory,) = shown(engine, "SHOW MEMORY LIKE 'indices'")
    assert memory["bytes"] > 0
    _come(engine, 600, 1200)
    _come(engine, 1800, 120)
    assert automatic(engine, "sorted") == []


def test_lists_that_nobody_declared_and_that_take_too_much_go_for_long(monkeypatch):
    monkeypatch.setattr(indices, "SHARE", FOREVER)
    engine = _filled()
    for _ in range(3):
        shown(engine, "SELECT k FROM s [RANGE 1 h] WHERE k < 9")
    assert automatic(engine, "sorted") == ["k"]
    _come(engine, 600, 200)
    for _ in range(3):
        shown(engine, "SELECT k FROM s [RANGE 1 h] WHERE k < 9")
    assert automatic(engine, "sorted") == []


@pytest.mark.parametrize("where", ["k = 5", "k > 4"])
def test_what_is_null_does_not_keep_a_row_from_failing(where):
    engine = Engine()
    engine.execute(f"{DDL} 1 h INDEX BY (k)")
    engine.ingest("s", [[None, "a", 0.0, 0], [5, "a", 1.0, 20 * SECOND]])
    with pytest.raises(DsmsError, match="division by zero"):
        engine.execute(
            f"SELECT w FROM s [PARTITION BY k ROWS 1] WHERE {where} AND 1 / CAST(x AS INT) > 0"
        )
