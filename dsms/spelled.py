"""Values as texts, as CAST to STRING writes them: of expressions, and of the items of lists.

FLOATs are as Python's repr has them, DECIMALs have all digits of their scale, instants and lengths
come as int64 microseconds.  NULL stays NULL."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_TEXT = pa.string()


def floats(x: pa.Array) -> pa.Array:
    """float64[n] as STRING[n].  Arrow writes the same digits as Python's repr, but 1 for 1.0, and
    has exponents in other places."""
    values, texts = _values(x, np.float64), x.cast(_TEXT)
    size = np.abs(values)
    odd = (size != 0) & ((size < 1e-4) | (size >= 1e9)) & np.isfinite(values)
    whole = np.isfinite(values) & (values == np.floor(values)) & ~odd
    if whole.any():
        texts = pc.if_else(pa.array(whole), pc.binary_join_element_wise(texts, "", ".0"), texts)
    if x.null_count:
        odd = odd & x.is_valid().to_numpy(zero_copy_only=False)
    if not odd.any():
        return texts
    return pc.replace_with_mask(
        texts, pa.array(odd), pa.array([repr(v) for v in values[odd].tolist()], _TEXT)
    )


def decimals(x: pa.Array) -> pa.Array:
    """DECIMAL[n] as STRING[n].  Arrow writes small ones as 1E-10: those by Python."""
    texts = x.cast(_TEXT)
    short = pc.match_substring(texts, "E").fill_null(False)
    if not pc.any(short).as_py():
        return texts
    return pc.replace_with_mask(
        texts, short, pa.array([f"{v:f}" for v in x.filter(short).to_pylist()], _TEXT)
    )


def instants(x: pa.Array) -> pa.Array:
    """int64[n] microseconds since the epoch as STRING[n]."""
    texts = x.cast(pa.timestamp("us")).cast(_TEXT)  # always six digits after the point
    return pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")


def dates(x: pa.Array) -> pa.Array:
    """int64[n] microseconds since the epoch, each a midnight, as STRING[n]."""
    return x.cast(pa.timestamp("us")).cast(pa.date32()).cast(_TEXT)


def times(x: pa.Array) -> pa.Array:
    """int64[n] microseconds since midnight as STRING[n]."""
    texts = x.cast(pa.time64("us")).cast(_TEXT)  # always six digits after the point
    return pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")


def lengths(x: pa.Array) -> pa.Array:
    """int64[n] microseconds as STRING[n], hours first."""
    values = _values(x, np.int64)
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
    return pc.if_else(x.is_valid(), texts, pa.nulls(len(x), _TEXT)) if x.null_count else texts


def _values(x: pa.Array, dtype: type) -> np.ndarray:
    """The 8-byte values, arbitrary where NULL; no copy."""
    if not len(x):
        return np.empty(0, dtype)
    return np.frombuffer(x.buffers()[1], dtype, len(x), x.offset * 8)


def _digits(values: np.ndarray, width: int) -> pa.Array:
    return pc.utf8_lpad(pa.array(values.astype(np.int64)).cast(_TEXT), width, "0")
