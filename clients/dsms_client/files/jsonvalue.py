"""Values of JSON as they stand in a line: numbers by their digits, objects by their pairs."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from dsms.lists import item_of
from dsms_client.files.listed import has_numbers
from dsms_client.files.options import Options
from dsms_client.files.pieces import NO_TEXT, Reject
from dsms_client.files.text import convert, reason

_ODD = ("NaN", "Infinity", "-Infinity")


class Pairs(list[tuple[str, Any]]):
    """An object: its keys and values as they stand there."""


class Number(str):
    """A number: its digits as they stand there."""


def fits(value: Any, sql: str) -> bool:
    """Whether a JSON value is of a kind that the type is written in."""
    kind = sql.partition("(")[0]
    if isinstance(value, Pairs):
        return kind == "STRUCT" and len({key for key, _ in value}) == len(value)
    if type(value) is list or (kind == "LIST" and isinstance(value, Number)):
        return kind == "LIST" and not isinstance(value, Number) and _has_no_odd(value, sql)
    if isinstance(value, bool) or kind == "BOOL":
        return isinstance(value, bool) and kind == "BOOL"
    if isinstance(value, Number):
        return kind in ("INT", "FLOAT", "DECIMAL", "TIMESTAMP", "INTERVAL")
    if not isinstance(value, str) or not is_unicode(value):
        return False
    if kind == "FLOAT":
        return value in _ODD
    if kind == "INTERVAL":
        return not value.strip().lstrip("+-").isdigit()  # a number without a unit is no length
    if item_of(sql) == "INTERVAL":
        return not has_numbers(value)  # nor in a list that stands in quotes
    return kind != "INT"


def _has_no_odd(items: list[Any], sql: str) -> bool:
    """NaN and the infinities are FLOATs alone."""
    return item_of(sql) == "FLOAT" or not any(isinstance(v, Number) and v in _ODD for v in items)


def is_unicode(text: str) -> bool:
    """Whether no character is half of one, as bytes that are no text are read."""
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def text_of(value: Any) -> str | None:
    """A value as `convert` reads it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Pairs):
        pairs = (f"{json.dumps(key, ensure_ascii=False)}: {_item(of)}" for key, of in value)
        return f"{{{', '.join(pairs)}}}"
    if type(value) is list:
        return f"[{', '.join(map(_item, value))}]"
    return "true" if value else "false"


def _item(value: Any) -> str:
    """An item of a list, as it stands there; what is itself a list or an object is none."""
    if isinstance(value, Number):
        return f'"{value}"' if value in _ODD else str(value)
    return "[]" if isinstance(value, list) else json.dumps(value, ensure_ascii=False)


def shown(value: Any) -> str:
    if isinstance(value, Number):
        return str(value)
    return kind_of(value) if isinstance(value, (list, dict)) else json.dumps(value)


def misfit(value: Any, sql: str, options: Options) -> str:
    """Why a value is none of its column's type: of a list it is the first such item."""
    item = item_of(sql)
    if type(value) is list and item is not None:
        at = _first_misfit(value, item, options)
        if at is not None:
            return misfit(value[at], item, options)
    text = text_of(value)
    why = "" if text is None or not fits(value, sql) else reason(text, sql, options)
    return f"{shown(value)} is not {sql}{why}"


def _first_misfit(values: list[Any], sql: str, options: Options) -> int | None:
    bad = [at for at, v in enumerate(values) if v is not None and not fits(v, sql)]
    some = values[: bad[0]] if bad else values  # those before it fit, and so are no lists
    wrong = convert(pa.array([text_of(v) for v in some], pa.string()), sql, options)[1]
    return int(wrong[0]) if len(wrong) else next(iter(bad), None)


def kind_of(value: Any) -> str:
    """What messages call a value that is no object."""
    if isinstance(value, Number):
        return "a number"
    names = {Pairs: "an object", list: "a list", str: "text", bool: "true or false"}
    return names.get(type(value), "null")


def rejected(line: int, why: str, text: str) -> Reject:
    """With the reason that is behind it where bytes of the line are no text."""
    if not is_unicode(text):
        raw = text.encode(errors="surrogateescape")
        why, text = f"{NO_TEXT}: {raw[:100]!r}", raw.decode(errors="replace")
    return Reject(line, why, text)
