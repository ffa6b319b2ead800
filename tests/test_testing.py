"""`dsms.testing`: what is as expected passes, what is not is shown line by line."""

from __future__ import annotations

import datetime as dt

import pytest

from dsms.errors import DsmsError
from dsms.testing import Scenario, at

SCRIPT = """
CREATE STREAM lost (k INT, w STRING, t TIMESTAMP) TIMESTAMP BY t;
CREATE STREAM s (k INT, w STRING, t TIMESTAMP) TIMESTAMP BY t LATE INTO lost RETAIN 1 h;
CREATE STREAM clicks (page STRING);
CREATE QUERY n AS SELECT w, COUNT(*) AS n FROM s [RANGE 10 s] GROUP BY w;
CREATE QUERY top AS SELECT k, t FROM s [RANGE 10 s SLIDE 10 s] ORDER BY k DESC;
CREATE QUERY views AS SELECT COUNT(*) AS n FROM clicks [RANGE 5 s]
"""
ROWS = [[1, "a", at("1 s")], [2, "b", at("2 s")], [3, "a", at("3 s")]]
CHANGES = [
    ("3 s", "-", "a", 1), ("1 s", "+", "a", 1), ("2 s", "+", "b", 1), ("3 s", "+", "a", 2),
    ("11 s", "-", "a", 2), ("11 s", "+", "a", 1), ("12 s", "-", "b", 1), ("13 s", "-", "a", 1),
]  # a table  # fmt: skip


@pytest.fixture
def it():
    with Scenario(SCRIPT) as made:
        yield made


def test_changes_at_instants_are_expected(it):
    it.feed("s", ROWS)
    it.until("20 s")
    it.expect("n", CHANGES)
    it.expect("n", [])
    it.expect("top", [
        ("10 s", "=", 3, dt.datetime(1970, 1, 1, 0, 0, 3)), ("10 s", "=", 2, at("2 s")),
        ("10 s", "=", 1, "1970-01-01 00:00:01"),
    ])  # a table  # fmt: skip
    it.feed("s", [[9, "late", at("4 s")]], late=1)
    it.expect_rows("SELECT w, COUNT(*) FROM s [RANGE ?] GROUP BY w", [("b", 1), ("a", 2)],
                   params=[dt.timedelta(minutes=1)])  # a call  # fmt: skip


def test_system_time_goes_on_too(it):
    it.until("1 s")
    it.expect("views", [(None, "+", 0)])
    it.feed("clicks", [["home"], ["home"]])
    it.until("30 s")
    assert it.changes("views") == [
        (at("1 s"), "-", 0), (at("1 s"), "+", 2), (at("6 s"), "-", 2), (at("6 s"), "+", 0),
    ]  # a table  # fmt: skip


def test_what_is_not_as_expected_is_shown(it):
    it.feed("s", ROWS)
    it.until("5 s")
    with pytest.raises(AssertionError) as found:
        it.expect("n", [("1 s", "+", "a", 1), ("2 s", "+", "c", 1), ("3 s", "-", "a", 1),
                        ("3 s", "+", "a", 2)])  # a table  # fmt: skip
    assert str(found.value).splitlines() == [
        "the changes of n are not as expected: < was expected and did not come, > came instead",
        "       1 s  + a 1",
        "<      2 s  + c 1",
        ">      2 s  + b 1",
        "       3 s  - a 1",
        "       3 s  + a 2",
    ]
    with pytest.raises(AssertionError, match=r"(?s)the rows are not.*<.*9.*>.*3"):
        it.expect_rows("SELECT COUNT(*) FROM s [RANGE 1 h]", [(9,)])
    with pytest.raises(AssertionError, match=r"(?s)1 refused, and 0.*expected INT, got str 'x'"):
        it.feed("s", [["x", "a", at("9 s")]])


@pytest.mark.parametrize(
    ("expected", "part"),
    [
        ([("1 s", "+", "a")], "a change of n is (instant, sign, w, n)"),
        ([("1 s", "±", "a", 1)], "a change of n is (instant, sign, w, n)"),
        ([("1 s", "+", "a", "many")], "expected INT, got str 'many'"),
        ([("soon", "+", "a", 1)], "'soon'"),
    ],
)
def test_what_could_never_come_is_no_failure_but_an_error(it, expected, part):
    with pytest.raises(DsmsError) as found:
        it.expect("n", expected)
    assert part in str(found.value)
    with pytest.raises(DsmsError, match="there is no query nn"):
        it.expect("nn", [])


def test_queries_may_come_and_be_renamed_by_the_engine_itself():
    it = Scenario(
        "CREATE STREAM s (a INT, t TIMESTAMP) TIMESTAMP BY t; "
        "CREATE QUERY q AS SELECT a FROM s [RANGE 5 s]"
    )
    it.engine.execute("ALTER QUERY q RENAME TO r; CREATE QUERY p AS SELECT a + 1 AS b FROM s [NOW]")
    it.feed("s", [[3, at("1 s")]])
    it.until("1 s")
    assert it.changes("r") == [(1_000_000, "+", 3)]
    assert it.changes("P") == [(1_000_000, "+", 4)]
