"""A table -> Arrow IPC streams of a sensible size, as frames carry them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from dsms.untrusted.contents import written_out
from dsms.untrusted.stream import LIMIT
from dsms_client.columns import ipc

MOST_ROWS = 1 << 19  # of columns without bytes, which a server writes out
MOST_WRITTEN_OUT = LIMIT // 2  # bytes that a dictionary stands for in one column


def pieces(table: pa.Table, size: int) -> Iterator[tuple[memoryview, int]]:
    """(stream, number of rows), at least one; those of several rows have at most `size` bytes, and
    no column of them so much text behind a dictionary that a server refuses it."""
    compact = any(_large_dictionary(column, size) for column in table.columns)
    first, step = 0, _step(table, size)
    while first < max(table.num_rows, 1):
        piece = table.slice(first, step)
        blob, rows = _stream(piece, compact), piece.num_rows
        while rows > 1 and (len(blob) > size or _much(piece)):
            rows = max(1, min(rows // 2, rows * size // len(blob)))
            piece = piece.slice(0, rows)
            blob = _stream(piece, compact)
        yield blob, rows
        first += max(1, rows)


def _step(table: pa.Table, size: int) -> int:
    """Rows that fit if all are about alike."""
    each = table.nbytes // max(1, table.num_rows)
    room = size - size // 16  # beside what a stream says of itself
    return min(MOST_ROWS, max(1, room // max(1, each)))


def _much(piece: pa.Table) -> bool:
    return any(
        sum(map(written_out, column.chunks)) > MOST_WRITTEN_OUT
        for column in piece.columns
        if kinds.is_dictionary(column.type)
    )


def _large_dictionary(column: pa.ChunkedArray, size: int) -> bool:
    """Whether a dictionary is too large for each piece to carry it."""
    return kinds.is_dictionary(column.type) and any(
        chunk.dictionary.nbytes > size // 4 for chunk in column.chunks
    )


def _stream(piece: pa.Table, compact: bool) -> memoryview:
    if compact:
        columns = [
            _compacted(column) if kinds.is_dictionary(column.type) else column
            for column in piece.columns
        ]
        piece = pa.Table.from_arrays(columns, names=piece.schema.names)
    return ipc(piece)


def _compacted(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Each chunk with those values of its dictionary alone that its rows have."""
    return pa.chunked_array([_used(chunk) for chunk in column.chunks], column.type)


def _used(chunk: pa.DictionaryArray) -> pa.DictionaryArray:
    indices = chunk.indices
    there = indices.is_valid().to_numpy(zero_copy_only=False)
    places = indices.fill_null(0).to_numpy(zero_copy_only=False)
    used, anew = np.unique(places[there], return_inverse=True)
    found = np.zeros(len(places), places.dtype)
    found[there] = anew
    return pa.DictionaryArray.from_arrays(
        pa.array(found, indices.type, mask=~there), chunk.dictionary.take(pa.array(used))
    )
