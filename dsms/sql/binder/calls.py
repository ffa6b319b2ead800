"""Typed calls of operators and functions, with their casts written out and constants folded into
them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from dsms.errors import QueryError
from dsms.sql import ast, functions
from dsms.sql.binder import lists, structs
from dsms.sql.codes import error
from dsms.sql.expr import Call, Expr, Lit
from dsms.sql.functions import FunctionError
from dsms.sql.signatures import bend
from dsms.sql.types import DATE, STRING, TIMESTAMP, Kind, Type

BINARY = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod", "||": "concat"}
COMPARE = {"=": "eq", "<>": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_SIGNS = {fn: sign for sign, fn in (BINARY | COMPARE).items()} | {"neg": "-"}

_ALIKE = (
    "case",
    "coalesce",
    "in",
    "greatest",
    "least",
    "nullif",
    "list_value",
)  # take values of one type


def is_grouping(node: ast.Node) -> bool:
    """``GROUPING(...)``, with whatever arguments."""
    match node:
        case ast.FuncCall(ast.Ident(text, False)):
            return text.upper() == "GROUPING"
    return False


def no_grouping(node: ast.FuncCall) -> None:
    """Raise DS359 for a call of GROUPING."""
    if is_grouping(node):
        raise stray_grouping(node)


def stray_grouping(node: ast.FuncCall) -> QueryError:
    """DS359: it is not called with keys, or stands where rows are not grouped."""
    if not node.args or node.star or node.distinct or node.filter is not None:
        message = "GROUPING takes keys of GROUP BY, and nothing else"
        return error("DS359", message, node, "for example GROUPING(a)")
    return error(
        "DS359",
        "GROUPING stands where rows are not grouped",
        node,
        "it stands in the select list, HAVING or ORDER BY of a query with GROUP BY, and takes "
        "keys of it",
    )


def call(name: str, args: Sequence[Expr], at: ast.Node, params: tuple[object, ...] = ()) -> Expr:
    """The typed call of an operator or function; DS206, DS207, DS208 or DS222 at `at`."""
    try:
        found = functions.call(name, args, params)
    except FunctionError as failure:
        raise function_error(failure, name, [a.type for a in args], at) from None
    lists.without_order(found.fn, [a.type for a in found.args], at)
    typed = tuple(fold(a) for a in found.args)
    if found.fn == "list_value" and (constant := lists.made(typed, found.type)) is not None:
        return constant
    return Call(found.fn, typed, found.type, found.params)


def function_error(
    failure: FunctionError, name: str, types: Sequence[Type], at: ast.Node
) -> Exception:
    """The failure of a function look-up as an error at its place."""
    if failure.kind == "nested":
        return lists.nested(at)
    if failure.kind == "zone":
        return error("DS222", failure.message, at, failure.hint)
    sign = _SIGNS.get(name) if len(types) >= 2 or (name == "neg" and types) else None
    if failure.kind == "types" and sign is not None:
        shown = f" {sign} ".join(str(t) for t in types) if len(types) > 1 else f"{sign}{types[0]}"
        return error("DS208", f"{shown} is not possible", at, _conversion_hint(types, sign))
    if failure.kind == "types" and types and name.casefold() in _ALIKE:
        if name.casefold() == "case":  # condition, value, condition, value, ..., else
            types = [t for k, t in enumerate(types) if k % 2 or k == len(types) - 1]
        kinds = ", ".join(dict.fromkeys(str(t) for t in types))
        what = "a list" if name.casefold() == "list_value" else name.upper()
        message = f"{what} needs values of one type, and these have none in common: {kinds}"
        return error("DS208", message, at, _conversion_hint(types, name.upper()))
    hint = (
        f"there is {'; '.join(failure.candidates[:6])}"
        if failure.kind == "types" and failure.candidates
        else None
    )
    message = (
        f"{name.upper()}({', '.join(map(str, types))}) does not exist" if hint else failure.message
    )
    return error("DS207", message, at, hint)


_WRITTEN = {
    Kind.TIMESTAMP: "write an instant as TIMESTAMP '2013-01-01 00:00:00'",
    Kind.DATE: "write a day as DATE '2013-01-31'",
    Kind.TIME: "write a time of a day as TIME '12:30:00'",
    Kind.UUID: "write UUID '...', or convert one side: CAST(x AS UUID), CAST(u AS STRING)",
}


def _conversion_hint(types: Sequence[Type], sign: str = "") -> str | None:
    kinds = {t.kind for t in types}
    if sign == "IN" and Kind.LIST in kinds:
        return "LIST_CONTAINS(l, x) looks into a list; IN takes values one by one: x IN (a, b)"
    if sign == "+" and kinds == {Kind.STRING}:
        return "texts are joined with ||, or CONCAT"
    if sign == "+" and kinds == {Kind.TIMESTAMP, Kind.STRING}:
        return "write a length of time as INTERVAL '5' MINUTE"
    if sign == "*" and kinds == {Kind.DECIMAL}:
        return (
            "a product has the digits behind the point of both, and a DECIMAL at most 38: convert "
            "one side to fewer, as in CAST(x AS DECIMAL(38, 10))"
        )
    if Kind.STRING in kinds and (written := _WRITTEN.keys() & kinds):
        return _WRITTEN[written.pop()]
    if kinds & {Kind.TIMESTAMP, Kind.INTERVAL} and kinds & {Kind.INT, Kind.FLOAT, Kind.STRING}:
        return "write a length of time as INTERVAL '5' MINUTE"
    if Kind.STRING in kinds and len(kinds) > 1:
        other = next(t for t in types if t.kind is not Kind.STRING)
        return f"convert one side: CAST(x AS {other}) or CAST(x AS STRING)"
    return "convert one side with CAST(x AS type)"


def cast(expr: Expr, to: Type) -> Expr:
    """The implicit conversion (which the caller knows to exist)."""
    return fold(functions.cast(expr, to))


def fold(expr: Expr) -> Expr:
    """A cast of a constant number to DECIMAL is that constant, where it fits exactly; one of a text
    or a list to LIST, where it is one."""
    match expr:
        case Call("cast", (Lit(value=int() | Decimal() as value, type=source),), target):
            if target.kind is Kind.DECIMAL and source.kind in (Kind.INT, Kind.DECIMAL):
                return _exact(Decimal(value), target) or expr
            if source == DATE and target == TIMESTAMP:
                return Lit(value, TIMESTAMP)
        case Call("cast", (Lit(value=str() as text, type=source),), target):
            if target.kind is Kind.LIST:
                return lists.read(text, target) or expr
            if target.kind is Kind.STRUCT and (source == STRING or source.fields):
                return structs.read(text, target) or expr
    return expr


def argument(bound: Expr, type_: Type, node: ast.Argument, says: str) -> Expr:
    """What is given for a parameter, as the type that this has; DS243 where it does not bend so."""
    node.given.cast = bound.type != type_
    if bend(bound.type, type_) is None:
        message = f"{says} {type_}, and this is {bound.type}"
        raise error("DS243", message, node, f"write CAST(... AS {type_})")
    return cast(bound, type_)


def _exact(value: Decimal, target: Type) -> Lit | None:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # no literal is infinite
    whole = int("".join(map(str, digits))) * 10 ** max(exponent + target.scale, 0)
    cut = 10 ** max(-exponent - target.scale, 0)
    if whole % cut or whole // cut >= 10**target.precision:
        return None
    return Lit(Decimal((sign, tuple(map(int, str(whole // cut))), -target.scale)), target)
