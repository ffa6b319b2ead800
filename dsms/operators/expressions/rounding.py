"""ROUND of FLOATs to decimal digits: of the shortest decimal text that reads back as the FLOAT,
ties away from zero.

So ROUND(1.325, 2) is 1.33, as people read 1.325, though the FLOAT lies a little below it; CAST to
DECIMAL and ROUND of a DECIMAL agree.  Which side of a tie a FLOAT is on, FLOAT arithmetic can
tell: with at most 15 digits, the tie is the text of the one FLOAT that is nearest to it, and
smaller FLOATs have smaller texts.  Rows with more digits are few: they are worked out one by one.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np

MOST = 400  # digits beyond which no FLOAT has any, and before which none has one
_EXACT = 22  # the largest power of ten that a FLOAT holds
_POWERS = np.array([10.0**i for i in range(_EXACT + 1)])
_COUNTED = 1e13  # below it ten times a tie has at most 15 digits
_DIGITS = Context(prec=2 * MOST + 50, rounding=ROUND_HALF_UP)


def half_away(x: np.ndarray) -> np.ndarray:
    """Whole FLOATs, ties away from zero."""
    whole = np.floor(np.abs(x))
    return np.copysign(whole + (np.abs(x) - whole >= 0.5), x)


def round_floats(x: np.ndarray, places: np.ndarray) -> np.ndarray:
    """float64 `x` rounded to int64 `places` digits behind the point (negative: before it); NaN and
    infinities stay."""
    x, n = np.broadcast_arrays(x, np.clip(places, -MOST, MOST))
    with np.errstate(all="ignore"):
        out, sure = _by_ties(np.abs(x), n)
        whole = ~np.isfinite(x) | ((n >= 0) & (x == np.rint(x)))
    out = np.where(whole, x, np.copysign(out, x))
    for row in np.flatnonzero(~sure & ~whole):
        out[row] = _by_digits(float(x[row]), int(n[row]))
    return out


def _by_ties(x: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`x` >= 0 rounded, and where that is right."""
    known = (n < _EXACT) & (n > -_EXACT)
    places = np.where(known, n, 0)
    power = _POWERS[np.abs(places)]
    down = np.floor(np.where(places >= 0, x * power, x / power))
    tie = (2 * down + 1) * 5  # times 10^-(n + 1)
    tie = np.where(
        places >= 0, tie / _POWERS[np.abs(places + 1)], tie * _POWERS[np.abs(places + 1)]
    )
    count = down + (x >= tie)
    return np.where(places >= 0, count / power, count * power), known & (down < _COUNTED)


def _by_digits(x: float, n: int) -> float:
    """One row, in decimal digits; x itself if the result is too large for a FLOAT."""
    text = Decimal(repr(x))
    exponent = text.as_tuple().exponent
    if isinstance(exponent, int) and exponent >= -n:
        return x  # it has no more digits than that
    result = float(text.quantize(Decimal(1).scaleb(-n), context=_DIGITS))
    return result if math.isfinite(result) else x
