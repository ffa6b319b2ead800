"""The columns of an archive: as JSON in its manifest, as Parquet in its files, and how they may
change."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from dsms.errors import UsageError
from dsms.sql.types import Field, Kind, Schema, Type

# insertion time, expiry from the archive (µs), arrival number
TS, EXP, ID = "__ts", "__exp", "__id"
MARKS = (TS, EXP, ID)
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")


def schema_record(schema: Schema) -> list[list[Any]]:
    """The columns as JSON: name, type, whether it may be NULL."""
    return [[f.name, str(f.type), f.nullable] for f in schema]


def schema_of(record: list[list[Any]]) -> Schema:
    """The columns again."""
    return tuple(Field(name, type_of(text), None, nullable) for name, text, nullable in record)


def type_of(text: str) -> Type:
    """A type by its SQL name."""
    found = _DECIMAL.fullmatch(text)
    if found:
        return Type(Kind.DECIMAL, int(found[1]), int(found[2]))
    return Type(Kind(text))


def stored_type(type_: Type) -> pa.DataType:
    """What a column is in Parquet: TIMESTAMP is one for everybody, INTERVAL counts microseconds."""
    return pa.timestamp("us", "UTC") if type_.kind is Kind.TIMESTAMP else type_.arrow


def stored_schema(schema: Schema) -> pa.Schema:
    """The Parquet columns: the user's, then the marks."""
    fields = [pa.field(f.name, stored_type(f.type)) for f in schema]
    return pa.schema([*fields, *(pa.field(name, pa.int64(), False) for name in MARKS)])


def merged(old: Schema, new: Schema, where: str) -> Schema:
    """The columns of an archive whose declaration has changed: old ones stay, new ones are added.

    Raises DS956 where columns have another type, naming all of them."""
    known = {f.name: f for f in old}
    changed = [
        (f.name, known[f.name].type, f.type)
        for f in new
        if f.name in known and known[f.name].type != f.type
    ]
    if changed:
        what = "; ".join(
            f"column {name} of the archive {where} is {was}, not {is_}"
            for name, was, is_ in changed
        )
        raise UsageError("DS956", what, hint="archive under another name, or move that folder away")
    names = {f.name for f in new}
    return (*new, *(Field(f.name, f.type, None, True) for f in old if f.name not in names))


def unlike(found: pa.Schema, schema: Schema) -> str | None:
    """What of a file's columns does not fit the archive's, as a sentence; None: they fit."""
    for field in stored_schema(schema):
        places = found.get_all_field_indices(field.name)
        if len(places) > 1:
            return f"column {field.name} is there twice"
        if not places:
            if field.name in MARKS:
                return f"column {field.name} is missing"
            continue
        type_ = found.field(places[0]).type
        if not _same(type_, field.type):
            return f"column {field.name} is {type_}, not {field.type}"
    return None


def _same(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Parquet keeps both alike (Arrow has more than one type for text and bytes)."""
    if pa.types.is_large_string(found) or pa.types.is_string_view(found):
        found = pa.string()
    if pa.types.is_large_binary(found) or pa.types.is_binary_view(found):
        found = pa.binary()
    if pa.types.is_decimal(found) and pa.types.is_decimal(wanted):
        return (found.precision, found.scale) == (wanted.precision, wanted.scale)
    if pa.types.is_timestamp(found) and pa.types.is_timestamp(wanted):
        return found.unit == wanted.unit and (found.tz is None) == (wanted.tz is None)
    return found == wanted
