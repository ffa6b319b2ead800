"""Structs: a value is the text that the engine keeps, a JSON object; what it means is worked out
field by field."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from dsms.sql.expr import Call, Col, Expr
from dsms.sql.types import Kind, Type, list_of
from tests.oracle import lists
from tests.oracle.functions import Failed
from tests.oracle.values import Value


def unpacked(text: str, type_: Type) -> list[Value]:
    """The values of the fields.  Raises Failed for a text that is none of that type."""
    try:
        pairs = json.loads(
            text,
            object_pairs_hook=lambda found: ("object", found),
            parse_int=lists.Bare,
            parse_float=lists.Bare,
            parse_constant=lists._none,
        )
    except (ValueError, RecursionError):
        raise Failed("no JSON") from None
    if not isinstance(pairs, tuple):
        raise Failed("no object")
    found = dict(pairs[1])
    names = [name for name, _ in type_.fields]
    if len(found) != len(pairs[1]) or not found.keys() <= set(names):
        raise Failed("other keys")
    return [_field(found.get(name), of) for name, of in type_.fields]


def _field(value: Any, type_: Type) -> Value:
    return None if value is None else lists._item(value, type_)


def packed(values: Sequence[Value], type_: Type) -> str:
    """The one text of a struct."""
    pairs = (
        f"{json.dumps(name, ensure_ascii=False)}: {lists._shown(value, of)}"
        for value, (name, of) in zip(values, type_.fields, strict=True)
    )
    return f"{{{', '.join(pairs)}}}"


def cast(call: Call, x: Value) -> Value:
    """CAST from or to a STRUCT."""
    source, to = call.args[0].type, call.type
    if source == to or to.kind is Kind.STRING:
        return x
    if source.kind is Kind.STRING:
        return packed(unpacked(x, to), to)
    inside = zip(unpacked(x, source), source.fields, to.fields, strict=True)
    return packed([_cast(v, a, b) for v, (_, a), (_, b) in inside], to)


def _cast(value: Value, source: Type, to: Type) -> Value:
    if value is None:
        return None
    found = lists.cast(_call(list_of(source), list_of(to)), lists.packed([value], list_of(source)))
    return lists.unpacked(found, list_of(to))[0]


def _call(source: Type, to: Type) -> Call:
    return Call("cast", (Col(0, source),), to)


def _made(call: Call, of: Callable[[Expr], Value]) -> str:
    return packed([of(arg) for arg in call.args], call.type)


def _extracted(call: Call, x: str) -> Value:
    names = [name for name, _ in call.args[0].type.fields]
    return unpacked(x, call.args[0].type)[names.index(str(call.params[0]))]


STRUCTS: dict[str, Callable[..., Value]] = {"struct_extract": _extracted}
LAZY: dict[str, Callable[..., Value]] = {"named_struct": _made}
