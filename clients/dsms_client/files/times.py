"""Times as a file writes them, by formats of strptime, and in a time zone -> microseconds.

    %Y %y %m %d %H %I %p %M %S %f    as in Python; %f is any number of digits
    %b %B                            the name of a month in English, short or in full
    %a %A                            that of a weekday, which says nothing
    %z                               Z, UTC, +HH, +HHMM or +HH:MM
    %j                               the day of the year
    %%                               a percent sign

Month, day and hour may have one digit where two are meant.  A time that says no zone is one of
`zone`: where clocks go back it is the earlier of two; one that clocks skip is none.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.errors import UsageError
from dsms.instants import MAX_INSTANT, MIN_INSTANT, instants

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAY = 86_400_000_000
_PARTS = {
    "Y": r"(?P<y>[0-9]{4})", "y": r"(?P<c>[0-9]{2})", "m": r"(?P<m>[0-9]{1,2})",
    "d": r"(?P<d>[0-9]{1,2})", "e": r"(?P<d> ?[0-9]{1,2})", "H": r"(?P<h>[0-9]{1,2})",
    "I": r"(?P<h>[0-9]{1,2})", "p": r"(?P<p>am|pm)", "M": r"(?P<i>[0-9]{2})",
    "S": r"(?P<s>[0-9]{2})", "f": r"(?P<f>[0-9]+)", "j": r"(?P<j>[0-9]{1,3})",
    "b": r"(?P<b>[a-z]{3,9})", "B": r"(?P<b>[a-z]{3,9})", "h": r"(?P<b>[a-z]{3,9})",
    "a": r"[a-z]{2,9}", "A": r"[a-z]{2,9}", "z": r"(?P<z>z|utc|gmt|[+-][0-9]{2}(?::?[0-9]{2})?)",
    "%": "%",
}  # a table  # fmt: skip
_SHORT = {"T": "%H:%M:%S", "F": "%Y-%m-%d", "D": "%m/%d/%y", "R": "%H:%M"}
# a time of day that ends in a zone, or a day that does
_ZONED = (
    r"(?i)(?:z|utc|gmt)$|(?:[t ][0-9]{1,2}(?::[0-9]{2}){0,2}(?:[.,][0-9]+)?|[t ][0-9]{4,6}"
    r"(?:[.,][0-9]+)?) *[+-][0-9]{2}(?::?[0-9]{2})?$|[0-9] *[+-][0-9]{2}:[0-9]{2}$"
)


@lru_cache(maxsize=64)
def compiled(form: str) -> tuple[str, frozenset[str]]:
    """A regular expression (RE2) for a format, and the names of its groups.  Raises DS530."""
    for short, whole in _SHORT.items():
        form = form.replace(f"%{short}", whole)
    out, names = [], set()
    for piece in re.findall(r"%.?|[^%]+", form, re.DOTALL):
        if not piece.startswith("%"):
            out.append(re.sub(r"\s+", r"\\s+", re.sub(r"([^\w\s])", r"\\\1", piece)))
            continue
        part = _PARTS.get(piece[1:])
        if part is None:
            raise _wrong(form, f"{piece} is no part of one")
        found = re.match(r"\(\?P<(\w)>", part)
        if found and found[1] in names:
            raise _wrong(form, f"{piece} says again what was said")
        names |= {found[1]} if found else set()
        out.append(part)
    if not (names & set("yc") and (names & set("j") or (names & set("mb") and "d" in names))):
        raise _wrong(form, "it says no day: %Y-%m-%d, %d/%b/%Y, ...")
    return f"(?i)^{''.join(out)}$", frozenset(names)


def _wrong(form: str, why: str) -> UsageError:
    return UsageError("DS530", f"{form!r} is no format of times: {why}", hint="dsms load --help")


def parse(texts: pa.Array, formats: tuple[str, ...], zone: str | None) -> pa.Array:
    """int64 microseconds since 1970, NULL where a text is in none of the formats, nor in a usual
    form (`dsms.instants`)."""
    out = pa.nulls(len(texts), pa.int64())
    for form in formats:
        missing = np.flatnonzero(
            pc.and_(out.is_null(), texts.is_valid()).to_numpy(zero_copy_only=False)
        )
        if not len(missing):
            return out
        out = _filled(out, missing, by_format(texts.take(pa.array(missing)), form, zone))
    missing = pc.and_(out.is_null(), texts.is_valid()).to_numpy(zero_copy_only=False)
    where = np.flatnonzero(missing)
    return _filled(out, where, usual(texts.take(pa.array(where)), zone)) if len(where) else out


def _filled(out: pa.Array, where: np.ndarray, found: pa.Array) -> pa.Array:
    if len(where) == len(out):
        return found
    mask = np.zeros(len(out), np.bool_)
    mask[where] = True
    return pc.replace_with_mask(out, pa.array(mask), found)


def usual(texts: pa.Array, zone: str | None) -> pa.Array:
    """Texts in the usual forms."""
    found = instants(texts)
    if zone is None:
        return found
    zoned = pc.match_substring_regex(pc.ascii_trim_whitespace(texts), _ZONED).fill_null(False)
    return pc.if_else(zoned, found, in_zone(found, zone))


def by_format(texts: pa.Array, form: str, zone: str | None) -> pa.Array:
    """Texts in one format; NULL for others, and for days and times that there are not."""
    pattern, names = compiled(form)
    found = pc.extract_regex(texts, pattern)
    if found.null_count == len(found):
        return pa.nulls(len(texts), pa.int64())
    good = found.is_valid().to_numpy(zero_copy_only=False)

    def number(name: str, other: int) -> np.ndarray:
        if name not in names:
            return np.full(len(texts), other, np.int64)
        digits = pc.utf8_trim_whitespace(found.field(name)).fill_null("")
        digits = pc.if_else(pc.equal(digits, ""), str(other), digits)
        return np.asarray(digits.cast(pa.int64()))

    year = number("y", 1970)
    if "c" in names:  # as POSIX has it
        short = number("c", 70)
        year = np.where(short < 69, 2000, 1900) + short
    month, hour = number("m", 1), number("h", 0)
    if "b" in names:
        lower = pc.utf8_slice_codeunits(pc.utf8_lower(found.field("b")), 0, 3)
        at = pc.index_in(lower, pa.array(_MONTHS)).fill_null(-1)
        month = np.asarray(at).astype(np.int64) + 1
    if "p" in names:
        late = np.asarray(pc.equal(pc.utf8_lower(found.field("p")), "pm").fill_null(False))
        good &= (hour >= 1) & (hour <= 12)
        hour = hour % 12 + np.where(late, 12, 0)
    value, fits = _moment(year, month, number("d", 1), hour, number("i", 0), number("s", 0))
    if "j" in names:
        day = number("j", 1)
        value = value + (day - 1) * _DAY
        leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
        fits &= (day >= 1) & (day <= 365 + leap)
    if "f" in names:
        part = pc.utf8_slice_codeunits(pc.utf8_rpad(found.field("f"), 6, "0"), 0, 6)
        value = value + np.asarray(part.fill_null("0").cast(pa.int64()))
    if "z" in names:
        ahead, known = _offset(found.field("z"))
        value, fits = value - ahead, fits & known
    fits &= good & (value >= MIN_INSTANT) & (value <= MAX_INSTANT)
    out = pa.array(value, pa.int64(), mask=~fits)
    return out if zone is None or "z" in names else in_zone(out, zone)


def _moment(*parts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Microseconds since 1970 of year, month, day, hour, minute, second, and whether there is such
    a moment."""
    year, month, day, hour, minute, second = parts
    months = (year - 1970) * 12 + np.clip(month, 1, 12) - 1
    start = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
    length = (months + 1).astype("M8[M]").astype("M8[D]").astype(np.int64) - start
    good = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= length)
    good &= (hour <= 23) & (minute <= 59) & (second <= 59)
    days = start + day - 1
    return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000, good


