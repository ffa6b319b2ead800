"""Parameters of statements: each value is the constant that it is, wherever one may stand."""

from __future__ import annotations

import datetime as dt
import math
import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.forms.scalars import Instant, Length, as_builtin
from dsms.sql.parameters import Parameters
from dsms.sql.parser import parse_one, parse_piece
from dsms.sql.printer import to_sql
from dsms.sql.script import pieces
from tests.effort import examples

ENGINE = Engine()
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=12) | st.sampled_from(
    ("'", "''", "\\'", "' OR 1 = 1 --", "/*", "*/", ";", '"', "?", "$1", ":a", "x\x00y", "\n")
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.decimals(-(10**12), 10**12, places=6),
    TEXTS,
    st.binary(max_size=8),
    st.datetimes(),
    st.timedeltas(dt.timedelta(days=-9999), dt.timedelta(days=9999)),
)


def plain(value: Any) -> Any:
    """A value as an answer holds it."""
    value = as_builtin(value)
    if isinstance(value, Instant | Length):
        return value.us
    return struct.pack(">d", value) if isinstance(value, float) and not math.isnan(value) else value


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=4), st.sampled_from("?$:"))
def test_a_value_comes_back_as_it_was_given(values: list[Any], style: str) -> None:
    marks = [{"?": "?", "$": f"${k + 1}", ":": f":v{k}"}[style] for k in range(len(values))]
    given = {f"v{k}": v for k, v in enumerate(values)} if style == ":" else values
    text = f"SELECT {', '.join(f'{m} AS c{k}' for k, m in enumerate(marks))}"
    (answer,) = ENGINE.execute(text, given)
    (row,) = answer.data.to_pylist()
    assert list(map(repr, map(plain, row.values()))) == list(map(repr, map(plain, values)))
    (piece,) = pieces(text)
    bound = parse_piece(piece, Parameters(given, text))
    assert parse_one(to_sql(bound)) == bound  # so it is what is stored


@pytest.mark.parametrize(
    ("text", "params", "written"),
    [
    ("SELECT -$1 * 2 || $1::STRING", [-3], "SELECT -(-3) * 2 || CAST(-3 AS STRING)"),
        ("SELECT k FROM s [RANGE ?] LIMIT ? OFFSET ?", [dt.timedelta(minutes=90), 2, 0],
         "SELECT k FROM s [RANGE 90 min] LIMIT 2 OFFSET 0"),
        ("SELECT k FROM s [ROWS :n]", {"n": 5}, "SELECT k FROM s [ROWS 5]"),
        ("SELECT COUNT(*) FROM s [RANGE 1 h] EVERY ?", [dt.timedelta(seconds=5)],
         "SELECT COUNT(*) FROM s [RANGE 1 h] EVERY 5 s"),
        ("SELECT k FROM s [SINCE $1]", [dt.datetime(2024, 5, 1)],
         "SELECT k FROM s [SINCE TIMESTAMP '2024-05-01 00:00:00']"),
        ("SELECT k FROM s [SINCE ?]", [dt.timedelta(seconds=2)], "SELECT k FROM s [SINCE 2 s]"),
        ("INSERT INTO r VALUES (?, ?) AT ?", ["a", None, dt.datetime(1970, 1, 1)],
         "INSERT INTO r VALUES ('a', NULL) AT TIMESTAMP '1970-01-01 00:00:00'"),
        ("SELECT k FROM s [NOW] WHERE k IN (?, ?) AND l LIKE ? ESCAPE ?", [1, 2, "%'%", "!"],
         "SELECT k FROM s [NOW] WHERE k IN (1, 2) AND l LIKE '%''%' ESCAPE '!'"),
        ("CREATE QUERY q AS SELECT k FROM s WITH (result_log = $1)", [7],
         "CREATE QUERY q AS SELECT k FROM s WITH (result_log = 7)"),
        ("INSERT INTO r VALUES (?, ?, ?, ?[1])",
         [[], ["a", None], (-1, Decimal("2.5")), np.array([2])],
         "INSERT INTO r VALUES ([], ['a', NULL], [-1, DECIMAL '2.5'], [2][1])"),
    ],
)  # a table  # fmt: skip
def test_it_may_stand_where_a_constant_may(text: str, params: Any, written: str) -> None:
    (piece,) = pieces(text)
    assert to_sql(parse_piece(piece, Parameters(params, text))) == to_sql(parse_one(written))


