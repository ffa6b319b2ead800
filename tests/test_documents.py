"""JSON_VALUE, JSON_EXISTS and ->>: values out of JSON, as they stand there, whatever the bytes."""

from __future__ import annotations

import json
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.operators.expressions import ErrorCounter, compile_many
from dsms.sql.expr import Col, Expr
from dsms.sql.functions import call, cast
from dsms.sql.functions.paths import key_path, path_of
from dsms.sql.parser import parse_one
from dsms.sql.printer import to_sql
from dsms.sql.types import BOOL, FLOAT, INT, STRING, TIMESTAMP, Type, decimal
from tests.effort import examples
from tests.oracle.lists import packed
from tests.oracle.scalar import evaluate
from tests.scalars import every_way, lit

S = 1_000_000
J = Col(0, STRING)


def value(path: str) -> Expr:
    return call("json_value", [J, lit(path)])


FOUND = [
    # document, path, the text there
    ('{"a": "x"}', "$.a", "x"),
    ('{"a": {"b": [1, {"c": "y"}]}}', "$.a.b[1].c", "y"),
    ('{"a b": 1, "c.d": 2, "": 3}', '$."a b"', "1"),
    ('{"a b": 1, "c.d": 2, "": 3}', "$['c.d']", "2"),
    ('{"a b": 1, "c.d": 2, "": 3}', '$.""', "3"),
    ('{"é": "ü"}', "$.é", "ü"),
    ('{"a\\"b": 1}', '$."a\\"b"', "1"),
    ("[10, 20]", "$[1]", "20"),
    ("[10, 20]", "$[2]", None),
    ('"x"', "$", "x"),
    (" 1.50 ", "$", "1.50"),
    ("-0.0e-0", "$", "-0.0e-0"),
    ("123456789012345678901234567890.10", "$", "123456789012345678901234567890.10"),
    ("true", "$", "true"),
    ("false", "$", "false"),
    ("null", "$", None),
    ('{"a": null}', "$.a", None),
    ('{"a": {}}', "$.a", None),
    ('{"a": [1]}', "$.a", None),
    ('{"a": 1}', "$.b", None),
    ('{"a": 1}', "$.a.b", None),
    ('{"a": 1}', "$[0]", None),
    ('[{"a": 1}]', "$.a", None),
    ('{"a": 1, "a": 2}', "$.a", "2"),
    ('{"a": "\\u00e9\\ud83d\\ude00\\n"}', "$.a", "é😀\n"),
    ('{"a": "\\ud83d"}', "$.a", None),
    ('{"\\u0061": 1}', "$.a", "1"),
    ('{"\\ud83d\\ude00x": 1}', '$."😀x"', "1"),
    ('{"\\ud83d": 1}', '$."\\ud83d"', "1"),
    ('{"a": "\\ud83dx\\udE00"}', "$.a", None),
    ('{"a": "\\ud83d\\ud83d\\ude00"}', "$.a", None),
    ('{"a": "\\/\\b\\f\\r\\t\\u0000"}', "$.a", "/\b\f\r\t\0"),
    ('{"a": {"b": 1}, "a": 2}', "$.a.b", None),
    ('{"a": {"b": 1, "b": []}, "c": {"b": 3}}', "$.a.b", None),
    ('{"c": {"a": 3}, "a": 1, "d": [{"a": 2}]}', "$.a", "1"),
    ("[[1, 2], [3, 4]]", "$[1][0]", "3"),
    ("[[], {}, [[]], 5]", "$[3]", "5"),
    # no JSON
    ("", "$", None),
    ("{,}", "$", None),
    ("[1 2]", "$[0]", None),
    ("[1, ]", "$[0]", None),
    ('{"a": 1 "b": 2}', "$.a", None),
    ('{"a"}', "$.a", None),
    ('{"a": 1]', "$.a", None),
    ('["a": 1]', "$[0]", None),
    ("[tru]", "$[0]", None),
    ('["\\u12"]', "$[0]", None),
    ('["\\', "$[0]", None),
    ("[1.]", "$[0]", None),
    ("[1e+]", "$[0]", None),
    ("[-]", "$[0]", None),
    ("{a: 1}", "$.a", None),
    ("{'a': 1}", "$.a", None),
    ('{"a": 1,}', "$.a", None),
    ('{"a": 1} x', "$.a", None),
    ('{"a": 01}', "$.a", None),
    ('{"a": NaN}', "$.a", None),
    ('{"a": -Infinity}', "$.a", None),
    ('{"a": "x\ny"}', "$.a", None),
    ('{"a": "\\x"}', "$.a", None),
    ('\ufeff{"a": 1}', "$.a", None),
    ("\u00a01", "$", None),
    ("[" * 100 + "1" + "]" * 100, "$" + "[0]" * 100, "1"),
    ("[" * 101 + "1" + "]" * 101, "$" + "[0]" * 101, None),
    ("[" * 100_000, "$", None),
    ('{"a":' * 50_000, "$", None),
    ('["' + "[" * 500 + '"]', "$[0]", "[" * 500),
    ("9" * 10_000, "$", "9" * 10_000),
]


