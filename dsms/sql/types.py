"""SQL types and their physical (Arrow) form.

Inside the engine TIMESTAMP and INTERVAL columns are int64 microseconds (instants since the epoch in
UTC, or lengths), DATE the instant at which its day begins in UTC, TIME microseconds since midnight;
they become Arrow timestamps, durations, dates and times only at the outermost edge, and lists are
texts up to there (`dsms.lists`), as structs are (`dsms.structs`).  A UUID is its text in lower
case.  Every column may hold NULLs (Arrow validity).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from dsms import structs
from dsms.instants import MAX_INSTANT as MAX_INSTANT
from dsms.instants import MIN_INSTANT as MIN_INSTANT

FOREVER = 2**63 - 1  # an `exp` that never comes
# a `ts` before every instant (initial rows of a table, the empty answer of a global aggregate)
ALWAYS = -(2**63)
# the first of the instants at which tables change that queries read before there is time
BEFORE_ROWS = ALWAYS // 2


class Kind(Enum):
    BOOL = "BOOL"
    INT = "INT"
    FLOAT = "FLOAT"
    DECIMAL = "DECIMAL"
    STRING = "STRING"
    BYTES = "BYTES"
    TIMESTAMP = "TIMESTAMP"
    INTERVAL = "INTERVAL"
    DATE = "DATE"
    TIME = "TIME"
    UUID = "UUID"
    LIST = "LIST"
    STRUCT = "STRUCT"
    NULL = "NULL"  # the type of a bare NULL, before it takes its neighbour's


@dataclass(frozen=True, slots=True)
class Type:
    """A SQL type; `precision` and `scale` matter for DECIMAL only (1 <= precision <= 38, 0 <= scale
    <= precision), `item` for LIST: the type of what is in it, which is no LIST or STRUCT, `fields`
    for STRUCT: the names and types of its fields, which are none either."""

    kind: Kind
    precision: int = 0
    scale: int = 0
    item: Type | None = None
    fields: tuple[tuple[str, Type], ...] = ()

    def __str__(self) -> str:
        if self.kind is Kind.LIST:
            return f"LIST({self.item})"
        if self.kind is Kind.STRUCT:
            return structs.spelled(self.spelled_fields)
        return (
            f"DECIMAL({self.precision},{self.scale})"
            if self.kind is Kind.DECIMAL
            else self.kind.value
        )

    @property
    def spelled_fields(self) -> tuple[tuple[str, str], ...]:
        """The fields by their names, with the names of their types."""
        return tuple((name, str(type_)) for name, type_ in self.fields)

    @property
    def arrow(self) -> pa.DataType:
        """The physical Arrow type of a column of this type inside the engine."""
        return (
            pa.decimal128(self.precision, self.scale)
            if self.kind is Kind.DECIMAL
            else _ARROW[self.kind]
        )

    @property
    def numeric(self) -> bool:
        return self.kind in (Kind.INT, Kind.FLOAT, Kind.DECIMAL)


_ARROW = {
    Kind.BOOL: pa.bool_(),
    Kind.INT: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.BYTES: pa.binary(),
    Kind.TIMESTAMP: pa.int64(),
    Kind.INTERVAL: pa.int64(),
    Kind.DATE: pa.int64(),
    Kind.TIME: pa.int64(),
    Kind.UUID: pa.string(),
    Kind.LIST: pa.string(),
    Kind.STRUCT: pa.string(),
    Kind.NULL: pa.null(),
}

BOOL = Type(Kind.BOOL)
INT = Type(Kind.INT)
FLOAT = Type(Kind.FLOAT)
STRING = Type(Kind.STRING)
BYTES = Type(Kind.BYTES)
TIMESTAMP = Type(Kind.TIMESTAMP)
INTERVAL = Type(Kind.INTERVAL)
DATE = Type(Kind.DATE)
TIME = Type(Kind.TIME)
UUID = Type(Kind.UUID)
NULL = Type(Kind.NULL)


def decimal(precision: int, scale: int) -> Type:
    """DECIMAL(precision, scale)."""
    return Type(Kind.DECIMAL, precision, scale)


def list_of(item: Type) -> Type:
    """LIST(item)."""
    return Type(Kind.LIST, item=item)


def struct_of(fields: Iterable[tuple[str, Type]]) -> Type:
    """STRUCT(name type, ...)."""
    return Type(Kind.STRUCT, fields=tuple(fields))


def item_of(type_: Type) -> Type:
    """What is in lists of that type."""
    assert type_.item is not None
    return type_.item


# kinds whose values are kept as bytes of any length
TEXTUAL = (Kind.STRING, Kind.BYTES, Kind.UUID, Kind.LIST, Kind.STRUCT)
# kinds whose values hold others: they are equal or not, and have no order
NESTED = (Kind.LIST, Kind.STRUCT)
# kinds whose values are whole numbers of 64 bits, in their order
WHOLE = (Kind.INT, Kind.TIMESTAMP, Kind.INTERVAL, Kind.DATE, Kind.TIME)


_TEXT = re.compile(r"DECIMAL\((\d+),(\d+)\)")


def named(text: str) -> Type | None:
    """The type that prints as this text; None: there is none."""
    if found := _TEXT.fullmatch(text):
        made = decimal(int(found[1]), int(found[2]))
        return made if 1 <= made.precision <= 38 and made.scale <= made.precision else None
    if text.startswith("LIST(") and text.endswith(")"):
        item = named(text[5:-1])
        return None if item is None or item.kind in NESTED else list_of(item)
    if (fields := structs.fields_of(text)) is not None:
        made_ = [(name, named(sql)) for name, sql in fields]
        known_ = [(name, type_) for name, type_ in made_ if type_ is not None]
        return struct_of(known_) if len(known_) == len(made_) else None
    known = (BOOL, INT, FLOAT, STRING, BYTES, TIMESTAMP, INTERVAL, DATE, TIME, UUID)
    return next((type_ for type_ in known if str(type_) == text), None)


@dataclass(frozen=True, slots=True)
class Default:
    """What stands in a column that rows do not bring, as its physical type has it."""

    value: object


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a schema: its name as printed, its type, and the FROM alias it came by (None for
    computed ones)."""

    name: str
    type: Type
    qualifier: str | None = None
    nullable: bool = True
    default: Default | None = None


Schema = tuple[Field, ...]


def arrow_schema(schema: Schema) -> pa.Schema:
    """The physical Arrow schema; duplicate names are legal."""
    return pa.schema([pa.field(f.name, f.type.arrow) for f in schema])
