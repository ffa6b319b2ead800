"""Items of a type: what their texts stand for."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from math import isinf
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms import typed_texts
from dsms.decimals import decimals
from dsms.instants import MAX_INSTANT, MIN_INSTANT, instants
from dsms.lengths import lengths
from dsms.lists.apart import Items

ODD_FLOATS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_TEXT = pa.string()


def arrow_item(sql: str, edge: bool = False) -> pa.DataType:
    """The physical Arrow type of items; at the `edge` instants and lengths have types of their
    own."""
    if sql.startswith("DECIMAL"):
        digits = [int(d) for d in re.findall(r"[0-9]+", sql)] or [38, 0]
        return pa.decimal128(digits[0], digits[1] if len(digits) > 1 else 0)
    if edge and sql in EDGE:
        return EDGE[sql]
    return PHYSICAL[sql]


EDGE = {"TIMESTAMP": pa.timestamp("us"), "INTERVAL": pa.duration("us"), **typed_texts.EDGE}
PHYSICAL = {
    "BOOL": pa.bool_(), "INT": pa.int64(), "FLOAT": pa.float64(), "STRING": pa.string(),
    "BYTES": pa.binary(), "TIMESTAMP": pa.int64(), "INTERVAL": pa.int64(), "NULL": pa.null(),
    "DATE": pa.int64(), "TIME": pa.int64(), "UUID": pa.string(),
}  # a table  # fmt: skip


def without(texts: pa.Array, where: np.ndarray) -> pa.Array:
    """NULL in those places."""
    return pc.if_else(pa.array(where), pa.nulls(len(texts), texts.type), texts)


def item_values(there: Items, sql: str) -> tuple[pa.Array, np.ndarray]:
    """(items in their physical type, bool: which are none)."""
    name = sql.partition("(")[0]
    quoted, null = there.quoted, there.texts.is_null().to_numpy(zero_copy_only=False)
    null &= ~quoted  # halves of characters are NULL, too
    formed = _IN_QUOTES[name](quoted) | null
    texts = there.texts if formed.all() else without(there.texts, ~formed)
    if name == "FLOAT":
        texts = _floats_out(texts, quoted)
    values = _readable(name, texts, arrow_item(sql))
    return values, ~null & values.is_null().to_numpy(zero_copy_only=False)


def inexact(texts: pa.Array, values: pa.Array) -> np.ndarray:
    """Which texts are integers that the FLOATs read from them are not."""
    whole = pc.match_substring_regex(texts, r"^-?[0-9]{16,}$").fill_null(False)
    found = np.zeros(len(texts), np.bool_)
    for at in np.flatnonzero(whole.to_numpy(zero_copy_only=False)).tolist():
        value = values[at].as_py()
        found[at] = value is not None and Decimal(texts[at].as_py()) != Decimal(value)
    return found


_IN_QUOTES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    **dict.fromkeys(("STRING", "BYTES", "TIMESTAMP", "INTERVAL"), lambda quoted: quoted),
    **dict.fromkeys(("DATE", "TIME", "UUID"), lambda quoted: quoted),
    **dict.fromkeys(("BOOL", "INT"), lambda quoted: ~quoted),
    **dict.fromkeys(("FLOAT", "DECIMAL"), lambda quoted: np.ones(len(quoted), np.bool_)),
    "NULL": lambda quoted: np.zeros(len(quoted), np.bool_),
}


def _floats_out(texts: pa.Array, quoted: np.ndarray) -> pa.Array:
    """In quotes stand those FLOATs alone that JSON has no numbers for."""
    if not quoted.any():
        return texts
    odd = pc.is_in(texts, pa.array(list(ODD_FLOATS.values()))).to_numpy(zero_copy_only=False)
    return without(texts, quoted & ~odd)


Read = Callable[[pa.Array, pa.DataType], pa.Array]


def _readable(name: str, texts: pa.Array, to: pa.DataType) -> pa.Array:
    """What the texts stand for, NULL for what stands for nothing: as a whole, or one by one."""
    try:
        return _READ[name](texts, to)
    except (pa.ArrowException, ValueError):
        one = _ONE[name]
        return pa.array([None if t is None else one(t, to) for t in texts.to_pylist()], to)


def _one_int(text: str, to: pa.DataType) -> int | None:
    whole = re.fullmatch(r"-?[0-9]{1,19}", text)
    return int(text) if whole and -(2**63) <= int(text) < 2**63 else None


def _one_decimal(text: str, to: pa.DataType) -> Decimal | None:
    try:
        value: Decimal | None = decimals(pa.array([text], _TEXT), to)[0].as_py()
    except pa.ArrowInvalid:
        return None
    return value


def _one_float(text: str, to: pa.DataType) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    if "_" in text or (isinf(value) and re.search("[0-9]", text)):
        return None
    return value + 0.0  # there is one zero


def _one_bytes(text: str, to: pa.DataType) -> bytes | None:
    pairs = re.fullmatch(r"(?:[0-9a-fA-F]{2})*", text)
    return bytes.fromhex(text) if pairs else None


def _read_bool(texts: pa.Array, to: pa.DataType) -> pa.Array:
    known = pc.is_in(texts, pa.array(["true", "false"]))
    return pc.if_else(known, pc.equal(texts, "true"), pa.scalar(None, to))


def _read_int(texts: pa.Array, to: pa.DataType) -> pa.Array:
    return texts.cast(to)


def _read_float(texts: pa.Array, to: pa.DataType) -> pa.Array:
    values = texts.cast(to)
    large = pc.and_(pc.is_inf(values), pc.match_substring_regex(texts, "[0-9]")).fill_null(False)
    bad = pc.or_(large, pc.match_substring_regex(texts, "^(true|false)$").fill_null(False))
    found = without(values, bad.to_numpy(zero_copy_only=False))
    return pc.if_else(pc.equal(found, 0.0), 0.0, found)  # there is one zero


def _read_instant(texts: pa.Array, to: pa.DataType) -> pa.Array:
    found = instants(texts)
    inside = pc.and_(pc.greater_equal(found, MIN_INSTANT), pc.less_equal(found, MAX_INSTANT))
    return pc.if_else(inside, found, pa.scalar(None, to))


def _read_bytes(texts: pa.Array, to: pa.DataType) -> pa.Array:
    return pa.array([None if t is None else _one_bytes(t, to) for t in texts.to_pylist()], to)


_READ: dict[str, Read] = {
    "BOOL": _read_bool,
    "INT": _read_int,
    "FLOAT": _read_float,
    "DECIMAL": decimals,
    "STRING": lambda texts, to: texts,
    "BYTES": _read_bytes,
    "TIMESTAMP": _read_instant,
    "INTERVAL": lambda texts, to: lengths(texts),
    "DATE": lambda texts, to: typed_texts.dates(texts),
    "TIME": lambda texts, to: typed_texts.times(texts),
    "UUID": lambda texts, to: typed_texts.uuids(texts),
    "NULL": lambda texts, to: pa.nulls(len(texts)),
}
_ONE: dict[str, Callable[[str, pa.DataType], Any]] = {
    "INT": _one_int,
    "DECIMAL": _one_decimal,
    "FLOAT": _one_float,
    "BYTES": _one_bytes,
}
