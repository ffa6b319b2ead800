"""Structs: as texts, in expressions against the oracle, in columns, and by every way in and out."""

from __future__ import annotations

import datetime as dt
import io
import json
from contextlib import closing
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms import Engine, structs
from dsms.errors import DsmsError
from dsms.sql.expr import Call, Col
from dsms.sql.functions import cast
from dsms.sql.types import FLOAT, INT, STRING, Type, named, struct_of
from tests.effort import examples
from tests.listed import ITEMS, TEXTS
from tests.oracle.scalar import evaluate
from tests.oracle.structs import packed
from tests.scalars import every_way

QUICK = settings(max_examples=examples(40), deadline=None)
NAMES = st.one_of(
    st.sampled_from(["a", "b", "A b", 'q"', "é", "timestamp", "x,y", "\\", "}", ":"]),
)
FIELDS = st.lists(
    st.tuples(NAMES, st.sampled_from(list(ITEMS))), min_size=1, max_size=4, unique_by=lambda f: f[0]
)


@st.composite
def typed_structs(draw: st.DrawFn) -> tuple[Type, list[Any]]:
    """A type, and texts of it."""
    type_ = struct_of(draw(FIELDS))
    values = st.tuples(*(st.one_of(st.none(), ITEMS[of]) for _, of in type_.fields))
    rows = draw(st.lists(st.one_of(st.none(), values), min_size=1, max_size=5))
    return type_, [None if row is None else packed(row, type_) for row in rows]


@QUICK
@given(typed_structs())
def test_texts_are_read_and_written_back(found: tuple[Type, list[Any]]) -> None:
    type_, texts = found
    column = pa.array(texts, pa.string())
    fields = type_.spelled_fields
    assert named(str(type_)) == type_
    once, bad = structs.canonical(column, fields)
    assert not bad.any() and once.equals(column)
    columns = structs.values(column, fields)
    valid = column.is_valid()
    assert structs.made(columns, fields, valid).equals(column)
    edge = structs.at_edge(column, fields)
    edge.validate(full=True)
    assert structs.from_edge(edge).equals(column)


@QUICK
@given(typed_structs(), st.data())
def test_fields_and_structs_of_them(found: tuple[Type, list[Any]], data: st.DataObject) -> None:
    type_, texts = found
    name, of = data.draw(st.sampled_from(type_.fields))
    rows = [(text,) for text in texts]
    _agrees(Call("struct_extract", (Col(0, type_),), of, (name,)), [type_], rows)
    kinds = [t for _, t in type_.fields]
    values = st.tuples(*(st.one_of(st.none(), ITEMS[t]) for t in kinds))
    given_ = data.draw(st.lists(values, min_size=1, max_size=4))
    args = tuple(Col(i, t) for i, t in enumerate(kinds))
    _agrees(Call("named_struct", args, type_), kinds, given_)


JSON = st.one_of(
    st.sampled_from(
        [
            "{}", '{"a": 1}', '{"b": "x", "a": 2}', ' { "a" : 1 , "b" : "\\u00e9,}" } ', "[]", "",
            '{"a": 1, "a": 2}', '{"c": 1}', '{"A": 1}', '{"a": [1]}', '{"a": "1"}', '{"a": 1.5}',
            '{"a": 1e400}', '{"a": null, "b": null}', "null", '{"b": "\\ud800"}', '{"a": 1,}', "{",
            '{"a": NaN}', '{"a": 99999999999999999999}', '{"\\u0061": 1}', '{"a": {}}',
        ]
    ),
    st.dictionaries(
        st.sampled_from(["a", "b"]), st.one_of(st.none(), st.integers(), st.floats(), TEXTS)
    ).map(json.dumps),
)  # a table  # fmt: skip
PAIR = struct_of((("a", INT), ("b", STRING)))


@QUICK
@given(st.lists(st.tuples(st.one_of(st.none(), JSON)), min_size=1, max_size=5))
def test_casts_from_text(rows: list[tuple[Any]]) -> None:
    for to in (PAIR, struct_of((("b", STRING), ("a", FLOAT)))):
        _agrees(cast(Col(0, STRING), to), [STRING], rows)


