"""Expressions as SQL text, those alone that mean exactly the same there and can't fail:
comparisons, logic, CASE.

Everything else (arithmetic that may overflow, text, time, casts...) is evaluated by our own
compiled expressions, over the very rows that come to it; so a row that fails is counted, or ends
the query, exactly where it should.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from dsms.oneshot.dialect import Dialect
from dsms.sql.expr import Call, Col, Expr, Lit
from dsms.sql.types import Kind, Type

Names = Callable[[int], str]  # the text of a column by its position
_SIGNS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_DISTINCT = {"distinct_from": "IS DISTINCT FROM", "not_distinct_from": "IS NOT DISTINCT FROM"}
_NULL_TESTS = {"is_null": "IS NULL", "is_not_null": "IS NOT NULL"}


def exact(expr: Expr, names: Names, dialect: Dialect) -> str | None:
    """The text of an expression, or None where nothing but our own evaluation will do."""
    match expr:
        case Col(index):
            return names(index)
        case Lit():
            return literal(expr, dialect)
        case Call():
            return _call(expr, names, dialect)


def all_exact(exprs: Iterable[Expr], names: Names, dialect: Dialect) -> list[str] | None:
    """The texts of several expressions; None if one of them has none."""
    out = []
    for expr in exprs:
        text = exact(expr, names, dialect)
        if text is None:
            return None
        out.append(text)
    return out


def quoted(text: str) -> str:
    """A string literal."""
    return "'" + text.replace("'", "''") + "'"


def literal(lit: Lit, dialect: Dialect) -> str | None:
    """A constant with its type; None for text that SQL can't spell."""
    value, name = lit.value, dialect.type(lit.type)
    if value is None:
        return f"CAST(NULL AS {name})"
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case str() if dialect.odd is not None and dialect.odd(value):
            return f"CAST({dialect.blob(value.encode().hex())} AS {name})"
        case str() if "\0" in value:
            return None
        case str():
            return quoted(value)
        case bytes():
            return dialect.blob(value.hex())
        case float():
            shown = "NaN" if math.isnan(value) else "Infinity" if value == math.inf else repr(value)
            return f"CAST('{'-Infinity' if value == -math.inf else shown}' AS {name})"
        case _:
            return (
                f"CAST('{value:f}' AS {name})"
                if lit.type.kind is Kind.DECIMAL
                else f"CAST('{value}' AS {name})"
            )


def _call(call: Call, names: Names, dialect: Dialect) -> str | None:
    shape = _SHAPES.get(call.fn)
    if shape is None or not _plain(call):
        return None
    args = all_exact(call.args, names, dialect)
    return None if args is None else shape(call, args)


def _plain(call: Call) -> bool:
    """Whether what is compared is of one type, and no value of a type without values is asked
    for."""
    if any(t.kind is Kind.NULL for t in _types(call)):
        return False
    if call.fn in _SIGNS or call.fn in _DISTINCT or call.fn in ("in", "nullif"):
        return len({a.type for a in call.args}) == 1
    if call.fn in ("case", "coalesce"):
        return all(t == call.type or t.kind is Kind.BOOL for t in _types(call))
    return True


def _types(call: Call) -> list[Type]:
    return [call.type, *(a.type for a in call.args)]


def _sign(call: Call, args: list[str]) -> str:
    return f"({args[0]} {_SIGNS[call.fn]} {args[1]})"


def _distinct(call: Call, args: list[str]) -> str:
    return f"({args[0]} {_DISTINCT[call.fn]} {args[1]})"


def _null_test(call: Call, args: list[str]) -> str:
    return f"({args[0]} {_NULL_TESTS[call.fn]})"


def _connective(call: Call, args: list[str]) -> str:
    return f"({f' {call.fn.upper()} '.join(args)})"


def _in(call: Call, args: list[str]) -> str:
    return f"({args[0]} IN ({', '.join(args[1:])}))"


def _case(call: Call, args: list[str]) -> str:
    pairs = zip(args[:-1:2], args[1::2], strict=True)
    return f"CASE {' '.join(f'WHEN {c} THEN {v}' for c, v in pairs)} ELSE {args[-1]} END"


def _function(call: Call, args: list[str]) -> str:
    return f"{call.fn}({', '.join(args)})"


_SHAPES: dict[str, Callable[[Call, list[str]], str]] = {
    **dict.fromkeys(_SIGNS, _sign),
    **dict.fromkeys(_DISTINCT, _distinct),
    **dict.fromkeys(_NULL_TESTS, _null_test),
    "and": _connective,
    "or": _connective,
    "not": lambda call, args: f"(NOT {args[0]})",
    "in": _in,
    "case": _case,
    "coalesce": _function,
    "nullif": _function,
}
