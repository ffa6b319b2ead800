"""Messages of each format as rows, whole batches and one by one alike; rows as messages."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms_client.columns import from_ipc, ipc
from dsms_server.connectors.formats import reading, writing
from dsms_server.connectors.protocol import Messages, Told
from dsms_server.decode import StreamShape

ALL = "(b BOOL, i INT, f FLOAT, s STRING, t TIMESTAMP, d INTERVAL)"


def shape_of(columns: str) -> StreamShape:
    engine = Engine()
    engine.execute(f"CREATE STREAM s {columns}")
    (made,) = engine.streams()
    return StreamShape(made.name, made.brought, computed=made.made)


def decoded(name: str, bodies: list[bytes], columns: str, **said: Any) -> tuple[list[Any], int]:
    """The rows, and how much was rejected."""
    options = {option.name: option.default for option in reading(name).options} | said
    header = options.pop("head", None)
    beside = options.pop("beside", {})
    shape = shape_of(columns)
    made = reading(name)(options).decode(Messages(bodies, beside=beside, header=header), shape)
    found = [column.to_pylist() for column in made.rows.columns]
    return list(zip(*found, strict=True)), made.rejected


def test_json_of_all_types():
    body = json.dumps(
        {"B": True, "i": 3, "f": 2, "s": "x", "t": "2024-01-01T00:00:01.5Z", "d": "1 min", "z": [1]}
    ).encode()
    row = (True, 3, 2.0, "x", 1_704_067_201_500_000, 60_000_000)
    assert decoded("json", [body], ALL) == ([row], 0)
    assert decoded("json", [b"[" + body + b"]", b"{}"], ALL) == ([row, (None,) * 6], 0)


@pytest.mark.parametrize(
    "body, rows, rejected",
    [
        (b"", [], 0),
        (b'{"i": "x"}', [], 1),
        (b'{"i": 1.0}', [(1, None)], 0),
        (b'{"i": 1.5}', [], 1),
        (b'{"i": 1, "s": {"a": [1.5]}}', [(1, '{"a":[1.5]}')], 0),
        (b'[{"i": 1}, 2, {"I": 3}]', [(1, None), (3, None)], 1),
        (b'{"i": 1', [], 1),
        (b'{"i": 99999999999999999999}', [], 1),
        (b"\xff", [], 1),
        (b"null", [], 1),
        (b'{\n"i": 1}', [(1, None)], 0),
        (b'{"i": NaN}', [], 1),
    ],
)
def test_json_alone_and_among_others(body, rows, rejected):
    good, more = b'{"i": 7, "s": "y"}', [(7, "y")]
    assert decoded("json", [body], "(i INT, s STRING)") == (rows, rejected)
    assert decoded("json", [good, body], "(i INT, s STRING)") == (more + rows, rejected)
    assert decoded("json", [body, good], "(i INT, s STRING)") == (rows + more, rejected)


def test_json_decimals_are_exact_and_lists_are_lists():
    body = b'{"p": 0.1000000000000000055, "l": [1, 2]}'
    (row,), rejected = decoded("json", [body], "(p DECIMAL(38, 20), l LIST(INT))")
    assert str(row[0]) == "0.10000000000000000550" and rejected == 0
    assert json.loads(row[1]) == [1, 2]


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=3),
    st.lists(st.integers(0, 3), max_size=2),
)  # a list  # fmt: skip
OBJECTS = st.dictionaries(st.sampled_from(["i", "I", "f", "s", "b", "t", "x"]), VALUES, max_size=4)
BODIES = st.one_of(
    OBJECTS.map(lambda o: json.dumps(o).encode()),
    st.lists(OBJECTS, max_size=2).map(lambda o: json.dumps(o).encode()),
    st.binary(max_size=4),
)


@given(st.lists(BODIES, max_size=6), st.integers(0, 6))
def test_the_same_messages_give_the_same_rows_however_they_are_put_together(bodies, cut):
    whole, rejected = decoded("json", bodies, ALL)
    first, some = decoded("json", bodies[:cut], ALL)
    second, others = decoded("json", bodies[cut:], ALL)
    assert repr(first + second) == repr(whole) and some + others == rejected


def test_csv_with_and_without_names():
    columns = "(i INT, f FLOAT, s STRING, b BOOL)"
    lines = [b"1,2.5,x,true", b",,,", b'2,3,"a, b",0', b"3,4,c", b"x,1,c,1"]
    rows = [(1, 2.5, "x", True), (None,) * 4, (2, 3.0, "a, b", False)]
    assert decoded("csv", lines, columns) == (rows, 2)
    assert decoded("csv", lines[:2], columns) == (rows[:2], 0)
    assert decoded("csv", [b"x;9;1"], columns, delimiter=";", head=b"S;other;I") == (
        [(1, None, "x", None)],
        0,
    )


def test_arrow_and_text():
    table = pa.table({"i": [1, 2]})
    assert decoded("arrow", [bytes(ipc(table)), b"none"], "(i INT)") == ([(1,), (2,)], 1)
    assert decoded("text", [b"a", b"\xff", b""], "(k INT, s STRING)") == (
        [(None, "a"), (None, "")],
        1,
    )
    assert decoded("text", [b"\xff"], "(s BYTES)") == ([(b"\xff",)], 0)


def test_what_is_said_beside_messages_is_a_column():
    said = {"topic_column": "s", "beside": {"topic": ["a", "b"]}}
    assert decoded("json", [b'{"i": 1}', b'{"i": 2}'], "(i INT, s STRING)", **said) == (
        [(1, "a"), (2, "b")],
        0,
    )
    assert decoded("json", [b'{"i": 1}', b"[]"], "(i INT, s STRING)", **said) == ([(1, "a")], 0)
    assert decoded("text", [b"x", b"y"], "(s STRING, v STRING)", column="v", **said)[0] == [
        ("a", "x"),
        ("b", "y"),
    ]


def told() -> Told:
    rows = pa.table(
        {
            "i": [1, None],
            "f": [0.5, float("nan")],
            "s": ["x,", 'y"'],
            "t": pa.array([0, 1_500_000], pa.timestamp("us")),
            "d": pa.array([1, 2], pa.duration("us")),
            "l": [[1], None],
            "p": pa.array([b"\x01", None]),
        }
    )
    return Told(rows, np.array([1, -1], np.int8), np.array([0, 5], np.int64), 3, 5)


def test_rows_as_json():
    lines = writing("json")({}, False).lines(told())
    first = {"i": 1, "f": 0.5, "s": "x,", "t": "1970-01-01T00:00:00.000000Z", "d": 1, "l": [1]}
    assert json.loads(lines[0]) == first | {"p": "01"}
    assert [v for k, v in json.loads(lines[1]).items() if k != "t"] == [None] * 2 + [
        'y"', 2, None, None,
    ]  # a list  # fmt: skip
    signed = json.loads(writing("json")({}, True).whole(told()))
    assert [(row["$sign"], row["$at"][-7:]) for row in signed] == [
        (1, "000000Z"),
        (-1, "000005Z"),
    ]


def test_rows_as_csv_and_arrow():
    made = writing("csv")({"delimiter": ",", "header": True}, True)
    assert made.head(told()) == b'"i","f","s","t","d","l","p","$sign","$at"\n'
    assert made.lines(told())[0].startswith(b'1,0.5,"x,",1970-01-01 00:00:00')
    found = from_ipc(writing("arrow")({}, True).whole(told()))
    assert found.column("$sign").to_pylist() == [1, -1]
    assert [len(part) for part in told().parts(1)] == [1, 1]
    assert [part.first for part in told().parts(1)] == [3, 4]