@QUICK
@given(st.lists(st.tuples(st.one_of(st.none(), ITEMS[FLOAT])), min_size=1, max_size=5))
def test_casts_between_structs(rows: list[tuple[Any]]) -> None:
    source, to = struct_of((("a", FLOAT),)), struct_of((("A", INT),))
    given_ = [(None if v is None else packed([v], source),) for (v,) in rows]
    _agrees(cast(Col(0, source), to), [source], given_)


def _agrees(expr: Any, types: list[Type], rows: Any) -> None:
    found, _ = every_way(expr, types, rows)
    assert found == [evaluate(expr, tuple(row)) for row in rows]


# ---------------------------------------------------------------- statements

DECLARED = """
CREATE STREAM s (p STRUCT(a INT, "b c" STRING, d DATE, n DECIMAL(4,2)), t TIMESTAMP) TIMESTAMP BY t
    RETAIN 1 h;
CREATE TABLE r (p STRUCT(a INT, b STRING), k INT PRIMARY KEY);
CREATE STREAM e (p STRUCT(a INT, b STRING) DEFAULT {'a': 1, 'b': 'x'}, t TIMESTAMP) TIMESTAMP BY t
    RETAIN 1 h;
"""


@pytest.fixture
def engine() -> Engine:
    made = Engine()
    made.execute(DECLARED)
    return made


def asked(engine: Engine, text: str, values: Any = None) -> list[tuple[Any, ...]]:
    table = engine.execute(text, values)[-1].arrow()
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("{'a': 1, 'b': NULL}", {"a": 1, "b": None}),
        ("{a: 1.5, \"b c\": 'x'}", {"a": 1.5, "b c": "x"}),
        ("({'a': DATE '2013-01-31'}).A", dt.date(2013, 1, 31)),
        ("{'a': 1} = {'A': 1.0}", True),
        ("{'a': NULL} = {'a': NULL}", True),
        ("{'a': 1} IN ({'a': 2}, {'a': 1})", True),
        ('CAST(\'{"b": "x"}\' AS STRUCT(a INT, b STRING))', {"a": None, "b": "x"}),
        ("CAST({'a': 1.9} AS STRUCT(a INT))", {"a": 2}),
        ("CAST({'a': DECIMAL '1.50'} AS STRING)", '{"a": 1.50}'),
        ("TRY_CAST('x' AS STRUCT(a INT))", None),
        ("STRUCT_EXTRACT(NAMED_STRUCT('a', 1 + 1), 'a')", 2),
        ("COALESCE(CAST(NULL AS STRUCT(a INT)), {'a': 1})", {"a": 1}),
    ],
)
def test_what_expressions_are(text: str, answer: Any) -> None:
    assert asked(Engine(), f"SELECT {text}") == [(answer,)]


def test_fields_of_columns(engine: Engine) -> None:
    row = {"a": 1, "B c": "x", "d": dt.date(2013, 1, 31)}
    engine.ingest("s", [{"p": row, "t": 1}, {"p": None, "t": 1}])
    engine.heartbeat("s", 10)
    table = engine.execute('SELECT p.a, s.p."b c", (p).n, p.d AS day FROM s')[0].arrow()
    assert table.column_names == ["a", "b c", "n", "day"]
    assert table.to_pylist() == [
        {"a": 1, "b c": "x", "n": None, "day": dt.date(2013, 1, 31)},
        dict.fromkeys(table.column_names),
    ]
    grouped = "SELECT q.p.a, COUNT(*) AS n FROM s AS q GROUP BY q.p.a ORDER BY n, q.p.a"
    assert asked(engine, grouped) == [(1, 1), (None, 1)]
    assert asked(engine, "SELECT p.a FROM s GROUP BY p ORDER BY p.a") == [(1,), (None,)]
    # what FROM calls so comes first
    assert asked(engine, "SELECT p.k FROM (SELECT 7 AS k, p FROM s) AS p LIMIT 1") == [(7,)]


