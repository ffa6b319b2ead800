"""LIST(T): what comes in comes out, by every way; what lists are equal; what is refused."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms import Engine, lists
from dsms.errors import DsmsError, UsageError
from dsms.sql.types import FLOAT, INT, STRING, TIMESTAMP, Type, list_of
from dsms.untrusted.contents import ITEM, LIMIT
from dsms.untrusted.stream import read_stream
from dsms_client.columns import batch_to_rows
from tests.asking import asked
from tests.effort import examples
from tests.listed import ITEMS, LISTS
from tests.oracle.lists import packed, unpacked
from tests.ways import taken

FEW = settings(max_examples=examples(60), deadline=None)
COLUMNS = ", ".join(f"c{n} LIST({item})" for n, item in enumerate(ITEMS))
NAMES = [f"c{n}" for n in range(len(ITEMS))]
ROW = st.tuples(*(st.none() | LISTS[item] for item in ITEMS))


def filled(columns: str, *data: Any) -> Engine:
    engine = Engine()
    engine.execute(f"CREATE STREAM s ({columns}, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h")
    for one in data:
        report = engine.ingest("s", one)
        assert report.refused == 0, report.reasons
    engine.heartbeat("s", 10_000)
    return engine


def told(engine: Engine, sql: str) -> Any:
    return engine.execute(sql)[-1]


def rows(engine: Engine, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in told(engine, sql).data.to_pylist()]


# ---------------------------------------------------------------- in and out


@FEW
@given(st.lists(ROW, max_size=4))
def test_any_list_reads_back_by_every_way(found: list[tuple[str | None, ...]]) -> None:
    columns = {name: [row[n] for row in found] for n, name in enumerate(NAMES)}
    texts = pa.table({k: pa.array(v, pa.string()) for k, v in columns.items()})
    engine = filled(COLUMNS, texts.append_column("t", pa.array([1] * len(found))))
    first = told(engine, f"SELECT {', '.join(NAMES)} FROM s")
    assert [tuple(r.values()) for r in first.data.to_pylist()] == found
    for form in (first.arrow(), first.polars(), first.arrow().to_batches()):
        for one in form if isinstance(form, list) else [form]:
            again = filled(COLUMNS, with_time(one))
            assert rows(again, f"SELECT {', '.join(NAMES)} FROM s") == found
    assert batch_to_rows(first.arrow()) == found  # as a client has it from Arrow


def with_time(data: Any) -> Any:
    if isinstance(data, pl.DataFrame):
        return data.with_columns(pl.lit(1).alias("t"))
    table = data if isinstance(data, pa.Table) else pa.table(data)
    return table.append_column("t", pa.array([1] * table.num_rows))


@FEW
@given(st.sampled_from([*ITEMS]), st.data())
def test_canonical_texts_are_fixed_points(item: Type, data: st.DataObject) -> None:
    texts = data.draw(st.lists(st.none() | LISTS[item], max_size=4))
    column = pa.array(texts, pa.string())
    found, bad = lists.canonical(column, str(item))
    assert found.to_pylist() == texts and not bad.any()
    assert lists.written(lists.read(column, str(item)), str(item)).to_pylist() == texts
    assert lists.from_edge(lists.at_edge(column, str(item))).to_pylist() == texts
    spaced = [None if t is None else json.dumps(json.loads(t), indent=1) for t in texts]
    if item != FLOAT:  # whose digits json would round
        assert lists.canonical(pa.array(spaced, pa.string()), str(item))[0].to_pylist() == texts


CODES = pa.array([0, 1, 0, 1], pa.int8())
WORDS = pa.array(["a", None])
VIEWED = pa.DictionaryArray.from_arrays(CODES, WORDS.cast(pa.string_view()))
ENCODED = {  # items a, NULL, a, NULL
    "dictionary": pa.DictionaryArray.from_arrays(CODES, WORDS),
    "dictionary with NULL": pa.array(["a", None, "a", None]).dictionary_encode(),
    "dictionary of views": VIEWED,
    "runs": pc.run_end_encode(pa.array(["a", None, "a", None])),
    "views": pa.array(["a", None, "a", None], pa.string_view()),
}
OUTER: dict[str, Callable[[pa.Array], pa.Array]] = {  # [a, NULL], NULL, [a, NULL]
    "list": lambda v: pa.ListArray.from_arrays(pa.array([0, None, 2, 4], pa.int32()), v),
    "large_list": lambda v: pa.LargeListArray.from_arrays(pa.array([0, None, 2, 4]), v),
    "fixed": lambda v: pa.FixedSizeListArray.from_arrays(
        pa.concat_arrays([v, v.slice(2)]), 2, mask=pa.array([False, True, False])
    ),
    "view": lambda v: pa.ListViewArray.from_arrays(
        pa.array([2, 0, 2], pa.int32()), pa.array([2] * 3, pa.int32()), v, mask=NONE_BETWEEN
    ),
    "large_view": lambda v: pa.LargeListViewArray.from_arrays(
        pa.array([2, 0, 2]), pa.array([2] * 3), v, mask=NONE_BETWEEN
    ),
    "dictionary": lambda v: pa.DictionaryArray.from_arrays(
        pa.array([0, None, 0], pa.int8()),
        pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), v),
    ),
}
NONE_BETWEEN = pa.array([False, True, False])


@pytest.mark.parametrize("items", ENCODED)
@pytest.mark.parametrize("outer", OUTER)
def test_items_may_be_encoded_as_columns_are(outer: str, items: str) -> None:
    column = OUTER[outer](ENCODED[items])
    column.validate(full=True)
    wanted = ['["a", null]', None, '["a", null]']
    for data, texts in (
        (column, wanted),
        (column.slice(1), wanted[1:]),
        (column.slice(3), []),
        (pa.chunked_array([column, column.slice(2)]), [*wanted, *wanted[2:]]),
    ):
        assert taken(pa.table({"a": data}), list_of(STRING)) == [str(t) for t in texts]


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["a", "b"])])
def test_lists_of_categories_come_from_polars(kind: Any) -> None:
    frame = pl.DataFrame({"a": pl.Series([["a", None], None], dtype=pl.List(kind))})
    assert taken(frame, list_of(STRING)) == ['["a", null]', "None"]


FORMS = {
    "list": [[1, None], []],
    "tuple": [(1, None), ()],
    "numpy": [np.array([1.0, 3.0]), np.array([], np.int64)],
    "large_list": pa.array([[1, None], []], pa.large_list(pa.int8())),
    "fixed": pa.array([[1, 2], None], pa.list_(pa.int16(), 2)),
    "view": pa.array([[1, None], []], pa.list_view(pa.int64())),
    "large_view": pa.array([[1, None], []], pa.large_list_view(pa.uint8())),
    "sliced": pa.array([[7], [1, None], [], [8]], pa.list_(pa.int64())).slice(1, 2),
    "pandas": pd.Series([[1, None], []]),
    "polars": pl.Series([[1, None], []]),
    "text": ["[1, null]", "[ ]"],
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_lists(form: str) -> None:
    engine = filled("l LIST(INT)", {"l": FORMS[form], "t": [1, 2]})
    wanted = {"numpy": ["[1, 3]", "[]"], "fixed": ["[1, 2]", None]}
    assert [row[0] for row in rows(engine, "SELECT l FROM s")] == wanted.get(
        form, ["[1, null]", "[]"]
    )


@pytest.mark.parametrize("item", [*ITEMS])
def test_a_list_without_items_is_one_of_any_type(item: Type) -> None:
    """An empty array of NumPy, say, whose numbers are FLOATs: in a column it was refused."""
    for column in (
        [np.array([])],
        pa.array([[]], pa.list_(pa.float64())),
        pl.Series([[]], dtype=pl.List(pl.String)),
        pd.Series([np.array([], "i4")]),
    ):
        assert taken({"a": column}, list_of(item)) == ["[]"]
    assert taken([[np.array([])]], list_of(item)) == ["[]"]


def test_items_of_python_are_what_a_column_of_them_takes() -> None:
    day = dt.datetime(2020, 1, 2, tzinfo=dt.UTC)
    engine = filled(
        "d LIST(DECIMAL(5,2)), w LIST(TIMESTAMP), i LIST(INTERVAL), b LIST(BYTES)",
        [([Decimal("1.5"), 2], [day, "2020-01-03"], [dt.timedelta(seconds=1), "1 h"], [b"a"], 1)],
    )
    assert rows(engine, "SELECT d, w, i, b FROM s") == [
        (
            "[1.50, 2.00]",
            '["2020-01-02 00:00:00", "2020-01-03 00:00:00"]',
            '["00:00:01", "01:00:00"]',
            '["61"]',
        )
    ]


@pytest.mark.parametrize(
    "value", [["a"], [[1]], [1.5], 5, "[1", "[1.5]", {"a": 1}, [2**63], [0] * (lists.MOST + 1)]
)
def test_what_is_no_list_of_the_type_is_refused(value: Any) -> None:
    engine = filled("l LIST(INT)")
    report = engine.ingest("s", [[value, 20_000], [[1], 20_000]])
    assert (report.accepted, report.refused) == (1, 1)
    with pytest.raises(DsmsError) as caught:
        engine.ingest("s", {"l": [value], "t": [30_000]})
    assert caught.value.code == "DS503"


@pytest.mark.parametrize(
    "value",
    [
        dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2))),
        dt.datetime(9999, 12, 31, 23, tzinfo=dt.timezone(-dt.timedelta(hours=5))),
        np.datetime64("10000-01-01"),
        253_402_300_800_000_000,
        -(2**63),
    ],
    ids=str,
)
def test_instants_of_a_list_are_of_the_years_that_there_are(value: Any) -> None:
    """In a row one was kept that no answer could have."""
    engine = filled("l LIST(TIMESTAMP)")
    report = engine.ingest("s", [[[0, value], 20_000], [[None, dt.datetime.max], 20_000]])
    assert (report.accepted, report.refused) == (1, 1)
    assert "outside the years 0001-9999" in report.reasons[0]
    engine.heartbeat("s", 30_000)
    assert told(engine, "SELECT l FROM s").arrow().to_pylist() == [{"l": [None, dt.datetime.max]}]


@pytest.mark.parametrize(
    "value", [pa.array([1]), pa.chunked_array([[1]]), pl.Series([1])], ids=type
)
def test_columns_are_no_values(value: Any) -> None:
    engine = filled("l LIST(INT)")
    report = engine.ingest("s", [[value, 20_000], [[1], 20_000]])
    assert (report.accepted, report.refused) == (1, 1)
    with pytest.raises(DsmsError) as caught:
        engine.ingest("s", {"l": [value], "t": [30_000]})
    assert caught.value.code == "DS503"


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.list_(pa.int64())), pa.list_(pa.struct([("a", pa.int64())]))]
)
def test_lists_of_what_no_column_is_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(DsmsError) as caught:
        filled("l LIST(INT)", pa.table({"l": pa.nulls(1, kind), "t": [1]}))
    assert caught.value.code == "DS503" and "list" in caught.value.message


def test_lists_are_no_values_of_other_columns() -> None:
    with pytest.raises(DsmsError) as caught:
        filled("k STRING", pa.table({"k": [["a"]], "t": [1]}))
    assert caught.value.code == "DS503"
    assert filled("k STRING").ingest("s", [[["a"], 20_000]]).refused == 1


# ---------------------------------------------------------------- equality


WORDS = ["[1, 2]", "[2, 1]", "[]", None, "[1, 2]", "[null]", None, "[1]"]


def test_lists_group_join_and_are_told_apart() -> None:
    engine = filled("l LIST(INT), k INT", {"l": WORDS, "k": range(8), "t": [1] * 8})
    engine.execute("CREATE TABLE r (l LIST(INT) PRIMARY KEY, v INT)")
    engine.execute("INSERT INTO r VALUES ([1, 2], 5), ([], 6), (CAST('[ null ]' AS INT[]), 7)")
    counted = dict(rows(engine, "SELECT l, COUNT(*) AS n FROM s GROUP BY l"))
    assert counted == {w: WORDS.count(w) for w in WORDS}
    assert {row[0] for row in rows(engine, "SELECT DISTINCT l FROM s")} == set(WORDS)
    joined = rows(engine, "SELECT s.k, r.v FROM s, r WHERE s.l = r.l")
    assert sorted(joined) == [(0, 5), (2, 6), (4, 5), (5, 7)]
    assert rows(engine, "SELECT COUNT(DISTINCT l) AS n FROM s") == [(5,)]
    assert sorted(rows(engine, "SELECT k FROM s WHERE l IN ([1], [2, 1])")) == [(1,), (7,)]
    with pytest.raises(DsmsError) as caught:
        engine.execute("INSERT INTO r VALUES ([1, 2], 9)")
    assert caught.value.code == "DS521"


def test_null_is_a_list_for_every_function_of_lists() -> None:
    engine = filled("v INT", [[1, 0], [2, 1]])
    calls = ["LIST_CONTAINS(NULL, v)", "LIST_CONTAINS(NULL, NULL)", "NULL[v]", "CARDINALITY(NULL)"]
    calls += [
        "LIST_SUM(NULL)",
        "LIST_MIN(NULL) + v",
        "LIST_MAX(NULL)",
        "ARRAY_TO_STRING(NULL, 'x')",
    ]
    (answer,) = engine.execute(f"SELECT {', '.join(calls)}, LENGTH(NULL) FROM s [RANGE 1 h]")
    assert [set(column.to_pylist()) for column in answer.data.columns] == [{None}] * 9
    (asked,) = engine.execute("SELECT LIST_CONTAINS(?, 2) AS there", [None])
    assert asked.data.to_pylist() == [{"there": None}]


def test_a_zero_and_a_nan_are_what_they_are_elsewhere() -> None:
    engine = Engine()
    nan = "CAST(['NaN'] AS LIST(FLOAT)) = CAST(['nan'] AS LIST(FLOAT)) AS b"
    assert rows(engine, f"SELECT [0.0] = [-0.0] AS a, {nan}") == [(True, True)]
    assert rows(engine, "SELECT LIST_CONTAINS([-0.0], 0.0) AS a") == [(True,)]


@pytest.mark.parametrize("text", ["[1e400]", "[-1e400]", "[-0.0]", "[1_0]", "[1.5]", '["NaN"]'])
def test_a_list_of_floats_is_read_alike_beside_whatever_rows(text: str) -> None:
    alone, lost = lists.canonical(pa.array([text]), "FLOAT")
    beside, bad = lists.canonical(pa.array([text, "[true]"]), "FLOAT")
    assert (beside[0].as_py(), bad.tolist()) == (alone[0].as_py(), [lost[0], True])


def test_floats_of_lists_are_added_from_left_to_right() -> None:
    long = [float(10 ** (i % 19)) * (-1) ** (i // 7) / 3 for i in range(lists.MOST)]
    odd: list[Any] = [[], None, [None], [1e16, 1.0, None, 1.0, -1e16], [math.inf, -math.inf]]
    found: list[Any] = [long, *odd, [-0.5], [0.1] * 9]
    engine = Engine()
    engine.execute("CREATE STREAM f (n INT, x LIST(FLOAT), t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h")
    engine.ingest("f", [[n, x, n] for n, x in enumerate(found)])
    engine.heartbeat("f", 100)
    told = asked(engine, "SELECT LIST_SUM(x) AS y FROM f [RANGE 1 h] ORDER BY n")
    there: list[list[Any]] = [[v for v in x or [] if v is not None] for x in found]
    assert [repr(y) for (y,) in told] == [repr(reduce(add, x) if x else None) for x in there]


def test_constants_become_the_type_of_their_column() -> None:
    engine = Engine()
    engine.execute("CREATE TABLE r (k INT, d LIST(DECIMAL(6,2)), f LIST(FLOAT), s LIST(STRING))")
    engine.execute("INSERT INTO r VALUES (1, [1.5, 2], [1, NULL], []), (2, [], [], [NULL])")
    assert rows(engine, "SELECT d, f, s FROM r ORDER BY k") == [
        ("[1.50, 2.00]", "[1.0, null]", "[]"),
        ("[]", "[]", "[null]"),
    ]
    with pytest.raises(DsmsError) as caught:
        engine.execute("INSERT INTO r VALUES (1, ['a'], [], [])")
    assert caught.value.code == "DS218"


# ---------------------------------------------------------------- restarts


def test_lists_outlast_a_restart(tmp_path: Any) -> None:
    folder = str(tmp_path / "data")
    engine = Engine(folder)
    engine.execute(
        "CREATE STREAM s (l LIST(STRING) DEFAULT ['n'], t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;"
        "CREATE TABLE r (k INT PRIMARY KEY, l LIST(FLOAT));"
        "CREATE QUERY q AS SELECT l, COUNT(*) AS n FROM s [RANGE 1 h] GROUP BY l"
    )
    engine.execute("INSERT INTO r VALUES (1, [1.5, NULL])")
    engine.ingest("s", [[["a", None], 1], [[], 2], [["a", None], 3]])
    engine.heartbeat("s", 10)
    before = rows(engine, "SHOW CREATE ALL")
    engine.close()
    engine = Engine(folder)
    assert rows(engine, "SHOW CREATE ALL") == before
    assert rows(engine, "SELECT l FROM r") == [("[1.5, null]",)]
    engine.ingest("s", [{"l": ["a", None], "t": 20}, {"t": 21}])
    engine.heartbeat("s", 30)
    found = dict(rows(engine, "SELECT l, COUNT(*) AS n FROM s [RANGE 1 h] GROUP BY l"))
    assert found == {'["a", null]': 3, "[]": 1, '["n"]': 1}
    engine.close()


# ---------------------------------------------------------------- what others see


def test_arrow_has_lists_and_html_their_texts() -> None:
    engine = filled("l LIST(STRING), w LIST(TIMESTAMP)", [(["<b>", None], [0], 1)])
    found = told(engine, "SELECT l, w FROM s")
    assert found.types == ("LIST(STRING)", "LIST(TIMESTAMP)")
    assert found.arrow().schema.types == [pa.list_(pa.string()), pa.list_(pa.timestamp("us"))]
    assert found.arrow().to_pylist() == [{"l": ["<b>", None], "w": [dt.datetime(1970, 1, 1)]}]
    assert "[&quot;&lt;b&gt;&quot;, null]" in found._repr_html_()


def test_texts_of_the_oracle_are_read_as_they_were_written() -> None:
    assert unpacked(packed([1, None], list_of(INT)), list_of(INT)) == [1, None]
    assert packed(["a\n", '"'], list_of(STRING)) == '["a\\n", "\\""]'
    assert packed([0], list_of(TIMESTAMP)) == '["1970-01-01 00:00:00"]'


# ---------------------------------------------------------------- millions of NULLs


@pytest.mark.parametrize("form", ["arrow", "columns", "rows"])
def test_millions_of_nulls_have_one_outcome_everywhere(form: str) -> None:
    """In process they took seconds, over TCP they were DS510."""
    engine, most = Engine(), 65536
    engine.execute("CREATE STREAM s (l LIST(INTERVAL), t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h")

    def frame(n: int) -> Any:
        if form == "rows":
            return [([None] * most, at) for at in range(n)]
        if form == "columns":
            return {"l": [[None] * most] * n, "t": list(range(n))}
        ends = pa.array(np.arange(n + 1) * most, pa.int32())
        column = pa.ListArray.from_arrays(ends, pa.nulls(n * most))
        return pa.table({"l": column, "t": pa.array(range(n), pa.int64())})

    few = LIMIT // ITEM // most
    with pytest.raises(UsageError, match="DS510"):
        engine.ingest("s", frame(few + 1))
    if form == "arrow":
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, (table := frame(few + 1)).schema) as out:
            out.write_table(table)
        with pytest.raises(UsageError, match="DS510"):
            read_stream(sink.getvalue().to_pybytes())
    assert engine.ingest("s", frame(3)).accepted == 3
    engine.heartbeat("s", 10)
    assert rows(engine, "SELECT DISTINCT LENGTH(l), l[7] AS i FROM s") == [(most, None)]


def test_lists_of_nulls_are_written_out_as_others() -> None:
    starts = np.array([0, 2, 2, 5, 6])
    wanted = ["[null, null]", "[]", "[null, null, null]", "[null]"]
    assert lists.made(starts, pa.nulls(6, pa.int64()), "INTERVAL").to_pylist() == wanted
