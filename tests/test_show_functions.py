"""SHOW FUNCTIONS lists what the binder knows, and LIKE chooses."""

from __future__ import annotations

import pytest

from dsms.engine import Engine
from dsms.errors import QueryError
from dsms.sql import functions
from dsms.sql.parser import parse_one
from dsms.sql.printer import to_sql


def listed(more: str = "", what: str = "FUNCTIONS") -> list[dict[str, str]]:
    return Engine().execute(f"SHOW {what} {more}")[0].data.to_pylist()


def test_all_are_listed_by_name():
    lines = listed()
    names = [line["function"] for line in lines]
    known = {
        n
        for n in (*functions.scalar_names(operators=False), *functions.aggregate_names())
        if n != "count_star"
    }
    assert set(names) == known | {
        "current_user",
        "grouping",
        "count_if",
        "instant",
        "now",
        "window_start",
        "window_end",
    }
    assert names == sorted(names)
    assert {line["kind"] for line in lines} == {"scalar", "aggregate"}
    assert all(line["meaning"] and "\n" not in line["meaning"] and line["result"] for line in lines)


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("sqrt", {"sqrt"}),
        ("SQRT", {"sqrt"}),
        ("nvl", {"coalesce"}),  # an alias
        ("var%", {"var", "var_pop"}),
        ("%_and", {"bool_and"}),
        ("", set()),
        ("nothing", set()),
    ],
)
def test_like(pattern: str, names: set[str]):
    assert {line["function"] for line in listed(f"LIKE '{pattern}'")} == names


def test_signatures():
    assert [(c["arguments"], c["result"]) for c in listed("LIKE 'count'")] == [
        ("*", "INT"),
        ("T", "INT"),
    ]
    assert [(c["arguments"], c["result"]) for c in listed("LIKE 'quantile'")] == [("T, phi", "T")]
    assert [c["arguments"] for c in listed("LIKE 'approx_count_distinct'")] == ["T, [lg_k]"]


def test_like_of_other_lists():
    assert [line["setting"] for line in listed("LIKE 'query%'", "SETTINGS")] == ["query_scheduler"]
    engine = Engine()
    engine.execute("CREATE TABLE a (k INT); CREATE TABLE b (k INT)")
    assert [
        line["table"] for line in engine.execute("SHOW TABLES LIKE 'B'")[0].data.to_pylist()
    ] == ["b"]


def test_it_prints_back():
    for text in ("SHOW FUNCTIONS LIKE 'it''s %'", "SHOW FUNCTIONS", "SHOW STREAMS LIKE 'a'"):
        assert to_sql(parse_one(text)) == text


def test_a_pattern_is_a_string():
    with pytest.raises(QueryError, match="DS101"):
        parse_one("SHOW FUNCTIONS LIKE sum")
