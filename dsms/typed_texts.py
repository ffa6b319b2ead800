"""Texts of DATE, TIME and UUID: the one reader for literals, CAST, rows and columns that come in,
and files; and the way back.

    DATE    the date of an instant (`dsms.instants`) and nothing behind it: YYYY-M-D or YYYYMMDD.
            Kept as its midnight in UTC, int64 microseconds since the epoch; years 0001 to 9999
    TIME    H:MM or H:MM:SS with any number of digits behind `.` or `,`, of which what is finer than
            a microsecond is dropped; 00:00:00 to 23:59:59.999999, without a zone.  Kept as int64
            microseconds since midnight
    UUID    32 hexadecimal digits, with or without the dashes, in braces or without them, in any
            case.  Kept as text in lower case with dashes, whose order is that of the bits
    around  spaces, tabs and line ends
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from dsms import spelled
from dsms.instants import MAX_INSTANT, MIN_INSTANT, instants
from dsms.instants import why_not as why_no_instant

DAY = 86_400_000_000  # µs
_TEXT = pa.string()
_DATE = r"^(?:[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}|[0-9]{8})$"
_TIME = r"^[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?$"
_GROUPS = "-?".join(f"[0-9a-f]{{{n}}}" for n in (8, 4, 4, 4, 12))
_UUID = rf"^(?:{_GROUPS}|\{{{_GROUPS}\}})$"
_CANONICAL = "^" + "-".join(f"[0-9a-f]{{{n}}}" for n in (8, 4, 4, 4, 12)) + "$"


def dates(texts: pa.Array) -> pa.Array:
    """int64 microseconds since the epoch at which the days begin, NULL for what is no date."""
    return instants(_formed(texts, _DATE))


def times(texts: pa.Array) -> pa.Array:
    """int64 microseconds since midnight, NULL for what is no time of a day."""
    formed = _formed(texts, _TIME)
    return instants(pc.binary_join_element_wise("1970-01-01", formed, " "))


def uuids(texts: pa.Array) -> pa.Array:
    """The texts as UUIDs are kept, NULL for what is none."""
    texts = texts.cast(_TEXT)
    if pc.all(pc.match_substring_regex(texts, _CANONICAL), min_count=0).as_py():
        return texts
    formed = _formed(pc.utf8_lower(pc.ascii_trim_whitespace(texts)), _UUID)
    digits = pc.replace_substring_regex(formed, "[-{}]", "")
    parts = [pc.utf8_slice_codeunits(digits, a, b) for a, b in _CUTS]
    return pc.binary_join_element_wise(*parts, "-")


_CUTS = ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))


def uuids_of(values: pa.Array) -> pa.Array:
    """UUIDs of values of 16 bytes each."""
    return uuids(pa.array([None if v is None else v.hex() for v in values.to_pylist()], _TEXT))


def _formed(texts: pa.Array, form: str) -> pa.Array:
    """The texts, trimmed, with NULL for those of another form."""
    texts = pc.ascii_trim_whitespace(texts.cast(_TEXT))
    formed = pc.match_substring_regex(texts, form)
    if pc.all(formed, min_count=0).as_py():
        return texts
    return pc.if_else(formed, texts, pa.nulls(len(texts), _TEXT))


def _why_no_date(text: str) -> str:
    text = text.strip()
    if re.fullmatch(_DATE, text):
        return "there is no such day in the years 0001 to 9999"
    if instants(pa.array([text], _TEXT))[0].is_valid:
        return "a DATE has no time of the day: CAST(... AS TIMESTAMP) reads one"
    return "a date is written '2013-01-31'"


def _why_no_time(text: str) -> str:
    if re.fullmatch(_TIME, text.strip()):
        return why_no_instant(f"1970-01-01 {text.strip()}")
    return "a time of a day is written '12:30:00', with fractions behind it, without a zone"


def _why_no_uuid(text: str) -> str:
    return "a UUID has 32 hexadecimal digits: '5a0e3b1c-0f2d-4c6e-9b7a-1d2e3f405162'"


def odd_counts(values: pa.Array, sql: str) -> pa.Array:
    """bool: which int64 microseconds are no DATE (a midnight of the years 0001 to 9999) or TIME."""
    if sql == "TIME":
        return pc.or_(pc.less(values, 0), pc.greater_equal(values, DAY))
    outside = pc.or_(pc.less(values, MIN_INSTANT), pc.greater(values, MAX_INSTANT))
    days = pc.multiply(pc.divide(values, DAY), DAY)
    return pc.or_(outside, pc.not_equal(values, days))


def why_not_count(count: int, sql: str) -> str:
    """Why that many microseconds are no DATE or TIME; empty: they are one."""
    if sql == "TIME":
        return "" if 0 <= count < DAY else "a TIME is from 00:00:00 to 23:59:59.999999"
    if not MIN_INSTANT <= count <= MAX_INSTANT:
        return "there is no such day in the years 0001 to 9999"
    return "" if count % DAY == 0 else "a DATE has no time of the day"


READ: dict[str, Callable[[pa.Array], pa.Array]] = {"DATE": dates, "TIME": times, "UUID": uuids}
WHY: dict[str, Callable[[str], str]] = {
    "DATE": _why_no_date,
    "TIME": _why_no_time,
    "UUID": _why_no_uuid,
}
EDGE = {"DATE": pa.date32(), "TIME": pa.time64("us")}  # as others see them


def value_of(text: str, sql: str) -> int | str | None:
    """What one text of the type is kept as; None if it is none."""
    try:
        found: int | str | None = READ[sql](pa.array([text], _TEXT))[0].as_py()
    except UnicodeEncodeError:  # a lone surrogate
        return None
    return found


def why_not(text: str, sql: str) -> str:
    """What a text that is none of the type lacks, for messages."""
    return WHY[sql](text.encode(errors="replace").decode())


def texts_of(values: pa.Array, sql: str) -> pa.Array:
    """Values as they are kept as CAST to STRING writes them."""
    match sql:
        case "DATE":
            return spelled.dates(values)
        case "TIME":
            return spelled.times(values)
        case _:
            return values


def text_of(value: int | str, sql: str) -> str:
    """One value as CAST to STRING writes it."""
    if isinstance(value, str):
        return value
    text: str = texts_of(pa.array([value], pa.int64()), sql)[0].as_py()
    return text


def to_edge(values: pa.Array | pa.ChunkedArray, sql: str) -> pa.Array | pa.ChunkedArray:
    """DATE and TIME as they are kept -> as others see them; other columns as they are."""
    if sql == "DATE":
        return values.cast(pa.timestamp("us")).cast(pa.date32())
    return values.cast(EDGE[sql]) if sql in EDGE else values


def from_edge(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Dates, times, instants and lengths as others see them -> int64 microseconds."""
    if pa.types.is_date(values.type):
        values = values.cast(pa.timestamp("us"))
    elif pa.types.is_time32(values.type):
        values = values.cast(pa.time64("us"))
    return values.cast(pa.int64())
