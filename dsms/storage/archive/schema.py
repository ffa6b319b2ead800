"""The columns of an archive: as JSON in its manifest, as Parquet in its files, and how they may
change."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dsms.errors import UsageError
from dsms.lists import item_of
from dsms.sql.types import ALWAYS, Default, Field, Kind, Schema, Type, list_of, struct_of
from dsms.structs import fields_of
from dsms.typed_texts import from_edge, to_edge

# insertion time, expiry from the archive (µs), arrival number
TS, EXP, ID = "__ts", "__exp", "__id"
MARKS = (TS, EXP, ID)
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")


@dataclass(frozen=True, slots=True)
class Filled(Default):
    """What files do not say of a column.

    value, upto  the default of one that came when everything up to that instant had landed: rows
                 up to then lie in files that do not have it, or have NULL there
    was          other names under which files may have it"""

    upto: int = ALWAYS
    was: tuple[str, ...] = ()


def names_of(field: Field) -> tuple[str, ...]:
    """All names by which files may have the column; its own is the first."""
    return (field.name, *(field.default.was if isinstance(field.default, Filled) else ()))


def renamed(field: Field, to: str) -> Field:
    """The column under another name."""
    value, upto = None, ALWAYS
    if isinstance(field.default, Filled):
        value, upto = field.default.value, field.default.upto
    was = tuple(name for name in names_of(field) if name != to)
    return replace(field, name=to, default=Filled(value, upto, was))


def recalled(old: Schema, new: Schema) -> Schema:
    """The columns of an archive, called as they are now: by one of the names that files have."""
    there, wanted = {f.name for f in old}, {f.name for f in new}
    found = []
    for f in old:
        names = [n for n in names_of(f) if n in wanted and (n == f.name or n not in there)]
        found.append(f if f.name in wanted or not names else renamed(f, names[0]))
    return tuple(found)


def in_files(schema: Schema) -> Schema:
    """The columns by all names that they may have in files."""
    others = (Field(n, f.type) for f in schema for n in names_of(f)[1:])
    return (*schema, *others)


def schema_record(schema: Schema) -> list[list[Any]]:
    """The columns as JSON: name, type, whether it may be NULL; default, and up to when."""
    return [[f.name, str(f.type), f.nullable, *_filled_record(f)] for f in schema]


def _filled_record(field: Field) -> list[Any]:
    match field.default:
        case Filled(value, upto, was):
            return [told_value(value), upto, list(was)]
    return []


def schema_of(record: list[list[Any]]) -> Schema:
    """The columns again."""
    return tuple(_field(*column) for column in record)


def _field(name: str, text: str, nullable: bool, *filled: Any) -> Field:
    default = None
    if filled:
        value, upto, *was = filled
        default = Filled(value_of(value), int(upto), tuple(*was))
    return Field(name, type_of(text), None, nullable, default)


def told_value(value: Any) -> Any:
    """A value as JSON can say it."""
    match value:
        case bytes():
            return {"hex": value.hex()}
        case Decimal():
            return {"decimal": str(value)}
    return value


def value_of(value: Any) -> Any:
    """The value again."""
    match value:
        case {"hex": text}:
            return bytes.fromhex(text)
        case {"decimal": text}:
            return Decimal(text)
    return value


def filled(field: Field, rows: pa.Table | pa.RecordBatch) -> pa.ChunkedArray | pa.Array:
    """A column of an archive's rows, read by all its names and with `__ts`, as it is meant: NULL of
    before the column came is its default."""
    values, ts = rows[field.name], rows[TS]
    match field.default:
        case Filled(value, upto):
            values = pc.coalesce(*(rows[name] for name in names_of(field)))
            default = stored(pa.array([value], field.type.arrow), field.type)[0]
            lacks = pc.and_(pc.is_null(values), pc.less_equal(ts, upto))
            return pc.if_else(lacks, default, values)
    return values


def type_of(text: str) -> Type:
    """A type by its SQL name."""
    if (fields := fields_of(text)) is not None:
        return struct_of((name, type_of(sql)) for name, sql in fields)
    found = _DECIMAL.fullmatch(text)
    if found:
        return Type(Kind.DECIMAL, int(found[1]), int(found[2]))
    item = item_of(text)
    return Type(Kind(text)) if item is None else list_of(type_of(item))


def stored_type(type_: Type) -> pa.DataType:
    """What a column is in Parquet: TIMESTAMP and DATE are these for everybody; INTERVAL and TIME
    count microseconds (Spark has no times of a day), LIST, STRUCT and UUID are their texts."""
    match type_.kind:
        case Kind.TIMESTAMP:
            return pa.timestamp("us", "UTC")
        case Kind.DATE:
            return pa.date32()
    return type_.arrow


def stored(values: Any, type_: Type) -> Any:
    """A physical column as it is in Parquet."""
    if type_.kind is Kind.DATE:
        return to_edge(values, "DATE")
    to = stored_type(type_)
    return values if values.type == to else values.cast(to)


def kept(values: Any, type_: Type) -> Any:
    """The way back."""
    return from_edge(values) if type_.kind is Kind.DATE else values.cast(type_.arrow)


def stored_schema(schema: Schema) -> pa.Schema:
    """The Parquet columns: the user's, then the marks."""
    fields = [pa.field(f.name, stored_type(f.type)) for f in schema]
    return pa.schema([*fields, *(pa.field(name, pa.int64(), False) for name in MARKS)])


def merged(old: Schema, new: Schema, where: str) -> Schema:
    """The columns of an archive whose declaration has changed: old ones stay, new ones are added.

    Raises DS956 where columns have another type, naming all of them."""
    old = recalled(old, new)
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
    kept = (Field(f.name, f.type, None, True, f.default) for f in old if f.name not in names)
    return (*(_with_default(f, known.get(f.name)) for f in new), *kept)


def _with_default(field: Field, before: Field | None) -> Field:
    """What rows leave out is no concern of the archive; what its files lack is."""
    if isinstance(field.default, Filled):
        return field
    return replace(field, default=None if before is None else before.default)


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
