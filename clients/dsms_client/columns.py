"""Rows and columns of plain values <-> Arrow, a column at a time (a per-value loop only words an error).

Physical Arrow types: TIMESTAMP and INTERVAL are int64 microseconds, DECIMAL is decimal128, BYTES is binary.  On the
wire a DECIMAL is text, BYTES is bin and NULL is nil.  At the edge (`to_edge`) TIMESTAMP becomes ``timestamp[us]`` (UTC,
naive) and INTERVAL ``duration[us]``, which is what DataFrames want.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.errors import UsageError

_SIMPLE = {
    "BOOL": pa.bool_(), "INT": pa.int64(), "FLOAT": pa.float64(), "STRING": pa.string(), "BYTES": pa.binary(),
    "TIMESTAMP": pa.int64(), "INTERVAL": pa.int64(), "NULL": pa.null(),
}
_EDGE = {"TIMESTAMP": pa.timestamp("us"), "INTERVAL": pa.duration("us")}
_DECIMAL = re.compile(r"DECIMAL\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?$", re.IGNORECASE)


def arrow_type(sql: str) -> pa.DataType:
    """The physical Arrow type of an SQL type name such as ``DECIMAL(10,2)``."""
    if found := _DECIMAL.match(sql):
        return pa.decimal128(int(found[1] or 38), int(found[2] or 0))
    return _SIMPLE[sql.upper()]


def schema_of(names: Sequence[str], types: Sequence[str]) -> pa.Schema:
    return pa.schema([pa.field(n, arrow_type(t)) for n, t in zip(names, types, strict=True)])


# what a wire value of each type may be; Arrow alone is too kind (it takes 1.5 for an INT and drops the half)
_ACCEPTS: dict[str, frozenset[type]] = {
    "BOOL": frozenset({bool}), "INT": frozenset({int}), "FLOAT": frozenset({float, int}), "STRING": frozenset({str}),
    "BYTES": frozenset({bytes}), "TIMESTAMP": frozenset({int}), "INTERVAL": frozenset({int}), "NULL": frozenset(),
    "DECIMAL": frozenset({str, int}),
}
_BAD = (pa.ArrowException, OverflowError, TypeError, ValueError)


def to_array(values: Sequence[Any], sql: str, name: str, first: int = 0) -> pa.Array:
    """Plain wire values of one column as an Arrow array; raises DS501 that names the column and the first bad value.

    `first` is the number of the first value's row in the frame, for the message.
    """
    kinds = set(map(type, values)) - {type(None)}
    if kinds <= _ACCEPTS[sql.partition("(")[0].strip().upper()]:
        try:
            return _convert(values, arrow_type(sql), kinds)
        except _BAD:
            pass
    raise _blame(values, sql, name, first)


def _convert(values: Sequence[Any], kind: pa.DataType, kinds: set[type]) -> pa.Array:
    if pa.types.is_decimal(kind):
        texts = values if kinds <= {str} else [None if v is None else str(v) for v in values]
        return pc.cast(pa.array(texts, pa.string()), kind)
    if pa.types.is_floating(kind) and int in kinds:  # Arrow refuses integers a double cannot hold exactly
        values = [None if v is None else float(v) for v in values]
    return pa.array(values, kind)


def _blame(values: Sequence[Any], sql: str, name: str, first: int) -> UsageError:
    accepts = _ACCEPTS[sql.partition("(")[0].strip().upper()]
    for row, value in enumerate(values, first):
        if value is None:
            continue
        try:
            if type(value) not in accepts:
                raise TypeError
            _convert([value], arrow_type(sql), {type(value)})
        except _BAD:
            shown = repr(value) if len(repr(value)) <= 60 else repr(value)[:57] + "..."
            return UsageError("DS501", f"row {row}: column {name} is {sql}, {shown} ({type(value).__name__}) is not",
                              hint=_HINTS.get(sql.partition("(")[0].upper()))
    return UsageError("DS501", f"column {name} is {sql}, and its values cannot be read as that")


_HINTS = {
    "TIMESTAMP": "an instant is an integer count of microseconds since the epoch, UTC",
    "INTERVAL": "a duration is an integer count of microseconds",
    "BYTES": "send msgpack bin",
    "DECIMAL": "send text such as '12.50' that fits the declared digits",
}


def rows_to_batch(
    rows: Sequence[Sequence[Any]], names: Sequence[str], types: Sequence[str], first: int = 0
) -> pa.RecordBatch:
    """Lists in column order -> a batch with the physical types.  Raises DS501 / DS502."""
    if not rows:
        return pa.RecordBatch.from_arrays([pa.array([], arrow_type(t)) for t in types], list(names))
    try:
        columns = list(zip(*rows, strict=True))
    except (TypeError, ValueError):
        columns = []
    if len(columns) != len(names):
        raise _ragged(rows, names, first)
    arrays = [to_array(c, t, n, first) for c, t, n in zip(columns, types, names, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, list(names))


def _ragged(rows: Sequence[Any], names: Sequence[str], first: int) -> UsageError:
    for at, row in enumerate(rows, first):
        if not isinstance(row, (list, tuple)):
            return UsageError("DS502", f"row {at} is {type(row).__name__}, a row is a list of {len(names)} values")
        if len(row) != len(names):
            return UsageError("DS502", f"row {at} has {len(row)} values, the stream has {len(names)} columns",
                              hint="in order: " + ", ".join(names))
    return UsageError("DS502", "the rows differ in length")


def columns_to_batch(columns: dict[str, Any], names: Sequence[str], types: Sequence[str]) -> pa.RecordBatch:
    """A map of name -> list, in any order and case, every column of the stream present.  Raises DS501 / DS503."""
    order = match_names(list(columns), names)
    given = list(columns.values())
    lists = [given[i] for i in order]
    for name, values in zip(names, lists, strict=True):
        if not isinstance(values, (list, tuple)):
            raise UsageError("DS503", f"column {name} must be a list of values, not {type(values).__name__}")
    if len({len(v) for v in lists}) > 1:
        sizes = ", ".join(f"{n} {len(v)}" for n, v in zip(names, lists, strict=True))
        raise UsageError("DS503", f"the columns differ in length: {sizes}")
    arrays = [to_array(v, t, n) for v, t, n in zip(lists, types, names, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, list(names))


def match_names(given: Sequence[str], names: Sequence[str]) -> list[int]:
    """For each declared name, the position of the given column that means it.  Raises DS503."""
    if list(given) == list(names):
        return list(range(len(names)))
    exact = {g: i for i, g in enumerate(given)}
    folded = {g.lower(): i for i, g in enumerate(given)}
    order = [exact.get(n, folded.get(n.lower(), -1)) for n in names]
    missing = [n for n, i in zip(names, order, strict=True) if i < 0]
    extra = [g for i, g in enumerate(given) if i not in order]
    if missing or extra:
        parts = [f"{what} {', '.join(some)}" for what, some in (("missing", missing), ("not known", extra)) if some]
        raise UsageError("DS503", f"the columns do not fit the stream: {'; '.join(parts)}",
                         hint="it has " + ", ".join(names))
    return order


def fit(batch: pa.RecordBatch, names: Sequence[str], types: Sequence[str]) -> pa.RecordBatch:
    """An Arrow batch brought to the stream's names, order and physical types.  Raises DS501 / DS503."""
    order = match_names(batch.schema.names, names)
    arrays = [_cast(batch.column(i), t, n) for i, t, n in zip(order, types, names, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, list(names))


def _cast(array: pa.Array, sql: str, name: str) -> pa.Array:
    target = arrow_type(sql)
    if array.type == target:
        return array
    given = array.type
    try:
        if pa.types.is_dictionary(given):
            return _cast(array.cast(given.value_type), sql, name)
        if sql.upper() in _EDGE and pa.types.is_temporal(given):
            return array.cast(_edge_type(sql, given), safe=False).cast(target)
        if pa.types.is_integer(given) and pa.types.is_decimal(target):
            return array.cast(pa.string()).cast(target)  # Arrow wants room for all 19 digits otherwise
        if _same_family(given, target):
            return array.cast(target)
    except pa.ArrowException as problem:
        raise UsageError("DS501", f"column {name} is {sql}: {problem}") from None
    raise UsageError("DS501", f"column {name} is {sql}, the data sent is Arrow {given}")


def _edge_type(sql: str, given: pa.DataType) -> pa.DataType:
    zone = given.tz if pa.types.is_timestamp(given) else None
    return pa.timestamp("us", tz=zone) if sql.upper() == "TIMESTAMP" else pa.duration("us")


def _same_family(given: pa.DataType, target: pa.DataType) -> bool:
    """Casts that keep the meaning: numbers to wider numbers, text to text, anything all-NULL."""
    if pa.types.is_null(given):
        return True
    if pa.types.is_integer(target):
        return pa.types.is_integer(given)
    if pa.types.is_floating(target) or pa.types.is_decimal(target):
        return pa.types.is_integer(given) or pa.types.is_floating(given) or pa.types.is_decimal(given)
    text = {"large_string", "string", "string_view"}
    blob = {"large_binary", "binary", "binary_view"}
    return any(str(given) in names and str(target) in names for names in (text, blob))


def to_values(array: pa.Array) -> list[Any]:
    """An Arrow array as plain wire values."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return to_values(array.cast(kind.value_type))
    if pa.types.is_decimal(kind):
        return to_values(array.cast(pa.string()))
    if pa.types.is_temporal(kind):
        return to_values(array.cast(pa.int64()))
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return array.to_pylist() if pa.types.is_boolean(kind) else array.to_numpy(zero_copy_only=False).tolist()
    if not array.null_count:
        return array.to_numpy(zero_copy_only=False).tolist()
    values = array.fill_null(0).to_numpy(zero_copy_only=False).astype(object)
    values[array.is_null().to_numpy(zero_copy_only=False).astype(np.bool_)] = None
    return values.tolist()


def batch_to_rows(batch: pa.RecordBatch | pa.Table) -> list[tuple[Any, ...]]:
    """A batch as rows of wire values."""
    if batch.num_columns == 0:
        return [()] * batch.num_rows
    return list(zip(*(to_values(_whole(c)) for c in batch.columns), strict=True))


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def to_edge(batch: pa.RecordBatch | pa.Table, types: Sequence[str]) -> pa.Table:
    """Physical int64 instants and durations as Arrow timestamps and durations, for people and DataFrames."""
    columns = [
        column.cast(_EDGE[sql.upper()]) if sql.upper() in _EDGE else column
        for column, sql in zip(batch.columns, types, strict=True)
    ]
    return pa.table(columns, names=batch.schema.names)


def ipc(batch: pa.RecordBatch | pa.Table) -> bytes:
    """An Arrow IPC stream that holds the batch."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write(batch)
    return sink.getvalue().to_pybytes()


def from_ipc(data: bytes) -> pa.Table:
    """The table of an Arrow IPC stream.  Raises DS504 if it is not one."""
    try:
        with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
            table = reader.read_all()
        table.validate(full=True)  # offsets of a stranger's frame may point outside its buffers
        return table
    except (pa.ArrowException, OSError) as problem:
        raise UsageError("DS504", f"`arrow` is not an Arrow IPC stream: {problem}") from None