def test_tables_defaults_and_parameters(engine: Engine) -> None:
    engine.ingest("e", [{"t": 1}])
    engine.heartbeat("e", 10)
    assert asked(engine, "SELECT p FROM e") == [({"a": 1, "b": "x"},)]
    engine.execute("INSERT INTO r VALUES ({'a': 1, 'b': 'x'}, 1)")
    engine.execute("INSERT INTO r VALUES (?, 2), ({'a': 5, 'b': NULL}, 3)", [{"a": 2, "b": "y"}])
    assert asked(engine, "SELECT p FROM r ORDER BY k") == [
        ({"a": 1, "b": "x"},),
        ({"a": 2, "b": "y"},),
        ({"a": 5, "b": None},),
    ]
    found = asked(engine, "SELECT k FROM r WHERE p = :p", {"p": {"a": 2, "b": "y"}})
    assert found == [(2,)]
    engine.execute("UPDATE r SET p = {'a': k, 'b': p.b} WHERE p.a = 5")
    assert asked(engine, "SELECT p FROM r WHERE k = 3") == [({"a": 3, "b": None},)]
    with pytest.raises(DsmsError, match="DS218"):
        engine.execute("INSERT INTO r VALUES ({'z': 1}, 9)")


VALUES = [
    {"a": 1, "b c": 'x, "}', "d": dt.date(2026, 11, 30), "n": Decimal("1.50")},
    {"a": -(2**53), "b c": "", "d": dt.date.min, "n": Decimal("-99.99")},
    {"a": None, "b c": None, "d": None, "n": None},
    None,
]
KIND = pa.struct({"a": pa.int64(), "b c": pa.string(), "d": pa.date32(), "n": pa.decimal128(4, 2)})
TABLE = pa.table({"p": pa.array(VALUES, KIND), "t": pa.array([1] * 4, pa.timestamp("us"))})


def read_back(form: str) -> Any:
    """The table, having been written and read again."""
    out = io.BytesIO()
    match form:
        case "arrow":
            with pa.ipc.new_stream(out, TABLE.schema) as writer:
                writer.write(TABLE)
            return pa.ipc.open_stream(out.getvalue()).read_all()
        case "parquet":
            pq.write_table(TABLE, out)
            return pq.read_table(io.BytesIO(out.getvalue()))
        case "pandas":
            return TABLE.to_pandas()
        case "pandas arrow":
            return TABLE.to_pandas(types_mapper=pd.ArrowDtype)
        case "polars":
            return pl.from_arrow(TABLE)
        case "rows":
            return [list(row.values()) for row in TABLE.to_pylist()]
        case "texts":
            texts = [None if v is None else json.dumps(v, default=str) for v in VALUES]
            return {"p": [t and t.replace('"1.50"', "1.5") for t in texts], "t": [1] * 4}
        case _:
            return TABLE.to_pylist()


@pytest.mark.parametrize(
    "form", ["arrow", "parquet", "pandas", "pandas arrow", "polars", "rows", "dicts", "texts"]
)
def test_structs_come_back_by_every_way(engine: Engine, form: str) -> None:
    assert engine.ingest("s", read_back(form)).accepted == 4
    engine.heartbeat("s", 10)
    found = engine.execute("SELECT p, t FROM s")[0].arrow()
    assert found.schema.field("p").type == KIND
    assert found["p"].to_pylist() == VALUES


def test_wrong_structs_refuse_their_rows(engine: Engine) -> None:
    wrong = [1, "x", "[]", {"z": 1}, {"a": "1"}, {"a": 1, "A": 2}, {"a": [1]}, {1: 2}, [1]]
    report = engine.ingest("s", [[v, 1] for v in wrong])
    assert (report.accepted, report.refused) == (0, len(wrong))
    with pytest.raises(DsmsError, match="DS503"):
        engine.ingest("s", pa.table({"p": pa.array([{"z": 1}]), "t": [1]}))
    with pytest.raises(DsmsError, match="DS503"):
        engine.ingest("s", pa.table({"p": pa.array([{"a": [1]}]), "t": [1]}))


def test_a_folder_keeps_them(tmp_path: Any) -> None:
    with closing(Engine(str(tmp_path))) as first:
        first.execute(DECLARED)
        first.execute("CREATE QUERY q AS SELECT p, COUNT(*) AS n, MAX(p.a) AS m FROM s GROUP BY p")
        first.ingest("s", TABLE)
        first.heartbeat("s", 10)
    with closing(Engine(str(tmp_path))) as again:
        found = asked(again, "SELECT p, m, n FROM q ORDER BY p.a")
        assert [row[0] for row in found[:2]] == [VALUES[1], VALUES[0]]
        (created,) = again.execute("SHOW CREATE STREAM s")
        assert '"b c" STRING' in str(created.arrow().to_pylist())
