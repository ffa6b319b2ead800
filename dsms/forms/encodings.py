"""Arrays whose encoding not every reader and kernel knows -> the same values in a simpler one."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from dsms.untrusted.views import is_view, without_views


def without_runs(array: pa.Array) -> pa.Array:
    """The values of a run-end encoded array, one by one."""
    runs = pa.RunEndEncodedArray.from_arrays(array.run_ends, without_views(array.values))
    return pc.run_end_decode(runs.slice(array.offset, len(array)))


def for_frames(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Without views and runs, of which every piece would carry the whole array."""
    kind = array.type
    if not (
        is_view(kind)
        or kinds.is_run_end_encoded(kind)
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
    if kinds.is_dictionary(array.type):
        return pa.DictionaryArray.from_arrays(array.indices, without_views(array.dictionary))
    return without_runs(array) if kinds.is_run_end_encoded(array.type) else without_views(array)
