"""The contents of columns from outside: valid throughout, and not much larger once they are written
out in full."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from dsms.errors import UsageError
from dsms.untrusted.views import is_view, view_lengths

MAX_ROWS = 1 << 24  # of a frame
MAX_VALUES = 1 << 27  # rows times columns: a missing column is written out as NULLs


def check_size(rows: int, columns: int) -> None:
    """Raises DS510 for more rows than one frame may have, or more values when all columns are
    there."""
    if not 0 <= rows <= MAX_ROWS or rows * columns > MAX_VALUES:
        raise UsageError(
            "DS510",
            f"{rows} rows of {columns} columns in one frame are too many",
            hint=f"a frame has at most {MAX_ROWS} rows and {MAX_VALUES} values: send smaller ones",
        )


def check_contents(table: pa.Table, limit: int) -> None:
    """Raises pa.ArrowInvalid for buffers, offsets, text or indices that are wrong, DS510 for a
    column that has over `limit` bytes when its dictionary, runs or views are written out."""
    table.validate(full=True)
    for name, column in zip(table.schema.names, table.columns, strict=True):
        size = sum(map(_written_out, column.chunks))
        if size > limit:
            raise UsageError(
                "DS510",
                f"column {name!r} has {size} bytes when it is written out in full, the limit is "
                f"{limit}",
                hint="send smaller frames",
            )


def _written_out(array: pa.Array) -> int:
    """Bytes of the texts that a dictionary, runs or views stand for; 0 for columns that hold their
    values."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if kinds.is_dictionary(array.type):
        return _repeated(
            array.dictionary, np.bincount(_indices(array), minlength=len(array.dictionary))
        )
    if kinds.is_run_end_encoded(array.type):
        values = array.values.slice(array.find_physical_offset(), array.find_physical_length())
        ends = array.run_ends.slice(array.find_physical_offset(), array.find_physical_length())
        starts = (
            np.concatenate([[array.offset], ends.to_numpy()[:-1]]) if len(ends) else ends.to_numpy()
        )
        stops = np.minimum(ends.to_numpy(), array.offset + len(array))
        return _repeated(values, stops - starts)
    if kinds.is_list_view(array.type) or kinds.is_large_list_view(array.type):
        return _listed(array)
    if kinds.is_nested(array.type):
        return _written_out(array.flatten())
    return int(_lengths(array).sum()) if is_view(array.type) else 0


def _listed(array: pa.Array) -> int:
    """Bytes of all items of views of lists, which may lie over each other."""
    ends = np.concatenate([[0.0], np.cumsum(_lengths(array.values) + 1.0)])
    first = array.offsets.to_numpy(zero_copy_only=False)[: len(array)].astype(np.int64)
    size = array.sizes.to_numpy(zero_copy_only=False)[: len(array)].astype(np.int64)
    here = array.is_valid().to_numpy(zero_copy_only=False)
    first, size = np.where(here, first, 0), np.where(here, size, 0)
    return int((ends[first + size] - ends[first]).sum())


def _indices(array: pa.DictionaryArray) -> np.ndarray:
    return array.indices.drop_null().cast(pa.int64()).to_numpy()


def _repeated(values: pa.Array, times: np.ndarray) -> int:
    return int((_lengths(values).astype(np.float64) * times).sum())


def _lengths(array: pa.Array) -> np.ndarray:
    """Bytes of each value."""
    if is_view(array.type):
        return view_lengths(array)
    if any(is_(array.type) for is_ in _SIZED):
        return pc.binary_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    width = array.type.bit_width // 8 if _has_width(array.type) else 0
    return np.full(len(array), width, np.int64)


_SIZED = (kinds.is_string, kinds.is_large_string, kinds.is_binary, kinds.is_large_binary)


def _has_width(type_: pa.DataType) -> bool:
    return bool(
        kinds.is_primitive(type_) or kinds.is_fixed_size_binary(type_) or kinds.is_decimal(type_)
    )