@pytest.mark.parametrize(("text", "path", "want"), FOUND, ids=lambda v: str(v)[:30])
def test_what_is_there(text: str, path: str, want: str | None) -> None:
    rows = [(text,), (None,), (text,)]
    assert every_way(value(path), [STRING], rows) == ([want, None, want], 0)
    assert evaluate(value(path), (text,)) == want if text.count("[") < 1000 else True


ITEMS = [
    ('{"a": [1, 2.50, -3e5]}', "$.a", ["1", "2.50", "-3e5"]),
    ('["x", "a\\"b", "\\u00e9", ""]', "$", ["x", 'a"b', "é", ""]),
    ("[true, false, null]", "$", ["true", "false", None]),
    (
        '[{"k": [1, {"x": "]"}]} , [ 2, "," ],{}]',
        "$",
        ['{"k": [1, {"x": "]"}]}', '[ 2, "," ]', "{}"],
    ),
    (" [ \n ] ", "$", []),
    ("[[1, 2], [3]]", "$[0]", ["1", "2"]),
    ("[[1, 2], [3]]", "$[1]", ["3"]),
    ('["\\ud83d", "x"]', "$", [None, "x"]),
    ('{"a": {"b": [1]}, "a": {"b": [2]}}', "$.a.b", ["2"]),
    ('{"b": [5], "a": 1, "c": [6]}', "$.a", None),
    ('{"a": null, "b": [5]}', "$.a", None),
    ('{"a": {"b": 1}}', "$.a", None),
    ('{"a": "[1]"}', "$.a", None),
    ("[1, ]", "$", None),
    ("", "$", None),
    ("[" + "1," * 65_535 + "1]", "$", ["1"] * 65_536),
    ("[" + "1," * 65_536 + "1]", "$", None),
]


@pytest.mark.parametrize(("text", "path", "want"), ITEMS, ids=lambda v: str(v)[:30])
def test_items_of_an_array(text: str, path: str, want: list[str | None] | None) -> None:
    expr, rows = call("json_items", [J, lit(path)]), [(text,), (None,), ("[7]",), (text,)]
    found, failed = every_way(expr, [STRING], rows)
    shown = None if want is None else packed(want, expr.type)
    assert (found[0], found[1], found[3], failed) == (shown, None, shown, 0)
    assert evaluate(expr, (text,)) == shown


@settings(max_examples=examples(100))
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=4),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
        max_leaves=8,
    ),
    st.sampled_from([None, 1]),
)
def test_items_are_what_stands_there(document: object, indent: int | None) -> None:
    text = json.dumps({"a": document}, indent=indent, ensure_ascii=False)
    expr = call("json_items", [J, lit("$.a")])
    assert every_way(expr, [STRING], [(text,)]) == ([evaluate(expr, (text,))], 0)


