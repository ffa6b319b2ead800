"""Rows packed by msgpack -> physical columns, without a Python object per value.

For rows that are as they should be: lists in column order whose values are of their columns' types.
Whatever else comes is left to `convert`, which knows what to say about it; so where this one
answers both answer the same.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dsms.intake.columns import unlocked
from dsms.intake.convert import Converted, checked
from dsms.sql.types import INT, STRING, Field, Kind, Schema

_KINDS = {
    Kind.INT: 0,
    Kind.TIMESTAMP: 0,
    Kind.INTERVAL: 0,
    Kind.FLOAT: 1,
    Kind.BOOL: 2,
    Kind.STRING: 3,
    Kind.BYTES: 4,
}
# msgpack's extension types for them (the client's `values`)
_CODES = {Kind.TIMESTAMP: 1, Kind.INTERVAL: 2}
_TEXT = 3  # from here on bytes
_MOST = 2**31 - 1  # bytes of an Arrow text column


def unpack(data: memoryview, schema: Schema) -> tuple[Converted, int] | None:
    """The rows of the msgpack array that `data` begins with, and its length in bytes; None:
    `convert` must see them."""
    if not schema or not all(f.type.kind in _KINDS for f in schema):
        return None
    rows, at = header(data)
    if not 0 < rows * len(schema) <= len(data):
        return None
    from dsms.intake.kernels import unpack_rows

    kinds = np.array([_KINDS[f.type.kind] for f in schema], np.int64)
    codes = np.array([_CODES.get(f.type.kind, 0) for f in schema], np.int64)
    octets = unlocked(np.frombuffer(data, np.uint8))
    values, valid = np.empty((len(kinds), rows), np.int64), np.ones((len(kinds), rows), np.bool_)
    sizes = np.zeros((len(kinds) if kinds.max() >= _TEXT else 0, rows), np.int64)
    stop = unpack_rows(octets, at, kinds, codes, values, values.view(np.float64), sizes, valid)
    if stop < 0:
        return None
    try:
        columns = [
            _bytes(f, octets, values[c], sizes[c], valid[c])
            if kinds[c] >= _TEXT
            else _plain(f, values[c], valid[c])
            for c, f in enumerate(schema)
        ]
    except (pa.ArrowInvalid, OverflowError):  # no UTF-8, or too much of it
        return None
    return checked(columns, rows, None, [], schema), int(stop)


def ready() -> None:
    """Have the kernels compiled or loaded now."""
    unpack(memoryview(b"\x91\x92\x01\xa1a"), (Field("number", INT), Field("text", STRING)))


def header(data: memoryview) -> tuple[int, int]:
    """(rows, where the first begins) of an array; no rows if there is none."""
    mark = data[0] if len(data) else 0
    if 0x90 <= mark <= 0x9F:
        return mark & 15, 1
    size = {0xDC: 2, 0xDD: 4}.get(mark, 0)
    return int.from_bytes(data[1 : 1 + size]), 1 + size


def _plain(field: Field, values: np.ndarray, valid: np.ndarray) -> pa.Array:
    if field.type.kind is Kind.FLOAT:
        values = values.view(np.float64)
    elif field.type.kind is Kind.BOOL:
        values = values.astype(np.bool_)
    return pa.array(values, mask=None if valid.all() else ~valid)


def _bytes(
    field: Field, octets: np.ndarray, starts: np.ndarray, sizes: np.ndarray, valid: np.ndarray
) -> pa.Array:
    """Raises ArrowInvalid for text that is no UTF-8."""
    from dsms.intake.kernels import gather_bytes

    total = int(sizes.sum())
    if total > _MOST:
        raise OverflowError
    offsets, out = np.empty(len(starts) + 1, np.int32), np.empty(total, np.uint8)
    gather_bytes(octets, starts, sizes, valid, offsets, out)
    mask = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    buffers = [mask, pa.py_buffer(offsets), pa.py_buffer(out)]
    array = pa.Array.from_buffers(field.type.arrow, len(starts), buffers)
    if field.type.kind is Kind.STRING:
        array.validate(full=True)
    return array
