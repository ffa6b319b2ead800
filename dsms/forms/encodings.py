"""Arrays whose encoding not every reader and kernel knows -> the same values in a simpler one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from dsms.untrusted.types import decoded, is_list
from dsms.untrusted.views import is_view, without_views


def without_runs(array: pa.Array) -> pa.Array:
    """The values of a run-end encoded array, one by one."""
    runs = pa.RunEndEncodedArray.from_arrays(array.run_ends, without_views(array.values))
    return pc.run_end_decode(runs.slice(array.offset, len(array)))


def without_encodings(array: pa.Array) -> pa.Array:
    """The same values without a dictionary, runs or views, in lists too."""
    if kinds.is_dictionary(array.type):
        return without_encodings(array.dictionary).take(array.indices)
    if kinds.is_run_end_encoded(array.type):
        return without_encodings(without_runs(array))
    if kinds.is_struct(array.type):
        return _plain_fields(array)
    return without_views(array) if not _has_odd_items(array.type) else _listed_anew(array)


def _plain_fields(array: pa.StructArray) -> pa.StructArray:
    """Structs whose fields are not encoded, nor views."""
    columns = [without_encodings(column) for column in array.flatten()]
    fields = [pa.field(f.name, c.type) for f, c in zip(array.type, columns, strict=True)]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)


def plain_type(type_: pa.DataType) -> pa.DataType:
    """The type of `without_encodings` of an array of the type."""
    type_ = decoded(type_)
    if kinds.is_struct(type_):
        return pa.struct([pa.field(f.name, plain_type(f.type)) for f in type_])
    if _has_odd_items(type_):
        return pa.large_list(plain_type(type_.value_type))
    return without_views(pa.array([], type_)).type if is_view(type_) else type_


def _has_odd_items(type_: pa.DataType) -> bool:
    """Whether values are lists whose items are encoded, or views."""
    return is_list(type_) and (
        decoded(type_.value_type) != type_.value_type or is_view(type_.value_type)
    )


def _listed_anew(array: pa.Array) -> pa.Array:
    """Lists of any form as plain ones of plain items."""
    count = pc.list_value_length(array).fill_null(0).cast(pa.int64()).to_numpy()
    starts = np.concatenate([[0], np.cumsum(count)])
    items = without_encodings(array.flatten())
    mask = array.is_null() if array.null_count else None
    return pa.LargeListArray.from_arrays(pa.array(starts), items, mask=mask)


def for_frames(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Without views and runs, of which every piece would carry the whole array; of dictionaries
    those of plain values alone."""
    kind = array.type
    if not (
        is_view(kind)
        or kinds.is_struct(kind)
        or kinds.is_run_end_encoded(kind)
        or _has_odd_items(decoded(kind))
        or (kinds.is_dictionary(kind) and is_view(kind.value_type))
    ):
        return array
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    return (
        pa.chunked_array([_simple(chunk) for chunk in chunks])
        if chunks
        else pa.array([], pa.string())
    )


def _simple(array: pa.Array) -> pa.Array:
    if kinds.is_dictionary(array.type) and is_view(array.type.value_type):
        return pa.DictionaryArray.from_arrays(array.indices, without_views(array.dictionary))
    return without_encodings(array)