def _offset(zone: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    digits = pc.utf8_rpad(pc.replace_substring_regex(zone.fill_null(""), "[^0-9]", ""), 4, "0")
    number = np.asarray(digits.cast(pa.int64()))
    behind = np.asarray(pc.starts_with(zone, "-").fill_null(False))
    hours, minutes = number // 100, number % 100
    ahead = np.where(behind, -1, 1) * (hours * 60 + minutes) * 60_000_000
    return ahead, (hours <= 23) & (minutes <= 59)


def in_zone(local: pa.Array, zone: str) -> pa.Array:
    """Local times of a zone -> instants; NULL for those that its clocks skip."""
    stamps = local.cast(pa.timestamp("us"))
    early = pc.assume_timezone(stamps, zone, ambiguous="earliest", nonexistent="earliest")
    late = pc.assume_timezone(stamps, zone, ambiguous="earliest", nonexistent="latest")
    first, last = early.cast(pa.int64()), late.cast(pa.int64())
    return pc.if_else(pc.equal(first, last), first, pa.scalar(None, pa.int64()))


def check_zone(zone: str) -> None:
    """Raises DS222 for a zone that is not known."""
    try:
        in_zone(pa.array([0]), zone)
    except pa.ArrowException:
        raise UsageError(
            "DS222", f"unknown time zone {zone}", hint="names are like Europe/Berlin"
        ) from None


GUESSED = (  # formats that are tried where none is said, beside the usual forms
    "%Y/%m/%d", "%Y/%m/%d %H:%M", "%Y/%m/%d %H:%M:%S", "%Y/%m/%d %H:%M:%S.%f",
    "%d/%b/%Y:%H:%M:%S %z", "%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S",
    "%m/%d/%Y", "%d/%m/%Y", "%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M:%S", "%m/%d/%Y %I:%M:%S %p", "%m/%d/%Y %I:%M %p", "%d/%m/%y", "%m/%d/%y",
    "%d-%b-%Y", "%d %b %Y", "%d-%b-%Y %H:%M:%S", "%d %b %Y %H:%M:%S", "%b %d %Y %H:%M:%S",
    "%b %d, %Y", "%a %b %d %H:%M:%S %Y", "%a, %d %b %Y %H:%M:%S %z", "%Y-%m-%d_%H:%M:%S",
    "%Y-%m-%d-%H:%M:%S", "%Y.%m.%d", "%Y.%m.%d %H:%M:%S", "%Y-%j",
)  # a table  # fmt: skip


def guess(texts: pa.Array) -> list[str]:
    """The formats in which all these texts are; several where days and months can't be told
    apart."""
    texts = texts.drop_null()
    if not len(texts):
        return []
    first = texts[0].as_py()
    likely = [form for form in GUESSED if re.match(compiled(form)[0], first)]
    return [form for form in likely if not by_format(texts, form, None).null_count]
