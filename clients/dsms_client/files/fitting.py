"""Columns of Parquet and Arrow files in which single values are none of the stream's type: which
ones, so that each refuses its row and no others.  What a type takes is the server's to say
(reference, "What a column takes"); a column whose kind is not taken at all is left as it is, for
the server to refuse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from dsms.decimals import resized
from dsms.lengths import lengths
from dsms.tabular.kinds import arrow_type
from dsms_client.files.options import Options
from dsms_client.files.text import convert

_EXACT = 2.0**53  # whole floats up to here are what they were before they became floats


def is_text(kind: pa.DataType) -> bool:
    """Whether values are strings of one form or another."""
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))


def from_texts(texts: pa.Array, sql: str, options: Options) -> tuple[pa.Array, np.ndarray]:
    """(texts as values of a type that is written as text, NULL where one is none; the positions of
    those).  A length has its unit."""
    if sql != "INTERVAL":
        return convert(texts, sql, options)
    found = lengths(texts)
    wrong = pc.and_(found.is_null(), texts.is_valid())
    return found, np.flatnonzero(wrong.to_numpy(zero_copy_only=False))


def misfits(array: pa.Array, sql: str) -> np.ndarray:
    """The positions of numbers that are no values of an INT or DECIMAL."""
    kind = array.type
    if sql == "INT" and kinds.is_floating(kind):
        values = array.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False)
        return np.flatnonzero(~((values == np.floor(values)) & (np.abs(values) <= _EXACT)))
    if not (kinds.is_integer(kind) or kinds.is_decimal(kind)):
        return np.empty(0, np.int64)
    if kinds.is_decimal(kind) and kind.scale < 0:  # whose digits Arrow's casts don't count
        return np.empty(0, np.int64)
    if sql == "INT":
        return np.array(_failing(array, lambda part: part.cast(pa.int64()), 0), np.int64)
    to = arrow_type(sql)
    exact = array.cast(pa.decimal128(20, 0)) if kinds.is_integer(kind) else array
    return np.array(_failing(exact, lambda part: resized(part, to), 0), np.int64)


def _failing(array: pa.Array, make: Callable[[pa.Array], object], first: int) -> list[int]:
    """Where values can't be made, found by halves."""
    try:
        make(array)
    except (pa.ArrowException, ValueError):
        half = len(array) // 2
        if not half:
            return [first]
        left, right = array.slice(0, half), array.slice(half)
        return _failing(left, make, first) + _failing(right, make, first + half)
    return []
