"""Lists: a value is the text that the engine keeps, which is JSON; what it means is worked out item
by item."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

from dsms.sql.expr import Call, Col
from dsms.sql.types import FLOAT, STRING, Kind, Type, item_of, list_of
from tests.oracle import casts
from tests.oracle.functions import Failed, bounded, check, hashed
from tests.oracle.values import Value, compare, fits_int

MOST = 65536
ODD = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class Bare(str):
    """What stands in a list without quotes: a number."""


# ---------------------------------------------------------------- texts


def unpacked(text: str, type_: Type) -> list[Value]:
    """The items of a list.  Raises Failed for a text that is none of that type."""
    try:
        found = json.loads(text, parse_int=Bare, parse_float=Bare, parse_constant=_none)
    except (ValueError, RecursionError):
        raise Failed("no JSON") from None
    if not isinstance(found, list) or len(found) > MOST:
        raise Failed("no list")
    return [None if x is None else _item(x, item_of(type_)) for x in found]


def packed(items: Sequence[Value], type_: Type) -> str:
    """The one text of a list."""
    return "[" + ", ".join(_shown(x, item_of(type_)) for x in items) + "]"


def _none(text: str) -> Any:
    raise ValueError(text)


def _item(x: Any, type_: Type) -> Value:
    bare, kind = isinstance(x, Bare), type_.kind
    if isinstance(x, bool) and kind is Kind.BOOL:
        return x
    if not isinstance(x, str) or kind in (Kind.BOOL, Kind.NULL):
        raise Failed("no such item")
    try:
        x.encode()
    except UnicodeEncodeError:
        raise Failed("half a character") from None
    if kind not in (Kind.FLOAT, Kind.DECIMAL) and bare != (kind is Kind.INT):
        raise Failed("quotes, or none")
    return check(_READ[kind](x, bare, type_), type_)


def _float(x: str, bare: bool, type_: Type) -> float:
    if not bare:
        if x not in ODD:
            raise Failed("text")
        return ODD[x]
    if math.isinf(float(x)):
        raise Failed("too large")
    return float(x) + 0.0


def _int(x: str, bare: bool, type_: Type) -> int:
    if not re.fullmatch(r"-?\d+", x, re.A):
        raise Failed("no INT")
    return int(x)


def _decimal(x: str, bare: bool, type_: Type) -> Decimal:
    if not casts.NUMBER.fullmatch(x):
        raise Failed("no DECIMAL")
    with localcontext() as context:
        context.prec = 2000
        try:
            exact = Decimal(x)
            found = exact.quantize(Decimal(1).scaleb(-type_.scale))
        except InvalidOperation:
            raise Failed("too many digits") from None
    if found != exact:
        raise Failed("digits are lost")
    return found or abs(found)


def _bytes(x: str, bare: bool, type_: Type) -> bytes:
    if not re.fullmatch(r"([0-9a-fA-F]{2})*", x):
        raise Failed("no digits")
    return bytes.fromhex(x)


def _as_cast(x: str, bare: bool, type_: Type) -> Value:
    return casts.cast(Call("cast", (Col(0, STRING),), type_), x)


_READ: dict[Kind, Callable[[str, bool, Type], Value]] = {
    Kind.INT: _int,
    Kind.FLOAT: _float,
    Kind.DECIMAL: _decimal,
    Kind.STRING: lambda x, bare, type_: str(x),
    Kind.BYTES: _bytes,
    Kind.TIMESTAMP: _as_cast,
    Kind.INTERVAL: _as_cast,
    Kind.DATE: _as_cast,
    Kind.TIME: _as_cast,
    Kind.UUID: _as_cast,
}


def _shown(x: Value, type_: Type) -> str:
    if x is None:
        return "null"
    match type_.kind:
        case Kind.STRING:
            return json.dumps(x, ensure_ascii=False)
        case Kind.BYTES:
            return f'"{x.hex()}"'
        case Kind.FLOAT if not math.isfinite(x):
            return json.dumps(next(k for k, v in ODD.items() if v == x or x != x != v != v))
        case Kind.FLOAT:
            return repr(x + 0.0)
        case Kind.TIMESTAMP | Kind.INTERVAL | Kind.DATE | Kind.TIME | Kind.UUID:
            return f'"{casts.to_text(x, type_)}"'
        case _:
            return casts.to_text(x, type_)


# ---------------------------------------------------------------- functions


def cast(call: Call, x: Value) -> Value:
    """CAST from or to a LIST."""
    source, to = call.args[0].type, call.type
    if to.kind is not Kind.LIST:
        return x
    if source.kind is Kind.STRING:
        return packed(unpacked(x, to), to)
    inner = Call("cast", (Col(0, item_of(source)),), item_of(to))
    items = [None if v is None else casts.cast(inner, v) for v in unpacked(x, source)]
    return packed(items, to)


def _list_value(call: Call, value: Callable[..., Value]) -> str:
    return bounded(packed([value(a) for a in call.args], call.type))


def _items(call: Call, x: str) -> list[Value]:
    return unpacked(x, call.args[0].type)


def _there(call: Call, x: str) -> list[Value]:
    return [v for v in _items(call, x) if v is not None]


def _element_at(call: Call, x: str, place: int) -> Value:
    items = _items(call, x)
    return items[place - 1] if 1 <= place <= len(items) else None


def _extreme(sign: int) -> Callable[..., Value]:
    def pick(call: Call, x: str) -> Value:
        best = None
        for v in _there(call, x):
            best = v if best is None or sign * compare(v, best) > 0 else best
        return best

    return pick


def _sum(call: Call, x: str) -> Value:
    first, *rest = _there(call, x) or [None]
    for v in rest:
        with localcontext() as context:
            context.prec = 60
            first += v
    return first if first is None else check(first, call.type)


def _to_string(call: Call, x: str, separator: str) -> str:
    item = item_of(call.args[0].type)
    return bounded(separator.join(casts.to_text(v, item) for v in _there(call, x)))


def _split(call: Call, s: str, separator: str) -> str:
    parts = s.split(separator) if separator else [s]
    if len(parts) > MOST:
        raise Failed("too many parts")
    return packed(parts, list_of(STRING))


LISTS: dict[str, Callable[..., Value]] = {
    "cardinality": lambda call, x: len(_items(call, x)),
    "element_at": _element_at,
    "list_contains": lambda call, x, y: any(compare(v, y) == 0 for v in _there(call, x)),
    "list_min": _extreme(-1),
    "list_max": _extreme(1),
    "list_sum": _sum,
    "array_to_string": _to_string,
    "string_split": _split,
}


def _by_value(text: Value, type_: Type) -> Value:
    """A list of numbers in which those that an INT holds are written as INTs, others as FLOATs."""
    item = item_of(type_) if type_.kind is Kind.LIST else None
    if text is None or item is None or item.kind not in (Kind.FLOAT, Kind.DECIMAL):
        return text
    return f"[{', '.join(map(_number_by_value, unpacked(str(text), type_)))}]"


def _number_by_value(x: Any) -> str:
    if x is None:
        return "null"
    for exact in (x, float(x)):
        if math.isfinite(exact) and exact == int(exact) and fits_int(int(exact)):
            return str(int(exact))
    return packed([float(x)], list_of(FLOAT))[1:-1]


def _hash(call: Call, value: Callable[[Any], Value]) -> Value:
    return hashed([_by_value(value(a), a.type) for a in call.args])


LAZY: dict[str, Callable[..., Value]] = {"list_value": _list_value, "hash": _hash}

__all__ = ["LAZY", "LISTS", "cast", "packed", "unpacked"]
