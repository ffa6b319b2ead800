"""Instants and lengths, and CAST: exact meaning of each function.

A DATE stands for its midnight in UTC where an instant is asked for.  An optional last argument is a
constant time zone, by name (`Europe/Berlin`) or offset (`+05:30`); without it the calendar is UTC.
It is the proleptic Gregorian calendar; all fields floor, before 1970 too.  A local time outside
years 0001 to 9999 is an error of that row.
"""

from __future__ import annotations

from dsms.sql.signatures import Function, Match, Overload, Types, texts

FIELDS = {
    "year": "Year, 1 to 9999.",
    "quarter": "Quarter, 1 to 4.",
    "month": "Month, 1 to 12.",
    "week": "ISO 8601 week, 1 to 53.",
    "isoyear": "Year that the ISO 8601 week belongs to.",
    "day": "Day of the month, 1 to 31.",
    "dow": "Day of the week, 0 (Sunday) to 6.",
    "isodow": "Day of the week, 1 (Monday) to 7 (Sunday).",
    "doy": "Day of the year, 1 to 366.",
    "hour": "Hour, 0 to 23.",
    "minute": "Minute, 0 to 59.",
    "second": "Whole second, 0 to 59.",
    "millisecond": "Second and its fraction in whole milliseconds, 0 to 59999.",
    "microsecond": "Second and its fraction in microseconds, 0 to 59999999.",
}
_ALIASES = {
    "day": ("dayofmonth",),
    "dow": ("dayofweek",),
    "doy": ("dayofyear",),
    "week": ("weekofyear",),
}

UNITS = (
    "microsecond",
    "millisecond",
    "second",
    "minute",
    "hour",
    "day",
    "week",
    "month",
    "quarter",
    "year",
)


_OF_DAY = ("hour", "minute", "second", "millisecond", "microsecond")  # a TIME has these, too


def _field(name: str, doc: str) -> Function:
    return Function(
        name,
        doc,
        texts(
            "TIMESTAMP -> INT",
            "TIMESTAMP, STRING -> INT",
            *(["TIME -> INT"] if name in _OF_DAY else []),
        ),
        aliases=_ALIASES.get(name, ()),
        constants={1: "zone"},
    )


def _refuse(args: Types) -> Match | None:
    return None  # CAST has its own rule: the target type is not among the arguments


