"""The patterns of STRFTIME and STRPTIME: what each code after % writes and reads, and which go
together.  Names are English, whatever the locale of the machine."""

from __future__ import annotations

from collections.abc import Iterator

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # a table  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
HALVES = ("AM", "PM")
SHORT = {"F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M"}  # codes for several
# what a code says, of those that STRPTIME reads
FIELDS = {
    "Y": "year", "y": "year", "m": "month", "b": "month", "B": "month", "d": "day", "j": "doy",
    "H": "hour", "I": "hour", "p": "half", "M": "minute", "S": "second", "f": "fraction",
    "a": "weekday", "A": "weekday", "z": "offset",
}  # a table  # fmt: skip
WRITTEN = (*FIELDS, "u", "w", "G", "V")
LONGEST = 1000  # characters of a pattern


def parts(pattern: str) -> Iterator[tuple[str, str]]:
    """(code, "") and ("", text) in turn; a code that is none of them as it stands."""
    text, at = "", 0
    while at < len(pattern):
        c = pattern[at]
        code = pattern[at + 1 : at + 2]
        at += 1 if c != "%" else 2
        if c != "%" or code == "%":
            text += c
            continue
        if text:
            yield "", text
            text = ""
        yield from parts(SHORT[code]) if code in SHORT else ((code or "%", ""),)
    if text:
        yield "", text


def written_problem(pattern: str) -> str | None:
    """What is wrong with a pattern of STRFTIME."""
    return _unknown(pattern, WRITTEN)


def _unknown(pattern: str, known: tuple[str, ...]) -> str | None:
    if len(pattern) > LONGEST:
        return f"a pattern of instants has at most {LONGEST} characters"
    odd = next((c for c, text in parts(pattern) if not text and c not in known), None)
    if odd is None:
        return None
    if odd == "%":
        return f"'{pattern}' ends in a single %: write %%"
    shown = " ".join(f"%{c}" for c in (*known, *SHORT))
    return f"'{pattern}' has the code %{odd}; there are {shown} %%"


def read_problem(pattern: str) -> str | None:
    """What is wrong with a pattern of STRPTIME."""
    complaint = _unknown(pattern, tuple(FIELDS))
    if complaint is not None:
        return complaint
    said = [FIELDS[c] for c, text in parts(pattern) if not text]
    twice = next((f for k, f in enumerate(said) if f in said[:k]), None)
    codes = {c for c, text in parts(pattern) if not text}
    if twice is not None:
        return f"'{pattern}' says the {twice} twice"
    if "year" not in said:
        return f"'{pattern}' has no year: %Y, or %y"
    if "doy" in said and ("month" in said or "day" in said):
        return f"'{pattern}' has a day of the year, %j, beside a month or its day"
    if "day" in said and "month" not in said:
        return f"'{pattern}' has a day without a month: %m, %b or %B"
    if ("I" in codes) != ("p" in codes):
        return f"'{pattern}' has one of %I and %p: hours from 1 to 12 need AM or PM"
    return None
