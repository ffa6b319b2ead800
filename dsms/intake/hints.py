"""What to do where a column can't be taken for its type."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as kinds

from dsms.sql.types import Kind, Type


def is_text(t: pa.DataType) -> bool:
    """Whether values are strings of one form or another."""
    return bool(kinds.is_string(t) or kinds.is_large_string(t) or kinds.is_string_view(t))


def hint_for(got: pa.DataType, wanted: Type) -> str | None:
    """What to do where a column of the one type can't be the other."""
    if kinds.is_run_end_encoded(got):
        got = got.value_type
    if kinds.is_floating(got):
        return _FLOAT_HINTS.get(wanted.kind)
    if kinds.is_decimal(got) and wanted.kind is Kind.FLOAT:
        return "convert the column to float64 before it is sent, or declare it DECIMAL"
    if is_text(got) and wanted.kind in (Kind.BOOL, Kind.INT, Kind.FLOAT):
        return f"text is not taken for {wanted}: convert the column before it is sent"
    return None


_FLOAT_HINTS = {
    Kind.DECIMAL: "binary floats are not exact: send decimals, integers or text",
    Kind.INT: "round the column before it is sent (in pandas .round().astype('Int64') keeps its "
    "gaps), or declare it FLOAT",
    Kind.TIMESTAMP: "a number of seconds has no unit here: send timestamps, or integers of "
    "microseconds",
    Kind.INTERVAL: "a number has no unit here: send durations, or integers of microseconds",
}
