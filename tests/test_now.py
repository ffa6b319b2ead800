"""NOW() is the instant that a one-time query answers as of; AT TIME ZONE reads instants there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dsms.api import Rows
from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.oneshot.now import asks_now
from dsms.settings import Settings
from dsms.sql import ast
from dsms.sql.parser import parse_one
from dsms.sql.printer import to_sql
from tests.archive_local import Local

S = 1_000_000


def engine(count: int = 20, **settings: Any) -> Engine:
    made = Engine(settings=Settings(**settings))
    kept = "RETAIN 5 s ARCHIVE FOR 1 h UPDATE EVERY 10 s" if settings else "RETAIN 1 min"
    made.execute(
        f"CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t {kept};"
        "CREATE TABLE r (k INT PRIMARY KEY, t TIMESTAMP)"
    )
    made.ingest("s", [[i, i * S] for i in range(count)])
    made.heartbeat("s", count * S)
    made.execute("INSERT INTO r VALUES (3, TIMESTAMP '1970-01-01 00:00:03')")
    return made


def asked(made: Engine, sql: str) -> list[tuple]:
    found = made.execute(sql)[-1].data  # type: ignore[union-attr]
    return list(zip(*(c.to_pylist() for c in found.columns), strict=True))


ASKED = [
    ("SELECT k, NOW() FROM s [ROWS 1]", [(19, 20 * S)]),
    ("SELECT k FROM s [RANGE 1 min] WHERE t >= NOW() - INTERVAL 2 SECONDS", [(18,), (19,)]),
    ("SELECT COUNT(*), now() - MAX(t) FROM s [RANGE 1 min]", [(20, S)]),
    ("SELECT NOW(), COUNT(*) FROM s [RANGE 1 min] GROUP BY NOW()", [(20 * S, 20)]),
    (
        "SELECT k FROM s [RANGE 1 min] GROUP BY k HAVING MAX(t) > NOW() - INTERVAL 2 SECONDS",
        [(19,)],
    ),
    ("SELECT SUM(k) FILTER (WHERE t > NOW() - INTERVAL 2 SECONDS) FROM s [RANGE 1 min]", [(19,)]),
    ("SELECT MAX(NOW() - t) FROM s [RANGE 1 min]", [(20 * S,)]),
    ("SELECT DISTINCT CURRENT_TIMESTAMP FROM s [RANGE 1 min]", [(20 * S,)]),
    (
        "SELECT k, CURRENT_TIMESTAMP() FROM s [ROWS 2] ORDER BY NOW(), k DESC LIMIT 1",
        [(19, 20 * S)],
    ),
    (
        "SELECT r.k, NOW() - s.t FROM s [RANGE 1 min] JOIN r ON s.k = r.k AND s.t < NOW()",
        [(3, 17 * S)],
    ),
    (
        "SELECT k FROM s [RANGE 1 min] WHERE k IN (SELECT k FROM r WHERE t < CURRENT_TIMESTAMP)",
        [(3,)],
    ),
    ("SELECT a FROM (SELECT NOW() AS a FROM s [ROWS 1]) x", [(20 * S,)]),
    ("SELECT k FROM s [ROWS 1] UNION ALL SELECT EXTRACT(SECOND FROM NOW())", [(19,), (20,)]),
    ("SELECT DATE_BIN(INTERVAL '15' SECOND, NOW()) FROM s [ROWS 1]", [(15 * S,)]),
    ("SELECT CASE WHEN NOW() > t THEN 1 ELSE 1 / 0 END FROM s [ROWS 1]", [(1,)]),
    # nothing that is read has a clock
    ("SELECT NOW()", [(None,)]),
    ("SELECT k FROM r WHERE t < NOW()", []),
]


@pytest.mark.parametrize(("sql", "rows"), ASKED)
def test_it_is_as_of_when_the_answer_holds(sql: str, rows: list[tuple]) -> None:
    made = engine()
    assert asked(made, sql) == rows
    (found,) = made.execute(sql)
    assert isinstance(found, Rows)
    assert found.as_of == (20 * S if "FROM s" in sql else None)


def test_it_moves_with_the_clock() -> None:
    made = engine()
    sql = "SELECT COUNT(*), MIN(NOW() - t) FROM s [RANGE 1 min] WHERE k = 3 AND t < NOW()"
    for more in range(3):
        assert asked(made, sql) == [(1, (17 + more) * S)]
        made.heartbeat("s", (21 + more) * S)


@pytest.mark.parametrize("by", ["duckdb", "spark"])
def test_archives_know_it(by: str, tmp_path: Path) -> None:
    made = engine(60, archive=str(tmp_path), archive_runner=Local())
    for place in ("ARCHIVE s [RANGE 1 h]", "s [RANGE 1 h ARCHIVE]"):
        sql = f"SELECT COUNT(*), MAX(NOW() - t) FROM {place} WHERE t >= NOW() - INTERVAL 50 SECONDS"
        (found,) = made.execute(f"{sql} WITH (archive = '{by}')")
        assert isinstance(found, Rows) and found.as_of is not None
        since = made.execute(f"SELECT TO_TIMESTAMP({found.as_of - 50 * S}, 'us')::STRING")[0].data  # type: ignore[union-attr]
        told = f"TIMESTAMP '{since.column(0)[0]}'"
        wanted = asked(made, f"SELECT COUNT(*), 50 FROM {place} WHERE t >= {told}")
        assert [(c, a // S) for c, a in _rows(found)] == wanted
        assert wanted[0][0] >= 30


def _rows(found: Rows) -> list[tuple]:
    return list(zip(*(c.to_pylist() for c in found.data.columns), strict=True))


def test_insert_takes_it_once() -> None:
    made = engine()
    made.execute("INSERT INTO r SELECT k, NOW() FROM s [ROWS 2]")
    assert asked(made, "SELECT k, t FROM r ORDER BY k") == [(3, 3 * S), (18, 20 * S), (19, 20 * S)]


def test_functions_of_ones_own_may_ask_for_it() -> None:
    made = engine()
    made.execute("CREATE FUNCTION age(x TIMESTAMP) AS NOW() - x")
    assert asked(made, "SELECT age(t) FROM s [ROWS 2]") == [(2 * S,), (S,)]
    with pytest.raises(DsmsError, match=r"DS337.*function age"):
        made.execute("CREATE QUERY q AS SELECT age(t) FROM s")


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE QUERY q AS SELECT NOW() FROM s",
        "CREATE QUERY q AS SELECT k FROM s [RANGE 1 min] WHERE t > CURRENT_TIMESTAMP",
        "CREATE QUERY q AS SELECT COUNT(*), NOW() FROM s [RANGE 1 min] EVERY 1 min",
        "CREATE QUERY q AS SELECT COUNT(*) FROM s [RANGE 1 min] HAVING NOW() > MAX(t) ON LOOKUP",
        "UPDATE r SET t = NOW()",
        "DELETE FROM r WHERE t < NOW()",
        "INSERT INTO r VALUES (5, NOW())",
        "CREATE STREAM w (a INT, b TIMESTAMP AS (NOW()), t TIMESTAMP) TIMESTAMP BY t",
        "CREATE STREAM w (a INT, b TIMESTAMP DEFAULT NOW(), t TIMESTAMP) TIMESTAMP BY t",
        "SHOW STREAMS WHERE clock < NOW()",
    ],
)
def test_elsewhere_it_is_refused(sql: str) -> None:
    with pytest.raises(DsmsError) as caught:
        engine().execute(sql)
    assert caught.value.code == "DS337"


def test_what_is_called_so_is_meant() -> None:
    made = engine()
    made.execute("CREATE TABLE n (k INT PRIMARY KEY, now INT, current_timestamp INT)")
    made.execute("INSERT INTO n VALUES (1, 2, 3)")
    assert asked(made, "SELECT now, current_timestamp FROM n") == [(2, 3)]
    assert asked(made, "SELECT x.current_timestamp FROM (SELECT 7 AS current_timestamp) x") == [
        (7,)
    ]
    with pytest.raises(DsmsError, match="DS201"):
        made.execute('SELECT "CURRENT_TIMESTAMP" FROM r')
    with pytest.raises(DsmsError, match=r"DS207.*NOW takes no arguments"):
        made.execute("SELECT NOW(6)")


def test_explain_shows_it() -> None:
    plan = asked(engine(), "EXPLAIN SELECT k FROM s [RANGE 1 min] WHERE t > NOW()")
    assert any("s.t > now()" in line for (line,) in plan)


# ---------------------------------------------------------------- AT TIME ZONE


def test_at_time_zone_is_at_zone() -> None:
    made = engine()
    both = (
        "SELECT t AT TIME ZONE 'Asia/Kolkata', AT_ZONE(t, '+05:30'), t::TIMESTAMP at /* */ time\n"
        "zone '+0530', -1 + EXTRACT(HOUR FROM t AT TIME ZONE '-01') FROM s [ROWS 1]"
    )
    shown = (19 + 19_800) * S
    assert asked(made, both) == [(shown, shown, shown, 22)]
    made.execute("CREATE QUERY q AS SELECT k FROM s WHERE t AT TIME ZONE '+01' > t")
    statement = parse_one("UPDATE r SET k = 1 AT TIMESTAMP '1970-01-01 00:00:20'")
    assert isinstance(statement, ast.Update) and statement.at is not None
    text = "SELECT AT_ZONE(t, 'UTC') FROM s"
    assert to_sql(parse_one("SELECT t AT TIME ZONE 'UTC' FROM s")) == text


def test_windows_may_follow_an_offset() -> None:
    made = engine()
    made.execute(
        "CREATE QUERY q AS SELECT COUNT(*) AS n, WINDOW_START() AS since FROM s [RANGE 1 DAY] "
        "EVERY 1 DAY TIME ZONE '+05:30'"
    )
    made.heartbeat("s", 2 * 86_400 * S)
    pushes = made.subscribe("q", 0).take()
    ends = [p.at for p in pushes if p.data is not None]
    assert ends[0] == (86_400 - 19_800) * S
    assert pushes[0].data.to_pylist() == [{"n": 20, "since": -19_800 * S}]  # type: ignore[union-attr]


def test_spark_is_given_a_plan_that_knows_it(tmp_path: Path) -> None:
    from dsms_spark.query import ask

    made = engine(60, archive=str(tmp_path))
    made.close()
    found = ask(str(tmp_path), "SELECT NOW() AS n FROM ARCHIVE s [RANGE 1 h] WHERE t < NOW()")
    assert asks_now(found.bound) and not asks_now(found.job.plan)
    assert found.as_of is not None and f"Lit(value={found.as_of}" in repr(found.job.plan)
