"""Short ways to say what could be said before: ILIKE, IF, COUNT_IF, TRY_CAST."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.sql import ast
from dsms.sql.expr import Call, Col
from dsms.sql.functions import call, cast
from dsms.sql.parser import parse_one
from dsms.sql.printer import to_sql
from dsms.sql.types import BOOL, FLOAT, INT, STRING, TIMESTAMP, Type, decimal
from tests.effort import examples
from tests.oracle.scalar import evaluate
from tests.scalars import every_way, lit

S = 1_000_000


def engine() -> Engine:
    made = Engine()
    made.execute(
        "CREATE STREAM s (i INT, x STRING, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;"
        "CREATE TABLE r (i INT PRIMARY KEY, x STRING)"
    )
    return made


def feed(made: Engine) -> None:
    rows = [[1, "Abc", 1 * S], [2, "12", 2 * S], [3, None, 3 * S], [4, "aBD", 4 * S]]
    made.ingest("s", rows)
    made.ingest("r", [row[:2] for row in rows])
    made.heartbeat("s", 9 * S)


def asked(made: Engine, sql: str) -> list[tuple]:
    found = made.execute(sql)[-1].data  # type: ignore[union-attr]
    return list(zip(*(c.to_pylist() for c in found.columns), strict=True))


def pushed(made: Engine, query: str) -> list[tuple]:
    pushes = made.subscribe(query, 0).take()
    rows = [row for p in pushes if p.data is not None for row in p.data.to_pylist()]
    return [tuple(row.values()) for row in rows]


def refused(sql: str) -> tuple[str, str]:
    with pytest.raises(DsmsError) as caught:
        engine().execute(sql)
    return caught.value.code, f"{caught.value.message}; {caught.value.hint}"


# what is written, what it is short for
SHORT = [
    ("x ILIKE 'A%'", "LOWER(x) LIKE LOWER('A%')"),
    ("x NOT ILIKE 'a_C'", "NOT (LOWER(x) LIKE LOWER('a_C'))"),
    ("x ILIKE x || '%'", "LOWER(x) LIKE LOWER(x || '%')"),
    ("x ILIKE 'a!%' ESCAPE '!'", "LOWER(x) LIKE LOWER('a!%') ESCAPE '!'"),
    ("IF(i > 1, x, 'one')", "CASE WHEN i > 1 THEN x ELSE 'one' END"),
    ("IF(x = 'Abc', i, 0.5)", "CASE WHEN x = 'Abc' THEN i ELSE 0.5 END"),
    ("iif(i = 1, 1, 4 / (i - 1))", "CASE WHEN i = 1 THEN 1 ELSE 4 / (i - 1) END"),
    ("IFF(NULL, 1, 2)", "2"),
    ("TRY_CAST(x AS INT)", "CASE WHEN x = '12' THEN 12 END"),
    ("TRY_CAST(i AS FLOAT) / 2", "i / 2.0"),
]


@pytest.mark.parametrize(("short", "long"), SHORT)
def test_each_is_what_it_is_short_for_wherever_it_stands(short: str, long: str) -> None:
    made = engine()
    made.execute(f"CREATE QUERY q AS SELECT i, {short} AS a, {long} AS b FROM s")
    made.execute(f"CREATE QUERY f AS SELECT i FROM s WHERE ({short}) IS NOT NULL")
    made.execute(f"CREATE QUERY p AS SELECT i, {short} AS a FROM s [RANGE 1 min] EVERY 9 s")
    feed(made)
    known = pushed(made, "q")
    assert [row[0] for row in known] == [1, 2, 3, 4]
    assert all(a == b and type(a) is type(b) for _, a, b in known)
    assert pushed(made, "f") == [(i,) for i, a, _ in known if a is not None]
    assert pushed(made, "p") == [(i, a) for i, a, _ in known]
    for source in ("s [RANGE 1 min]", "r"):
        assert asked(made, f"SELECT i, {short}, {long} FROM {source} ORDER BY i") == known
    where = f"WHERE COALESCE(CAST({short} AS STRING), '') = COALESCE(CAST({long} AS STRING), '')"
    assert len(asked(made, f"SELECT i FROM r {where}")) == 4


def test_lookups_ask_with_them() -> None:
    made = engine()
    made.execute(
        "CREATE QUERY q AS SELECT x, COUNT_IF(i > 1) AS n FROM s [RANGE 1 min] "
        "WHERE x ILIKE 'a%' GROUP BY x HAVING x ILIKE ?::STRING ON LOOKUP"
    )
    feed(made)
    assert asked(made, "LOOKUP q ('abc')") == [("Abc", 0)]
    assert asked(made, "LOOKUP q ('ABD')") == [("aBD", 1)]


def test_count_if_is_a_count_with_a_filter() -> None:
    made = engine()
    made.execute(
        "CREATE AGGREGATE share(c BOOL) AS COUNT_IF(c) / CAST(COUNT(*) AS FLOAT);"
        "CREATE QUERY q AS SELECT COUNT_IF(i > 1), COUNTIF(i > 1) FILTER (WHERE x ILIKE 'a%') AS a,"
        " share(i > 1) AS share FROM s [RANGE 1 min] EVERY 9 s"
    )
    feed(made)
    assert pushed(made, "q") == [(3, 1, 0.75)]
    (found,) = made.execute("SELECT COUNT_IF(i > 1), COUNT_IF(x > 'b') FROM r")
    assert found.data.schema.names == ["COUNT_IF(i > 1)", "COUNT_IF(x > 'b')"]  # type: ignore[union-attr]
    assert asked(made, "SELECT COUNT_IF(NULL), COUNT_IF(x IS NULL) FROM r") == [(0, 1)]
    assert asked(made, "SELECT COUNT_IF(i > 9) FROM r GROUP BY i") == [(0,)] * 4


def test_try_cast_is_counted_nowhere() -> None:
    made = engine()
    made.execute("CREATE QUERY q AS SELECT TRY_CAST(x AS INT) AS a, CAST(x AS INT) AS b FROM s")
    made.execute(
        "CREATE QUERY stops AS SELECT TRY_CAST(x AS INT) AS a FROM s WITH (on_error = stop)"
    )
    feed(made)
    values = [(None, None), (12, 12), (None, None), (None, None)]
    assert pushed(made, "q") == values
    assert pushed(made, "stops") == [(a,) for a, _ in values]
    assert dict(_errors(made)) == {"q": 2, "stops": 0}
    with pytest.raises(DsmsError, match="DS701"):
        made.execute("SELECT TRY_CAST(1 / (i - i) AS STRING) FROM r")


def _errors(made: Engine) -> list[tuple[str, int]]:
    (found,) = made.execute("SHOW QUERIES")
    rows = found.data.to_pylist()  # type: ignore[union-attr]
    return [(row["query"], row["errors"]) for row in rows]


TARGETS: list[Type] = [INT, FLOAT, BOOL, TIMESTAMP, decimal(5, 2)]
TEXTS = st.one_of(
    st.none(),
    st.text("0123456789.-+e tT", max_size=8),
    st.sampled_from(["true", "off", "nan", "2020-01-01", "2020-02-30", "9" * 20, "1e400"]),
)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(TEXTS, max_size=12), st.sampled_from(TARGETS))
def test_try_cast_as_defined(texts: list[str | None], to: Type) -> None:
    rows = [(x,) for x in texts]
    expr = cast(Col(0, STRING), to, "try_cast")
    values, errors = every_way(expr, [STRING], rows)
    assert errors == 0
    assert values == pytest.approx([evaluate(expr, row) for row in rows], nan_ok=True)


WORDS = st.text("aAbBßẞİiIKk%_!", max_size=5)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.one_of(st.none(), WORDS), max_size=8), st.one_of(st.none(), WORDS))
def test_ilike_as_defined(texts: list[str | None], pattern: str | None) -> None:
    pattern_ = Col(1, STRING) if pattern is None else lit(pattern)
    sides = [call("lower", [Col(0, STRING)]), call("lower", [pattern_])]
    expr = call("like", sides)
    rows = [(x, pattern) for x in texts]
    found, _ = every_way(expr, [STRING, STRING], rows)
    assert found == [_ilike(x, pattern) for x, _ in rows]


def _ilike(text: str | None, pattern: str | None) -> bool | None:
    if text is None or pattern is None:
        return None
    return _fits([_low(c) for c in text], [_low(c) for c in pattern])


def _low(c: str) -> str:
    return c.lower() if len(c.lower()) == 1 else "i" if c == "İ" else c


def _fits(text: list[str], pattern: list[str]) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(_fits(text[k:], pattern[1:]) for k in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and _fits(text[1:], pattern[1:])


REFUSED = [
    ("SELECT x ILIKE i FROM r", "DS207", "LIKE(STRING, INT)"),
    ("SELECT x ILIKE 'a' ESCAPE 'E' FROM r", "DS207", "can't be one"),
    ("SELECT IF(i, 1, 2) FROM r", "DS207", "if(BOOL, T, T) -> T"),
    ("SELECT IF(i > 1, 1) FROM r", "DS207", "if(BOOL, T, T) -> T"),
    ("SELECT IF(i > 1, 1, 'a') FROM r", "DS207", "if(BOOL, T, T) -> T"),
    ("SELECT COUNT_IF(i) FROM r", "DS243", "takes BOOL, and this is INT"),
    ("SELECT COUNT_IF(DISTINCT i > 1) FROM r", "DS244", "DISTINCT"),
    ("SELECT COUNT_IF(*) FROM r", "DS304", "does not take *"),
    ("SELECT i FROM r WHERE COUNT_IF(i > 1) > 1", "DS301", "HAVING"),
    ("SELECT TRY_CAST(x) FROM r", "DS207", "try_cast(any AS type)"),
    ("SELECT TRY_CAST(x, i AS INT) FROM r", "DS207", "takes one value"),
    ("SELECT TRY_CAST(x AS INTT) FROM r", "DS210", "INT"),
    ("SELECT TRY_CAST(CAST(x AS TIMESTAMP) AS INT) FROM r", "DS208", "can't be cast"),
    ("SELECT SAFE_CAST(x AS INT) FROM r", "DS110", "write TRY_CAST(x AS type)"),
    ("SELECT UPPER(x AS INT) FROM r", "DS110", "TRY_CAST"),
    ("SELECT COUNTIFF(i > 1) FROM r", "DS206", "did you mean COUNT_IF?"),
    ("CREATE AGGREGATE count_if(x INT) AS SUM(x)", "DS241", "built in"),
    ("CREATE FUNCTION iff(x INT) AS x", "DS241", "built in"),
]


@pytest.mark.parametrize(("sql", "code", "part"), REFUSED)
def test_what_is_refused(sql: str, code: str, part: str) -> None:
    found, said = refused(sql)
    assert (found, part in said) == (code, True), said


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a ILIKE 'x%' ESCAPE '!' FROM s",
        "SELECT a NOT ILIKE b || 'x' FROM s",
        "SELECT IF(a, b, c), TRY_CAST(a AS DECIMAL(5,2)), COUNT_IF(a) FROM s",
    ],
)
def test_each_prints_as_it_was_written(text: str) -> None:
    assert to_sql(parse_one(text)) == text


def test_ilike_may_be_a_name() -> None:
    for text in ("SELECT a ilike FROM s", "SELECT a ilike, b FROM s", "SELECT ilike FROM s ilike"):
        statement = parse_one(text)
        assert isinstance(statement, ast.SelectStatement)
        assert not any(isinstance(n, ast.Like) for n in ast.walk(statement))
    made = engine()
    feed(made)
    assert asked(made, "SELECT i ilike FROM r WHERE x ILIKE 'ABD'") == [(4,)]


def test_types_of_branches_meet() -> None:
    made = engine()
    feed(made)
    rows = asked(made, "SELECT IF(i > 2, DECIMAL '1.50', i) FROM r ORDER BY i")
    assert rows == [(Decimal("1.00"),), (Decimal("2.00"),), (Decimal("1.50"),), (Decimal("1.50"),)]
    assert Call("try_cast", (Col(0, STRING),), INT) == cast(Col(0, STRING), INT, "try_cast")


def test_queries_with_them_go_on_after_a_restart(tmp_path: Path) -> None:
    told = []
    for restarts in (False, True):
        folder = str(tmp_path / str(restarts))
        made = Engine(folder)
        made.execute(
            "CREATE STREAM s (i INT, x STRING, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;"
            "CREATE QUERY q AS SELECT i, IF(x ILIKE 'a%', TRY_CAST(i AS FLOAT), -1.0) AS a, "
            "DATE_BIN(INTERVAL '2' SECOND, t AT TIME ZONE '+05:30') AS b, STRFTIME(t, '%T') AS w, "
            "STRPTIME(x, '%Y') AS y, REGEXP_EXTRACT(x, '(.)b', 1) AS e, "
            "REGEXP_EXTRACT_ALL(x, '.') AS l, JSON_VALUE(x, '$' AS INT) AS j, "
            "x ->> 'a' AS k, JSON_EXISTS(x, '$') AS h, HAVERSINE(i, 0, 0, i) AS d FROM s;"
            "CREATE QUERY p AS SELECT COUNT_IF(x ILIKE '%b%') AS n FROM s [RANGE 4 s] EVERY 2 s"
        )
        made.ingest("s", [[1, "Abc", 1 * S], [2, "12", 2 * S]])
        if restarts:
            made.close()
            made = Engine(folder)
        made.ingest("s", [[3, None, 3 * S], [4, "aBD", 4 * S], [5, '{"a": "1"}', 5 * S]])
        made.heartbeat("s", 9 * S)
        told.append((pushed(made, "q"), pushed(made, "p"), asked(made, "SHOW CREATE QUERY p")))
        made.close()
    assert told[0] == told[1]
    assert len(told[0][0]) == 5 and told[0][1][0] == (1,)
    assert told[0][0][0][:2] == (1, 1.0) and told[0][0][4][8] == "1"
