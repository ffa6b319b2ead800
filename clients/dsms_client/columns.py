"""Rows of plain values <-> Arrow, a column at a time.

Physical Arrow types: TIMESTAMP, INTERVAL, DATE (its midnight) and TIME (since midnight) are int64
microseconds, DECIMAL is decimal128, BYTES is binary, UUID text, LIST(T) a text of JSON.  On the
wire a DECIMAL is text, BYTES is bin and NULL is nil.  At the edge (`dsms.tabular.tables.to_edge`)
TIMESTAMP becomes ``timestamp[us]`` (UTC, naive), INTERVAL ``duration[us]``, DATE ``date32``, TIME
``time64[us]`` and LIST(T) ``list<T>``, which is what DataFrames want.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.errors import UsageError
from dsms.lists import from_edge
from dsms.structs import from_edge as struct_texts
from dsms.tabular.kinds import arrow_type
from dsms.typed_texts import from_edge as physical


def rows_to_batch(
    rows: Sequence[Sequence[Any]], names: Sequence[str], types: Sequence[str]
) -> pa.RecordBatch:
    """Rows of wire values, as a server sends them -> a batch with the physical types."""
    lists = [[row[i] for row in rows] for i in range(len(names))]
    arrays = [_array(values, arrow_type(sql)) for values, sql in zip(lists, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, list(names))


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(kind):
        return pc.cast(pa.array(values, pa.string()), kind)
    return pa.array(values, kind)


def to_values(array: pa.Array) -> list[Any]:
    """An Arrow array as plain wire values."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return to_values(array.cast(kind.value_type))
    if pa.types.is_decimal(kind):
        if kind.scale <= 6:
            return to_values(array.cast(pa.string()))
        # Arrow's text would be 1E-10
        return [None if v is None else f"{v:f}" for v in array.to_pylist()]
    if pa.types.is_temporal(kind):
        return to_values(physical(array))
    if pa.types.is_list(kind) or pa.types.is_struct(kind):
        return to_values(from_edge(array) if pa.types.is_list(kind) else struct_texts(array))
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return (
            array.to_pylist()
            if pa.types.is_boolean(kind)
            else array.to_numpy(zero_copy_only=False).tolist()
        )
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


def ipc(batch: pa.RecordBatch | pa.Table) -> memoryview:
    """An Arrow IPC stream that holds the batch; written once, into memory of the right size."""
    size = pa.MockOutputStream()
    _write(size, batch)
    out = pa.allocate_buffer(size.size())
    _write(pa.FixedSizeBufferWriter(out), batch)
    return memoryview(out)


def _write(sink: pa.NativeFile, batch: pa.RecordBatch | pa.Table) -> None:
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write(batch)


def from_ipc(data: bytes | memoryview) -> pa.Table:
    """The table of an Arrow IPC stream.  Raises DS510 if it is not one."""
    try:
        with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
            table = reader.read_all()
        table.validate(full=True)  # offsets of a stranger's frame may point outside its buffers
        return table
    except (pa.ArrowException, OSError) as problem:
        raise UsageError("DS510", f"`arrow` is not an Arrow IPC stream: {problem}") from None
