"""Statements of other streaming systems: each is answered with the same one in this language, made
from it, which is taken in its place."""

from __future__ import annotations

import pytest

from dsms.engine import Engine
from dsms.errors import QueryError
from dsms.sql.translated import translated

SCHEMA = """CREATE STREAM s (k INT, v FLOAT, ts TIMESTAMP) TIMESTAMP BY ts;
    CREATE STREAM u (k INT, v FLOAT, ts TIMESTAMP) TIMESTAMP BY ts"""
TUMBLED = "CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 5 min SLIDE 5 min] GROUP BY k"
HOPPED = "CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 5 min SLIDE 1 min] GROUP BY k"


@pytest.mark.parametrize(
    ("text", "here"),
    [
        (
            "SELECT k, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '5' "
            "MINUTES)) GROUP BY window_start, window_end, k",
            TUMBLED,
        ),
        (
            "SELECT window_start, window_end AS e, SUM(v) AS v FROM TABLE(TUMBLE(TABLE s, "
            "DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY window_start, window_end",
            "CREATE QUERY q AS SELECT WINDOW_START() AS window_start, WINDOW_END() AS e, SUM(v) AS "
            "v FROM s [RANGE 1 h SLIDE 1 h]",
        ),
        (
            "SELECT k, COUNT(*) AS n FROM TABLE(HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE, "
            "INTERVAL '5' MINUTES)) GROUP BY k",
            HOPPED,
        ),
        (
            "SELECT k, COUNT(*) AS n FROM TUMBLE(s, ts, INTERVAL '5 MINUTES') GROUP BY k",
            TUMBLED,
        ),
        (
            "SELECT k, COUNT(*) AS n FROM HOP(s, ts, INTERVAL '1 min', INTERVAL '5 min') GROUP "
            "BY k",
            HOPPED,
        ),
        (
            "SELECT k, COUNT(*) AS n FROM s GROUP BY k, TUMBLE(ts, INTERVAL '5' MINUTE)",
            TUMBLED,
        ),
        (
            "SELECT TUMBLE_START(ts, INTERVAL '5' MINUTE) AS b, k FROM s GROUP BY TUMBLE(ts, "
            "INTERVAL '5' MINUTE), k",
            "CREATE QUERY q AS SELECT WINDOW_START() AS b, k FROM s [RANGE 5 min SLIDE 5 min] "
            "GROUP BY k",
        ),
        (
            "SELECT k, COUNT(*) AS n FROM s GROUP BY HOP(ts, INTERVAL '1' MINUTE, INTERVAL '5' "
            "MINUTE), k",
            HOPPED,
        ),
        (
            "CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s GROUP BY k, window(ts, '5 minutes')",
            TUMBLED,
        ),
        ("SELECT k, COUNT(*) AS n FROM s GROUP BY k, TumblingWindow(minute, 5)", TUMBLED),
        ("SELECT k, COUNT(*) AS n FROM s GROUP BY k, HoppingWindow(minute, 5, 1)", HOPPED),
        (
            "SELECT k, COUNT(*) AS n FROM s WINDOW TUMBLING (SIZE 5 MINUTES) GROUP BY k EMIT "
            "CHANGES;",
            TUMBLED,
        ),
        (
            "CREATE TABLE q AS SELECT k, COUNT(*) AS n FROM s WINDOW HOPPING (SIZE 5 MINUTES, "
            "ADVANCE BY 1 MINUTE, GRACE PERIOD 10 SECONDS) GROUP BY k EMIT FINAL",
            HOPPED,
        ),
        (
            "SELECT k FROM s WHERE v > 1 EMIT CHANGES",
            "CREATE QUERY q AS SELECT k FROM s WHERE v > 1",
        ),
        (
            "CREATE MATERIALIZED VIEW q AS SELECT k, MAX(v) AS v FROM s GROUP BY k",
            "CREATE QUERY q AS SELECT k, MAX(v) AS v FROM s GROUP BY k",
        ),
        (
            "CREATE TABLE x (k INT, v DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL "
            "'5' SECOND) WITH ('connector' = 'kafka', 'topic' = 'x')",
            "CREATE STREAM x (k INT, v DOUBLE, ts TIMESTAMP) TIMESTAMP BY ts SLACK 5 s",
        ),
        (
            "CREATE SOURCE x (k BIGINT, ts TIMESTAMPTZ, WATERMARK FOR ts AS ts)",
            "CREATE STREAM x (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts",
        ),
        (
            "CREATE QUERY q AS SELECT ts::timestamptz AS t FROM s [NOW]",
            "CREATE QUERY q AS SELECT CAST(ts AS TIMESTAMP) AS t FROM s [NOW]",
        ),
        (
            "CREATE QUERY q AS SELECT window_end, COUNT(*) AS n FROM s [RANGE 5 min SLIDE 5 min]",
            "CREATE QUERY q AS SELECT WINDOW_END() AS window_end, COUNT(*) AS n FROM s [RANGE 5 "
            "min SLIDE 5 min]",
        ),
    ],
)
def test_a_statement_of_others_is_answered_with_the_same_one_here(text: str, here: str) -> None:
    engine = Engine()
    engine.execute(SCHEMA)
    with pytest.raises(QueryError) as caught:
        engine.execute(text)
    shown = (caught.value.hint or "").rpartition("; here: ")[2]
    assert shown.removeprefix("write ") == here
    (done,) = engine.execute(here)
    assert not done.warnings or "grows" in done.warnings[0]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k FROM s [RANGE 5 s]",
        "SELECT k FROM s GROUP BY TUMBLE(ts, v)",
        "SELECT k FROM s WHERE v > 1 QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) = 1",
        "SELECT k FROM s MATCH_RECOGNIZE (PATTERN (A B) DEFINE B AS B.v > A.v)",
        "SELECT k FROM (SELECT window_start FROM TUMBLE(s, ts, INTERVAL '5 min')) x",
        "SELECT k FROM s WINDOW SESSION (5 MINUTES) GROUP BY k EMIT CHANGES",
        "CREATE TABLE x (k INT, WATERMARK FOR ts AS f(ts))",
        "",
        "EMIT CHANGES",
        "(" * 3000,
    ],
)
def test_nothing_is_shown_that_would_not_do(text: str) -> None:
    assert translated(text) is None
