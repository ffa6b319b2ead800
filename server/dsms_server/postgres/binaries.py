"""Columns at the edge -> values in PostgreSQL's binary form, as bytes, big-endian.

timestamp  int64 µs since 2000      date  int32 days since 2000     time  int64 µs
interval   int64 µs, int32 days, int32 months (both 0)
numeric    int16 groups of four digits, weight of the first, sign, scale; the groups
lists      int32 dimensions (0 or 1), has NULLs, OID of items; count, 1; the items behind their
           lengths"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms_server.postgres.numerics import numeric_values
from dsms_server.postgres.packed import as_binary, fixed, join, numbers, without_nulls
from dsms_server.postgres.texts import relisted, text_values
from dsms_server.postgres.types import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    NUMERIC,
    OID,
    TIME,
    TIMESTAMPTZ,
    UUID,
    item_of,
    of_arrow,
)

EPOCH_DAYS = 10_957  # from 1970 to 2000
EPOCH = EPOCH_DAYS * 86_400_000_000  # µs
_INTERVAL = np.dtype([("micros", ">i8"), ("days", ">i4"), ("months", ">i4")])
_HEAD = np.dtype([("dims", ">i4"), ("nulls", ">i4"), ("oid", ">i4")])
_DIMENSION = np.dtype([("count", ">i4"), ("first", ">i4")])


def binary_values(array: pa.Array) -> pa.Array:
    """Of the same length; what stands for a NULL does not matter."""
    if item_of(array.type) is not None:
        return _lists(array)
    return _WAYS.get(of_arrow(array.type).oid, text_values)(array)


def _integers(form: str) -> Callable[[pa.Array], pa.Array]:
    return lambda array: fixed(numbers(array, pa.int64()).astype(form))


def _bools(array: pa.Array) -> pa.Array:
    return fixed(numbers(array.cast(pa.uint8())).astype("u1"))


def _floats(array: pa.Array) -> pa.Array:
    return fixed(numbers(array, pa.float64()).astype(">f8"))


def _instants(array: pa.Array) -> pa.Array:
    micros = array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64())
    return fixed((numbers(micros) - EPOCH).astype(">i8"))


def _dates(array: pa.Array) -> pa.Array:
    return fixed((numbers(array.cast(pa.int32())) - EPOCH_DAYS).astype(">i4"))


def _times(array: pa.Array) -> pa.Array:
    return fixed(numbers(array.cast(pa.time64("us")).cast(pa.int64())).astype(">i8"))


def _lengths(array: pa.Array) -> pa.Array:
    made = np.zeros(len(array), _INTERVAL)
    made["micros"] = numbers(array.cast(pa.duration("us")).cast(pa.int64()))
    return fixed(made)


def _uuids(array: pa.Array) -> pa.Array:
    stored = array.storage if isinstance(array, pa.ExtensionArray) else array
    return stored.cast(pa.binary())


_WAYS: dict[int, Callable[[pa.Array], pa.Array]] = {
    BOOL.oid: _bools,
    BYTEA.oid: as_binary,
    INT8.oid: _integers(">i8"),
    INT2.oid: _integers(">i2"),
    INT4.oid: _integers(">i4"),
    OID.oid: _integers(">u4"),
    FLOAT8.oid: _floats,
    NUMERIC.oid: numeric_values,
    DATE.oid: _dates,
    TIME.oid: _times,
    TIMESTAMPTZ.oid: _instants,
    INTERVAL.oid: _lengths,
    UUID.oid: _uuids,
}


def _lists(array: pa.Array) -> pa.Array:
    items = array.flatten()
    nulls = items.is_null().to_numpy(zero_copy_only=False)
    values = without_nulls(binary_values(items), nulls if items.null_count else None)
    sizes = np.where(nulls, -1, numbers(pc.binary_length(values), pa.int64()))
    whole = relisted(array, join(fixed(sizes.astype(">i4")), values))
    counts = numbers(pc.list_value_length(array), pa.int64())
    head, dimension = np.zeros(len(array), _HEAD), np.zeros(len(array), _DIMENSION)
    head["dims"], head["oid"] = counts > 0, of_arrow(items.type).oid
    head["nulls"] = _holds(nulls, counts)
    dimension["count"], dimension["first"] = counts, 1
    shown = pc.if_else(pa.array(counts > 0), fixed(dimension), pa.scalar(b"", pa.binary()))
    return join(fixed(head), shown, pc.binary_join(whole, b""))


def _holds(marked: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Whether a stretch of `marked` of each of these lengths has a mark."""
    before = np.concatenate([[0], np.cumsum(marked)])
    ends = np.cumsum(counts)
    return (before[ends] - before[ends - counts]) > 0
