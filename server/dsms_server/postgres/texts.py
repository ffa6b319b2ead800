"""Columns at the edge -> values as PostgreSQL writes them in text, as bytes.

bool t, f      float 1.5 1e+20 NaN Infinity    timestamp 2026-01-31 10:00:00.5+00 (UTC)
bytes \\x0aff   interval 26:00:00.5             lists {1,NULL,"a \\"b\\""}"""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms_server.postgres.packed import as_binary, in_brackets, join, numbers, varied
from dsms_server.postgres.types import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT8,
    INTERVAL,
    JSON,
    NUMERIC,
    TEXT,
    TIME,
    TIMESTAMPTZ,
    UUID,
    item_of,
    of_arrow,
)

_HEX = np.frombuffer(bytes.fromhex("".join(f"{b:02x}".encode().hex() for b in range(256))), "u1")
_PAIRS = _HEX.reshape(256, 2)
_FRACTION = r"\.?0*$"
_SECOND = 1_000_000


def text_values(array: pa.Array) -> pa.Array:
    """Of the same length; what stands for a NULL does not matter."""
    if item_of(array.type) is not None:
        return _lists(array)
    return _WAYS.get(of_arrow(array.type).oid, _plain)(array)


def _plain(array: pa.Array) -> pa.Array:
    return array.cast(pa.string())


def _texts(array: pa.Array) -> pa.Array:
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), pa.binary())
    kept = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
    return (array if kept else array.cast(pa.string())).cast(pa.binary())


def _bools(array: pa.Array) -> pa.Array:
    return pc.if_else(array, b"t", b"f")


def _floats(array: pa.Array) -> pa.Array:
    texts = array.cast(pa.float64()).cast(pa.string())
    for name, shown in (("nan", "NaN"), ("inf", "Infinity")):
        texts = pc.replace_substring(texts, name, shown)
    return texts


def _decimals(array: pa.Array) -> pa.Array:
    texts = array.cast(pa.string())
    if not pc.any(pc.match_substring(texts, "E")).as_py():
        return texts
    return pa.array([None if d is None else f"{d:f}" for d in array.to_pylist()], pa.string())


def _bytes(array: pa.Array) -> pa.Array:
    array = as_binary(array)
    lengths = numbers(pc.binary_length(array), pa.int64())
    return in_brackets(varied(_PAIRS[_all_bytes(array)].reshape(-1), 2 * lengths), b"\\x")


def _all_bytes(array: pa.Array) -> np.ndarray:
    """Those of all values that are not NULL, uint8."""
    flat = array.drop_null() if array.null_count else array
    _, offsets, data = flat.buffers()
    if data is None or not len(flat):
        return np.zeros(0, np.uint8)
    ends = np.frombuffer(offsets, np.int32)[flat.offset : flat.offset + len(flat) + 1]
    return np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]


def _instants(array: pa.Array) -> pa.Array:
    plain = array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64()).cast(pa.timestamp("us"))
    return in_brackets(_short(plain.cast(pa.string())), b"", b"+00")


def _times(array: pa.Array) -> pa.Array:
    return _short(array.cast(pa.time64("us")).cast(pa.string()))


def _short(texts: pa.Array) -> pa.Array:
    """Times without the zeros behind their point."""
    return pc.replace_substring_regex(texts, _FRACTION, "")


def _lengths(array: pa.Array) -> pa.Array:
    micros = numbers(array.cast(pa.duration("us")).cast(pa.int64()))
    signs = pa.array(np.where(micros < 0, b"-", b"").astype(object), pa.binary())
    micros = np.abs(micros)
    seconds, rest = micros // _SECOND, micros % _SECOND
    clock = [(seconds // 3600, 2, b":"), (seconds // 60 % 60, 2, b":"), (seconds % 60, 2, b".")]
    parts = [in_brackets(_padded(n, width), b"", end) for n, width, end in clock]
    whole = join(*parts, _padded(rest, 6)).cast(pa.string())
    return join(signs, _short(whole))


def _padded(values: np.ndarray, width: int) -> pa.Array:
    return pc.utf8_lpad(pa.array(values).cast(pa.string()), width, "0")


def _uuids(array: pa.Array) -> pa.Array:
    stored = array.storage if isinstance(array, pa.ExtensionArray) else array
    hexes = pc.binary_slice(_bytes(stored.cast(pa.binary())), 2)
    cuts = [pc.binary_slice(hexes, *cut) for cut in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))]
    return pc.binary_join_element_wise(*cuts, pa.scalar(b"-", pa.binary()))


def _structs(array: pa.Array) -> pa.Array:
    made = [None if v is None else json.dumps(v, default=str) for v in array.to_pylist()]
    return pa.array(made, pa.string())


_WAYS: dict[int, Callable[[pa.Array], pa.Array]] = {
    BOOL.oid: _bools,
    BYTEA.oid: _bytes,
    TEXT.oid: _texts,
    JSON.oid: _structs,
    FLOAT8.oid: _floats,
    NUMERIC.oid: _decimals,
    DATE.oid: _plain,
    TIME.oid: _times,
    TIMESTAMPTZ.oid: _instants,
    INTERVAL.oid: _lengths,
    UUID.oid: _uuids,
}


def _lists(array: pa.Array) -> pa.Array:
    """``{1,NULL,"a b"}``: each item as it is written, in quotes where it may hold what divides."""
    items = array.flatten()
    texts = as_binary(text_values(items)).cast(pa.string())
    if of_arrow(items.type) in (TEXT, BYTEA, TIMESTAMPTZ, JSON):
        escaped = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
        texts = in_brackets(escaped, b'"', b'"').cast(pa.string())
    if items.null_count:
        texts = pc.if_else(items.is_null(), "NULL", texts)
    joined = pc.binary_join(relisted(array, texts), ",")
    return in_brackets(joined, b"{", b"}")


def relisted(array: pa.Array, items: pa.Array) -> pa.Array:
    """Lists as long as those of `array`, of other items."""
    counts = numbers(pc.list_value_length(array), pa.int64())
    offsets = np.zeros(len(array) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), items)
