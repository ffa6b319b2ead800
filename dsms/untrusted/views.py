"""String and binary views written out as plain strings and bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds


def is_view(type_: pa.DataType) -> bool:
    """Whether values are views of (length, place) into buffers, 16 bytes each."""
    return bool(kinds.is_string_view(type_) or kinds.is_binary_view(type_))


def without_views(array: pa.Array) -> pa.Array:
    """The same values as strings or bytes; other arrays as they are."""
    if not is_view(array.type):
        return array
    return _tidy(array).cast(pa.string() if kinds.is_string_view(array.type) else pa.binary())


def view_lengths(array: pa.Array) -> np.ndarray:
    """Bytes of each value of an array of views, NULLs as 0."""
    lengths = _words(array)[:, 0]
    return np.where(_nulls(array), 0, lengths) if array.null_count else lengths


def _tidy(array: pa.Array) -> pa.Array:
    """With empty views where values are NULL: Arrow's cast follows those as well, though anything
    may stand there and no validation looks at it."""
    if not array.null_count:
        return array
    nulls = _nulls(array)
    words = np.where(nulls[:, None], 0, _words(array))
    valid = pa.array(~nulls).buffers()[1]
    return pa.Array.from_buffers(
        array.type, len(array), [valid, pa.py_buffer(words), *array.buffers()[2:]]
    )


def _words(array: pa.Array) -> np.ndarray:
    """The views, int32[n, 4]: length, then the text itself if it is short, else its start, buffer
    and offset."""
    views = array.buffers()[1]
    if views is None:
        return np.empty((0, 4), np.int32)
    return np.frombuffer(views, np.int32, 4 * len(array), 16 * array.offset).reshape(-1, 4)


def _nulls(array: pa.Array) -> np.ndarray:
    return array.is_null().to_numpy(zero_copy_only=False)
