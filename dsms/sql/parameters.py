"""Parameters of statements: ``?``, ``$1`` and ``:name`` stand for values that are given beside the
text.

A parameter is read as the constant that its value is: the parser is fed the tokens of that constant
in place of the mark.  No text is made of it that would be read again, so whatever a string holds it
stays one string; and a constant may stand wherever the grammar lets one stand, windows, LIMIT and
AT among them.

    DS617 marks and values do not fit         DS618 a value that is no constant, or not there
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from decimal import Decimal
from typing import Any

from lark import Token

from dsms.errors import UsageError
from dsms.forms.scalars import Instant, Length, Other, as_builtin, kind_name
from dsms.instants import MAX_INSTANT, MIN_INSTANT
from dsms.sql import literals
from dsms.sql.ast import NOWHERE, Duration, Unit
from dsms.typed_texts import value_of

Values = Sequence[Any] | Mapping[str, Any]
Pieces = tuple[tuple[str, str], ...]  # kinds and texts of tokens

MARK = "PARAMETER"  # the terminal of the grammar
MOST_DIGITS = 38  # of a DECIMAL
_MARKS = re.compile(
    r"'(?:[^']|'')*'|(?<=['\"]):|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|::"
    r"|(?P<mark>\?|\$[0-9]+|:[^\W\d]\w*)",
    re.DOTALL,
)


class Parameters:
    """The values for the marks of one script, given to them in the order in which they are read."""

    def __init__(self, values: Values, text: str) -> None:
        """Raises UsageError DS617 unless each mark of the text has a value, and each value a
        mark."""
        marks = [found["mark"] for found in _MARKS.finditer(text) if found["mark"]]
        self._values = _by_mark(values, marks)
        self._next = 0

    def tokens(self, mark: Token) -> Iterator[Token]:
        """The tokens that stand for a mark.  Raises UsageError DS618 at its place."""
        self._next += mark == "?"
        pieces = _pieces(self._value(mark), mark)
        return (Token.new_borrow_pos(kind, text, mark) for kind, text in pieces)

    def misplaced(self, mark: Token, accepts: Set[str]) -> UsageError:
        """What to say where its value can't stand, but what `accepts` names; the value itself may
        be a secret."""
        hint = _EACH if isinstance(self._value(mark), list) else _what_can(accepts)
        return wrong("DS618", mark, f"no value of this kind can stand here: {mark}", hint)

    def _value(self, mark: Token) -> Any:
        """The one for the mark that was read last."""
        return as_builtin(self._values[f"${self._next}" if mark == "?" else _key(mark)])


def wrong(code: str, mark: Token, message: str, hint: str | None = None) -> UsageError:
    """An error at the place of a mark."""
    return UsageError(code, message, mark.line, mark.column, hint)


def without_values(mark: Token) -> UsageError:
    """DS617: nothing was given for it."""
    hint = "give its value with the statement: execute(sql, [value]), or {name: value} for :name"
    return wrong("DS617", mark, f"the statement has a parameter, {mark}, and no value for it", hint)


_EACH = "IN takes a mark for each item, k IN (?, ?); LIST_CONTAINS(?, k) takes a list"

_KINDS = {
    "INTERVAL": "a length of time (in Python a timedelta)",
    "TIMESTAMP": "an instant (in Python a datetime)",
    "INT": "a whole number, 0 or more",
    "FLOAT": "a number, 0 or more",
    "STRING": "a text",
}


def _what_can(accepts: Set[str]) -> str | None:
    """The values whose tokens the parser would have taken."""
    named = accepts - {"INT"} if "FLOAT" in accepts else accepts
    kinds = [kind for token, kind in _KINDS.items() if token in named]
    return f"here can stand {' or '.join(kinds)}" if kinds else None


# ---------------------------------------------------------------- which value is whose


def _key(mark: str) -> str:
    return mark if mark[0] == ":" else f"${int(mark[1:])}"


def _by_mark(values: Values, marks: list[str]) -> dict[str, Any]:
    if isinstance(values, Mapping):
        given = {f":{name}": value for name, value in values.items()}
    elif isinstance(values, Sequence) and not isinstance(values, str | bytes | bytearray):
        given = {f"${n}": value for n, value in enumerate(values, 1)}
    else:
        what = type(values).__name__
        raise UsageError("DS617", f"values of parameters are a list or a dict, not {what}")
    if "?" in marks and isinstance(values, Mapping):
        raise UsageError("DS617", "the values for ? come in a list, not in a dict", hint=_HOW)
    if "?" in marks and any(mark[0] == "$" for mark in marks):
        raise UsageError("DS617", "the statement has both ? and $ for parameters", hint="write one")
    read = {f"${n}" for n in range(1, Counter(marks)["?"] + 1)}
    read |= {_key(mark) for mark in marks if mark != "?"}
    if missing := sorted(read - given.keys(), key=_order):
        raise UsageError("DS617", f"no value is given for {', '.join(missing)}", hint=_HOW)
    if unused := sorted(given.keys() - read, key=_order):
        raise UsageError(
            "DS617", f"a value is given for {', '.join(unused)}, which does not stand in the text"
        )
    return given


_HOW = "? and $1, $2, ... take values from a list, :name from a dict"


def _order(key: str) -> tuple[int, str]:
    return (int(key[1:]), "") if key[0] == "$" else (0, key)


# ---------------------------------------------------------------- constants


def _pieces(value: Any, mark: Token) -> Pieces:
    """The tokens of the constant that a plain value (`dsms.forms.scalars`) is."""
    match value:
        case None:
            return (("NULL", "NULL"),)
        case bool():
            return (("TRUE", "TRUE") if value else ("FALSE", "FALSE"),)
        case int() if literals.INT_MIN <= value <= literals.INT_MAX:
            return _number("INT", str(value))
        case float():
            return _number("FLOAT", repr(value)) if math.isfinite(value) else _cast(repr(value))
        case str() if _is_text(value):
            return (("STRING", _quoted(value)),)
        case bytes():
            return (("BYTES", f"X'{value.hex()}'"),)
        case Decimal() if value.is_finite() and _digits(value) <= MOST_DIGITS:
            return (("DECIMAL", "DECIMAL"), ("STRING", f"'{value:f}'"))
        case Instant(us) if MIN_INSTANT <= us <= MAX_INSTANT:
            return (("TIMESTAMP", "TIMESTAMP"), ("STRING", f"'{literals.instant_text(us)}'"))
        case Other(kind, text) if (sql := _TYPED.get(kind)) and value_of(text, sql) is not None:
            return (("TYPED", sql), ("STRING", _quoted(text)))
        case Length(us) if abs(us) < 2**62:
            number, unit = literals.duration_text(Duration(us, Unit.HOUR, pos=NOWHERE)).split()
            return (("INTERVAL", "INTERVAL"), ("STRING", f"'{number}'"), ("TIME_UNIT", unit))
        case []:
            return (("NO_ITEMS", "[]"),)
        case list():
            return _list([as_builtin(item) for item in value], mark)
        case dict() if value:
            return _struct(value, mark)
        case int():
            hint = "send it as FLOAT or DECIMAL (in Python a float or a decimal.Decimal)"
            raise wrong("DS618", mark, f"the value for {mark} is too large; INT has 64 bits", hint)
    raise wrong(
        "DS618",
        mark,
        f"the value for {mark} can't be that of a parameter ({kind_name(value)})",
        "NULL, BOOL, INT, FLOAT, DECIMAL, STRING, BYTES, TIMESTAMP, INTERVAL, DATE, TIME, UUID, "
        "a LIST or a STRUCT can",
    )


_TYPED = {"time": "TIME", "UUID": "UUID"}  # Python's classes


def _list(items: list[Any], mark: Token) -> Pieces:
    """A list within, whatever it holds (clients send only that it is one), stands as one without
    items, for the binder to refuse (DS354)."""
    of_items = (
        (("NO_ITEMS", "[]"),) if kind_name(item) == "list" else _pieces(item, mark)
        for item in items
    )
    rest = [piece for pieces in of_items for piece in (("COMMA", ","), *pieces)]
    return (("LSQB", "["), *rest[1:], ("RSQB", "]"))


def _struct(fields: dict[str, Any], mark: Token) -> Pieces:
    """``{'a': 1}``; what is itself a list or a struct stands as one without items (DS354)."""
    pieces: list[tuple[str, str]] = []
    for key, value in fields.items():
        value = as_builtin(value)
        nested = kind_name(value) in ("list", "dict")
        inside = (("NO_ITEMS", "[]"),) if nested else _pieces(value, mark)
        pieces += [("COMMA", ","), ("STRING", _quoted(key)), ("COLON", ":"), *inside]
    return (("LBRACE", "{"), *pieces[1:], ("RBRACE", "}"))


def _number(kind: str, text: str) -> Pieces:
    """In brackets if it is negative: what follows belongs to all of it, as in ``(-1)::STRING``."""
    if text[0] != "-":
        return ((kind, text),)
    return (("LPAR", "("), ("MINUS", "-"), (kind, text[1:]), ("RPAR", ")"))


def _cast(text: str) -> Pieces:
    """``CAST('nan' AS FLOAT)``: no FLOAT constant is infinite, or no number."""
    return (("CAST", "CAST"), ("LPAR", "("), ("STRING", f"'{text}'"), ("AS", "AS"),
            ("NAME", "FLOAT"), ("RPAR", ")"))  # tokens  # fmt: skip


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _is_text(value: str) -> bool:
    """Not half characters, which can't be stored or sent on."""
    return not any("\ud800" <= c <= "\udfff" for c in value)


def _digits(value: Decimal) -> int:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    return max(len(digits) + max(exponent, 0), -exponent)
