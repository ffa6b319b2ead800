"""Lists as texts: how a LIST(T) is kept, and the way from there to Arrow's lists and back.

A list is kept as one text: JSON, in one way of writing only, so two lists are equal exactly where
their texts are.  Whatever keeps, finds, joins or counts texts does so with lists.

    list       [1, 2, 3], items divided by a comma and a space; [] has none
    NULL       null                            BOOL      true, false
    INT        its digits                      DECIMAL   with all digits of its scale
    FLOAT      as CAST writes it, 0.0 for -0.0; in quotes "NaN", "Infinity", "-Infinity"
    STRING     in quotes, with \\" \\\\ \\b \\f \\n \\r \\t and \\u00xx where they must be
    BYTES      pairs of hexadecimal digits in quotes
    TIMESTAMP, INTERVAL, DATE, TIME, UUID   as CAST writes them, in quotes

Types of items are given by their SQL names; items are in their physical Arrow types (TIMESTAMP and
INTERVAL as int64 microseconds).  No Python per item but for what is rare: escaped texts, BYTES."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from dsms.lists.apart import Items, counts, cut, items, well_formed
from dsms.lists.texts import joined, made, plain_items, quoted_texts, spelled_items, written
from dsms.lists.values import EDGE, PHYSICAL, arrow_item, inexact, item_values, without

__all__ = [
    "MOST", "Items", "arrow_item", "at_edge", "canonical", "counts", "cut", "from_edge",
    "item_name", "item_of", "item_values", "items", "joined", "made", "plain_items",
    "quoted_texts", "read", "spelled_items", "well_formed", "written",
]  # a long list  # fmt: skip

MOST = 1 << 16  # items of one list
_NAME = re.compile(r"LIST\s*\((.*)\)", re.IGNORECASE | re.DOTALL)


def item_of(sql: str) -> str | None:
    """``INT`` of ``LIST(INT)``; None: it is no type of lists."""
    found = _NAME.fullmatch(sql.strip())
    return found[1].strip().upper() if found else None


def read(texts: pa.Array, sql: str) -> pa.ListArray:
    """Lists as they are kept, as Arrow's, with items in their physical type.  Raises ArrowInvalid
    for what is none of that type."""
    there = items(texts)
    values, bad = item_values(there, sql)
    if bad.any():
        raise pa.ArrowInvalid(f"no LIST({sql})")
    return _listed(there.starts, values, texts)


def at_edge(texts: pa.Array, sql: str) -> pa.ListArray:
    """Lists as they are kept, as others see them: instants and lengths have types of their own."""
    found = read(texts, sql)
    to = arrow_item(sql, edge=True)
    if found.type.value_type == to:
        return found
    found = found.cast(pa.list_(pa.timestamp("us"))) if sql == "DATE" else found
    return found.cast(pa.list_(to))


def from_edge(array: pa.Array) -> pa.Array:
    """Arrow's lists of whatever values an answer has, as texts."""
    kind = array.type.value_type
    physical = pa.int64() if pa.types.is_temporal(kind) else kind
    if pa.types.is_date(kind):
        array = array.cast(pa.list_(pa.timestamp("us")))
    lists_ = array if physical == kind else array.cast(pa.list_(physical))
    return written(lists_, item_name(kind))


def item_name(kind: pa.DataType) -> str:
    """The SQL name of items that Arrow has as such."""
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    return next(sql for sql, arrow in {**PHYSICAL, **EDGE}.items() if arrow == kind)


def _listed(starts: np.ndarray, values: pa.Array, like: pa.Array) -> pa.ListArray:
    valid = like.is_valid() if like.null_count else None
    bits = None if valid is None else pa.concat_arrays([valid]).buffers()[1]
    offsets = pa.py_buffer(starts.astype(np.int32))
    return pa.ListArray.from_buffers(
        pa.list_(values.type), len(like), [bits, offsets], children=[values]
    )


def canonical(texts: pa.Array, sql: str, exact: bool = False) -> tuple[pa.Array, np.ndarray]:
    """JSON of lists in whatever way -> (the one way; NULL where it is none of that type, bool[n]
    where that is so).  `exact`: an integer that a FLOAT does not hold exactly is none."""
    formed = well_formed(texts).fill_null(True)
    wrong = ~formed.to_numpy(zero_copy_only=False)
    if wrong.any():
        texts = without(texts, wrong)
    there = items(texts)
    values, bad = item_values(there, sql)
    if exact and sql == "FLOAT":
        bad = bad | inexact(there.texts, values)
    misfits = np.zeros(len(texts), np.bool_)
    misfits[there.rows[bad]] = True
    misfits |= np.diff(there.starts) > MOST
    found = made(there.starts, values, sql)
    lost = wrong | misfits
    if texts.null_count or lost.any():
        found = without(found, lost | texts.is_null().to_numpy(zero_copy_only=False))
    return found, lost
