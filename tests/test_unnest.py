"""UNNEST in FROM: as DuckDB answers, and what becomes of rows as they come and leave."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import QueryError
from dsms.operators import unnest
from tests.bags import bag, told
from tests.effort import examples
from tests.nested import follows_the_definition, histories

STREAMS = (
    "CREATE STREAM s (k INT, l LIST(INT), t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;"
    "CREATE STREAM u (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;"
    "CREATE TABLE n (k INT PRIMARY KEY, name STRING) NON RETROACTIVE"
)
TWO = (
    "CREATE STREAM l (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t;"
    "CREATE STREAM r (k INT, w INT, t TIMESTAMP) TIMESTAMP BY t"
)
_value = st.one_of(st.none(), st.integers(0, 3))
_list = st.one_of(st.none(), st.lists(_value, max_size=3))
_rows = st.lists(st.tuples(_value, _list), max_size=8)
QUERIES = (
    "SELECT s.k, x FROM s, UNNEST(s.l) t(x)",
    "SELECT k, x FROM s CROSS JOIN UNNEST(l) AS t(x) WHERE k > 0 AND x > 1",
    "SELECT k, x FROM s LEFT JOIN UNNEST(l) AS t(x) ON TRUE",
    "SELECT x, COUNT(*) FROM s, UNNEST(l) t(x) GROUP BY x",
    "SELECT s.k, x, v FROM s CROSS JOIN UNNEST(s.l) t(x) JOIN u ON u.k = x",
    "SELECT s.k, x, v FROM s, u, UNNEST(s.l) t(x) WHERE u.k = s.k AND u.v <= x",
    "SELECT s.k, x, y FROM s, UNNEST(s.l) a(x), UNNEST(s.l) b(y) WHERE x < y",
    "SELECT s.k, x FROM s, UNNEST(s.l) t(x) WHERE EXISTS (SELECT * FROM u WHERE u.v = x)",
    "SELECT DISTINCT x FROM (SELECT k, l FROM s WHERE k > 0) q, UNNEST(q.l) t(x)",
)


@settings(max_examples=examples(150))
@given(st.sampled_from(QUERIES), _rows, st.lists(st.tuples(_value, _value), max_size=6))
def test_answers_are_duckdbs(query: str, rows: list[Any], others: list[Any]) -> None:
    engine = Engine()
    engine.execute(STREAMS)
    engine.ingest("s", [(*row, n) for n, row in enumerate(rows)])
    engine.ingest("u", [(*row, n) for n, row in enumerate(others)])
    for name in "su":
        engine.heartbeat(name, 1000)
    duck = duckdb.connect()
    for name, found, second in (("s", rows, pa.list_(pa.int64())), ("u", others, pa.int64())):
        names = ("k", "l" if name == "s" else "v")
        arrays = [
            pa.array([r[0] for r in found], pa.int64()),
            pa.array([r[1] for r in found], second),
        ]
        duck.register(name, pa.table(dict(zip(names, arrays, strict=True))))
    assert bag(engine, query) == Counter(duck.execute(query).fetchall()), query


ITEMS = "UNNEST(CASE WHEN l.v > 0 THEN [l.k, l.v, l.k] WHEN l.v = 0 THEN [] END)"
LIVE = (
    f"SELECT l.k, x FROM l{{l}}, {ITEMS} t(x)",
    f"SELECT l.k, x, n FROM l{{l}} LEFT JOIN {ITEMS} WITH ORDINALITY t(x, n) ON TRUE",
    f"SELECT x, COUNT(*) AS n, SUM(l.v) AS v FROM l{{l}}, {ITEMS} t(x) WHERE l.k < 3 GROUP BY x",
    f"SELECT l.k, x, r.w FROM l{{l}}, {ITEMS} t(x), r{{r}} WHERE r.k = x",
    f"SELECT DISTINCT x FROM l{{l}}, {ITEMS} t(x) WHERE x > 0",
    f"SELECT l.k, t.x FROM l{{l}}, {ITEMS} t(x) WHERE t.x = 0 OR t.x IN (SELECT r.w FROM r{{r}})",
)


@pytest.mark.parametrize("slide", [0, 4])
@settings(max_examples=examples(100))
@given(query=st.sampled_from(LIVE), history=histories("lr"))
def test_a_persistent_query_tells_what_the_definition_says(
    slide: int, query: str, history: Any
) -> None:
    follows_the_definition(TWO, query, {"l": "RANGE 5 us", "r": "RANGE 8 us"}, slide, history)


def test_items_live_as_long_as_their_rows() -> None:
    engine = Engine()
    engine.execute(STREAMS)
    engine.execute(
        "CREATE QUERY q AS SELECT Rstream(k, x, n) FROM s [RANGE 3 us],"
        " UNNEST(l) WITH ORDINALITY AS t (x, n)"
    )
    engine.execute("CREATE QUERY first AS SELECT k, x FROM s [ROWS 1], UNNEST(l) t(x)")
    engine.execute(
        "CREATE QUERY padded AS SELECT k, x, n FROM s [RANGE 2 us SLIDE 2 us]"
        " LEFT JOIN LATERAL UNNEST(l) WITH ORDINALITY t (x, n) ON TRUE"
    )
    engine.ingest("s", [(1, [7, 7], 1), (2, [], 2), (3, None, 3), (4, [None], 3)])
    engine.heartbeat("s", 9)
    rows = [(1, 7, 1), (1, 7, 2)]
    assert told(engine, "q") == [
        (1, "insert", Counter(rows)),
        (3, "insert", Counter([(4, None, 1)])),
        (6, "delete", Counter([*rows, (4, None, 1)])),
    ]
    found = [(at, kind, sorted(rows.elements())) for at, kind, rows in told(engine, "first")]
    assert found == [
        (1, "insert", [(1, 7), (1, 7)]),
        (2, "delete", [(1, 7), (1, 7)]),
        (3, "insert", [(4, None)]),
    ]
    assert told(engine, "padded") == [
        (2, "result", Counter(rows)),
        (4, "result", Counter([(2, None, None), (3, None, None), (4, None, 1)])),
    ]


def test_long_lists_are_opened_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """In parts between instants, so that no step takes long; the same is told."""
    monkeypatch.setattr(unnest, "BYTES", 40)
    engine, looks = Engine(), list[int]()
    opened = unnest.UnnestOp._opened
    monkeypatch.setattr(
        unnest.UnnestOp, "_opened", lambda *a: looks.append(len(a[1])) or opened(*a)
    )
    engine.execute(STREAMS)
    engine.execute("CREATE QUERY q AS SELECT Istream(k, x) FROM s, UNNEST(l) t(x)")
    rows = [(n, [n, n + 1] if n % 3 else None, n // 2) for n in range(60)]
    engine.ingest("s", rows)
    engine.heartbeat("s", 99)
    found = [row for _, _, rows in told(engine, "q") for row in rows.elements()]
    assert sorted(found) == [(k, x) for k, items, _ in rows for x in items or ()]
    assert sum(looks) == 60 and max(looks) <= 12


def test_a_table_is_read_as_of_the_row() -> None:
    engine = Engine()
    engine.execute(STREAMS)
    engine.execute("CREATE QUERY q AS SELECT s.k, name FROM s, UNNEST(l) t(x), n WHERE n.k = x")
    engine.execute("INSERT INTO n VALUES (1, 'a'), (2, 'b')")
    engine.ingest("s", [(1, [1, 2, 9], 1)])
    engine.heartbeat("s", 2)
    assert told(engine, "q") == [(1, "insert", Counter([(1, "a"), (1, "b")]))]


def test_lists_of_every_type() -> None:
    engine = Engine()
    for sql, items in {
        "BOOL": "TRUE, FALSE", "FLOAT": "1.5, 2.0", "STRING": "'a \"b', 'null'",
        "DECIMAL(3,2)": "DECIMAL '1.50', DECIMAL '2.25'", "BYTES": "X'00ff', X''",
        "TIMESTAMP": "TIMESTAMP '2013-01-01 00:00:00', TIMESTAMP '2014-01-01 00:00:00'",
        "INTERVAL": "INTERVAL '1' HOUR, INTERVAL '2' HOUR",
    }.items():  # a table  # fmt: skip
        (opened,) = engine.execute(f"SELECT x FROM UNNEST([{items}]) t(x)")
        (spelled,) = engine.execute(
            " UNION ALL ".join(f"SELECT {i} AS x" for i in items.split(", "))
        )
        assert opened.types == (sql,)
        assert opened.data.to_pylist() == spelled.data.to_pylist()
    (nulls,) = engine.execute("SELECT x, n FROM UNNEST([NULL, NULL]) WITH ORDINALITY t(x, n)")
    assert nulls.data.to_pylist() == [{"x": None, "n": 1}, {"x": None, "n": 2}]


def test_it_goes_on_after_a_restart(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    engine.execute(STREAMS)
    engine.execute(
        "CREATE QUERY q AS SELECT x, COUNT(*) AS n FROM s [RANGE 4 us], UNNEST(l) t(x) GROUP BY x"
    )
    engine.ingest("s", [(1, [1, 2], 1), (2, [2], 3)])
    engine.close()
    engine = Engine(tmp_path)
    engine.ingest("s", [(3, [2, 3], 4)])
    engine.heartbeat("s", 5)
    assert bag(engine, "SELECT * FROM q") == Counter([(2, 2), (3, 1)])
    engine.close()


def test_explain_shows_it_and_columns_are_called() -> None:
    engine = Engine()
    engine.execute(STREAMS)
    (plan,) = engine.execute("EXPLAIN SELECT x FROM s [RANGE 1 s] LEFT JOIN UNNEST(l) t(x) ON TRUE")
    assert any("LeftUnnest s.l" in row["plan"] for row in plan.data.to_pylist())
    for text, names in {
        "UNNEST([1])": ["unnest"],
        "UNNEST([1]) WITH ORDINALITY": ["unnest", "ordinality"],
        "UNNEST([1]) AS item": ["item"],
        "LATERAL UNNEST([1]) WITH ORDINALITY t(a)": ["a", "ordinality"],
    }.items():
        (found,) = engine.execute(f"SELECT * FROM {text}")
        assert found.data.schema.names == names


@pytest.mark.parametrize(
    ("from_", "code", "said"),
    [
        ("s, UNNEST(k) t(x)", "DS381", "this is INT"),
        ("s, UNNEST(l) t(x, y)", "DS217", "names for 2"),
        ("s RIGHT JOIN UNNEST(l) t(x) ON TRUE", "DS381", "can't open"),
        ("s ASOF JOIN UNNEST(l) t(x) ON x > k", "DS381", "can't open"),
        ("s JOIN UNNEST(l) t(k) USING (k)", "DS381", "joined with the row"),
        ("s LEFT JOIN UNNEST(l) t(x) ON x > 1", "DS381", "ON TRUE"),
        ("s, u JOIN UNNEST(l) t(x) ON x > 1", "DS322", "before it"),
        ("UNNEST(l) t(x), s", "DS201", "unknown column"),
        ("s, UNNEST(l) s(x)", "DS205", "twice"),
    ],
)
def test_what_can_not_be_is_refused(from_: str, code: str, said: str) -> None:
    engine = Engine()
    engine.execute(STREAMS)
    with pytest.raises(QueryError) as caught:
        engine.execute(f"SELECT 1 FROM {from_}")
    assert caught.value.code == code
    assert said in f"{caught.value} {caught.value.hint}"
