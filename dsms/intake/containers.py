"""Columns of lists and structs -> their texts; what they hold is converted as a column of its own
would be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from dsms import lists, structs
from dsms.instants import MAX_INSTANT, MIN_INSTANT
from dsms.intake.hints import is_text
from dsms.intake.values import shown
from dsms.sql.types import Kind, Type, item_of
from dsms.untrusted.contents import check_items
from dsms.untrusted.types import is_list

Convert = Callable[[pa.Array, Type], pa.Array]


def lists_of(a: pa.Array, t: Type, convert: Convert) -> pa.Array | None:
    """A column of lists, or of their texts; None: it is neither.  Raises ValueError."""
    if is_text(a.type):
        return _json(a.cast(pa.string()), t)
    if not is_list(a.type):
        return None
    item = item_of(t)
    count = pc.list_value_length(a).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    if len(count) and count.max() > lists.MOST:
        row = int(np.argmax(count))
        raise ValueError(f"{count[row]} items in row {row}: {lists.MOST} are the most")
    items = a.flatten()
    check_items(items)
    values = convert(items, item) if len(items) else pa.array([], item.arrow)
    if item.kind is Kind.TIMESTAMP:
        _within_years(values)
    found = lists.made(np.concatenate([[0], np.cumsum(count)]), values, str(item))
    return pc.if_else(a.is_valid(), found, pa.nulls(len(a), pa.string())) if a.null_count else found


def structs_of(a: pa.Array, t: Type, convert: Convert) -> pa.Array | None:
    """A column of structs, or of their texts; None: it is neither.  Raises ValueError."""
    if is_text(a.type):
        found, bad = structs.canonical(a.cast(pa.string()), t.spelled_fields)
        _none_bad(a, bad, "a struct is written " + structs.example(t.spelled_fields))
        return found
    if not kinds.is_struct(a.type):
        return None
    given = _by_field(a, t)
    columns = []
    for name, of in t.fields:
        part = given.get(name)
        column = pa.nulls(len(a), of.arrow) if part is None else convert(part, of)
        if of.kind is Kind.TIMESTAMP:
            _within_years(column)
        columns.append(column)
    return structs.made(columns, t.spelled_fields, a.is_valid() if a.null_count else None)


def _by_field(a: pa.StructArray, t: Type) -> dict[str, pa.Array]:
    """Columns by the names of fields, which are matched as they are spelled, else in any case.
    Raises ValueError for others."""
    folded = {name.casefold(): name for name, _ in t.fields}
    found: dict[str, pa.Array] = {}
    for field, column in zip(a.type, a.flatten(), strict=True):
        name = folded.get(field.name.casefold())
        if name is None or name in found:
            why = "which the type does not have" if name is None else "twice"
            raise ValueError(f"a field {shown(field.name)}, {why}")
        found[name] = column
    return found


def _json(texts: pa.Array, t: Type) -> pa.Array:
    found, bad = lists.canonical(texts, str(t.item), exact=True)
    _none_bad(texts, bad, "a list is written [1, 2, 3]")
    return found


def _none_bad(texts: pa.Array, bad: np.ndarray, why: str) -> None:
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(f"str {shown(texts[row].as_py())} in row {row}: {why}")


def _within_years(instants_: pa.Array) -> None:
    low, high = pc.min_max(instants_).values()
    if low.is_valid and (low.as_py() < MIN_INSTANT or high.as_py() > MAX_INSTANT):
        raise ValueError("an instant is outside the years 0001-9999")