TIMES = (
    *(_field(name, doc) for name, doc in FIELDS.items()),
    Function(
        "epoch",
        "Microseconds since 1970-01-01 UTC (or of the INTERVAL, of a TIME since midnight) / "
        "1000000.0; a zone changes nothing.",
        texts(
            "TIMESTAMP -> FLOAT",
            "INTERVAL -> FLOAT",
            "TIMESTAMP, STRING -> FLOAT",
            "TIME -> FLOAT",
        ),
        constants={1: "zone"},
    ),
    Function(
        "epoch_us",
        "Microseconds since 1970-01-01 UTC, of the INTERVAL, or since midnight.",
        texts("TIMESTAMP -> INT", "INTERVAL -> INT", "TIME -> INT"),
    ),
    Function("epoch_ms", "Whole milliseconds, floored, as epoch_us.",
             texts("TIMESTAMP -> INT", "INTERVAL -> INT", "TIME -> INT")),
    Function(
        "date_trunc",
        "date_trunc(unit, t[, zone]): the start of the unit that holds t; units "
        + ", ".join(UNITS) + ". Weeks begin on Monday. Under a zone, day and longer are local "
                             "calendar units that start at the first instant whose local time is "
                             "at or past their midnight; hour and shorter count elapsed time from "
                             "the start of the local day. A start before year 0001 is an error of "
                             "that row. Of an INTERVAL (day and shorter): the largest multiple of "
                             "the unit <= it.",
        texts(
            "STRING, TIMESTAMP -> TIMESTAMP",
            "STRING, TIMESTAMP, STRING -> TIMESTAMP",
            "STRING, INTERVAL -> INTERVAL",
        ),
        constants={0: "unit", 2: "zone"},
    ),
    Function(
        "date_bin",
        "date_bin(length, t[, origin]): the start of the bin that holds t, of bins of that length "
        "of which one starts at origin (default: 1970-01-01 UTC): the latest origin + k * length "
        "<= t. A length of zero or less, and a start before year 0001, are errors of that row.",
        texts("INTERVAL, TIMESTAMP -> TIMESTAMP", "INTERVAL, TIMESTAMP, TIMESTAMP -> TIMESTAMP"),
    ),
    Function(
        "to_timestamp",
        "The instant that many seconds after 1970-01-01 UTC (FLOAT: x * 1000000.0 rounded, ties "
        "to even); to_timestamp(n, unit): n units s, ms, us or ns (floored). NaN, infinite, or "
        "outside years 0001 to 9999: an error of that row.",
        texts("INT -> TIMESTAMP", "FLOAT -> TIMESTAMP", "INT, STRING -> TIMESTAMP"),
        constants={1: "epoch_unit"},
    ),
    Function(
        "strftime",
        "strftime(t, pattern): t in UTC, written by the constant pattern: %Y %m %d %H %M %S with "
        "as many digits as they have, %f microseconds (6), %y year of the century, %j day of the "
        "year (3), %I hour 01 to 12 and %p AM or PM, %b %B months and %a %A days by their English "
        "names (short, long), %u day of the week 1 (Monday) to 7, %w 0 (Sunday) to 6, %G %V ISO "
        "8601 year and week, %z +0000, %F %Y-%m-%d, %T %H:%M:%S, %R %H:%M, %% a %.",
        texts("TIMESTAMP, STRING -> STRING"),
        constants={1: "written"},
    ),
    Function(
        "strptime",
        "strptime(text, pattern): the instant that all of the text is by the pattern of strftime "
        "(without %u %w %G %V). Numbers may have fewer digits, but for %Y; %f is a fraction, .5 "
        "is half a second; %y is 1969 to 2068; names in any case; days of the week say nothing; "
        "%z is Z or +HH[[:]MM], UTC unless said. It has a year; what else it does not have is the "
        "first: 1 January, 00:00:00. Other text, and what no calendar has, is an error of that "
        "row.",
        texts("STRING, STRING -> TIMESTAMP"),
        constants={1: "read"},
    ),
    Function(
        "make_interval",
        "make_interval(n, unit): n times microsecond, ... , day, week.",
        texts("INT, STRING -> INTERVAL"),
        constants={1: "length_unit"},
    ),
    Function(
        "date_diff",
        "date_diff(unit, a, b): whole units (microsecond to week) that fit between a and b, "
        "toward zero: (b - a) / unit.",
        texts("STRING, TIMESTAMP, TIMESTAMP -> INT"),
        constants={0: "length_unit"},
    ),
    Function(
        "at_zone",
        "at_zone(t, zone): the TIMESTAMP whose UTC reading is the local time of "
        "t there.",
        texts("TIMESTAMP, STRING -> TIMESTAMP"),
        constants={1: "zone"},
    ),
    Function(
        "from_zone",
        "from_zone(t, zone): the first instant whose local time there is at or past the UTC "
        "reading of t.",
        texts("TIMESTAMP, STRING -> TIMESTAMP"),
        constants={1: "zone"},
    ),
    Function(
        "cast",
        """CAST(x AS type); a value that does not fit is an error of that row.
  Text is trimmed of spaces, tabs and line ends first.
  INT -> FLOAT        nearest, ties to even
  FLOAT -> INT        nearest, ties to even; NaN, infinite, too large fail
  -> DECIMAL(p,s)     nearest, ties away from zero (a FLOAT counts as its shortest decimal text); NaN, too large fail
  DECIMAL -> INT      nearest, ties away from zero
  DECIMAL -> FLOAT    nearest
  BOOL <-> INT        true is 1, false 0; any INT but 0 is true
  STRING -> BOOL      true t yes y on 1, false f no n off 0, any case
  STRING -> INT       [+-]digits                     STRING -> BYTES  UTF-8
  STRING -> FLOAT     [+-]digits[.digits][e[+-]digits] or .digits; nan, inf, infinity in any case; too large is infinite
  STRING -> DECIMAL   as FLOAT without the names
  STRING -> TIMESTAMP as `dsms.instants` says: 2013-01-01[(space or T)12[:30[:00[.digits]]][ ][Z or +HH[[:]MM]]], also
                      20130101T123000; UTC unless it says; digits after the sixth are dropped
  STRING -> INTERVAL  [+-]H+:MM[:SS[.digits]], or one or more of `number unit` (12 min, 1.5 h, -2 days 3 hours); units
                      us ms s min h d w, usec msec sec hr, full names, and plurals; a number may have a sign; up to 6
                      digits after the point
  STRING -> DATE      2013-01-31 or 20130131, nothing behind it
  STRING -> TIME      [H]H:MM[:SS[.digits]], digits after the sixth are dropped
  STRING -> UUID      32 hexadecimal digits in any case, with or without dashes, in braces or without
  DATE -> TIMESTAMP   its midnight in UTC               TIMESTAMP -> DATE, TIME  its day, its time of the day in UTC
  BOOL -> STRING      true, false                    INT -> STRING    digits
  FLOAT -> STRING     shortest text that reads back the same, as Python's repr: 1.0, 1e+16, 1e-05, nan, inf, -inf
  DECIMAL -> STRING   with exactly s digits after the point, never an exponent: 0.10, -5
  BYTES -> STRING     UTF-8; other bytes fail
  TIMESTAMP -> STRING YYYY-MM-DD HH:MM:SS[.digits without trailing zeros], UTC
  DATE -> STRING      YYYY-MM-DD                        TIME -> STRING    HH:MM:SS[.digits without trailing zeros]
  UUID -> STRING      in lower case with dashes
  INTERVAL -> STRING  [-]HH:MM:SS[.digits without trailing zeros], as many hours as there are: 26:03:04.5""",  # noqa: E501
        (Overload("(any AS type) -> type", _refuse),),
    ),
    Function(
        "try_cast",
        "try_cast(x AS type): CAST(x AS type), and NULL where that is an error of the row.",
        (Overload("(any AS type) -> type", _refuse),),
        nulls="NULL if x is NULL, or can't be cast",
    ),
)  # a table  # fmt: skip

EPOCH_UNITS = ("s", "ms", "us", "ns")
EXTRACT_FIELDS = (*FIELDS, "epoch")
