"""Numbers that count seconds, or parts of one, since 1970 -> microseconds, exactly.

Such numbers come from files as text (`1379288667.631000`), so no float is in between.  What is
finer than a microsecond is rounded down, also before 1970.
"""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.decimals import decimals

UNITS = {"s": 6, "ms": 3, "us": 0, "ns": -3}  # microseconds of one, as a power of ten
NUMBER = r"^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?$"
_PLAIN = r"^(?P<sign>[+-]?)0*(?P<whole>[0-9]{1,18})(?:\.(?P<part>[0-9]*))?$"
_DIGITS = 9  # behind the point that are looked at one by one
_FAR = 2**62


def micros(texts: pa.Array, unit: str) -> np.ndarray:
    """int64 for texts that are all numbers (`NUMBER`); ±2^62 for what is further from 1970."""
    known = usual(texts, unit)
    if known is not None:
        return known
    found = pc.extract_regex(texts, _PLAIN)
    plain = found.is_valid().to_numpy(zero_copy_only=False)
    out = _plain(found, unit)
    for row in np.flatnonzero(~plain).tolist():
        out[row] = _exact(texts[row].as_py(), unit)
    return out


def usual(texts: pa.Array, unit: str) -> np.ndarray | None:
    """Numbers of moderate size that are whole microseconds: Arrow reads them many times as fast."""
    power = UNITS[unit]
    if power < 0 or texts.null_count or texts.offset:
        return None
    try:
        exact = decimals(texts, pa.decimal128(18, power))
    except pa.ArrowInvalid:
        return None
    return np.frombuffer(exact.buffers()[1], np.int64)[: 2 * len(texts) : 2].copy()


def _plain(found: pa.Array, unit: str) -> np.ndarray:
    whole, part = _number(found.field("whole")), found.field("part").fill_null("")
    first = _number(pc.utf8_slice_codeunits(pc.utf8_rpad(part, _DIGITS, "0"), 0, _DIGITS))
    rest = pc.match_substring_regex(part, f"^[0-9]{{{_DIGITS}}}.*[1-9]").to_numpy(
        zero_copy_only=False
    )
    power = UNITS[unit]
    if power >= 0:
        whole = np.minimum(whole, _FAR // 10**power)
        cut = 10 ** (_DIGITS - power)
        value, left = whole * 10**power + first // cut, (first % cut > 0) | rest
    else:
        cut = 10**-power
        value, left = whole // cut, (whole % cut > 0) | (first > 0) | rest
    negative = pc.equal(found.field("sign"), "-").fill_null(False).to_numpy(zero_copy_only=False)
    return np.where(negative, -value - left, value)


def _number(digits: pa.Array) -> np.ndarray:
    return (
        pc.if_else(pc.equal(digits, ""), "0", digits)
        .fill_null("0")
        .cast(pa.int64())
        .to_numpy()
        .copy()
    )


def _exact(text: str, unit: str) -> int:
    with localcontext() as context:
        context.prec = 2000
        number = Decimal(text).scaleb(UNITS[unit])
        if abs(number) > _FAR:
            return _FAR if number > 0 else -_FAR
        return int(number.to_integral_value("ROUND_FLOOR"))
