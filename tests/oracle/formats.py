"""STRFTIME and STRPTIME, a character at a time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator

from dsms.sql.expr import Call
from tests.oracle.functions import Failed, check
from tests.oracle.times import micros, utc
from tests.oracle.values import Value

MONTHS = [
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
WHOLE = {"F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M"}

WRITE: dict[str, Callable[[dt.datetime], str]] = {
    "Y": lambda d: str(d.year).rjust(4, "0"),
    "y": lambda d: str(d.year)[-2:].rjust(2, "0"),
    "m": lambda d: str(d.month).rjust(2, "0"),
    "d": lambda d: str(d.day).rjust(2, "0"),
    "j": lambda d: str(d.timetuple().tm_yday).rjust(3, "0"),
    "H": lambda d: str(d.hour).rjust(2, "0"),
    "I": lambda d: str(d.hour % 12 or 12).rjust(2, "0"),
    "p": lambda d: "AM" if d.hour < 12 else "PM",
    "M": lambda d: str(d.minute).rjust(2, "0"),
    "S": lambda d: str(d.second).rjust(2, "0"),
    "f": lambda d: str(d.microsecond).rjust(6, "0"),
    "b": lambda d: MONTHS[d.month - 1][:3],
    "B": lambda d: MONTHS[d.month - 1],
    "a": lambda d: DAYS[d.weekday()][:3],
    "A": lambda d: DAYS[d.weekday()],
    "z": lambda d: "+0000",
    "u": lambda d: str(d.isoweekday()),
    "w": lambda d: str(d.isoweekday() % 7),
    "G": lambda d: str(d.isocalendar().year).rjust(4, "0"),
    "V": lambda d: str(d.isocalendar().week).rjust(2, "0"),
}


def _strftime(call: Call, t: int, pattern: str) -> str:
    out, rest = "", list(pattern)
    while rest:
        c = rest.pop(0)
        if c != "%":
            out += c
            continue
        code = rest.pop(0)
        if code in WHOLE:
            rest[:0] = WHOLE[code]
        else:
            out += "%" if code == "%" else WRITE[code](utc(t))
    return out


def _readings(code: str, text: str) -> Iterator[str]:
    """What the text may begin with, the longest first."""
    names = {
        "b": [m[:3] for m in MONTHS], "B": MONTHS, "a": [d[:3] for d in DAYS], "A": DAYS,
        "p": ["AM", "PM"],
    }  # a table  # fmt: skip
    if code in names:
        yield from (text[: len(n)] for n in names[code] if _lower(text[: len(n)]) == n.lower())
    elif code == "z":
        yield from ("Z" for _ in text[:1] if text[0] == "Z")
        for shape in ("+00:00", "+0000", "+00"):
            part = text[: len(shape)]
            if len(part) == len(shape) and all(map(_like, part, shape)):
                yield part
    else:
        most = {"Y": 4, "j": 3, "f": 6}.get(code, 2)
        for n in range(most, (4 if code == "Y" else 1) - 1, -1):
            if len(text[:n]) == n and all(c in "0123456789" for c in text[:n]):
                yield text[:n]


def _lower(text: str) -> str:
    return "".join(c.lower() if c.isascii() else c for c in text)


def _like(c: str, shape: str) -> bool:
    return c in {"+": "+-", "0": "0123456789", ":": ":"}[shape]


def _read(text: str, pattern: str) -> dict[str, str] | None:
    if not pattern:
        return None if text else {}
    if pattern[0] != "%" or pattern[1] == "%":
        size = 1 if pattern[0] != "%" else 2
        return _read(text[1:], pattern[size:]) if text[:1] == pattern[0] else None
    code, rest = pattern[1], pattern[2:]
    if code in WHOLE:
        return _read(text, WHOLE[code] + rest)
    for part in _readings(code, text):
        more = _read(text[len(part) :], rest)
        if more is not None:
            return {code: part, **more}
    return None


def _year(found: dict[str, str]) -> int:
    if "Y" in found:
        return int(found["Y"])
    short = int(found["y"])
    return short + (1900 if short >= 69 else 2000)


def _month(found: dict[str, str]) -> int:
    for code in "bB":
        if code in found:
            return 1 + [m[:3].lower() for m in MONTHS].index(found[code][:3].lower())
    return int(found.get("m", 1))


def _hour(found: dict[str, str]) -> int:
    if "I" not in found:
        return int(found.get("H", 0))
    hour = int(found["I"])
    if not 1 <= hour <= 12:
        raise Failed("no such hour")
    return hour % 12 + 12 * (found["p"].lower() == "pm")


def _ahead(text: str) -> dt.timedelta:
    if text == "Z":
        return dt.timedelta()
    digits = text[1:].replace(":", "")
    hours, minutes = int(digits[:2]), int(digits[2:] or 0)
    if hours > 23 or minutes > 59:
        raise Failed("no such offset")
    return dt.timedelta(hours=hours, minutes=minutes) * (-1 if text[0] == "-" else 1)


def _strptime(call: Call, text: str, pattern: str) -> int:
    found = _read(text, pattern)
    if found is None:
        raise Failed("another form")
    fraction = int((found.get("f", "") + "000000")[:6])
    clock = (_hour(found), int(found.get("M", 0)), int(found.get("S", 0)), fraction)
    try:
        day = dt.date(_year(found), _month(found), int(found.get("d", 1)))
        if "j" in found:
            later = day + dt.timedelta(days=int(found["j"]) - 1)
            if later.year != day.year:
                raise Failed("no such day of the year")
            day = later
        local = dt.datetime.combine(day, dt.time(*clock), dt.UTC)
        return check(
            micros(local) - _ahead(found.get("z", "Z")) // dt.timedelta(0, 0, 1), call.type
        )
    except (ValueError, OverflowError):
        raise Failed("no such day or time") from None


FORMATS: dict[str, Callable[..., Value]] = {"strftime": _strftime, "strptime": _strptime}
