"""The columns of an archive: as JSON in its manifest, as Parquet in its files, and how they may change."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from dsms.errors import UsageError
from dsms.sql.types import Field, Kind, Schema, Type

TS, EXP, ID = "__ts", "__exp", "__id"  # insertion time, expiry from the archive (µs), arrival number
MARKS = (TS, EXP, ID)
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")


def told_of(schema: Schema) -> list[list[Any]]:
    """The columns as JSON: name, type, whether it may be NULL."""
    return [[f.name, str(f.type), f.nullable] for f in schema]


def schema_of(told: list[list[Any]]) -> Schema:
    """The columns again."""
    return tuple(Field(name, type_of(text), None, nullable) for name, text, nullable in told)


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

    Raises DS956 where a column has another type."""
    known = {f.name: f for f in old}
    for f in new:
        before = known.get(f.name)
        if before is not None and before.type != f.type:
            raise UsageError("DS956", f"column {f.name} of the archive {where} is {before.type}, not {f.type}",
                             hint="archive under another name, or move that folder away")  # fmt: skip
    names = {f.name for f in new}
    return (*new, *(Field(f.name, f.type, None, True) for f in old if f.name not in names))
