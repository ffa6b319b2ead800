"""Values to text, as the documentation of `cast` says."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.operators.expressions.arrays import blank, floats, from_bits, from_ints, ints, present
from dsms.operators.expressions.errors import CAST, ErrorCounter
from dsms.operators.expressions.node import Built
from dsms.sql.types import Kind, Type

_TEXT = pa.string()


def show(source: Type) -> Built:
    """The kernel from the type to STRING."""
    match source.kind:
        case Kind.FLOAT:
            return Built(lambda errors, x: _float(x))
        case Kind.DECIMAL:
            return Built(lambda errors, x: _decimal(x))
        case Kind.BYTES:
            return Built(_bytes, True)
        case Kind.TIMESTAMP:
            return Built(lambda errors, x: _timestamp(x))
        case Kind.INTERVAL:
            return Built(lambda errors, x: _interval(x))
    return Built(lambda errors, x: x.cast(_TEXT))


def _float(x: pa.Array) -> pa.Array:
    """Arrow writes the same digits as Python's repr, but 1 for 1.0, and has exponents in other
    places."""
    values, texts = floats(x), x.cast(_TEXT)
    size = np.abs(values)
    odd = (size != 0) & ((size < 1e-4) | (size >= 1e9)) & np.isfinite(values)
    whole = np.isfinite(values) & (values == np.floor(values)) & ~odd
    if whole.any():
        texts = pc.if_else(from_bits(whole), pc.binary_join_element_wise(texts, "", ".0"), texts)
    here = present(x)
    odd = odd if here is None else odd & here
    if not odd.any():
        return texts
    return pc.replace_with_mask(
        texts, from_bits(odd), pa.array([repr(v) for v in values[odd].tolist()], _TEXT)
    )


def _decimal(x: pa.Array) -> pa.Array:
    """Arrow writes small ones as 1E-10: those by Python."""
    texts = x.cast(_TEXT)
    short = pc.match_substring(texts, "E").fill_null(False)
    if not pc.any(short).as_py():
        return texts
    return pc.replace_with_mask(
        texts, short, pa.array([f"{v:f}" for v in x.filter(short).to_pylist()], _TEXT)
    )


def _bytes(errors: ErrorCounter, x: pa.Array) -> pa.Array:
    try:
        return x.cast(_TEXT)
    except pa.ArrowInvalid:
        bad = np.fromiter(
            (v is not None and not _is_text(v) for v in x.to_pylist()), np.bool_, len(x)
        )
        errors.add(int(bad.sum()), CAST, "these BYTES are no UTF-8 text")
        return blank(x, bad).cast(_TEXT)


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _timestamp(x: pa.Array) -> pa.Array:
    texts = x.cast(pa.timestamp("us")).cast(_TEXT)  # always six digits after the point
    return pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")


def _interval(x: pa.Array) -> pa.Array:
    values = ints(x)
    negative = values < 0
    # the smallest INT has no abs
    size = np.where(negative, -values.astype(np.uint64), values.astype(np.uint64))
    seconds, fraction = size // np.uint64(1_000_000), size % np.uint64(1_000_000)
    parts = [_digits(seconds // 3600, 2), _digits(seconds // 60 % 60, 2), _digits(seconds % 60, 2)]
    clock = pc.binary_join_element_wise(*parts, ":")
    after = pc.utf8_rtrim(pc.binary_join_element_wise(clock, _digits(fraction, 6), "."), "0")
    texts = pc.binary_join_element_wise(
        pc.if_else(pa.array(negative), "-", ""), pc.utf8_rtrim(after, "."), ""
    )
    here = present(x)
    return texts if here is None else blank(texts, ~here)


def _digits(values: np.ndarray, width: int) -> pa.Array:
    return pc.utf8_lpad(from_ints(values.astype(np.int64)).cast(_TEXT), width, "0")