def test_items_are_rows() -> None:
    engine = Engine()
    engine.execute("CREATE STREAM s (k INT, j STRING, t TIMESTAMP) TIMESTAMP BY t")
    engine.execute(
        "CREATE QUERY q AS SELECT Rstream(k, i ->> 'sku', JSON_VALUE(i, '$.n' AS INT), place)"
        " FROM s, UNNEST(JSON_ITEMS(j, '$.items')) WITH ORDINALITY AS t (i, place)"
    )
    order = '{"items": [{"sku": "a", "n": 2}, {"sku": "b"}]}'
    engine.ingest("s", [(1, order, 1), (2, '{"items": []}', 2), (3, "no", 3)])
    engine.heartbeat("s", 9)
    (rows,) = engine.execute("SELECT * FROM q")
    assert [tuple(r.values()) for r in rows.data.to_pylist()] == [  # type: ignore[union-attr]
        (1, "a", 2, 1),
        (1, "b", None, 2),
    ]


def test_whether_it_is_there() -> None:
    rows = [('{"a": null}',), ('{"b": 1}',), ("no",), (None,), ('{"a": [1]}',)]
    found = every_way(call("json_exists", [J, lit("$.a")]), [STRING], rows)
    assert found == ([True, False, False, None, True], 0)


TYPED = [
    ("1.10", decimal(5, 2), Decimal("1.10")),
    ('"1.10"', decimal(5, 2), Decimal("1.10")),
    ("12345678901234567890.123456789", decimal(38, 9), Decimal("12345678901234567890.123456789")),
    ("1e2", decimal(5, 2), Decimal("100.00")),
    ("9223372036854775807", INT, 2**63 - 1),
    ("9223372036854775808", INT, None),
    ("1.0", INT, None),
    ("0.1", FLOAT, 0.1),
    ("true", BOOL, True),
    ('"yes"', BOOL, True),
    ('"2020-01-01T00:00:00Z"', TIMESTAMP, 1577836800 * S),
    ('"x"', TIMESTAMP, None),
    ("[]", INT, None),
    ("1", STRING, "1"),
]


@pytest.mark.parametrize(("text", "type_", "want"), TYPED)
def test_of_a_type(text: str, type_: Type, want: object) -> None:
    expr = cast(value("$.v"), type_, "try_cast")
    assert every_way(expr, [STRING], [(f'{{"v": {text}}}',)]) == ([want], 0)
    made = Engine()
    made.execute("CREATE TABLE r (j STRING)")
    made.ingest("r", [[f'{{"v": {text}}}']])
    (found,) = made.execute(f"SELECT JSON_VALUE(j, '$.v' AS {type_}) FROM r")
    assert found.data.column(0).cast(type_.arrow).to_pylist() == [want]  # type: ignore[union-attr]


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False),
    st.text("ab\"\\é😀\n\x01", max_size=4),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
)  # a table  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("ab"), inner, max_size=3)
    ),
    max_leaves=8,
)
PATHS = st.lists(st.sampled_from([".a", ".b", '."a"', "['b']", "[0]", "[1]"]), max_size=4).map(
    lambda steps: "$" + "".join(steps)
)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=5), PATHS, st.data())
def test_as_defined(values: list[object], path: str, data: st.DataObject) -> None:
    texts = [json.dumps(v, ensure_ascii=data.draw(st.booleans())) for v in values]
    for k, text in enumerate(texts):  # some of them damaged
        if text and data.draw(st.booleans()):
            at = data.draw(st.integers(0, len(text)))
            put = data.draw(
                st.sampled_from(["", " ", '"', "\\", "{", "]", ",", "0", "-", "e", "\t"])
            )
            texts[k] = text[:at] + put + text[at + data.draw(st.integers(0, 1)) :]
    rows = [(text,) for text in texts]
    for name in ("json_value", "json_exists"):
        expr = call(name, [J, lit(path)])
        assert every_way(expr, [STRING], rows) == ([evaluate(expr, row) for row in rows], 0)


def test_of_one_text_several_paths() -> None:
    exprs = [value("$.a"), value("$.b"), call("json_exists", [J, lit("$.c")])]
    column = pa.array(['{"a": 1, "b": 2}', "no", None])
    found = compile_many(exprs)([column], 3, ErrorCounter())
    assert [f.to_pylist() for f in found] == [
        ["1", None, None],
        ["2", None, None],
        [False, False, None],
    ]


