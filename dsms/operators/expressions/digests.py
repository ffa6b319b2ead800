"""Hexadecimal text and digests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.operators.expressions.arrays import blank, from_bits, present
from dsms.operators.expressions.errors import CAST, ErrorCounter
from dsms.operators.expressions.growth import admitted, sizes_of
from dsms.operators.expressions.node import Builder, Built, Node
from dsms.operators.expressions.slices import data_of, offsets_of
from dsms.sql.expr import Call

_DIGITS = np.frombuffer(b"0123456789ABCDEF", np.uint8)
_VALUES = np.zeros(256, np.uint8)
for _i, _c in enumerate(b"0123456789ABCDEF"):
    _VALUES[_c] = _VALUES[ord(chr(_c).lower())] = _i


def _rows(x: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Byte bounds from 0, and the bytes between them."""
    bounds = offsets_of(x)
    return bounds - bounds[0], data_of(x)[bounds[0] : bounds[-1]]


def _made(to: pa.DataType, bounds: np.ndarray, data: np.ndarray, x: pa.Array) -> pa.Array:
    here = present(x)
    bitmap = None if here is None else from_bits(here).buffers()[1]
    offsets = pa.py_buffer(bounds.astype(np.int32))
    return pa.Array.from_buffers(
        to, len(x), [bitmap, offsets, pa.py_buffer(np.ascontiguousarray(data))]
    )


def _hex(errors: ErrorCounter, x: pa.Array) -> pa.Array:
    x = _tight(admitted(errors, x, sizes_of(x) * 2, (), "a text of digits"))
    bounds, data = _rows(x)
    digits = np.empty((len(data), 2), np.uint8)
    digits[:, 0] = _DIGITS[data >> 4]
    digits[:, 1] = _DIGITS[data & 15]
    return _made(pa.string(), bounds * 2, digits.reshape(-1), x)


def _unhex(errors: ErrorCounter, x: pa.Array) -> pa.Array:
    good = pc.match_substring_regex(x, "^([0-9A-Fa-f][0-9A-Fa-f])*$").fill_null(True)
    bad = ~good.to_numpy(zero_copy_only=False)
    if bad.any():
        errors.add(int(bad.sum()), CAST, "a text is not made of pairs of hexadecimal digits")
        x = blank(x, bad)
    x = _tight(x)
    bounds, data = _rows(x)
    pairs = _VALUES[data].reshape(-1, 2)
    return _made(pa.binary(), bounds // 2, (pairs[:, 0] << 4) | pairs[:, 1], x)


def _tight(x: pa.Array) -> pa.Array:
    """Without bytes behind NULLs, so that offsets count only what is there."""
    empty = pa.scalar(b"" if pa.types.is_binary(x.type) else "", x.type)
    return pc.binary_join_element_wise(x, empty, empty) if x.null_count else x


def _digest(name: str) -> Builder:
    def one(value: str | bytes) -> str:
        return hashlib.new(
            name, value.encode() if isinstance(value, str) else value, usedforsecurity=False
        ).hexdigest()

    return lambda call, args: Built(lambda errors, x: _each(x, one))


def _each(x: pa.Array, function: Callable[..., str]) -> pa.Array:
    """Once per distinct value."""
    encoded = x.dictionary_encode()
    return pa.array([function(v) for v in encoded.dictionary.to_pylist()], pa.string()).take(
        encoded.indices
    )


def _plain(function: Callable[[ErrorCounter, pa.Array], pa.Array]) -> Builder:
    def build(call: Call, args: Sequence[Node]) -> Built:
        return Built(function, True, function is _hex)

    return build


BUILDERS: dict[str, Builder] = {
    "hex": _plain(_hex),
    "unhex": _plain(_unhex),
    "md5": _digest("md5"),
    "sha256": _digest("sha256"),
}
