"""The memory of an Arrow array without what its buffers hold beside it, and without copying its
values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

Cut = tuple[int, list[pa.Buffer | None]]
_TEXTS = {pa.string(): np.int32, pa.binary(): np.int32,
          pa.large_string(): np.int64, pa.large_binary(): np.int64}  # a table  # fmt: skip


def cut(array: pa.Array) -> Cut:
    """(offset, buffers) of an array of the same values; of texts the places are written anew."""
    buffers = array.buffers()
    start = array.offset - array.offset % 8  # bits are cut between bytes
    offset, end = array.offset - start, array.offset + len(array)
    valid = _bits(buffers[0], start, end)
    if array.type in _TEXTS:
        return offset, [valid, *_texts(buffers, np.dtype(_TEXTS[array.type]), start, end)]
    if pa.types.is_boolean(array.type):
        return offset, [valid, _bits(buffers[1], start, end)]
    if len(buffers) != 2:
        return array.offset, buffers
    width = array.type.bit_width // 8
    return offset, [valid, _part(buffers[1], start * width, end * width)]


def _texts(
    buffers: list[pa.Buffer], dtype: np.dtype, start: int, end: int
) -> tuple[pa.Buffer, pa.Buffer]:
    if not len(buffers[1]):  # as of no texts
        return buffers[1], buffers[2]
    places = np.frombuffer(buffers[1], dtype)[start : end + 1]
    first, last = int(places[0]), int(places[-1])
    texts = buffers[2] if buffers[2] is not None else pa.py_buffer(b"")
    return pa.py_buffer(places - first if first else places), _part(texts, first, last)


def _bits(bits: pa.Buffer | None, start: int, end: int) -> pa.Buffer | None:
    return None if bits is None else _part(bits, start // 8, -(-end // 8))


def _part(buffer: pa.Buffer, start: int, end: int) -> pa.Buffer:
    return buffer.slice(start, max(0, end - start))
