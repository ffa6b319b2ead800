"""Files by the readers of `dsms load`: exact numbers, keys in any case, units of time, each type as
it is written."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from dsms import lists
from dsms.errors import DsmsError
from dsms.sql.types import Field, list_of
from dsms_client.files.open import read
from dsms_client.files.options import Options
from dsms_client.files.source import FileSource
from tests.ways import DAY, SECOND, TYPES, over_wire, taken


def load(
    path: str, columns: list[tuple[str, str]], unit: str | None = None
) -> tuple[list[list[Any]], list[str]]:
    """Good rows as intake has them, and why the other lines are none."""
    _, pieces = read(FileSource(path), columns, {}, Options(unit=unit))
    types = {str(t): t for one in TYPES for t in (one, list_of(one))}
    schema = tuple(Field(name, types[sql]) for name, sql in columns)
    rows, reasons = [], []
    for piece in pieces:
        got = over_wire(piece.batch, schema)
        rows += [list(row) for row in zip(*(c.to_pylist() for c in got.columns), strict=True)]
        reasons += [f"{reject.line}: {reject.reason}" for reject in piece.rejects]
        reasons += [str(refusal) for refusal in got.refusals]
    return rows, reasons


@pytest.fixture
def file(tmp_path: Any) -> Any:
    def write(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


D = [("d", "DECIMAL(20,2)"), ("i", "INT")]


@pytest.mark.parametrize(
    "neighbour", ["", '{"d": null, "i": 1.0}\n', '{"D": 0, "I": 0}\n', '{"d": "x"}\n']
)
def test_json_numbers_are_exact_whatever_their_neighbours_hold(file: Any, neighbour: str) -> None:
    lines = '{"d": 12345678901234567.89, "i": 9007199254740993}\n{"D": "0.10", "I": -1}\n'
    rows, _ = load(file("a.jsonl", '{"d": 1, "i": 1}\n' + lines + neighbour), D)
    assert rows[1:3] == [[Decimal("12345678901234567.89"), 9007199254740993], [Decimal("0.10"), -1]]


def test_json_keys_in_any_case_line_by_line(file: Any) -> None:
    lines = [
        '{"D": 1, "i": 1}',
        '{"d": 2, "I": 2}',
        '{"d": 3, "D": 3}',
        '{"i": 4, "i": 4}',
        '{"\\u0044": 5}',
        '{"x": "i"}',
    ]
    rows, reasons = load(file("a.jsonl", "\n".join(lines)), D)
    assert rows == [[1, 1], [2, 2], [5, None], [None, None]]
    assert reasons == ['3: d is given twice, as "d" and "D"', '4: i is given twice, as "i" and "i"']
    rows, reasons = load(
        file("b.jsonl", '{"ab": 1}\n{"AB": 2}\n{"Ab": 3}\n'), [("ab", "INT"), ("AB", "INT")]
    )
    assert rows == [[1, None], [None, 2]] and reasons == ['3: the key "Ab" could be ab or AB']


T = [("t", "TIMESTAMP"), ("v", "INT")]
COUNTS = [
    ("s", "1379288667.631000", 1379288667_631000),
    ("s", "-0.0000001", -1),
    ("s", "1379288667", 1379288667_000000),
    ("ms", "1379288667631.25", 1379288667_631250),
    ("us", "1379288667631000", 1379288667_631000),
    ("us", "-1.5", -2),
    ("ns", "1379288667631000999", 1379288667_631000),
    ("ns", "-1", -1),
    ("s", ".5", 500_000),
    ("s", "1.379288667e9", 1379288667_000000),
    ("s", "00001.000000000000000000001", 1_000_000),
    ("s", "20200101", 20200101_000000),
]


@pytest.mark.parametrize(("unit", "number", "expected"), COUNTS)
def test_numbers_with_a_unit_are_exact(file: Any, unit: str, number: str, expected: int) -> None:
    for text in (number, number.rjust(30)):
        assert load(file("a.csv", f"t,v\n{text},1\n1970-01-01,2\n"), T, unit)[0] == [
            [expected, 1],
            [0, 2],
        ]
    quoted = file("a.jsonl", f'{{"t": "{number}", "v": 1}}\n{{"t": "1970-01-01", "v": 2}}\n')
    assert load(quoted, T, unit)[0] == [[expected, 1], [0, 2]]
    if number[0] != "." and not number.startswith("00"):
        for more in ("", '{"t": "1970-01-01"}\n'):
            rows, _ = load(file("b.jsonl", f'{{"t": {number}, "v": 1}}\n{more}'), T, unit)
            assert rows[0] == [expected, 1]


@pytest.mark.parametrize("unit", [None, "s"])
def test_numbers_far_away_and_texts_that_are_none(file: Any, unit: str | None) -> None:
    rows, reasons = load(
        file("a.csv", "t,v\n1970-01-01,1\n99999999999999999999,2\nyesterday,3\n"), T, unit
    )
    assert rows == [[0, 1]] and [reason[:2] for reason in reasons] == ["3:", "4:"]
    assert unit is not None or reasons[0].endswith(
        "a number says no unit: give --time-unit s|ms|us|ns"
    )


def test_numbers_without_a_unit_are_refused(file: Any, tmp_path: Any) -> None:
    paths = [
        file("a.csv", "t,v\n1379288667.631000,1\n,2\n"),
        file("a.jsonl", '{"t": 1379288667, "v": 1}\n'),
        file("b.jsonl", '{"T": "1379288667", "v": 1}\n'),
    ]
    for column in (pa.array([1379288667]), pa.array([1.5]), pa.array([1]).dictionary_encode()):
        paths.append(str(tmp_path / f"{len(paths)}.parquet"))
        pyarrow.parquet.write_table(pa.table({"t": column}), paths[-1])
    for path in paths:
        with pytest.raises(DsmsError) as caught:
            load(path, T)
        assert caught.value.code == "DS503" and "--time-unit" in str(caught.value), path


def test_parquet_columns(tmp_path: Any) -> None:
    path = str(tmp_path / "a.parquet")
    for column, unit, expected in (
        (pa.array([1379288667.631]), "s", [1379288667_631000]),
        (pa.array([5, None]), "ms", [5000, None]),
        (pa.array([Decimal("1.000000001")]), "s", [1_000_000]),
        (pa.array(["20200101", None]), None, [18262 * DAY, None]),
        (pa.array([-1], pa.timestamp("ns")), None, [-1]),
        (pa.array([1], pa.date32()), None, [DAY]),
    ):
        pyarrow.parquet.write_table(pa.table({"t": column}), path)
        assert load(path, T, unit)[0] == [[value, None] for value in expected]
    pyarrow.parquet.write_table(pa.table({"t": ["1970-01-01", "1", "x"], "v": [1, 2, 3]}), path)
    rows, reasons = load(path, T)
    assert rows == [[0, 1]] and len(reasons) == 2 and "--time-unit" in reasons[0]


CELLS = {  # what a file's cell holds, and what it becomes: as CSV and as JSON text, number or word
    "BOOL": [("true", True), ("false", False)],
    "INT": [("9007199254740993", 9007199254740993), ("3.0", 3), ("-0", 0)],
    "FLOAT": [("0.1", 0.1), ("1e300", 1e300), ("7", 7.0)],
    "DECIMAL(20,2)": [
        ("12345678901234567.89", Decimal("12345678901234567.89")),
        ("1.500", Decimal("1.50")),
        ("1e2", Decimal(100)),
    ],
    "TIMESTAMP": [
        ("2020-01-01T00:00:00.123456789Z", 18262 * DAY + 123456),
        ("20200101", 18262 * DAY),
    ],
    "INTERVAL": [("1 h 30 min", 5400 * SECOND), ("26:03:04.5", 93784_500_000), ("-5", -5)],
    "STRING": [("x", "x"), ("12", "12")],
    "BYTES": [("\\x00ff", b"\x00\xff"), ("ab", b"ab")],
}
WRONG = {
    "BOOL": "2x",
    "INT": "1.5",
    "FLOAT": "x",
    "DECIMAL(20,2)": "1.234",
    "TIMESTAMP": "x",
    "INTERVAL": "1 month",
}
BARE = ("BOOL", "INT", "FLOAT", "DECIMAL(20,2)")


@pytest.mark.parametrize("sql", CELLS)
def test_csv_and_json_hold_the_same(file: Any, sql: str) -> None:
    columns = [("a", sql)]
    for cell, expected in CELLS[sql]:
        bare = cell if sql in BARE or cell == "-5" else json.dumps(cell)
        for lines in ("", '{"A": null}\n'):  # read as a whole, and line by line
            assert load(file("a.jsonl", f'{{"a": {bare}}}\n{lines}'), columns)[0][0] == [expected]
        assert load(file("a.csv", f"a,b\n{cell},1\n"), columns)[0] == [[expected]]
        # text is not taken for these by ingest, and a file has it
        if sql not in ("BOOL", "INT", "FLOAT"):
            (name,) = [t for t in TYPES if str(t) == sql]
            assert (
                cell == "-5"
                or sql == "BYTES"
                or taken({"a": [cell]}, name) == [str(pa.scalar(expected, name.arrow).as_py())]
            )
    if sql in WRONG:
        good = CELLS[sql][0][0]
        assert len(load(file("b.csv", f"a,b\n{good},1\n{WRONG[sql]},1\n"), columns)[1]) == 1
        bare = WRONG[sql] if sql in ("INT", "DECIMAL(20,2)") else json.dumps(WRONG[sql])
        first = good if sql in BARE else json.dumps(good)
        assert len(load(file("b.jsonl", f'{{"a": {first}}}\n{{"a": {bare}}}\n'), columns)[1]) == 1


def test_text_that_is_no_unicode_is_a_line_that_is_none(file: Any) -> None:
    rows, reasons = load(file("a.jsonl", '{"a": "x"}\n{"a": "\\ud800"}\n'), [("a", "STRING")])
    assert rows == [["x"]] and reasons == ['2: a: "\\ud800" is not STRING']


def test_a_nul_is_text(file: Any) -> None:
    columns = [("s", "STRING"), ("t", "INT")]
    for text in ("s,t\na\0b,1\n", "s,t\n\0,1\n"):
        rows, reasons = load(file("a.csv", text), columns)
        assert rows == [[text[4:].partition(",")[0], 1]] and not reasons
    assert load(file("b.csv", "s\0,t\nx,1\n"), [("s\0", "STRING"), ("t", "INT")]) == (
        [["x", 1]],
        [],
    )
    for encoding in ("utf-16-le", "utf-16-be", "utf-32-le"):
        path = file("c.csv", "")
        with open(path, "wb") as out:
            out.write("s,t\nx,1\n".encode(encoding))
        with pytest.raises(DsmsError, match="UTF-16"):
            load(path, columns)


def test_two_headers_for_one_column_are_refused(file: Any) -> None:
    with pytest.raises(DsmsError, match="DS532: the file has 2 columns called k: k, K"):
        load(file("a.csv", "k,K\n1,2\n"), [("k", "INT")])
    assert load(file("b.csv", "k,K\n1,2\n"), [("K", "INT"), ("k", "INT")]) == ([[2, 1]], [])


def test_a_quote_that_is_never_closed_is_named(file: Any) -> None:
    for row in ('"a,1\nb,2\n', 'a,"1\nb,2\n', 'a,"1', '"a\n"",1\n'):
        rows, reasons = load(file("a.csv", f"k,v\nx,1\n{row}"), [("k", "STRING"), ("v", "STRING")])
        assert rows == [["x", "1"]]
        assert reasons == ["3: is a quote opened that is never closed, or is the file cut short?"]


def test_an_array_of_json_that_is_not_closed_is_named(file: Any) -> None:
    for text in ('[{"k": 1},\n', '[{"k": 1}', '[{"k": 1} {"k": 2}]', '[{"k": 1},, {"k": 2}]'):
        with pytest.raises(DsmsError, match=r"(?s)DS530.*cut short"):
            load(file("a.json", text), [("k", "INT")])
    assert load(file("a.json", '[{"k": 1},\n{"k": 2}]\n'), [("k", "INT")])[0] == [[1], [2]]


# texts of a FLOAT, and what they are, or why they are none
FLOATS = [
    ("9007199254740992", 2.0**53),
    ("9007199254740993", "an integer that is not exact as a FLOAT"),
    ("-9007199254740993", "an integer that is not exact as a FLOAT"),
    ("9007199254740993.0", 2.0**53),
    ("9007199254740993e0", 2.0**53),
    ("36893488147419103232", 2.0**65),
    ("0.1", 0.1),
    ("1e300", 1e300),
    ("1e400", "too large for FLOAT"),
    ("-1e400", "too large for FLOAT"),
    ("9" * 400, "too large for FLOAT"),
    ("1e-400", 0.0),
]


@pytest.mark.parametrize(("text", "wanted"), FLOATS)
@pytest.mark.parametrize("form", ["csv", "jsonl", "by line"])
def test_no_integer_of_a_float_is_rounded_and_none_is_too_large(
    file: Any, form: str, text: str, wanted: Any
) -> None:
    columns = [("k", "INT"), ("f", "FLOAT")]
    if form == "csv":
        path, line = file("a.csv", f"k,f\n1,0.5\n2,{text}\n3,inf\n"), 3
        last = [3, float("inf")]
    else:
        key = "F" if form == "by line" else "f"
        path = file("a.jsonl", f'{{"k":1,"f":0.5}}\n{{"k":2,"{key}":{text}}}\n{{"k":3,"f":null}}\n')
        line, last = 2, [3, None]
    rows, reasons = load(path, columns)
    if isinstance(wanted, float):
        assert rows == [[1, 0.5], [2, wanted], last] and reasons == []
        return
    quoted = repr(text) if form == "csv" else text
    assert rows == [[1, 0.5], last] and reasons == [f"{line}: f: {quoted} is not FLOAT: {wanted}"]


def test_parquet_integers_of_a_float_are_exact(tmp_path: Any) -> None:
    for kind in (pa.int64(), pa.uint64()):
        path = str(tmp_path / f"{kind}.parquet")
        pa.parquet.write_table(pa.table({"f": pa.array([1, 2**53 + 1, None, 2**60], kind)}), path)
        rows, reasons = load(path, [("f", "FLOAT")])
        assert rows == [[1.0], [None], [2.0**60]]
        why = "an integer that is not exact as a FLOAT"
        assert reasons == [f"2: f: 9007199254740993 is not FLOAT: {why}"]


@pytest.mark.parametrize("form", ["list", "large_list", "dictionary"])
def test_items_of_lists_in_parquet_are_what_columns_of_them_are(tmp_path: Any, form: str) -> None:
    """Seconds were read as microseconds, with and without a unit; a FLOAT that is none refused all
    rows."""
    path = str(tmp_path / "a.parquet")

    def written(values: list[Any], item: pa.DataType) -> None:
        column = pa.array(values, (pa.large_list if form == "large_list" else pa.list_)(item))
        if form == "dictionary":
            items = column.values.dictionary_encode()
            mask = pa.array([v is None for v in values])
            column = pa.ListArray.from_arrays(column.offsets, items, mask=mask)
        pyarrow.parquet.write_table(pa.table({"t": column}), path)

    written([[1, None], None, []], pa.int64())
    with pytest.raises(DsmsError, match=r"DS503: column 't': expected TIMESTAMP"):
        load(path, [("t", "LIST(TIMESTAMP)")])
    assert load(path, [("t", "LIST(TIMESTAMP)")], "s") == (
        [['["1970-01-01 00:00:01", null]'], [None], ["[]"]],
        [],
    )
    written([["1970-01-02"], ["1970-01-01", "x"], []], pa.string())
    rows, (reason,) = load(path, [("t", "LIST(TIMESTAMP)")])
    assert rows == [['["1970-01-02 00:00:00"]'], ["[]"]]
    assert reason.startswith("2: t: 'x' is not TIMESTAMP: an instant is written")
    written([[1], [2**60, 2**53 + 1], None], pa.int64())
    rows, (reason,) = load(path, [("t", "LIST(FLOAT)")])
    assert rows == [["[1.0]"], [None]] and reason.startswith(f"2: t: {2**53 + 1} is not FLOAT")


def test_digits_in_quotes_are_no_length(file: Any) -> None:
    """In one block or line by line, as in rows and in CAST; numbers are microseconds."""
    for more in ("", '{"v": null}\n[]\n'):
        rows, reasons = load(file("x.json", f'{{"v": "7"}}\n{more}'), [("v", "INTERVAL")])
        assert [reason[:2] for reason in reasons][:1] == ["1:"]
        assert rows == [[None]] * bool(more)
    assert load(file("y.json", '{"v": 7}\n'), [("v", "INTERVAL")]) == ([[7]], [])


ITEMS = ("5", "-3", "1.5", "1e3", "true", "{}", "[1]", '"00:00:05"', '"5"', '"2013-01-02"', '""',
         "null", "12345678901234567890")  # a long list  # fmt: skip


@pytest.mark.parametrize("unit", [None, "s", "us"])
@pytest.mark.parametrize("kind", ["INTERVAL", "TIMESTAMP"])
@pytest.mark.parametrize("item", ITEMS)
def test_items_of_lists_in_json_are_what_columns_of_them_are(
    file: Any, item: str, kind: str, unit: str | None
) -> None:
    """Numbers were refused in lists alone."""

    def found(sql: str, written: str) -> tuple[Any, list[str]]:
        try:
            return load(file("a.jsonl", f'{{"x": {written}}}\n'), [("x", sql)], unit)
        except DsmsError as error:
            return error.code, [str(error)]

    single, reasons = found(kind, item)
    of_list, same = found(f"LIST({kind})", f"[{item}]")
    assert same == reasons
    if single and isinstance(single, list):
        texts = lists.spelled_items(pa.array([single[0][0]], pa.int64()), kind)
        single = [[f"[{texts[0].as_py()}]"]]
    assert of_list == single


def test_numbers_of_lists_in_csv_are_lengths_and_instants(file: Any) -> None:
    path = file("a.csv", 'x\n"[5, null]"\n"[""5""]"\n')
    rows, reasons = load(path, [("x", "LIST(INTERVAL)")])
    assert rows == [['["00:00:00.000005", null]']] and len(reasons) == 1
    assert load(path, [("x", "LIST(TIMESTAMP)")], "s")[0][0] == ['["1970-01-01 00:00:05", null]']
    with pytest.raises(DsmsError, match="DS503"):
        load(path, [("x", "LIST(TIMESTAMP)")])
