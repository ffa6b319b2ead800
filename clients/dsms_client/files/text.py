"""Columns of text -> columns of a stream's types, naming the values that are not of their type.

INT, FLOAT, DECIMAL and BOOL as usual; TIMESTAMP as ISO 8601 (with a zone, or UTC) or as an integer count of
microseconds; INTERVAL as an integer count of microseconds; BYTES as ``\\x`` and hex digits, else the text's UTF-8.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms_client.columns import arrow_type

_INTEGER = r"^[+-]?\d+$"
_ZONED = r"(?:Z|[+-]\d\d(?::?\d\d)?)$"
_PLAIN = pa.timestamp("us")


def convert(texts: pa.Array, sql: str) -> tuple[pa.Array, np.ndarray]:
    """The column in the physical type of `sql`, NULL where a value is not of it, and the positions of those."""
    kind = sql.partition("(")[0]
    if kind == "STRING":
        return texts, np.empty(0, np.int64)
    if kind != "BYTES":
        texts = pc.utf8_trim_whitespace(texts)
    bad: list[int] = []
    pieces = _convert(texts, sql, 0, bad)
    return pa.concat_arrays(pieces) if pieces else pa.array([], arrow_type(sql)), np.array(bad, np.int64)


def _convert(texts: pa.Array, sql: str, first: int, bad: list[int]) -> list[pa.Array]:
    """Whole, or by halves around the values that do not convert."""
    try:
        return [_whole(texts, sql)] if len(texts) else []
    except (pa.ArrowException, ValueError):
        if len(texts) == 1:
            bad.append(first)
            return [pa.nulls(1, arrow_type(sql))]
        half = len(texts) // 2
        return _convert(texts.slice(0, half), sql, first, bad) + _convert(texts.slice(half), sql, first + half, bad)


def _whole(texts: pa.Array, sql: str) -> pa.Array:
    kind = sql.partition("(")[0]
    if kind == "TIMESTAMP":
        return _instants(texts)
    if kind == "BYTES":
        return _blobs(texts)
    if kind in ("INT", "INTERVAL"):
        texts = _whole_numbers(texts)
    return pc.cast(texts, arrow_type(sql))


def _whole_numbers(texts: pa.Array) -> pa.Array:
    """As Arrow reads them: without a plus sign.  Raises ValueError for 0x1F, which Arrow would read, too."""
    if pc.any(pc.match_substring(texts, "x", ignore_case=True)).as_py():
        raise ValueError("hexadecimal digits")
    plus = pc.any(pc.starts_with(texts, "+")).as_py()
    return pc.replace_substring_regex(texts, r"^\+([0-9])", r"\1") if plus else texts


def _instants(texts: pa.Array) -> pa.Array:
    try:
        return pc.cast(pc.cast(texts, _PLAIN), pa.int64())
    except pa.ArrowInvalid:
        pass  # integers or zones among them
    known = texts.is_valid().to_numpy(zero_copy_only=False)
    whole = _matches(texts, _INTEGER)
    zoned = _matches(texts, _ZONED) & _matches(texts, ":") & ~whole
    out = np.zeros(len(texts), np.int64)
    for mask, kind in ((whole, pa.int64()), (zoned, pa.timestamp("us", "UTC")), (known & ~whole & ~zoned, _PLAIN)):
        where = np.flatnonzero(mask)
        if len(where):
            out[where] = pc.cast(pc.cast(texts.take(pa.array(where)), kind), pa.int64()).to_numpy()
    return pa.array(out, mask=~known)


def _matches(texts: pa.Array, pattern: str) -> np.ndarray:
    found = pc.fill_null(pc.match_substring_regex(texts, pattern), False)
    return found.to_numpy(zero_copy_only=False)


def _blobs(texts: pa.Array) -> pa.Array:
    values = (bytes.fromhex(t[2:]) if t and t.startswith("\\x") else t and t.encode() for t in texts.to_pylist())
    return pa.array([v if v != "" else b"" for v in values], pa.binary())
