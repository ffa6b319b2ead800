"""Numbers, strings, durations and instants: text <-> value.

Every reader takes the `Pos` to blame and raises `QueryError` DS106 (a value that can't be) or DS107
(a duration).  Instants and durations are int microseconds; an instant without an offset is UTC.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from dsms import instants, typed_texts
from dsms.errors import QueryError
from dsms.lengths import interval_of
from dsms.sql.ast import Duration, Pos, Unit
from dsms.sql.suggest import nearest

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

MICROS: dict[Unit, int] = {
    Unit.MICROSECOND: 1,
    Unit.MILLISECOND: 1_000,
    Unit.SECOND: 1_000_000,
    Unit.MINUTE: 60_000_000,
    Unit.HOUR: 3_600_000_000,
    Unit.DAY: 86_400_000_000,
    Unit.WEEK: 604_800_000_000,
}
MONTHS: dict[Unit, int] = {Unit.MONTH: 1, Unit.YEAR: 12}

_SPELLINGS = {
    Unit.MICROSECOND: "us usec usecs microsecond microseconds",
    Unit.MILLISECOND: "ms msec msecs millisecond milliseconds",
    Unit.SECOND: "s sec secs second seconds",
    Unit.MINUTE: "min mins minute minutes",
    Unit.HOUR: "h hr hrs hour hours",
    Unit.DAY: "d day days",
    Unit.WEEK: "w week weeks",
    Unit.MONTH: "month months",
    Unit.YEAR: "y year years",
}
UNIT_WORDS: dict[str, Unit] = {
    word: unit for unit, words in _SPELLINGS.items() for word in words.split()
}
_PRINTED = {u: u.value for u in MICROS}
_PRINTED |= {Unit.DAY: "DAYS", Unit.WEEK: "WEEKS", Unit.MONTH: "MONTHS", Unit.YEAR: "YEARS"}

_NUMBER_UNIT = re.compile(r"\s*([+-]?)\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([^\W\d]*)\s*")


def bad(code: str, pos: Pos, message: str, hint: str | None = None) -> QueryError:
    """A QueryError at `pos`."""
    return QueryError(code, message, pos.line, pos.column, hint)


# ---------------------------------------------------------------- numbers and strings


_OTHER_TYPES = "write it as FLOAT (with a decimal point) or as DECIMAL '...'"


_LONGEST = f"the greatest number of days is {(2**62 - 1) // MICROS[Unit.DAY]}"


def count(text: str, pos: Pos) -> int:
    """A number of rows, seconds or the like, for which there is no other type."""
    return integer(text, pos, hint=f"the greatest number here is {INT_MAX}")


def integer(text: str, pos: Pos, *, limit: int = INT_MAX, hint: str = _OTHER_TYPES) -> int:
    """A non-negative integer up to `limit`; `hint`: what to write instead of a greater one."""
    digits = text.lstrip("0")
    if len(digits) > 20 or int(digits or 0) > limit:
        raise bad(
            "DS106",
            pos,
            f"the number {_short(text)} is too large; INT has 64 bits",
            hint,
        )
    return int(digits or 0)


def floating(text: str, pos: Pos) -> float:
    """A finite FLOAT."""
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise bad("DS106", pos, f"the number {_short(text)} is too large for FLOAT")
    return value


def decimal_text(text: str, pos: Pos) -> str:
    """Canonical text of ``DECIMAL 'text'``: [-]digits[.digits], scale kept, at most 38 digits."""
    match = re.fullmatch(r"\s*([+-]?)(\d*)(?:\.(\d*))?\s*", text, re.ASCII)
    if match is None or not (match[2] or match[3]):
        raise bad(
            "DS106", pos, f"'{_short(text)}' is not a decimal number", "for example DECIMAL '12.50'"
        )
    whole, fraction = match[2].lstrip("0"), match[3] or ""
    if len(whole) + len(fraction) > 38:
        raise bad("DS106", pos, f"'{_short(text)}' has more than the 38 digits of DECIMAL")
    sign = "-" if match[1] == "-" and (whole + fraction).strip("0") else ""
    return f"{sign}{whole or '0'}{'.' + fraction if fraction else ''}"


def unquote(text: str) -> str:
    """The content of a 'string' or a "name": the quotes off, doubled quotes single."""
    quote = text[0]
    return text[1:-1].replace(quote * 2, quote)


def byte_string(text: str, pos: Pos) -> bytes:
    """The bytes of ``X'0aff'``."""
    digits = text[2:-1]
    if len(digits) % 2 or re.fullmatch(r"[0-9a-fA-F]*", digits) is None:
        raise bad(
            "DS106",
            pos,
            f"{_short(text)} is not a byte string: it takes pairs of hexadecimal digits",
            "for example X'00ff'",
        )
    return bytes.fromhex(digits)


# ---------------------------------------------------------------- durations


def unit(word: str, pos: Pos) -> Unit:
    """The unit a word means, in any case, singular, plural or short."""
    found = UNIT_WORDS.get(word.lower())
    if found is not None:
        return found
    if word.lower() == "m":
        raise bad("DS107", pos, "'m' may be minutes or months", "write min or MONTHS")
    if word.lower() in ("ns", "nsec", "nanosecond", "nanoseconds"):
        raise bad(
            "DS107", pos, "durations count whole microseconds: there are no nanoseconds", "write us"
        )
    near = nearest(word, UNIT_WORDS)
    raise bad(
        "DS107",
        pos,
        f"'{_short(word)}' is not a unit of time",
        f"did you mean {near}?" if near else "units: us, ms, s, min, h, DAYS, WEEKS, MONTHS, YEARS",
    )


def duration(number: str, word: str | None, pos: Pos) -> Duration:
    """``number word`` as a Duration; without a unit it is seconds.  `number` may carry a minus
    sign."""
    written = unit(word, pos) if word else Unit.SECOND
    if len(number) > 40:
        raise bad("DS107", pos, f"the duration {_short(number)} is too long", _LONGEST)
    amount = Decimal(number) * (MONTHS.get(written) or MICROS[written])
    if amount != int(amount):
        what = "months" if written in MONTHS else "microseconds"
        raise bad("DS107", pos, f"{number} {word or 'seconds'} is not a whole number of {what}")
    if not -(2**62) < amount < 2**62:
        raise bad("DS107", pos, f"the duration {number} {word or 'seconds'} is too long", _LONGEST)
    if written in MONTHS:
        return Duration(0, written, int(amount), pos=pos)
    return Duration(int(amount), _dividing(int(amount), written), pos=pos)


def _dividing(micros: int, written: Unit) -> Unit:
    """The unit written, or the next finer one that divides: 1.5 h is 90 min."""
    units = list(MICROS)
    return next(u for u in reversed(units[: units.index(written) + 1]) if micros % MICROS[u] == 0)


def interval(text: str, word: str | None, pos: Pos) -> Duration:
    """The content of ``INTERVAL 'text' [word]``: ``'5' MINUTE``, ``'-1.5' HOURS``, ``'1 h 30
    min'``."""
    if word is None and (micros := interval_of(text.strip())) is not None:
        return Duration(micros, _written(text, micros), pos=pos)
    match = _NUMBER_UNIT.fullmatch(text)
    if match is None:
        raise bad(
            "DS107",
            pos,
            f"'{_short(text)}' is not a length of time",
            "for example INTERVAL '5' MINUTE",
        )
    if bool(match[3]) == (word is not None):
        problem = "names its unit twice" if match[3] else "names no unit"
        raise bad(
            "DS107", pos, f"INTERVAL '{_short(text)}' {problem}", "for example INTERVAL '5' MINUTE"
        )
    return duration(match[1].lstrip("+") + match[2], word or match[3], pos)


