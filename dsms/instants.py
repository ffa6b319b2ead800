"""Texts of instants: the one reader for literals, CAST, rows and columns that come in, and files.

    date    YYYY-M-D or YYYYMMDD; month and day may have one digit where dashes divide them
    time    behind a `T` or spaces: H, H:MM, H:MM:SS; behind YYYYMMDD also HHMM, HHMMSS; hours 0 to
            23, seconds 0 to 59
    parts   of a second: any number of digits behind `.` or `,`; what is finer than a microsecond is
            dropped
    zone    Z, UTC, GMT, +HH, +HHMM or +HH:MM, spaces before it allowed; behind a date alone not
            +HH; unsaid: UTC
    around  spaces, tabs and line ends; letters in any case

Years 0001 to 9999, after the offset, too.  No text of digits alone but YYYYMMDD is an instant: a
count needs a unit.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MIN_INSTANT = -62_135_596_800_000_000  # 0001-01-01
MAX_INSTANT = 253_402_300_799_999_999  # 9999-12-31T23:59:59.999999

_PARTS = ("y", "m", "d", "h", "i", "s", "f", "z")
_FRACTION = r"(?:[.,](?P<f>[0-9]+))?"
_ZONE = r" *(?P<z>z|utc|gmt|[+-][0-9]{2}(?::?[0-9]{2})?)?"
_LATER = r"(?:t| +)"
_DASHED = (
    r"(?i)^(?P<y>[0-9]{4})-(?P<m>[0-9]{1,2})-(?P<d>[0-9]{1,2})(?:" + rf"{_LATER}(?P<h>[0-9]{{1,"
    rf"2}})(?::(?P<i>[0-9]{{2}})(?::(?P<s>[0-9]{{2}}){_FRACTION})?)?{_ZONE})?$"
)
_BASIC = (
    r"(?i)^(?P<y>[0-9]{4})(?P<m>[0-9]{2})(?P<d>[0-9]{2})(?:"
    + rf"{_LATER}(?P<h>[0-9]{{2}})(?::?(?P<i>[0-9]{{2}})(?::?(?P<s>[0-9]{{2}}){_FRACTION})?)?"
    rf"{_ZONE})?$"
)
_ZONED_DAY = r"(?i)^([0-9]{4}-[0-9]{1,2}-[0-9]{1,2}|[0-9]{8}) *(z|utc|gmt|[+-][0-9]{2}:?[0-9]{2})$"
_CLOCK = r"[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
_ARROW = {  # forms that Arrow reads, too
    rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}({_CLOCK})?$": pa.timestamp("us"),
    rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}{_CLOCK}(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)$": pa.timestamp(
        "us", "UTC"
    ),
}


def instants(texts: pa.Array) -> pa.Array:
    """int64 microseconds since the epoch, NULL for a NULL and for a text that is no instant."""
    if not pa.types.is_string(texts.type):
        texts = texts.cast(pa.string())
    texts = pc.ascii_trim_whitespace(texts)
    plain = _plain(texts)
    return _any(texts) if plain is None else plain


def instant(text: str) -> int | None:
    """Microseconds since the epoch of one text; None if it is no instant."""
    try:
        return instants(pa.array([text], pa.string()))[0].as_py()
    except UnicodeEncodeError:  # a lone surrogate
        return None


def why_not(text: str) -> str:
    """What a text that is no instant lacks, for messages."""
    text = text.strip(" \t\n\v\f\r")
    if re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII) and len(text) != 8:
        return (
            "a number says no unit: TO_TIMESTAMP(n, 's') reads seconds, 'ms', 'us' and 'ns' "
            "are others"
        )
    if re.search(r":60(?:\D|$)|\d{4}60(?:[.,]|$)", text):
        return "leap seconds have no instant of their own: seconds go from 0 to 59"
    if re.search(r"[t ]24:?00", text, re.IGNORECASE):
        return "hours go from 0 to 23: the end of a day is 00:00 of the next"
    if re.fullmatch(_DASHED, text) or re.fullmatch(_BASIC, text) or re.fullmatch(_ZONED_DAY, text):
        return "there is no such day, time or offset in the years 0001 to 9999"
    return (
        "an instant is written '2013-01-01 12:30:00', with fractions or an offset (Z, +02:00) "
        "behind it"
    )


def _plain(texts: pa.Array) -> pa.Array | None:
    """Texts that are all of one usual form and exist: Arrow reads them ten times as fast."""
    for form, kind in _ARROW.items():
        if pc.all(pc.match_substring_regex(texts, form), min_count=0).as_py():
            try:
                return within(texts.cast(kind).cast(pa.int64()))
            except pa.ArrowInvalid:  # some day or hour does not exist
                return None
    return None


def within(instants: pa.Array) -> pa.Array | None:
    """The same (microseconds), if all lie in the years that are allowed."""
    first, last = (bound.as_py() for bound in pc.min_max(instants).values())
    return instants if first is None or (first >= MIN_INSTANT and last <= MAX_INSTANT) else None


def _any(texts: pa.Array) -> pa.Array:
    """Form by form: what one does not know, the next one may."""
    out = _dashed(texts)
    for read in (_basic, _zoned_days):
        where = np.flatnonzero(
            pc.and_(out.is_null(), texts.is_valid()).to_numpy(zero_copy_only=False)
        )
        if len(where) == 0:
            break
        found = read(texts.take(pa.array(where)))
        mask = np.zeros(len(texts), np.bool_)
        mask[where] = True
        out = pc.replace_with_mask(out, pa.array(mask), found)
    return out


def _dashed(texts: pa.Array) -> pa.Array:
    return _read(texts, _DASHED)


def _basic(texts: pa.Array) -> pa.Array:
    return _read(texts, _BASIC)


def _zoned_days(texts: pa.Array) -> pa.Array:
    """Days with a zone, as XML writes them: read as their midnights."""
    midnight = pc.replace_substring_regex(texts, _ZONED_DAY, r"\1 00:00 \2")
    return _read(midnight, _DASHED).fill_null(_read(midnight, _BASIC))


def _read(texts: pa.Array, form: str) -> pa.Array:
    """NULL where the text has another form or no such instant exists."""
    found = pc.extract_regex(texts, form)
    value, good = _value({name: found.field(name) for name in _PARTS})
    good &= found.is_valid().to_numpy(zero_copy_only=False)
    return pa.array(value, pa.int64(), mask=~good)


def _value(part: dict[str, pa.Array]) -> tuple[np.ndarray, np.ndarray]:
    """Microseconds since the epoch, and whether there is such an instant."""
    year, month, day = (_number(part[n]) for n in "ymd")
    hour, minute, second = (_number(part[n]) for n in "his")
    months = (year - 1970) * 12 + np.clip(month, 1, 12) - 1
    start = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
    length = (months + 1).astype("M8[M]").astype("M8[D]").astype(np.int64) - start
    good = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= length)
    good &= (hour <= 23) & (minute <= 59) & (second <= 59)
    fraction = _number(pc.utf8_slice_codeunits(pc.utf8_rpad(part["f"], 6, "0"), 0, 6))
    ahead, known = _offset(part["z"])
    value = (
        ((((start + day - 1) * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000
        + fraction
        - ahead
    )
    return value, good & known & (value >= MIN_INSTANT) & (value <= MAX_INSTANT)


def _offset(zone: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Microseconds that a zone like +05:30 is ahead, and whether it makes sense; names are
    UTC's."""
    digits = pc.replace_substring_regex(zone, "[^0-9]", "")
    hours = _number(pc.utf8_slice_codeunits(digits, 0, 2))
    minutes = _number(pc.utf8_slice_codeunits(digits, 2, 4))
    behind = pc.starts_with(zone, "-").fill_null(False).to_numpy(zero_copy_only=False)
    return np.where(behind, -1, 1) * (hours * 60 + minutes) * 60_000_000, (hours <= 23) & (
        minutes <= 59
    )


def _number(text: pa.Array) -> np.ndarray:
    """int64 of digits; 0 for none."""
    return pc.if_else(pc.equal(text, ""), "0", text).fill_null("0").cast(pa.int64()).to_numpy()
