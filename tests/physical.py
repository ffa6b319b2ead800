"""Random columns of every physical type, for tests of what is written and read back."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
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
    Kind,
    Type,
)
from dsms.typed_texts import DAY

DECIMAL = Type(Kind.DECIMAL, 12, 3)
INT64 = st.integers(-(2**63), 2**63 - 1)
VALUES: dict[Type, st.SearchStrategy] = {
    BOOL: st.booleans(),
    INT: INT64,
    FLOAT: st.floats(allow_nan=False),
    STRING: st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    BYTES: st.binary(max_size=6),
    TIMESTAMP: INT64,
    INTERVAL: INT64,
    DATE: st.integers(MIN_INSTANT, MAX_INSTANT).map(lambda t: t // DAY * DAY),
    TIME: st.integers(0, DAY - 1),
    UUID: st.uuids().map(str),
    DECIMAL: st.integers(-(10**12) + 1, 10**12 - 1).map(lambda n: Decimal(n).scaleb(-3)),
}
TYPES = st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=5).map(tuple)


@st.composite
def columns(
    draw: st.DrawFn, types: tuple[Type, ...], least: int = 0, most: int = 12
) -> tuple[pa.Array, ...]:
    """A column of each type, all of one length; NULLs anywhere; some of them slices of longer
    arrays."""
    n, before, behind = (
        draw(st.integers(least, most)),
        draw(st.integers(0, 9)),
        draw(st.integers(0, 9)),
    )
    whole = n + before + behind
    values = [draw(st.lists(st.none() | VALUES[t], min_size=whole, max_size=whole)) for t in types]
    return tuple(pa.array(v, t.arrow).slice(before, n) for t, v in zip(types, values, strict=True))
