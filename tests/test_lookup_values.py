"""Queries ON LOOKUP with parameters: LOOKUP q (value, ...), beside queries that have the constants
written in them, and beside the oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.sharing import searches
from dsms.sharing.threshold import AT_ONCE, UNSEEN
from dsms.sql.binder import bind_query
from dsms.sql.parser import parse_one
from dsms.sql.printer import to_sql
from dsms.synopses.collective import CollectiveIndex
from tests.effort import effort, examples
from tests.oracle.facts import Row
from tests.oracle.oracle import Oracle
from tests.oracle.values import canons
from tests.test_collective import STREAM, members, rows

S = 1_000_000
NUMBERS = ("0", "1", "3", "8", "20", "33", "4096", "-2", "NULL")
DECIMALS = ("2", "DECIMAL '10.25'", "DECIMAL '-1.5'", "NULL")
FLOATS = ("0.25", "-0.1", "1", "DECIMAL '0.5'", "NULL")
TEXTS = ("'g1'", "'g'", "'it''s'", "NULL")
# a condition, and what each of its parameters may be
HAVING: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = (
    ("COUNT(*) > ?", (NUMBERS,)),
    ("? <= COUNT(*) AND MAX(x) > ?", (NUMBERS, NUMBERS)),
    ("COUNT(*) = ? OR SUM(x) > ?", (NUMBERS, NUMBERS)),
    ("COUNT(*) FILTER (WHERE f > 0) >= ?", (NUMBERS,)),
    ("SUM(x) > ?", (NUMBERS,)),
    ("SUM(x) > ? AND k > ?", (NUMBERS, TEXTS)),
    ("SUM(x) > ?::FLOAT", (FLOATS,)),
    ("SUM(d) BETWEEN ? AND ?", (DECIMALS, DECIMALS)),
    ("SUM(d) >= ?", (DECIMALS,)),
    ("MAX(f) > ?", (FLOATS,)),
    ("MIN(x) <= ? AND COUNT(*) > ?", (NUMBERS, NUMBERS)),
    ("AVG(x) < ?", (FLOATS,)),
    ("k IN (?, 'g3', ?)", (TEXTS, TEXTS)),
    ("MIN(k) IS DISTINCT FROM ?", (TEXTS,)),
    ("COUNT(*) % 3 > ? AND NOT k = ?", (("0", "1"), TEXTS)),
    ("10 / (COUNT(*) - 2) > ?", (NUMBERS,)),
)
SHAPES = (
    "SELECT k, COUNT(*) AS n FROM s {w} GROUP BY k HAVING {h}",
    "SELECT COUNT(*) AS n, k, SUM(x) AS x, SUM(d) AS d FROM s {w} WHERE f IS NOT NULL GROUP BY k "
    "HAVING {h}",
    "SELECT m, c FROM (SELECT k, MAX(f) AS m, COUNT(x) AS c FROM s {w} GROUP BY k HAVING {h}) "
    "WHERE c > 1",
    "SELECT k, MEDIAN(f) AS m FROM s {w} GROUP BY k HAVING {h} ORDER BY m, k LIMIT 4",
    "SELECT x % 3 AS g, k, SUM(f) IS NULL AS f FROM s {w} GROUP BY k, x % 3 HAVING {h}",
)
WINDOWS = ("[RANGE 12 s]", "[RANGE 40 s]", "[RANGE 20 s UNTIL 4 s AGO]")
WAYS = ("synopsis = collective", "synopsis = none", "synopsis = auto", "path = 'is'", "path = ws")


def constant(sql: str, values: tuple[str, ...]) -> str:
    """The query with the values written in it."""
    first, *others = sql.split("?")
    return first + "".join(v + part for v, part in zip(values, others, strict=True))


def ask(engine: Engine, text: str, params: list[Any] | None = None) -> tuple[list[Any], int | None]:
    (found,) = engine.execute(text, params)
    return [canons(tuple(row.values())) for row in found.data.to_pylist()], found.as_of


def register(engine: Engine, name: str, sql: str, way: str) -> None:
    engine.execute(f"CREATE QUERY {name} AS {sql} ON LOOKUP WITH ({way})")


@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(60) if effort() else 1, deadline=None)
def test_any_values_give_the_answer_of_these_constants(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """Each way, over restarts; as the oracle says of the query with the constants."""
    rng, t = Random(seed), 0
    folder = tmp_path_factory.mktemp("data") if rng.random() < 0.4 else None
    having, choices = rng.choice(HAVING)
    sql = rng.choice(SHAPES).format(w=rng.choice(WINDOWS), h=having)
    engine, given_rows = Engine(folder), list[list[Any]]()
    engine.execute(f"{STREAM[:-1]} RETAIN 1 h")
    for n, way in enumerate(WAYS):
        register(engine, f"q{n}", sql, way)
    for step in range(rng.randint(1, 4)):
        came, t = rows(rng, rng.randint(1, 200), t, rng.random() < 0.2)
        engine.ingest("s", came)
        given_rows += came
        if rng.random() < 0.6:
            t += rng.choice([S, 3 * S, 30 * S])
            engine.heartbeat("s", t)
            t += 1  # what is as old is late
        if folder is not None and rng.random() < 0.5:
            engine.close()
            engine = Engine(folder)
        values = tuple(rng.choice(some) for some in choices)
        _agree(engine, sql, values, given_rows, step)
    engine.close()


def _agree(engine: Engine, sql: str, values: tuple[str, ...], came: list[Any], step: int) -> None:
    written = constant(sql, values)
    bound = bind_query(parse_one(f"CREATE QUERY o AS {written} ON LOOKUP"), engine.runtime.catalog)  # type: ignore[arg-type]
    stream = [Row(r[4], n, r) for n, r in enumerate(_typed(came))]
    oracle = Oracle(bound, {"s": stream})
    right = cache(lambda at: [canons(found.values) for found in oracle.answer(at)])  # of all ways
    for n, way in enumerate(WAYS):
        register(engine, f"t{step}_{n}", written, way)
        with_values = ask(engine, f"LOOKUP q{n} ({', '.join(values)})")
        (answer, at), (want, when) = with_values, ask(engine, f"LOOKUP t{step}_{n}")
        ordered = "ORDER BY" in sql
        assert at == when and (answer == want if ordered else Counter(answer) == Counter(want)), way
        if at is not None:
            same = answer == right(at) if ordered else Counter(answer) == Counter(right(at))
            assert same, (way, at)
        engine.execute(f"DROP QUERY t{step}_{n}")


def _typed(came: list[Any]) -> Iterator[tuple[Any, ...]]:
    """Rows as the stream has them."""
    for k, x, d, f, t in came:
        yield k, x, None if d is None else Decimal(d), f, t


def counting(way: str = "synopsis = collective", having: str = "COUNT(*) > ?") -> Engine:
    engine = Engine()
    engine.execute(STREAM)
    sql = f"SELECT k, COUNT(*) AS n FROM s [RANGE 60 s] GROUP BY k HAVING {having}"
    register(engine, "q", sql, way)
    engine.ingest("s", rows(Random(4), 900, 0, False)[0])
    return engine


def index_of(engine: Engine) -> CollectiveIndex:
    (member,) = members(engine)
    search = searches.search_of(member)
    assert search is not None and isinstance(search.index, CollectiveIndex)
    return search.index


def test_one_index_finds_the_groups_of_any_value() -> None:
    engine = counting()
    ask(engine, "LOOKUP q (5)")
    index = index_of(engine)
    for value in (0, 1, 7, 80, AT_ONCE // 4 - 1, 3):
        ask(engine, f"LOOKUP q ({value})")
        assert index_of(engine) is index
    (member,) = members(engine)
    search = searches.search_of(member)
    ask(engine, "LOOKUP q (80)")
    assert search is not None and 0 < search.found < 10
    ask(engine, "LOOKUP q (0)")
    assert search.found > 30


def test_a_huge_value_makes_no_huge_index() -> None:
    engine = counting()
    assert ask(engine, f"LOOKUP q ({2**58})")[0] == []
    assert index_of(engine).levels <= 2 * UNSEEN.bit_length() + 2
    plain = counting("synopsis = none")
    for value in (2**62, -1, 3):
        assert ask(engine, f"LOOKUP q ({value})") == ask(plain, f"LOOKUP q ({value})")


def test_values_beside_the_text() -> None:
    engine = counting(having="COUNT(*) > ? AND k <> ?")
    typed = ask(engine, "LOOKUP q (20, 'g1')")
    assert typed[0] and ask(engine, "LOOKUP q (?, ?)", [20, "g1"]) == typed
    assert ask(engine, "LOOKUP q ($1, $2)", [20, "g1"]) == typed
    with pytest.raises(DsmsError) as caught:
        engine.execute("LOOKUP q (?, ?)")
    assert caught.value.code == "DS617"


def test_with_values_a_query_is_registered_with_constants() -> None:
    engine = Engine()
    engine.execute(STREAM)
    text = "CREATE QUERY q AS SELECT k FROM s [RANGE 5 s] GROUP BY k HAVING COUNT(*) > ? ON LOOKUP"
    engine.execute(text, [3])
    assert "COUNT(*) > 3" in shown(engine, "q")
    with pytest.raises(DsmsError) as caught:
        engine.execute(text.replace("ON LOOKUP", "").replace("QUERY q", "QUERY z"))
    assert caught.value.code == "DS617"
    engine.execute(text.replace("QUERY q", "QUERY p"))
    assert "COUNT(*) > ?" in shown(engine, "p")
    assert to_sql(parse_one(shown(engine, "p"))) == shown(engine, "p")


def shown(engine: Engine, name: str) -> str:
    (answer,) = engine.execute(f"SHOW CREATE QUERY {name}")
    text: str = answer.data.to_pylist()[0]["statement"]
    return text


def test_parameters_stay_where_names_change_and_queries_are_replaced(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    engine.execute(STREAM)
    register(
        engine,
        "q",
        "SELECT k, SUM(x) AS n FROM s [RANGE 60 s] GROUP BY k HAVING SUM(x) > ?",
        "path = ss",
    )
    engine.ingest("s", rows(Random(4), 300, 0, False)[0])
    before = ask(engine, "LOOKUP q (20)")
    engine.execute("ALTER STREAM s RENAME TO z; ALTER STREAM z RENAME COLUMN x TO y")
    engine.execute("ALTER QUERY q RENAME TO p")
    assert ask(engine, "LOOKUP p (20)") == before and "SUM(y) > ?" in shown(engine, "p")
    engine.close()
    engine = Engine(tmp_path)
    assert ask(engine, "LOOKUP p (20)") == before
    replaced = "SELECT k, SUM(y) AS n FROM z [RANGE 60 s] GROUP BY k HAVING SUM(y) > ? AND k > ?"
    engine.execute(f"CREATE OR REPLACE QUERY p AS {replaced} ON LOOKUP")
    assert ask(engine, "LOOKUP p (20, '')") == before
    engine.execute("PAUSE QUERY p; RESUME QUERY p")
    assert ask(engine, "LOOKUP p (?, ?)", [10**6, "g"])[0] == []
    engine.close()


@pytest.mark.parametrize("path", ["'is'", "ws"])
def test_a_row_that_may_not_fail_stops_the_query(path: str) -> None:
    engine = counting(f"path = {path}, on_error = stop", "10 / (COUNT(*) - 9) > ?")
    engine.execute("HEARTBEAT s AT 100 d")
    assert ask(engine, "LOOKUP q (1)")[0] == []
    engine.ingest("s", [["a", 1, None, None, 100 * 86_400 * S + n] for n in range(1, 10)])
    engine.execute("HEARTBEAT s AT TIMESTAMP '1970-04-11 00:00:01'")
    for _ in range(2):
        with pytest.raises(DsmsError) as caught:
            engine.execute("LOOKUP q (1)")
        assert caught.value.code == "DS701"


def test_explain_tells() -> None:
    engine = counting()
    (plan,) = engine.execute("EXPLAIN QUERY q")
    text = "\n".join(plan.data.column(0).to_pylist())
    assert "COUNT(*) > ?1" in text and "collective index: as the values of LOOKUP say" in text
    ask(engine, "LOOKUP q (20)")
    (plan,) = engine.execute("EXPLAIN QUERY q")
    assert "collective index: count(*) > 20: looked at" in "\n".join(
        plan.data.column(0).to_pylist()
    )
    text = "CREATE QUERY z AS SELECT k FROM s [RANGE 5 s] GROUP BY k HAVING COUNT(*) > ? ON LOOKUP"
    assert engine.execute(f"EXPLAIN {text}")[0].data.num_rows > 3


def test_a_query_begins_behind_a_silence_without_its_sub_windows() -> None:
    """Rows of before and behind it are kept; what is between them, millions, is passed over."""
    engine = Engine()
    engine.execute("CREATE STREAM s (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 9 days")
    for ts in (1, 2, 200_000_000, 200_000_003):
        engine.ingest("s", {"k": ["a"], "v": [ts % 7], "t": [ts]})
    engine.execute("CREATE QUERY q AS SELECT k, VAR(v) AS x, COUNT(*) AS n FROM s [RANGE 6 us] "
                   "GROUP BY k ON LOOKUP")  # a text  # fmt: skip
    held = engine.execute("SHOW WINDOWS")[0].data.to_pylist()
    assert max(row["subwindows"] or 0 for row in held) < 10_000
    engine.heartbeat("s", 200_000_004)
    (found,) = engine.execute("LOOKUP q")[0].data.to_pylist()
    assert found["n"] == 2
