"""STRFTIME and STRPTIME: instants written and read by a pattern, a column at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.operators.expressions.arithmetic import refuse
from dsms.operators.expressions.arrays import Value, from_ints, ints, present, relabel, spread
from dsms.operators.expressions.errors import CAST, ErrorCounter
from dsms.operators.expressions.growth import admitted
from dsms.operators.expressions.node import Builder, Built, Node, length
from dsms.sql.expr import Call
from dsms.sql.functions.formats import DAYS, FIELDS, HALVES, MONTHS, parts
from dsms.sql.types import MAX_INSTANT, MIN_INSTANT

DAY, HOUR, MINUTE, SECOND = 86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000
_TEXT = pa.string()


def _pattern(args: Sequence[Node]) -> str:
    const = args[1].const
    assert const is not None  # the binder has checked it
    return str(const.as_py())


# ---------------------------------------------------------------- written


def _calendar(x: np.ndarray, start: str) -> np.ndarray:
    """How many days into its year ("M8[Y]") or month each instant is, from 0."""
    days = (x // DAY).astype("M8[D]")
    found: np.ndarray = (days - days.astype(start).astype("M8[D]")).astype(np.int64)
    return found


def _months(x: np.ndarray) -> np.ndarray:
    """Months since January 1970."""
    found: np.ndarray = (x // DAY).astype("M8[D]").astype("M8[M]").astype(np.int64)
    return found


def _stamps(x: np.ndarray) -> pa.Array:
    return relabel(from_ints(x), pa.timestamp("us"))


@cache
def _numbers(digits: int) -> pa.Array:
    return pa.array([f"{k:0{digits}}" for k in range(10**digits)], _TEXT)


def _digits(values: np.ndarray, digits: int) -> pa.Array:
    if digits <= 4:
        return _numbers(digits).take(pa.array(values))
    return pc.utf8_lpad(pa.array(values).cast(_TEXT), digits, "0")


def _names(names: Sequence[str], values: np.ndarray) -> pa.Array:
    return pa.array(names, _TEXT).take(pa.array(values))


def _weekday(x: np.ndarray) -> np.ndarray:
    """From 0, Monday."""
    return (x // DAY + 3) % 7


_SHORT_MONTHS = tuple(name[:3] for name in MONTHS)
_SHORT_DAYS = tuple(name[:3] for name in DAYS)
_WRITERS: dict[str, Callable[[np.ndarray], pa.Array]] = {
    "Y": lambda x: _digits(_months(x) // 12 + 1970, 4),
    "y": lambda x: _digits((_months(x) // 12 + 1970) % 100, 2),
    "m": lambda x: _digits(_months(x) % 12 + 1, 2),
    "b": lambda x: _names(_SHORT_MONTHS, _months(x) % 12),
    "B": lambda x: _names(MONTHS, _months(x) % 12),
    "d": lambda x: _digits(_calendar(x, "M8[M]") + 1, 2),
    "j": lambda x: _digits(_calendar(x, "M8[Y]") + 1, 3),
    "H": lambda x: _digits(x % DAY // HOUR, 2),
    "I": lambda x: _digits((x % DAY // HOUR + 11) % 12 + 1, 2),
    "p": lambda x: _names(HALVES, x % DAY // (12 * HOUR)),
    "M": lambda x: _digits(x % HOUR // MINUTE, 2),
    "S": lambda x: _digits(x % MINUTE // SECOND, 2),
    "f": lambda x: _digits(x % SECOND, 6),
    "a": lambda x: _names(_SHORT_DAYS, _weekday(x)),
    "A": lambda x: _names(DAYS, _weekday(x)),
    "z": lambda x: pa.repeat(pa.scalar("+0000"), len(x)),
    "u": lambda x: _digits(_weekday(x) + 1, 1),
    "w": lambda x: _digits((_weekday(x) + 1) % 7, 1),
    "G": lambda x: _digits(ints(pc.iso_year(_stamps(x))), 4),
    "V": lambda x: _digits(ints(pc.iso_week(_stamps(x))), 2),
}
_WIDEST = 9  # characters that a code writes


def _strftime(call: Call, args: Sequence[Node]) -> Built:
    pieces = list(parts(_pattern(args)))
    most = np.array([sum(len(text.encode()) or _WIDEST for _, text in pieces)], np.int64)

    def kernel(errors: ErrorCounter, x: Value, pattern: Value) -> pa.Array:
        x = admitted(errors, spread(x, length(x, pattern)), most, (), "a written instant")
        here = present(x)
        values = ints(x) if here is None else np.where(here, ints(x), 0)
        texts = [pa.scalar(text) if text else _WRITERS[code](values) for code, text in pieces]
        if not texts or all(isinstance(t, pa.Scalar) for t in texts):
            texts = [pa.repeat(pa.scalar("".join(text for _, text in pieces)), len(x))]
        found = pc.binary_join_element_wise(*texts, "")
        return found if here is None else pc.if_else(x.is_valid(), found, pa.nulls(len(x), _TEXT))

    return Built(kernel, True, True)


# ---------------------------------------------------------------- read


def _any_case(names: Sequence[str]) -> str:
    """A regular expression of ASCII letters in either case, and nothing that folds to them."""
    return "|".join("".join(f"[{c.upper()}{c.lower()}]" for c in name) for name in names)


_FORMS = {
    "Y": "[0-9]{4}",
    "j": "[0-9]{1,3}",
    "f": "[0-9]{1,6}",
    "b": _any_case(_SHORT_MONTHS),
    "B": _any_case(MONTHS),
    "a": _any_case(_SHORT_DAYS),
    "A": _any_case(DAYS),
    "p": _any_case(HALVES),
    "z": "Z|[+-][0-9]{2}(?::?[0-9]{2})?",
}
_DIGITS = "[0-9]{1,2}"
Read = dict[str, pa.Array]


def regex(pattern: str) -> str:
    """What texts of the pattern match, a group for each code, called by it."""
    inside = (
        "".join("\\" + c if c.isascii() and not c.isalnum() else c for c in text)
        if text
        else f"(?P<{code}>{_FORMS.get(code, _DIGITS)})"
        for code, text in parts(pattern)
    )
    return f"(?s)^{''.join(inside)}$"


def _numbers_of(found: Read, field: str, unsaid: int) -> np.ndarray:
    for code, texts in found.items():
        if FIELDS[code] == field:
            if code == "f":
                texts = pc.utf8_rpad(texts, 6, "0")
            numbers = ints(texts.cast(pa.int64()))
            return numbers + np.where(numbers < 69, 2000, 1900) if code == "y" else numbers
    return np.full(1, unsaid, np.int64)


def _months_read(found: Read) -> np.ndarray:
    for code, names in (("b", _SHORT_MONTHS), ("B", MONTHS)):
        if code in found:
            known = pa.array([name.lower() for name in names], _TEXT)
            return ints(pc.index_in(pc.ascii_lower(found[code]), known).cast(pa.int64())) + 1
    return _numbers_of(found, "month", 1)


def _hours(found: Read) -> tuple[np.ndarray, np.ndarray]:
    """Hours of the day, and which are none."""
    hours = _numbers_of(found, "hour", 0)
    if "I" not in found:
        return hours, hours > 23
    late = np.asarray(pc.equal(pc.ascii_lower(found["p"]), "pm").fill_null(False))
    return hours % 12 + 12 * late, (hours < 1) | (hours > 12)


def _ahead(found: Read) -> tuple[np.ndarray, np.ndarray]:
    """Microseconds that %z is ahead of UTC, and which are none."""
    if "z" not in found:
        return np.zeros(1, np.int64), np.zeros(1, np.bool_)
    texts = pc.replace_substring(pc.replace_substring(found["z"], "Z", "+00"), ":", "")
    digits = pc.utf8_rpad(pc.utf8_slice_codeunits(texts, 1, 5), 4, "0").cast(pa.int64())
    hours, minutes = ints(digits) // 100, ints(digits) % 100
    west = np.asarray(pc.starts_with(texts, "-").fill_null(False))
    return np.where(west, -1, 1) * (hours * HOUR + minutes * MINUTE), (hours > 23) | (minutes > 59)


def _instants(found: Read) -> tuple[np.ndarray, np.ndarray]:
    """The instants, and which rows have none: a 30 February, an hour 24."""
    year, month = _numbers_of(found, "year", 1), _months_read(found)
    bad = (year < 1) | (month < 1) | (month > 12)
    months = (year - 1970) * 12 + np.clip(month, 1, 12) - 1
    first = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
    after = (months + (12 if "j" in found else 1)).astype("M8[M]").astype("M8[D]").astype(np.int64)
    day = _numbers_of(found, "doy" if "j" in found else "day", 1)
    hours, no_hour = _hours(found)
    ahead, no_offset = _ahead(found)
    minutes, seconds = _numbers_of(found, "minute", 0), _numbers_of(found, "second", 0)
    bad = bad | (day < 1) | (day > after - first) | no_hour | no_offset
    time = hours * HOUR + minutes * MINUTE + seconds * SECOND + _numbers_of(found, "fraction", 0)
    out = (first + day - 1) * DAY + time - ahead
    bad = bad | (minutes > 59) | (seconds > 59) | (out < MIN_INSTANT) | (out > MAX_INSTANT)
    return out, bad


def _strptime(call: Call, args: Sequence[Node]) -> Built:
    pattern = _pattern(args)
    form, codes = regex(pattern), [code for code, text in parts(pattern) if not text]

    def kernel(errors: ErrorCounter, x: Value, _: Value) -> pa.Array:
        x = spread(x, length(x, _))
        found = pc.extract_regex(x, form)
        there = found.is_valid().to_numpy(zero_copy_only=False)
        fields = {code: found.field(code) for code in codes}
        fields = {
            code: pc.if_else(found.is_valid(), f, _unread(code)) for code, f in fields.items()
        }
        out, bad = (np.broadcast_to(a, len(x)) for a in _instants(fields))
        bad = bad | ~there
        made = from_ints(np.where(bad, 0, out), present(x))
        if not bad.any():
            return made
        at = np.flatnonzero(bad & np.asarray(x.is_valid()))
        sample = str(x[int(at[0])])[:40] if len(at) else ""
        return refuse(errors, made, bad, [x], CAST, f"'{sample}' is no instant as '{pattern}'")

    return Built(kernel, True)


def _unread(code: str) -> str:
    """Something that can be read, for rows that are no such text."""
    odd = {"b": "Jan", "B": "January", "a": "Mon", "A": "Monday", "p": "AM", "z": "Z", "Y": "1970"}
    return odd.get(code, "1")


BUILDERS: dict[str, Builder] = {"strftime": _strftime, "strptime": _strptime}
