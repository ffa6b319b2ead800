"""Lists: exact meaning of each function.  Items count from 1."""

from __future__ import annotations

from collections.abc import Callable

from dsms.sql.signatures import (
    Function,
    FunctionError,
    Match,
    Overload,
    Types,
    bends,
    castable,
    common_of,
    common_type,
)
from dsms.sql.types import (
    BOOL,
    FLOAT,
    INT,
    INTERVAL,
    NESTED,
    NULL,
    STRING,
    Kind,
    Type,
    decimal,
    item_of,
    list_of,
)

MOST_DIGITS = 38


def _of_list(n: int, result: Callable[[Type, Types], Match | None]) -> Callable[..., Match | None]:
    """A rule for n arguments of which the first is a list: `result` of its items' type and all.
    NULL is a list, too, of items of no type, as [] is."""

    def match(args: Types) -> Match | None:
        if len(args) == n and args[0] == NULL:
            args = (list_of(NULL), *args[1:])
        if len(args) != n or args[0].kind is not Kind.LIST:
            return None
        return result(item_of(args[0]), args)

    return match


def _made(args: Types) -> Match | None:
    """Items of one type; no lists."""
    if any(a.kind in NESTED for a in args):
        raise FunctionError("nested", "a list can't hold lists")
    common = common_of(args) if args else NULL
    if common is None:
        return None
    return Match((common,) * len(args), list_of(common))


def _at(item: Type, args: Types) -> Match | None:
    cost = bends(args[1:], (INT,))
    return None if cost is None else Match((args[0], INT), item, cost)


def _has(item: Type, args: Types) -> Match | None:
    common = common_type(item, args[1])
    if common is None:
        return None
    cost = bends((item, args[1]), (common, common))
    return None if cost is None else Match((list_of(common), common), BOOL, cost)


def _total(item: Type, args: Types) -> Match | None:
    if item in (INT, FLOAT, INTERVAL, NULL):
        return Match(args, item)
    return Match(args, decimal(MOST_DIGITS, item.scale)) if item.kind is Kind.DECIMAL else None


def _shown(item: Type, args: Types) -> Match | None:
    cost = bends(args[1:], (STRING,))
    return (
        None
        if cost is None or not castable(item, STRING)
        else Match((args[0], STRING), STRING, cost)
    )


def _split(args: Types) -> Match | None:
    cost = bends(args, (STRING, STRING)) if len(args) == 2 else None
    return None if cost is None else Match((STRING, STRING), list_of(STRING), cost)


def _counted(args: Types) -> Match | None:
    """Of a list; NULL is a text for LENGTH."""
    return Match(args, INT) if len(args) == 1 and args[0].kind is Kind.LIST else None


LENGTH = Overload("(LIST(T)) -> INT", _counted)
_SAME = Overload("(LIST(T)) -> T", _of_list(1, lambda item, args: Match(args, item)))

_BY_BINDER = (Overload("(STRUCT, name) -> the field's type", lambda args: None),)
_OF_PAIRS = (Overload("(name, T, ...) -> STRUCT(name T, ...)", lambda args: None),)

STRUCTS = (
    Function(
        "named_struct",
        "{'a': x, 'b': y, ...}: the struct of these fields; names are constants.",
        _OF_PAIRS,
        nulls="never NULL",
    ),
    Function(
        "struct_extract",
        "s.a, (s).a: the field of that name, which is a constant.",
        _BY_BINDER,
    ),
)

LISTS = (
    Function(
        "list_value",
        "[a, b, ...], a list of values of one type, which may be NULL; [] has none. 65536 are the "
        "most.",
        (Overload("(T, ...) -> LIST(T)", _made),),
        nulls="never NULL",
    ),
    Function("cardinality", "Number of items, NULLs among them; LENGTH of a list is the same.",
             (Overload("(LIST(T)) -> INT", _of_list(1, lambda item, args: Match(args, INT))),)),
    Function(
        "element_at",
        "l[i]: the i-th item; NULL where there is none (i < 1, or beyond the end).",
        (Overload("(LIST(T), INT) -> T", _of_list(2, _at)),),
    ),
    Function(
        "list_contains",
        "Whether an item equals x (as =, so NaN equals NaN); a NULL in the list equals nothing.",
        (Overload("(LIST(T), T) -> BOOL", _of_list(2, _has)),),
        aliases=("array_contains",),
    ),
    Function("list_min", "The smallest item that is not NULL; NULL if there is none.", (_SAME,),
             aliases=("array_min",)),
    Function("list_max", "The largest item that is not NULL; NULL if there is none.", (_SAME,),
             aliases=("array_max",)),
    Function(
        "list_sum",
        "The sum of the items that are not NULL, NULL if there is none; INT and INTERVAL exactly, "
        "a result outside the type is an error of that row; FLOAT one after the other as IEEE 754; "
        "DECIMAL exactly.",
        (Overload("(LIST(number or INTERVAL)) -> the same, of DECIMALs DECIMAL(38,s)",
                  _of_list(1, _total)),),
        aliases=("array_sum",),
    ),
    Function(
        "array_to_string",
        "The items, each as CAST to STRING writes it, with the separator between them; NULLs are "
        "left out. BYTES that are no UTF-8 are an error of that row.",
        (Overload("(LIST(T), STRING) -> STRING", _of_list(2, _shown)),),
        aliases=("list_to_string",),
    ),
    Function(
        "string_split",
        "The parts of s between separators, found from the left without overlap; an empty "
        "separator is nowhere. More than 65536 parts are an error of that row.",
        (Overload("(STRING, STRING) -> LIST(STRING)", _split),),
        aliases=("string_to_array", "split"),
    ),
)  # a table  # fmt: skip
