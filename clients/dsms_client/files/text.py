"""Columns of text -> columns of a stream's types, naming the values that are not of their type.

INT (also ``3.0``), DECIMAL and BOOL as usual; FLOAT as the nearest one, but integers only as exact
ones; TIMESTAMP as `dsms.instants` reads it, or a number where the unit is known; INTERVAL as
`dsms.lengths` reads it, or an integer count of microseconds; BYTES as ``\\x`` and hex digits, else
the text's UTF-8.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.errors import UsageError
from dsms.instants import MAX_INSTANT, MIN_INSTANT, instants, why_not
from dsms.lengths import lengths
from dsms_client.columns import arrow_type
from dsms_client.files.counts import NUMBER, UNITS, micros

NO_UNIT = f"a number says no unit: give --time-unit {'|'.join(UNITS)}"
_WHOLE = 2.0**53  # integers up to here are exact as FLOATs
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_INTEGER = r"^[+-]?[0-9]+$"
_GAPS = r"^([+-]?[0-9]+)\.0*$"  # an integer as pandas writes it in a column that has gaps


def convert(texts: pa.Array, sql: str, unit: str | None = None) -> tuple[pa.Array, np.ndarray]:
    """The column in the physical type of `sql`, NULL where a value is not of it, and the positions
    of those.

    `unit` is that of numbers in TIMESTAMP columns; without one no number is an instant."""
    kind = sql.partition("(")[0]
    if kind == "STRING":
        return texts, np.empty(0, np.int64)
    if kind != "BYTES":
        texts = pc.utf8_trim_whitespace(texts)
    if kind in ("TIMESTAMP", "INTERVAL"):
        array = _instants(texts, unit) if kind == "TIMESTAMP" else _lengths(texts)
        bad = pc.and_(array.is_null(), texts.is_valid()) if array.null_count else None
        return array, np.empty(0, np.int64) if bad is None else _places(bad)
    found: list[int] = []
    pieces = _convert(texts, sql, 0, found)
    array = pa.concat_arrays(pieces) if pieces else pa.array([], arrow_type(sql))
    if kind == "FLOAT" and (inexact := _inexact(texts, array)):
        found = sorted(found + inexact)
        array = _without(array, inexact)
    return array, np.array(found, np.int64)


def suspects(array: pa.Array) -> np.ndarray:
    """Where FLOATs read from text lie beyond the integers that all are exact."""
    values = array.to_numpy(zero_copy_only=False)
    return np.flatnonzero(np.abs(values) >= _WHOLE)


def _inexact(texts: pa.Array, array: pa.Array) -> list[int]:
    """Where an integer is not exact as a FLOAT, or a number too large for one."""
    places = suspects(array).tolist()
    return [i for i in places if _float_problem(texts[i].as_py(), array[i].as_py())]


def _float_problem(text: str, value: float) -> str:
    if math.isinf(value):
        return "" if _INFINITE.fullmatch(text) else "too large for FLOAT"
    inexact = re.fullmatch(_INTEGER, text) and Decimal(text) != value
    return "an integer that is not exact as a FLOAT" if inexact else ""


def _without(array: pa.Array, places: list[int]) -> pa.Array:
    """NULL in those places."""
    mask = np.zeros(len(array), np.bool_)
    mask[places] = True
    return pc.if_else(pa.array(mask), pa.scalar(None, array.type), array)


def reason(text: str, sql: str) -> str:
    """Why a text is not of its type, as far as there is more to say."""
    if sql == "FLOAT":
        why = _float_problem(text.strip(), _as_float(text))
        return f": {why}" if why else ""
    if sql != "TIMESTAMP":
        return ""
    number = pc.match_substring_regex(pa.array([text.strip()]), NUMBER)[0].as_py()
    return f": {NO_UNIT if number else why_not(text)}"


def _as_float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def no_unit(column: str, number: str) -> UsageError:
    """DS503: numbers in a file where instants should be."""
    return UsageError(
        "DS503",
        f"column {column!r}: expected TIMESTAMP, the file has numbers ({number}) whose unit is "
        "not known",
        hint="give --time-unit s, ms, us or ns: what they count since 1970",
    )


def _convert(texts: pa.Array, sql: str, first: int, bad: list[int]) -> list[pa.Array]:
    """Whole, or by halves around the values that do not convert."""
    try:
        return [_whole(texts, sql)] if len(texts) else []
    except (pa.ArrowException, ValueError):
        if len(texts) == 1:
            bad.append(first)
            return [pa.nulls(1, arrow_type(sql))]
        half = len(texts) // 2
        return _convert(texts.slice(0, half), sql, first, bad) + _convert(
            texts.slice(half), sql, first + half, bad
        )


def _whole(texts: pa.Array, sql: str) -> pa.Array:
    if sql == "BYTES":
        return _blobs(texts)
    return pc.cast(_whole_numbers(texts) if sql == "INT" else texts, arrow_type(sql))


def _whole_numbers(texts: pa.Array) -> pa.Array:
    """As Arrow reads them: without a plus sign.  Raises ValueError for 0x1F, which Arrow would
    read, too."""
    if pc.any(pc.match_substring(texts, "x", ignore_case=True)).as_py():
        raise ValueError("hexadecimal digits")
    if pc.any(pc.match_substring(texts, ".")).as_py():
        texts = pc.replace_substring_regex(texts, _GAPS, r"\1")
    plus = pc.any(pc.starts_with(texts, "+")).as_py()
    return pc.replace_substring_regex(texts, r"^\+([0-9])", r"\1") if plus else texts


def _instants(texts: pa.Array, unit: str | None) -> pa.Array:
    if unit is None:
        return instants(texts)
    counts = pc.match_substring_regex(texts, NUMBER).fill_null(False)
    if not pc.any(counts, min_count=0).as_py():
        return instants(texts)
    values = micros(texts.filter(counts), unit)
    outside = (values < MIN_INSTANT) | (values > MAX_INSTANT)
    rest = instants(pc.if_else(counts, pa.scalar(None, pa.string()), texts))
    return pc.replace_with_mask(rest, counts, pa.array(values, mask=outside))


def _lengths(texts: pa.Array) -> pa.Array:
    counts = pc.match_substring_regex(texts, _INTEGER).fill_null(False)
    if not pc.any(counts, min_count=0).as_py():
        return lengths(texts)
    rest = lengths(pc.if_else(counts, pa.scalar(None, pa.string()), texts))
    return pc.replace_with_mask(rest, counts, _convert_counts(texts.filter(counts)))


def _convert_counts(texts: pa.Array) -> pa.Array:
    pieces = _convert(texts, "INT", 0, [])
    return pa.concat_arrays(pieces)


def _places(mask: pa.Array) -> np.ndarray:
    return np.flatnonzero(mask.to_numpy(zero_copy_only=False))


def _blobs(texts: pa.Array) -> pa.Array:
    values = (
        bytes.fromhex(t[2:]) if t and t.startswith("\\x") else t and t.encode()
        for t in texts.to_pylist()
    )
    return pa.array([v if v != "" else b"" for v in values], pa.binary())
