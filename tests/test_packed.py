"""Rows read straight from msgpack are the rows that Python objects would have made, or are left to
those."""

from __future__ import annotations

import math
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.errors import DsmsError
from dsms.intake import packed
from dsms.intake.convert import Converted
from dsms.sql.types import (
    BOOL,
    BYTES,
    FLOAT,
    INT,
    INTERVAL,
    STRING,
    TIMESTAMP,
    Field,
    Kind,
    Type,
    decimal,
)
from dsms_client.protocol import pack
from dsms_server import decode
from dsms_server.decode import StreamShape
from tests.effort import examples

TYPES = (BOOL, BYTES, FLOAT, INT, INTERVAL, STRING, TIMESTAMP)
EDGES = [0, -1, 127, 128, 255, 256, -32, -33, -128, -129, 65535, 65536, -32768, -32769, 2**31,
         -(2**31) - 1, 2**32,
         2**53, 2**53 + 1, -(2**53), 2**63 - 1, -(2**63)]  # a long list  # fmt: skip
WHOLE = st.sampled_from(EDGES) | st.integers(-200, 200)
NUMBER = st.sampled_from([0.0, -0.0, math.nan, math.inf, 5e-324]) | st.floats() | st.integers(-9, 9)
TEXT = st.text(max_size=3) | st.sampled_from(["x" * n for n in (31, 32, 255, 256, 65536)])
BLOB = st.binary(max_size=3) | st.sampled_from([b"y" * n for n in (255, 256, 65536)])
RIGHT: dict[Kind, st.SearchStrategy] = {
    Kind.BOOL: st.booleans(),
    Kind.BYTES: BLOB,
    Kind.FLOAT: NUMBER,
    Kind.INT: WHOLE,
    Kind.INTERVAL: WHOLE,
    Kind.STRING: TEXT,
    Kind.TIMESTAMP: WHOLE,
    Kind.DECIMAL: st.sampled_from(["1.5", "x"]) | WHOLE,
}
ANY = st.one_of(
    st.none(),
    WHOLE,
    NUMBER,
    TEXT,
    BLOB,
    st.booleans(),
    st.just([1]),
    st.just({"a": 1}),
    st.just(2**64 - 1),
)


@st.composite
def frames(draw: Any, wrong: bool) -> tuple[StreamShape, list[Any]]:
    """A stream and rows for it, some of which may be wrong in any way."""
    types: list[Type] = draw(
        st.lists(
            st.sampled_from([*TYPES, *([decimal(5, 2)] if wrong else [])]), min_size=1, max_size=17
        )
    )
    schema = tuple(Field(f"c{i}", t, None, draw(st.booleans())) for i, t in enumerate(types))
    rows = []
    for _ in range(draw(st.integers(0, 20))):
        row: Any = [draw(RIGHT[t.kind] | st.none()) for t in types]
        if wrong and draw(st.integers(0, 9)) == 0:
            row = draw(st.sampled_from([row[1:], [*row, 1], None, "row", {"c0": 1}]))
        elif wrong and draw(st.integers(0, 5)) == 0:
            row[draw(st.integers(0, len(row) - 1))] = draw(ANY)
        rows.append(row)
    return StreamShape("s", schema), rows


def read(body: bytes, shape: StreamShape, quick: bool) -> tuple[Any, ...]:
    """What a frame comes to: its rows and refusals, or the code and text of an error."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode, "WHOLE", 0)
        if not quick:
            patch.setattr(packed, "unpack", lambda data, schema: None)
        try:
            got = decode.decode(body, lambda name: shape)["payload"].fitted(shape)
        except DsmsError as error:
            return error.code, error.message
    return told(got)


def told(got: Converted) -> tuple[Any, ...]:
    columns = [(str(c.type), [repr(v) for v in c.to_pylist()]) for c in got.columns]
    return columns, got.sent, None if got.kept is None else got.kept.tolist(), got.refusals


@settings(max_examples=examples(150), deadline=None)
@given(frames(wrong=False))
def test_good_rows_are_read_without_objects(frame):
    shape, rows = frame
    body = bytes(pack({"op": "ingest", "id": 1, "stream": "s", "rows": rows, "seq": 5})[4:])
    assert read(body, shape, True) == read(body, shape, False)
    exact = all(
        not isinstance(v, int) or isinstance(v, bool) or abs(v) <= 2**53 for r in rows for v in r
    )
    if rows and exact:
        assert packed.unpack(memoryview(msgpack.packb(rows)), shape.schema) is not None


@settings(max_examples=examples(150), deadline=None)
@given(frames(wrong=True))
def test_wrong_rows_are_left_to_those_who_know_what_to_say(frame):
    shape, rows = frame
    body = bytes(pack({"op": "ingest", "id": 1, "stream": "s", "rows": rows})[4:])
    assert read(body, shape, True) == read(body, shape, False)


@settings(max_examples=examples(150), deadline=None)
@given(frames(wrong=False), st.data())
def test_torn_and_spoilt_frames_are_refused_alike(frame, data):
    shape, rows = frame
    body = bytearray(pack({"op": "ingest", "id": 1, "stream": "s", "rows": rows})[4:])
    if data.draw(st.booleans()):
        body = body[: data.draw(st.integers(1, len(body)))]
    for _ in range(data.draw(st.integers(0, 2))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    assert read(bytes(body), shape, True) == read(bytes(body), shape, False)


def test_lengths_that_lie_claim_no_memory():
    schema = (Field("a", INT), Field("b", STRING))
    for head in (
        b"\xdd\xff\xff\xff\xff",
        b"\xdc\xff\xff",
        b"\x9f",
        b"",
        b"\x91\x92\x01\xdb\xff\xff\xff\xff",
    ):
        assert packed.unpack(memoryview(head), schema) is None
