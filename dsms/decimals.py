"""DECIMALs out of texts, and out of DECIMALs of another size, exactly: for CAST, rows that come in,
and files.

Arrow (23.0) makes most of them, fast, but wrong without a word where digits and scale together need
more than 128 bits, and where a negative exponent leaves nothing; so it is given only what it surely
does right.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation, localcontext

import pyarrow as pa
import pyarrow.compute as pc

NARROW, WIDE = 38, 76  # digits of decimal128 and decimal256
_WIDTHS = {32: pa.decimal32, 64: pa.decimal64, 128: pa.decimal128, 256: pa.decimal256}
_DIGITS = {32: 9, 64: 18, 128: NARROW, 256: WIDE}  # of so many bits
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)


def decimals(texts: pa.Array, to: pa.DataType) -> pa.Array:
    """STRING[n] as decimal128 `to`, NULL where NULL.  Raises pa.ArrowInvalid if one is no number,
    has more digits behind the point than `to` (zeros are none), or is too large for it."""
    odd = pc.or_(
        pc.greater(pc.binary_length(texts), NARROW),
        pc.match_substring(texts, "e", ignore_case=True),
    )
    if not pc.any(odd).as_py():
        return _short(texts, to)
    some = [None if t is None else _exact(t, to) for t in texts.filter(odd).to_pylist()]
    rest = _short(pc.if_else(odd, pa.scalar(None, texts.type), texts), to)
    return pc.replace_with_mask(rest, odd.fill_null(False), pa.array(some, to))


def _short(texts: pa.Array, to: pa.DataType) -> pa.Array:
    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    if longest + to.scale <= NARROW:
        return texts.cast(to)
    return texts.cast(pa.decimal256(WIDE, to.scale)).cast(to)


def _exact(text: str, to: pa.DataType) -> Decimal:
    """A text of any length, with an exponent or without."""
    if _NUMBER.fullmatch(text) is None:
        raise pa.ArrowInvalid(f"'{text[:40]}' is no number")
    try:
        number = Decimal(text)
    except InvalidOperation:  # an exponent of very many digits
        raise pa.ArrowInvalid(f"'{text[:40]}' is too large") from None
    if not number:
        return Decimal(0)
    if number.adjusted() >= to.precision - to.scale or number.adjusted() < -to.scale:
        raise pa.ArrowInvalid(f"'{text[:40]}' is no {to}")
    with localcontext() as context:
        context.prec = len(text) + WIDE
        found = number.quantize(Decimal(1).scaleb(-to.scale))
        if found != number:
            raise pa.ArrowInvalid(f"'{text[:40]}' has more digits than {to}")
    return found


def whole(values: pa.Array) -> pa.Array:
    """DECIMALs of a negative scale, from -38 on, as decimal128(38,0).  Raises pa.ArrowInvalid if
    one is too large for that."""
    zeros, bits = -values.type.scale, values.type.bit_width
    counts = values.view(_WIDTHS[bits](_DIGITS[bits], 0))
    if bits < 128:  # of which Arrow tells no extremes
        counts = counts.cast(pa.decimal128(NARROW, 0))
    most = Decimal(10) ** (NARROW - zeros)  # what a count may not reach
    low, high = (found.as_py() for found in pc.min_max(counts).values())
    if low is not None and (low <= -most or high >= most):
        raise pa.ArrowInvalid(f"a number is too large for DECIMAL({NARROW},0)")
    few = max(1, NARROW - zeros)
    scaled = counts.cast(pa.decimal128(few, 0)).view(pa.decimal128(few, -zeros))
    return scaled.cast(pa.decimal128(NARROW, 0))


def resized(values: pa.Array, to: pa.DataType) -> pa.Array:
    """DECIMALs of any size as decimal128 `to`.  Raises pa.ArrowInvalid as `decimals` does."""
    scale, whole = values.type.scale, to.precision - to.scale
    if values.type.precision - scale + to.scale <= NARROW:
        return values.cast(to)
    wide = values.cast(pa.decimal256(WIDE, scale))
    if whole + scale < WIDE:
        fits = pc.less(pc.abs(wide), pa.scalar(Decimal(1).scaleb(whole), wide.type))
        if not pc.all(fits).as_py():
            raise pa.ArrowInvalid(f"a number is too large for {to}")
    return wide.cast(pa.decimal256(WIDE, to.scale)).cast(to)
