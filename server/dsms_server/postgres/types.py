"""Types of columns as PostgreSQL numbers them (OIDs of its catalog), by their Arrow types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dsms.tabular.kinds import no_rows
from dsms.tabular.tables import to_edge
from dsms_server.postgres.codec import Shown


@dataclass(frozen=True, slots=True)
class PgType:
    """`oid` and name of a type, bytes of its binary values (-1: any), and the OID of arrays of
    it."""

    oid: int
    name: str
    size: int
    array: int


BOOL = PgType(16, "bool", 1, 1000)
BYTEA = PgType(17, "bytea", -1, 1001)
INT8 = PgType(20, "int8", 8, 1016)
INT2 = PgType(21, "int2", 2, 1005)
INT4 = PgType(23, "int4", 4, 1007)
TEXT = PgType(25, "text", -1, 1009)
OID = PgType(26, "oid", 4, 1028)  # in lists of the catalog, whose numbers are uint32
JSON = PgType(114, "json", -1, 199)
FLOAT8 = PgType(701, "float8", 8, 1022)
DATE = PgType(1082, "date", 4, 1182)
TIME = PgType(1083, "time", 8, 1183)
TIMESTAMPTZ = PgType(1184, "timestamptz", 8, 1185)
INTERVAL = PgType(1186, "interval", 16, 1187)
NUMERIC = PgType(1700, "numeric", -1, 1231)
UUID = PgType(2950, "uuid", 16, 2951)
ALL = (BOOL, BYTEA, INT8, INT2, INT4, TEXT, JSON, FLOAT8, DATE, TIME, TIMESTAMPTZ, INTERVAL,
       NUMERIC, UUID)  # a table  # fmt: skip
BY_OID = {one.oid: one for one in ALL}
BY_ARRAY = {one.array: one for one in (*ALL, OID)}

# what a value given for a parameter of another type is read as
ALIASES = {
    18: TEXT,  # "char"
    19: TEXT,  # name
    26: OID,
    700: PgType(700, "float4", 4, 1021),
    705: TEXT,  # unknown
    1042: TEXT,  # bpchar
    1043: TEXT,  # varchar
    1114: PgType(1114, "timestamp", 8, 1115),
    3802: JSON,  # jsonb
}
# how the types of the language are written, for parameters whose type the statement tells
SQL_NAMES = {
    "BOOL": BOOL, "INT": INT8, "FLOAT": FLOAT8, "DECIMAL": NUMERIC, "STRING": TEXT,
    "BYTES": BYTEA, "TIMESTAMP": TIMESTAMPTZ, "INTERVAL": INTERVAL, "DATE": DATE, "TIME": TIME,
    "UUID": UUID,
}  # a table  # fmt: skip


def of_arrow(kind: pa.DataType) -> PgType:
    """The type of a column at the edge; what has none of its own is text."""
    found = next((pg for fits, pg in _KINDS if fits(kind)), None)
    if found is None and pa.types.is_integer(kind):
        return INT8
    return found or TEXT


_KINDS = (
    (pa.types.is_boolean, BOOL),
    (pa.types.is_int16, INT2),
    (pa.types.is_int32, INT4),
    (pa.types.is_uint32, OID),
    (pa.types.is_floating, FLOAT8),
    (pa.types.is_decimal, NUMERIC),
    (pa.types.is_binary, BYTEA),
    (pa.types.is_large_binary, BYTEA),
    (pa.types.is_timestamp, TIMESTAMPTZ),
    (pa.types.is_duration, INTERVAL),
    (pa.types.is_date32, DATE),
    (pa.types.is_time64, TIME),
    (lambda kind: pa.types.is_fixed_size_binary(kind) and kind.byte_width == 16, UUID),
    (lambda kind: isinstance(kind, pa.UuidType), UUID),
    (pa.types.is_struct, JSON),
)


def item_of(kind: pa.DataType) -> pa.DataType | None:
    """What is in lists of that type; None: it is none of lists."""
    listed = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return kind.value_type if listed else None


def shown(schema: pa.Schema) -> tuple[Shown, ...]:
    """The columns of a table at the edge, as RowDescription has them."""
    return tuple(_column(field.name, field.type) for field in schema)


def _column(name: str, kind: pa.DataType) -> Shown:
    item = item_of(kind)
    if item is not None:
        return Shown(name, of_arrow(item).array, -1)
    pg = of_arrow(kind)
    modifier = ((kind.precision << 16) | kind.scale) + 4 if pg is NUMERIC else -1
    return Shown(name, pg.oid, pg.size, modifier)


def at_edge(batch: pa.RecordBatch, types: Sequence[str]) -> pa.Table:
    """The rows of an answer, as others see them."""
    return to_edge(batch, types)


def instant_text(at: int | None) -> str:
    """``2026-01-31T10:00:00.000000Z``; nothing for none."""
    return "" if at is None else f"{np.datetime64(at, 'us')}Z"


def edge_schema(names: Sequence[str], types: Sequence[str]) -> pa.Schema:
    """Of columns of these SQL types, as their answers will have it."""
    return to_edge(no_rows(names, types), types).schema
