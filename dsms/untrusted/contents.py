"""The contents of columns from outside: valid throughout, and not much larger once they are written
out in full."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from dsms.errors import UsageError
from dsms.untrusted.views import is_view, view_lengths

# bytes that a frame may have when it is unpacked; a longer frame, as many as it has
LIMIT = 64 << 20
MAX_ROWS = 1 << 24  # of a frame
MAX_VALUES = 1 << 27  # rows times columns: a missing column is written out as NULLs
ITEM = len("null, ")  # bytes that an item of a list has as text, though it may have none in a frame


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
        size = sum(map(written_out, column.chunks))
        if size > limit:
            raise _too_large(f"column {name!r}", size, limit)


def check_items(items: pa.Array) -> None:
    """Raises DS510 for items of lists that have hardly any bytes, and as text more than a server
    takes: in process, too."""
    size = ITEM * len(items) if _slim(items.type) else 0
    if size > LIMIT:
        raise _too_large("a column of lists", size, LIMIT)


def _too_large(what: str, size: int, limit: int) -> UsageError:
    message = f"{what} has {size} bytes when it is written out in full, the limit is {limit}"
    return UsageError("DS510", message, hint="send smaller frames")


def written_out(array: pa.Array) -> int:
    """Bytes of the texts that a dictionary, runs, views or lists of what has hardly any bytes stand
    for; 0 for columns that hold their values."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if kinds.is_dictionary(array.type):
        return _repeated(
            array.dictionary, np.bincount(_indices(array), minlength=len(array.dictionary))
        )
    if kinds.is_run_end_encoded(array.type):
        return _repeated(*_runs(array))
    if _is_list_view(array.type):
        return int(_view_items(array).sum())
    if kinds.is_struct(array.type):
        slim = ITEM * len(array) * array.type.num_fields
        return max(slim, sum(map(written_out, array.flatten())))
    if kinds.is_nested(array.type):
        items = array.flatten()
        slim = _slim(items.type) or kinds.is_run_end_encoded(items.type)
        return max(written_out(items), ITEM * len(items) if slim else 0)
    return int(_lengths(array).sum()) if is_view(array.type) else 0


def _runs(array: pa.RunEndEncodedArray) -> tuple[pa.Array, np.ndarray]:
    """(the values of runs that lie in the array, how often each is there)."""
    first, count = array.find_physical_offset(), array.find_physical_length()
    ends = array.run_ends.slice(first, count).to_numpy()
    starts = np.concatenate([[array.offset], ends[:-1]]) if len(ends) else ends
    stops = np.minimum(ends, array.offset + len(array))
    return array.values.slice(first, count), stops - starts


def _is_list_view(type_: pa.DataType) -> bool:
    return bool(kinds.is_list_view(type_) or kinds.is_large_list_view(type_))


def _view_items(array: pa.Array) -> np.ndarray:
    """Bytes of the items of each view of a list, which may lie over each other."""
    first = array.offsets.to_numpy(zero_copy_only=False)[: len(array)].astype(np.int64)
    size = array.sizes.to_numpy(zero_copy_only=False)[: len(array)].astype(np.int64)
    here = array.is_valid().to_numpy(zero_copy_only=False)
    first, size = np.where(here, first, 0), np.where(here, size, 0)
    if _slim(array.values.type):
        return ITEM * size
    ends = _ends(array.values)
    return ends[first + size] - ends[first]


def _list_items(array: pa.Array) -> np.ndarray:
    """Bytes of the items of each list."""
    count = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    count = count.astype(np.int64)
    if _slim(array.type.value_type):
        return ITEM * count
    stops, ends = np.cumsum(count), _ends(array.flatten())
    return ends[stops] - ends[stops - count]


def _slim(type_: pa.DataType) -> bool:
    """Whether values have less than a byte each in a frame."""
    empty = kinds.is_fixed_size_binary(type_) and not type_.byte_width
    return bool(kinds.is_null(type_) or kinds.is_boolean(type_) or empty)


def _ends(items: pa.Array) -> np.ndarray:
    """Bytes of all items before each, and of all."""
    return np.concatenate([[0.0], np.cumsum(_lengths(items) + 1.0)])


def _indices(array: pa.DictionaryArray) -> np.ndarray:
    return array.indices.drop_null().cast(pa.int64()).to_numpy()


def _repeated(values: pa.Array, times: np.ndarray) -> int:
    return int((_lengths(values).astype(np.float64) * times).sum())


def _lengths(array: pa.Array) -> np.ndarray:
    """Bytes of each value, written out."""
    if is_view(array.type):
        return view_lengths(array)
    if kinds.is_dictionary(array.type):
        there, places = array.indices.is_valid(), array.indices.fill_null(0)
        lengths = np.append(_lengths(array.dictionary), 0)  # NULLs may point to none
        found = lengths[places.cast(pa.int64()).to_numpy()]
        return np.where(there.to_numpy(zero_copy_only=False), found, 0)
    if kinds.is_run_end_encoded(array.type):
        values, times = _runs(array)
        return np.repeat(_lengths(values), times)
    if _is_list_view(array.type):
        return _view_items(array)
    if kinds.is_nested(array.type):
        return _list_items(array)
    if any(is_(array.type) for is_ in _SIZED):
        return pc.binary_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    width = array.type.bit_width // 8 if _has_width(array.type) else 0
    return np.full(len(array), width, np.int64)


_SIZED = (kinds.is_string, kinds.is_large_string, kinds.is_binary, kinds.is_large_binary)


def _has_width(type_: pa.DataType) -> bool:
    return bool(
        kinds.is_primitive(type_) or kinds.is_fixed_size_binary(type_) or kinds.is_decimal(type_)
    )
