"""SQL types by their names, as Arrow has them inside the engine and on the wire."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from dsms.lists import item_of
from dsms.structs import fields_of

_SIMPLE = {
    "BOOL": pa.bool_(),
    "INT": pa.int64(),
    "FLOAT": pa.float64(),
    "STRING": pa.string(),
    "BYTES": pa.binary(),
    "TIMESTAMP": pa.int64(),
    "INTERVAL": pa.int64(),
    "DATE": pa.int64(),
    "TIME": pa.int64(),
    "UUID": pa.string(),
    "NULL": pa.null(),
}
_DECIMAL = re.compile(r"DECIMAL\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?$", re.IGNORECASE)


def arrow_type(sql: str) -> pa.DataType:
    """The physical Arrow type of an SQL type name such as ``DECIMAL(10,2)``; of lists and structs
    text."""
    if found := _DECIMAL.match(sql):
        return pa.decimal128(int(found[1] or 38), int(found[2] or 0))
    nested = item_of(sql) or fields_of(sql)
    return _SIMPLE["STRING" if nested else sql.upper()]


def no_rows(names: Sequence[str], types: Sequence[str]) -> pa.RecordBatch:
    """A batch of these columns that has no rows."""
    arrays = [pa.array([], arrow_type(sql)) for sql in types]
    return pa.RecordBatch.from_arrays(arrays, list(names))
