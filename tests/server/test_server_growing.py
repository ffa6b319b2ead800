"""Frames that would grow: what they hold is counted before it is built."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.errors import DsmsError
from dsms.intake.nesting import extent
from dsms.sql.expr import Lit
from dsms.sql.functions import FunctionError
from dsms.sql.functions.constants import check_constants
from dsms.sql.suggest import nearest as nearest_name
from dsms.sql.types import INT, STRING, Field
from dsms_client import protocol
from dsms_server.decode import StreamShape, decode
from tests.effort import SLOW, examples, thinned
from tests.memory import memory

MIB = 1 << 20
SHAPE = StreamShape("s", (Field("a", INT), Field("b", STRING)))
VALUES = st.recursive(
    st.none()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def request(field: bytes, value: bytes) -> bytes:
    head = msgpack.packb({"op": "ingest", "id": 1, "stream": "s"})
    return bytes([head[0] + 1]) + head[1:] + msgpack.packb(field.decode()) + value


def array(items: int) -> bytes:
    return b"\xdd" + items.to_bytes(4)


MUCH = 12 * MIB  # bytes; built, they are 64 times as many
ROOM = 400 * MIB
FRAMES = {
    "a row of empty maps": request(b"rows", array(1) + array(MUCH) + b"\x80" * MUCH),
    "a row of whole numbers": request(b"rows", array(1) + array(MUCH) + b"\x01" * MUCH),
    "a column of empty maps": request(b"columns", b"\x81\xa1a" + array(MUCH) + b"\x80" * MUCH),
    "a field of empty maps": request(b"id", array(MUCH) + b"\x80" * MUCH),
    "an unknown field": request(
        b"xxx", array(2) + array(MUCH // 2) + b"\x80" * (MUCH // 2) + b"\xc0"
    ),
    "rows of nested lists": request(
        b"rows", array(8) + (b"\x91" + array(1 << 20) + b"\x80" * (1 << 20)) * 8
    ),
    "cut off": request(b"rows", array(1) + array(MUCH) + b"\x80" * (MUCH - 1)),
    "many fields": b"\xdf" + (MUCH // 2).to_bytes(4) + b"\xa1a\x01" * (MUCH // 3),
}


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", FRAMES)
def test_what_would_grow_is_refused_before_it_is_built(name: str, known: bool) -> None:
    extent(memoryview(b"\x01"))  # the kernel is there
    with memory(ROOM), pytest.raises(DsmsError) as problem:
        decode(FRAMES[name], lambda stream: SHAPE if known else None)["payload"].fitted(SHAPE)
    assert problem.value.code in ("DS600", "DS505", "DS510"), problem.value


@pytest.mark.parametrize("known", [True, False])
def test_rows_of_many_values_are_built_a_few_at_a_time(known: bool) -> None:
    frame = request(b"rows", array(2000) + (array(5000) + b"\x80" * 5000) * 2000)
    extent(memoryview(b"\x01"))
    with memory(ROOM):
        fitted = decode(frame, lambda stream: SHAPE if known else None)["payload"].fitted(SHAPE)
    assert [r.count for r in fitted.refusals] == [2000]


@thinned()
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("part", [8, pytest.param(1, marks=SLOW)])
def test_rows_that_name_no_column_are_rows_of_null(part: int, known: bool) -> None:
    frame = request(b"rows", array(MUCH // part) + b"\x80" * (MUCH // part))
    extent(memoryview(b"\x01"))
    with memory(ROOM // part):
        fitted = decode(frame, lambda stream: SHAPE if known else None)["payload"].fitted(SHAPE)
    assert [c.null_count for c in fitted.columns] == [MUCH // part] * 2


@pytest.mark.parametrize("kind", ["rows", "columns"])
def test_rows_that_come_before_their_stream_stay_packed(kind: str) -> None:
    rows: Any = [[n, None if n % 3 else "x" * 50] for n in range(2000)]
    data = rows if kind == "rows" else {"b": [r[1] for r in rows], "a": [r[0] for r in rows]}
    frame = msgpack.packb({"op": "ingest", "id": 1, "stream": "s", kind: data})
    late, early = (decode(frame, lambda stream, s=shape: s)["payload"] for shape in (None, SHAPE))  # type: ignore[misc]
    assert late.converted is None and early.converted is not None
    assert [c.to_pylist() for c in late.fitted(SHAPE).columns] == [
        c.to_pylist() for c in early.fitted(SHAPE).columns
    ]


@settings(max_examples=examples(200), deadline=None)
@given(VALUES, st.binary(max_size=4))
def test_an_extent_is_what_msgpack_builds(value: Any, rest: bytes) -> None:
    packed = msgpack.packb(value)
    found = extent(memoryview(packed + rest))
    assert found is not None and found.size == len(packed) and found.values == count(value)
    for cut in range(len(packed)):
        assert extent(memoryview(packed[:cut])) is None
    inner = (
        list(value)
        if isinstance(value, list)
        else []
        if not isinstance(value, dict)
        else [*value, *value.values()]
    )
    assert found.longest == max((items(v) for v in inner), default=0)
    inside = [nested(v) for v in inner]
    assert (found.deep, found.deepest) == (sum(inside), max(inside, default=0))


def nested(value: Any) -> int:
    """Values that are arrays or maps in it, or stand in such."""
    parts = (
        value
        if isinstance(value, list)
        else [*value, *value.values()]
        if isinstance(value, dict)
        else []
    )
    return sum(count(v) for v in parts if isinstance(v, (list, dict)))


def items(value: Any) -> int:
    return (
        len(value) if isinstance(value, list) else 2 * len(value) if isinstance(value, dict) else 0
    )


def count(value: Any) -> int:
    if isinstance(value, list):
        return 1 + sum(map(count, value))
    return 1 + sum(1 + count(v) for v in value.values()) if isinstance(value, dict) else 1


@settings(max_examples=examples(500), deadline=None)
@given(st.binary())
def test_nothing_of_any_bytes_is_believed(data: bytes) -> None:
    found = extent(memoryview(data))
    try:
        reader = msgpack.Unpacker(
            ext_hook=lambda code, data: None,
            strict_map_key=False,
            object_pairs_hook=list,
            timestamp=0,
            unicode_errors="replace",
        )
        reader.feed(data)
        reader.skip()
    except Exception:
        assert found is None or found.size >= 0
    else:
        assert found is not None and found.size == reader.tell()


def test_a_long_name_is_near_to_nothing() -> None:
    name = "stream" * 200_000
    with memory(200 * MIB):
        assert protocol.nearest(name, ["stream"]) is None
        assert nearest_name(name, ["stream"]) is None
        with pytest.raises(FunctionError):
            check_constants("at_zone", {0: "zone"}, [Lit(name, STRING)], ())
    assert protocol.nearest("stram", ["stream"]) == "did you mean `stream`?"
