"""Columns -> DataRow messages, a column at a time: each becomes texts (or binary values) with their
lengths, and Arrow joins them row by row into what goes on the wire."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms_server.postgres.binaries import binary_values
from dsms_server.postgres.packed import fixed, without_nulls
from dsms_server.postgres.texts import text_values

PIECE_ROWS, PIECE_BYTES = 4096, 1 << 20  # that are joined at once, about
_HEAD = np.dtype([("kind", "S1"), ("length", ">i4"), ("columns", ">i2")])


def data_rows(table: pa.Table, formats: Sequence[int]) -> Iterator[bytes]:
    """The rows of a table at the edge, many to a piece; `formats`: 0 text, 1 binary, one for each
    column."""
    size = max(1, table.nbytes // max(1, table.num_rows))
    most = max(1, min(PIECE_ROWS, PIECE_BYTES // size))
    for start in range(0, table.num_rows, most):
        yield _joined(table.slice(start, most), formats)


def _joined(rows: pa.Table, formats: Sequence[int]) -> bytes:
    count = rows.num_rows
    head = np.empty(count, _HEAD)
    head["kind"], head["columns"] = b"D", rows.num_columns
    total = np.full(count, 6 + 4 * rows.num_columns, np.int64)
    parts: list[pa.Array] = []
    for column, form in zip(rows.columns, formats, strict=True):
        array = _whole(column)
        values = (binary_values if form else text_values)(array)
        prefix, filled = _with_lengths(array, values, total)
        parts += (prefix, filled)
    head["length"] = total
    if not parts:
        return head.tobytes()
    joined = pc.binary_join_element_wise(fixed(head), *parts, pa.scalar(b"", pa.binary()))
    return _data(joined)


def _with_lengths(
    array: pa.Array, values: pa.Array, total: np.ndarray
) -> tuple[pa.Array, pa.Array]:
    """(lengths, -1 for NULL, as they travel; the values, nothing for NULL); their bytes are added
    to `total`."""
    nulls = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    values = without_nulls(values, nulls)
    lengths = pc.binary_length(values).to_numpy(zero_copy_only=False).astype(np.int64)
    total += lengths
    if nulls is not None:
        lengths = np.where(nulls, -1, lengths)
    return fixed(lengths.astype(">i4")), values


def _whole(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    if isinstance(found, pa.ChunkedArray):  # of an Arrow that keeps chunks
        found = found.chunk(0) if found.num_chunks else pa.array([], column.type)
    return found


def _data(joined: pa.Array) -> bytes:
    """The bytes of all values, one behind the other."""
    _, offsets, data = joined.buffers()
    if data is None or not len(joined):
        return b""
    ends = np.frombuffer(offsets, np.int32)[joined.offset : joined.offset + len(joined) + 1]
    return bytes(memoryview(data)[int(ends[0]) : int(ends[-1])])
