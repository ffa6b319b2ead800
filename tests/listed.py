"""Random lists, as texts, by the type of their items."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from dsms.sql.types import (
    BOOL,
    BYTES,
    DATE,
    FLOAT,
    INT,
    INTERVAL,
    MAX_INSTANT,
    MIN_INSTANT,
    STRING,
    TIME,
    TIMESTAMP,
    UUID,
    Type,
    decimal,
    list_of,
)
from dsms.typed_texts import DAY
from tests.oracle.lists import packed

TEXTS = st.one_of(
    st.sampled_from(
        ["", "null", "NULL", '"', "\\", '\\"', "a, b", "[1]", "]", "\n", "\x00", "é", "😀"]
    ),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=5),
)
ITEMS: dict[Type, st.SearchStrategy[Any]] = {
    BOOL: st.booleans(),
    INT: st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)),
    FLOAT: st.one_of(st.sampled_from([0.0, -0.0, 1.0, 1e16, 1e-7]), st.floats()),
    decimal(8, 3): st.integers(-99999999, 99999999).map(lambda n: Decimal(n).scaleb(-3)),
    STRING: TEXTS,
    BYTES: st.binary(max_size=3),
    TIMESTAMP: st.one_of(st.sampled_from([0, -1]), st.integers(MIN_INSTANT, MAX_INSTANT)),
    INTERVAL: st.integers(-(2**63) + 1, 2**63 - 1),
    DATE: st.integers(MIN_INSTANT, MAX_INSTANT).map(lambda t: t // DAY * DAY),
    TIME: st.integers(0, DAY - 1),
    UUID: st.uuids().map(str),
}


def _lists(item: Type) -> st.SearchStrategy[str]:
    values = st.lists(st.one_of(st.none(), ITEMS[item]), max_size=5)
    return values.map(lambda found: packed(found, list_of(item)))


LISTS: dict[Type, st.SearchStrategy[str]] = {item: _lists(item) for item in ITEMS}
