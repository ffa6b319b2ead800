"""WINDOW at the end of a SELECT, and subqueries whose streams it does not reach."""

from __future__ import annotations

import pytest

from dsms.engine import Engine

DDL = (
    "CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t;"
    "CREATE STREAM u (k INT, t TIMESTAMP) TIMESTAMP BY t; CREATE TABLE r (k INT PRIMARY KEY)"
)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("SELECT s.k FROM s, (SELECT k FROM u) q WHERE s.k = q.k WINDOW 5 s", ["u"]),
        ("SELECT k FROM s WHERE k IN (SELECT k FROM u) WINDOW 5 s", ["u"]),
        ("SELECT k FROM s WHERE k > (SELECT MAX(k) FROM s) WINDOW 5 s", ["s"]),
        ("SELECT q.k FROM s, (SELECT a.k FROM u a JOIN (SELECT k FROM s) b ON a.k = b.k) q "
         "WHERE s.k = q.k WINDOW 5 s", ["u", "s"]),
        ("SELECT k FROM s WHERE k IN (SELECT k FROM u [RANGE 9 s]) WINDOW 5 s", []),
        ("SELECT k FROM s WHERE k IN (SELECT k FROM u WINDOW 9 s) WINDOW 5 s", []),
        ("SELECT k FROM s WHERE k IN (SELECT k FROM r) WINDOW 5 s", []),
        ("SELECT k FROM s WHERE k IN (SELECT k FROM u)", []),
    ],
)  # a table  # fmt: skip
def test_the_reply_names_streams_without_a_window(text: str, named: list[str]) -> None:
    engine = Engine()
    engine.execute(DDL)
    (done,) = engine.execute(f"CREATE QUERY q AS {text}")
    found = [w for w in done.warnings if w.startswith("WINDOW stands")]  # type: ignore[union-attr]
    assert found == [
        f"WINDOW stands over the streams of its own FROM, and {name} in a subquery has no window: "
        f"write {name} [RANGE 5 s] there"
        for name in named
    ]