def _written(text: str, micros: int) -> Unit:
    """The unit to print a length with: that of the text where it has one, else the largest that
    divides it."""
    named = _NUMBER_UNIT.fullmatch(text)
    return _dividing(micros, UNIT_WORDS.get(named[3].lower(), Unit.WEEK) if named else Unit.HOUR)


def duration_text(value: Duration) -> str:
    """``10 s``, ``90 min``, ``2 DAYS``, ``1 MONTHS``: parses back to `value`."""
    if value.unit in MONTHS:
        return f"{value.months // MONTHS[value.unit]} {_PRINTED[value.unit]}"
    shown = _dividing(value.micros, value.unit)
    return f"{value.micros // MICROS[shown]} {_PRINTED[shown]}"


# ---------------------------------------------------------------- instants


def instant(text: str, pos: Pos) -> int:
    """Microseconds since the epoch of a text that `dsms.instants` reads; UTC without an offset."""
    micros = instants.instant(text)
    if micros is None:
        raise bad("DS106", pos, f"'{_short(text)}' is not an instant", instants.why_not(text))
    return micros


def typed(text: str, sql: str, pos: Pos) -> int | str:
    """A DATE, TIME or UUID as it is kept."""
    value = typed_texts.value_of(text, sql)
    if value is None:
        raise bad("DS106", pos, f"'{_short(text)}' is no {sql}", typed_texts.why_not(text, sql))
    return value


def in_range(micros: int, pos: Pos) -> int:
    """The instant itself, if it lies in the years 1 to 9999."""
    try:
        _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise bad("DS106", pos, "this instant lies beyond the year 9999") from None
    return micros


def instant_text(micros: int) -> str:
    """``2013-01-01 12:30:00[.ffffff]``, UTC: `instant` reads it back."""
    moment = (_EPOCH + timedelta(microseconds=micros)).replace(tzinfo=None)
    return moment.isoformat(sep=" ")


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