@pytest.mark.parametrize(
    ("text", "params", "code", "part"),
    [
        ("SELECT 1;\n SELECT ?", None, "DS617", "at line 2, column 9"),
        ("SELECT ?, ?", [1], "DS617", "no value is given for $2"),
        ("SELECT $2", [1, 2], "DS617", "given for $1, which does not stand"),
        ("SELECT :a", {"a": 1, "b": 2}, "DS617", "given for :b"),
        ("SELECT ?", {"a": 1}, "DS617", "come in a list, not in a dict"),
        ("SELECT ?, $1", [1], "DS617", "both ? and $"),
        ("SELECT '?', \"$1\" -- :a", [1], "DS617", "given for $1"),
        ("SELECT ?", "x", "DS617", "a list or a dict, not str"),
        ("SELECT 1 IN ?", [[1, 2]], "DS618", "LIST_CONTAINS(?, k)"),
        ("SELECT 1 IN (?)", [[1, 2]], "DS208", "LIST_CONTAINS(l, x)"),
        ("SELECT ?", [[1, [2]]], "DS354", "can't hold lists"),
        ("SELECT ?", [[1, 2**63]], "DS618", "INT has 64 bits"),
        ("SELECT ?", [[1, "a"]], "DS208", "a list needs values of one type"),
        ("SELECT ?", [{1, 2}], "DS618", "set"),
        ("SELECT ?", [2**63], "DS618", "INT has 64 bits"),
        ("SELECT ?", ["\ud800"], "DS618", "str"),
        ("SELECT ?", [Decimal("1E+39")], "DS618", "Decimal"),
        ("SELECT 1 LIMIT ?", ["secret"], "DS618", "can stand here: ?"),
        ("SELECT k FROM :t [NOW]", {"t": "s"}, "DS618", "can stand here: :t"),
        ("CREATE USER u PASSWORD ?", [12345], "DS618", "can stand here: ?"),
    ],
)
def test_what_does_not_fit_is_said_and_no_value_repeated(text, params, code, part) -> None:
    with pytest.raises(DsmsError) as found:
        ENGINE.execute(text, params)
    assert found.value.code == code and part in str(found.value)
    assert "secret" not in str(found.value) and "12345" not in str(found.value)


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ("SELEC k FROM s WHERE v > {}", "DS101", "SELECT"),
        ("SELECT k FROM s WERE v > {}", "DS101", "WHERE"),
        ("SELECT k FROM s WHERE v > {} SETTINGS 1", "DS110", ""),
        ("SELECT TOP 3 k FROM s WHERE v > {}", "DS110", "LIMIT"),
        ("SELECT k FROM HOP(s, t, INTERVAL '1 min', INTERVAL '5 min') WHERE v > {}",
         None, "v > {}"),
        ("REATE QUERY q AS SELECT k FROM s [ROWS 9] GROUP BY k HAVING COUNT(*) > {} ON LOOKUP",
         "DS101", "CREATE"),
    ],
)  # a table  # fmt: skip
@pytest.mark.parametrize("mark", ["?", "$1", ":x", None])
def test_a_mistake_beside_a_parameter_is_told_as_without(text, code, hint, mark) -> None:
    given = {"?": [7], "$1": [7], ":x": {"x": 7}}.get(mark)
    with pytest.raises(DsmsError) as found:
        ENGINE.execute(text.format(mark or 7), given)
    assert found.value.code == (code or found.value.code)
    assert hint.format(mark or 7) in (found.value.hint or "")


def test_a_script_takes_its_values_in_order_and_what_is_registered_keeps_them(tmp_path) -> None:
    folder = str(tmp_path / "data")
    first = Engine(folder)
    first.execute(
        "CREATE STREAM s (k INT, w STRING, t TIMESTAMP) TIMESTAMP BY t;"
        "CREATE QUERY q AS SELECT k FROM s WHERE w = ? AND k > ?;"
        "CREATE TABLE r (w STRING PRIMARY KEY); INSERT INTO r VALUES (?)",
        ["it's ?", 1, "a;--'"],
    )
    first.close()
    again = Engine(folder)
    reader = again.subscribe("q")
    again.ingest("s", [[1, "it's ?", 0], [2, "it's ?", 1], [3, "it's 1", 2]])
    assert [row for push in reader.take() for row in push.data.to_pylist()] == [{"k": 2}]
    assert again.execute("SELECT w FROM r")[0].data.to_pylist() == [{"w": "a;--'"}]
    again.close()


def test_values_of_one_text_are_not_mixed_up() -> None:
    ask = "SELECT ? AS v"
    assert [ENGINE.execute(ask, [v])[0].types for v in (1, True, 1.0)] == [
        ("INT",),
        ("BOOL",),
        ("FLOAT",),
    ]


@pytest.mark.parametrize(
    ("text", "value", "hint"),
    [
        ("SELECT k FROM s [RANGE ?]", "1 h", "a length of time"),
        ("SELECT k FROM s [RANGE ? SECONDS]", "1", "or a number, 0 or more"),
        ("SELECT k FROM s [ROWS ?]", -1, "here can stand a whole number, 0 or more"),
        ("SELECT k FROM s [ROWS ?]", None, "here can stand a whole number, 0 or more"),
        ("SELECT k FROM s LIMIT ?", 1.5, "here can stand a whole number, 0 or more"),
        ("SELECT k FROM s LIMIT 1 OFFSET ?", True, "here can stand a whole number, 0 or more"),
        ("SELECT k FROM s [SINCE ?]", b"x", "a length of time"),
        ("SELECT k FROM s [SINCE ?]", b"x", "an instant"),
        ("SELECT ?", 2**64, "send it as FLOAT or DECIMAL"),
        ("SELECT ?", -(2**63) - 1, "send it as FLOAT or DECIMAL"),
        ("SELECT ?", [1, 2**63], "send it as FLOAT or DECIMAL"),
    ],
)
def test_a_value_that_can_not_stand_there_says_what_can(text: str, value: Any, hint: str) -> None:
    with pytest.raises(DsmsError) as caught:
        Engine().execute(text, [value])
    assert caught.value.code == "DS618" and hint in (caught.value.hint or "")
    assert ("too large" in str(caught.value)) == ("send it" in hint)