def test_a_long_document_is_an_error_of_its_row() -> None:
    rows = [('"' + "x" * (2**20 - 2) + '"',), ('"' + "x" * (2**20 - 1) + '"',), ("1",)]
    found, errors = every_way(value("$"), [STRING], rows)
    assert errors == 1 and found == ["x" * (2**20 - 2), None, "1"]


@pytest.mark.parametrize(
    "path",
    ["", "a", "$.", "$a", "$.a[", "$.a[*]", "$.*", "$..a", "$[-1]", "$.a b", '$."a', "$[0]x",
     "lax $.a", '$."\\x"', "$" + ".a" * 1000],
)  # a table  # fmt: skip
def test_what_is_no_path(path: str) -> None:
    assert path_of(path) is None
    made = Engine()
    with pytest.raises(DsmsError, match=r"DS207.*is no path"):
        made.execute(f"SELECT JSON_VALUE('1', '{path}')")


@settings(max_examples=examples(50), deadline=None)
@given(st.text(max_size=8).filter(lambda key: not key.startswith("$")))
def test_an_arrow_takes_any_key(key: str) -> None:
    assert path_of(key_path(key)) == (key,)


def test_arrows_read_tightly_and_print_as_calls() -> None:
    made = Engine()
    made.execute("CREATE TABLE r (k INT PRIMARY KEY, j STRING)")
    made.ingest("r", [[1, '{"a": {"b": "x"}, "n": 5, "c d": "e"}'], [2, "{"], [3, None]])
    sql = (
        "SELECT j ->> '$.a.b' || '!' AS a, (j->>'n')::INT + 1 AS n, j->>'c d' AS c, "
        "JSON_VALUE(j, '$.n' AS DECIMAL(4,1)) AS d FROM r ORDER BY k"
    )
    (found,) = made.execute(sql)
    rows = [tuple(row.values()) for row in found.data.to_pylist()]  # type: ignore[union-attr]
    assert rows == [("x!", 6, "e", Decimal("5.0")), (None,) * 4, (None,) * 4]
    text = "SELECT JSON_VALUE(j, '$.\"a\"'), JSON_VALUE(j, '$.n' AS INT) FROM r"
    assert to_sql(parse_one("SELECT j ->> 'a', JSON_VALUE(j, '$.n' AS INT) FROM r")) == text
    with pytest.raises(DsmsError, match="DS101") as caught:
        made.execute("SELECT j -> 'a' FROM r")
    assert "->>" in (caught.value.hint or "")


def test_persistent_queries_filter_and_group_by_it() -> None:
    made = Engine()
    made.execute(
        "CREATE STREAM s (j STRING, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;"
        "CREATE QUERY f AS SELECT JSON_VALUE(j, '$.n' AS INT) AS n FROM s WHERE j ->> 'k' = 'a';"
        "CREATE QUERY g AS SELECT j ->> 'k' AS k, SUM(JSON_VALUE(j, '$.n' AS INT)) AS n "
        "FROM s [RANGE 1 min] GROUP BY j ->> 'k' EVERY 9 s"
    )
    texts = ['{"k": "a", "n": 1}', '{"k": "b", "n": "2"}', "oops", '{"k": "a", "n": 5}']
    made.ingest("s", [[text, k * S] for k, text in enumerate(texts, 1)])
    made.heartbeat("s", 9 * S)

    def pushed(query: str) -> list[tuple]:
        pushes = made.subscribe(query, 0).take()
        return [tuple(row.values()) for p in pushes if p.data for row in p.data.to_pylist()]

    assert pushed("f") == [(1,), (5,)]
    assert sorted(pushed("g"), key=str) == [("a", 6), ("b", 2), (None, None)]
    (found,) = made.execute("SHOW QUERIES")
    assert [row["errors"] for row in found.data.to_pylist()] == [0, 0]  # type: ignore[union-attr]
