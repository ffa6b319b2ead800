"""DECIMAL columns -> PostgreSQL's binary numeric: groups of four decimal digits around the
point."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms_server.postgres.packed import fixed, join, varied

DIGITS = 40  # on either side of the point: ten groups
GROUPS = DIGITS // 4
_NEGATIVE = 0x4000
_HEAD = np.dtype([("groups", ">i2"), ("weight", ">i2"), ("sign", ">u2"), ("scale", ">u2")])
_WEIGHTS = np.array([1000, 100, 10, 1], np.int32)


def numeric_values(array: pa.Array) -> pa.Array:
    """Of the same length; what stands for a NULL does not matter."""
    scale = array.type.scale
    digits, negative = _digits(array, scale)
    groups = digits.reshape(len(array), 2 * GROUPS, 4) @ _WEIGHTS
    there = groups != 0
    some = there.any(axis=1)
    first = np.where(some, there.argmax(axis=1), 0)
    last = np.where(some, 2 * GROUPS - 1 - there[:, ::-1].argmax(axis=1), -1)
    count = last - first + 1
    head = np.empty(len(array), _HEAD)
    head["groups"] = count
    head["weight"] = np.where(some, GROUPS - 1 - first, 0)
    head["sign"] = np.where(negative & some, _NEGATIVE, 0)
    head["scale"] = scale
    places = np.arange(2 * GROUPS)
    kept = (places >= first[:, None]) & (places <= last[:, None])
    data = groups[kept].astype(">i2").view(np.uint8)
    return join(fixed(head), varied(data, 2 * count))


def _digits(array: pa.Array, scale: int) -> tuple[np.ndarray, np.ndarray]:
    """(uint8[n, 2 * DIGITS] of each value around the point, bool[n] whether it is negative)."""
    plain = pa.decimal128(38, 0)
    whole = _unscaled(array, scale).cast(plain) if scale else array.cast(plain)
    texts = pc.fill_null(whole.cast(pa.string()), "0")
    negative = pc.starts_with(texts, "-").to_numpy(zero_copy_only=False)
    texts = pc.utf8_lpad(pc.utf8_ltrim(texts, "-"), DIGITS + scale, "0")
    texts = pc.utf8_rpad(texts, 2 * DIGITS, "0")
    data = np.frombuffer(_joined(texts), np.uint8)
    return (data - ord("0")).reshape(len(array), 2 * DIGITS), negative


def _unscaled(array: pa.Array, scale: int) -> pa.Array:
    """The same 128-bit integers, without the point."""
    kind = pa.decimal128(38, 0)
    wide = array.cast(pa.decimal128(38, scale))
    return pa.Array.from_buffers(kind, len(wide), wide.buffers(), wide.null_count, wide.offset)


def _joined(texts: pa.Array) -> bytes:
    """Texts of one length, one behind the other."""
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return b""
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return bytes(memoryview(data)[int(ends[0]) : int(ends[-1])])
