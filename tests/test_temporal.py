"""Conditions on NOW() in persistent queries: at each instant what they say, and windows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import QueryError
from dsms.sql.binder import bind_query
from dsms.sql.parser import parse_one
from tests.bags import bag, told
from tests.effort import examples
from tests.plan_forms import comparable
from tests.stories.declared import Declared

DDL = (
    "CREATE STREAM s (k INT, e TIMESTAMP, t TIMESTAMP) TIMESTAMP BY t;"
    "CREATE STREAM u (k INT, x TIMESTAMP);"
    "CREATE STREAM p (k INT, e TIMESTAMP, t TIMESTAMP) TIMESTAMP BY t KEY (k);"
    "CREATE TABLE r (k INT PRIMARY KEY, e TIMESTAMP)"
)
MS = 1000
Row = tuple[int, int | None, int]

# of a row (k, e, t) at an instant
CONDITIONS = {
    "t > NOW() - INTERVAL 3 ms": lambda e, t, now: t > now - 3,
    "NOW() - INTERVAL 3 ms <= t": lambda e, t, now: t >= now - 3,
    "NOW() - t < INTERVAL 2 ms": lambda e, t, now: now - t < 2,
    "t + INTERVAL 2 ms - INTERVAL 1 ms > NOW()": lambda e, t, now: t + 1 > now,
    "t >= NOW()": lambda e, t, now: t >= now,
    "t <= NOW() - INTERVAL 2 ms": lambda e, t, now: t <= now - 2,
    "t < NOW()": lambda e, t, now: t < now,
    "t BETWEEN NOW() - INTERVAL 4 ms AND NOW() - INTERVAL 1 ms": (
        lambda e, t, now: now - 4 <= t <= now - 1
    ),
    "t > NOW() - INTERVAL 5 ms AND t > NOW() - INTERVAL 2 ms": lambda e, t, now: t > now - 2,
    "e > NOW()": lambda e, t, now: e is not None and e > now,
    "NOW() <= s.e": lambda e, t, now: e is not None and e >= now,
    "e + INTERVAL 2 ms > CURRENT_TIMESTAMP": lambda e, t, now: e is not None and e + 2 > now,
    "COALESCE(e, t) > NOW() - INTERVAL 1 ms": (lambda e, t, now: (t if e is None else e) > now - 1),
}
_rows = st.lists(
    st.tuples(st.integers(0, 2), st.none() | st.integers(0, 12), st.integers(0, 3)), max_size=8
)


@settings(max_examples=examples(150), deadline=None)
@given(_rows, st.sampled_from(sorted(CONDITIONS)), st.booleans())
def test_at_each_instant_it_is_what_the_condition_says(
    rows: list[Any], condition: str, more: bool
) -> None:
    engine, came, now = Engine(), list[Row](), 0
    extra = " AND k > 0" if more else ""
    engine.execute(f"{DDL}; CREATE QUERY q AS SELECT Rstream(k) FROM s WHERE {condition}{extra}")
    for k, e, gap in [*rows, (0, None, 6)]:
        for _ in range(gap):  # time goes on between rows
            now += 1
            engine.heartbeat("s", now * MS)
            meant = Counter(
                (key,)
                for key, ends, t in came
                if CONDITIONS[condition](ends, t, now) and (key > 0 or not more)
            )
            assert bag(engine, "SELECT * FROM q") == meant, (came, now)
        # rows of an instant that is over would be late
        came.append((k, e, now + 1))
        engine.ingest("s", [(k, None if e is None else e * MS, (now + 1) * MS)])
        now += 1
        engine.heartbeat("s", now * MS)


def bound(text: str) -> Any:
    declared = Declared()
    declared.run(f"{DDL};")
    return comparable(bind_query(parse_one(text), declared.catalog))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (
            "SELECT COUNT(*) FROM s WHERE t > NOW() - INTERVAL '1' HOUR AND k = 1",
            "SELECT COUNT(*) FROM s [RANGE 1 h] WHERE k = 1",
        ),
        (
            "SELECT a.k FROM s a JOIN u [NOW] b ON a.k = b.k WHERE a.t > NOW() - INTERVAL 1 s",
            "SELECT a.k FROM s [RANGE 1 s] a JOIN u [NOW] b ON a.k = b.k",
        ),
        (
            "SELECT a.k FROM s a LEFT JOIN u b ON a.k = b.k WHERE a.e > NOW()",
            "SELECT a.k FROM s [VALID UNTIL e] a LEFT JOIN u b ON a.k = b.k WHERE a.e IS NOT NULL",
        ),
        (
            "SELECT k FROM u WHERE x > NOW()",
            "SELECT k FROM u [VALID UNTIL x] WHERE x IS NOT NULL",
        ),
        (
            "SELECT k FROM (SELECT k FROM s WHERE t > NOW() - INTERVAL 1 s) q WHERE k IN (SELECT k "
            "FROM s WHERE t >= NOW())",
            "SELECT k FROM (SELECT k FROM s [RANGE 1 s]) q WHERE k IN (SELECT k FROM s [RANGE 1 "
            "us])",
        ),
        (
            "SELECT COUNT(*) FROM s WHERE t > NOW() - INTERVAL 1 h EVERY 10 min",
            "SELECT COUNT(*) FROM s [RANGE 1 h] EVERY 10 min",
        ),
        ("SELECT k FROM s WHERE t <= NOW()", "SELECT k FROM s"),
    ],
)
def test_it_is_a_window(said: str, meant: str) -> None:
    assert bound(f"CREATE QUERY q AS {said}") == bound(f"CREATE QUERY q AS {meant}")


def test_rows_leave_as_time_goes_by() -> None:
    engine = Engine()
    engine.execute(f"{DDL}; CREATE QUERY q AS SELECT k FROM s WHERE e > NOW()")
    engine.ingest("s", [(1, 5, 1), (2, 1, 1), (3, None, 2), (4, 3, 2)])
    for at in (3, 5):
        engine.heartbeat("s", at)
    assert told(engine, "q") == [
        (1, "insert", Counter([(1,)])),
        (2, "insert", Counter([(4,)])),
        (3, "delete", Counter([(4,)])),
        (5, "delete", Counter([(1,)])),
    ]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELECT k FROM s WHERE e <= NOW()", "Dstream(*) FROM s [VALID UNTIL e]"),
        ("SELECT k FROM s [RANGE 1 h] WHERE t > NOW() - INTERVAL 1 s", "leave one of them out"),
        ("SELECT k FROM s WHERE e > NOW() WINDOW 5 s", "leave one of them out"),
        ("SELECT k FROM s WHERE e > NOW() AND t > NOW() - INTERVAL 1 s", "LEAST"),
        ("SELECT k FROM s WHERE t > NOW()", "no row passes"),
        ("SELECT k FROM s WHERE t > NOW() OR k > 1", "[RANGE 5 min]"),
        ("SELECT k FROM r WHERE e > NOW()", "[RANGE 5 min]"),
        ("SELECT k FROM p WHERE t > NOW() - INTERVAL 1 s", "[RANGE 5 min]"),
        ("SELECT a.k FROM u b LEFT JOIN s a ON a.k = b.k WHERE a.e > NOW()", "[RANGE 5 min]"),
        ("SELECT k FROM s WHERE EXTRACT(HOUR FROM NOW()) = 5", "[RANGE 5 min]"),
        ("SELECT k FROM s WHERE t + (t - t) > NOW()", "[RANGE 5 min]"),
    ],
)
def test_what_is_no_window_is_refused(text: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        bound(f"CREATE QUERY q AS {text}")
    assert caught.value.code == "DS337"
    assert hint in (caught.value.hint or "")
