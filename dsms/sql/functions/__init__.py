"""Every scalar function, operator and aggregate: names, overloads, exact meanings.

`resolve` and `resolve_aggregate` are what the binder needs; `call` builds a typed `Call` with its
casts.  They are implemented in `dsms.operators.expressions` (scalar) and in the aggregation
operators; nothing is evaluated here.
"""

from __future__ import annotations

from collections.abc import Sequence

from dsms.aggregates.cards import Card
from dsms.sql.expr import Call, Expr, Lit
from dsms.sql.functions.aggregate import (
    AGGREGATES,
    ResolvedAgg,
    aggregate,
    aggregate_names,
    aggregate_params,
    is_aggregate,
    resolve_aggregate,
)
from dsms.sql.functions.constants import check_constants
from dsms.sql.functions.lists import LISTS, STRUCTS
from dsms.sql.functions.operators import OPERATORS, SHORT
from dsms.sql.functions.scalar import NUMBERS, TEXT
from dsms.sql.functions.times import EXTRACT_FIELDS, TIMES
from dsms.sql.signatures import (
    Function,
    FunctionError,
    Resolved,
    castable,
    casts,
    choose,
    common_of,
    common_type,
)
from dsms.sql.types import Kind, Type

__all__ = [
    "AGGREGATES", "EXTRACT_FIELDS", "FUNCTIONS", "GROUPS", "Card", "Function", "FunctionError",
    "Resolved",
    "ResolvedAgg",
    "aggregate", "aggregate_names", "aggregate_params", "call", "cast", "castable",
    "check_constants", "common_of",
    "common_type", "function", "is_aggregate", "is_scalar", "resolve", "resolve_aggregate",
    "scalar_names",
]  # a table  # fmt: skip


GROUPS = {
    "operators": OPERATORS,
    "numbers": NUMBERS,
    "text": TEXT,
    "times": TIMES,
    "lists": LISTS,
    "structs": STRUCTS,
}
FUNCTIONS: dict[str, Function] = {f.name: f for group in GROUPS.values() for f in group}
# functions that are written in their own way, and are calls of another: IF is a CASE
SHORT_FOR = {"if": "case"}
_BY_NAME = {n: f for f in (*FUNCTIONS.values(), *SHORT) for n in (f.name, *f.aliases)}
# operators that only their signs write: CAST and CASE have syntax of their own, `AND(a, b)` is no
# SQL
SYNTAX_ONLY = frozenset((
    "add", "sub", "mul", "div", "neg", "eq", "ne", "lt", "le", "gt", "ge", "distinct_from",
    "not_distinct_from",
    "and", "or", "not", "is_null", "is_not_null", "in", "like", "case", "cast",
))  # a table  # fmt: skip


def is_scalar(name: str) -> bool:
    """Whether a scalar function has that name or alias, in any case."""
    return name.casefold() in _BY_NAME


def scalar_names(*, operators: bool = True) -> list[str]:
    """Names (not aliases) of all scalar functions; without those that only signs and syntax write,
    if asked."""
    names = [*FUNCTIONS, *(f.name for f in SHORT)]
    return [n for n in names if operators or n not in SYNTAX_ONLY]


def function(name: str) -> Function:
    """The function of that name or alias, in any case; FunctionError `unknown`."""
    found = _BY_NAME.get(name.casefold())
    if found is None:
        raise FunctionError(
            "unknown", f"there is no function `{name}`", tuple(scalar_names(operators=False))
        )
    return found


def resolve(name: str, args: Sequence[Type]) -> Resolved:
    """The function for arguments of these types (CAST: use `cast`).  Raises FunctionError `unknown`
    or `types`."""
    spec = function(name)
    found = choose(spec.name, spec.overloads, args, spec.signatures())
    return Resolved(spec.name, casts(args, found.targets), found.type)


def cast(expr: Expr, to: Type, fn: str = "cast") -> Expr:
    """The expression as `to`: itself if it is, a typed NULL for a bare one, else a call of `fn`,
    `cast` or `try_cast`.  FunctionError `types`."""
    if expr.type == to:
        return expr
    if not castable(expr.type, to):
        raise FunctionError("types", f"{expr.type} can't be cast to {to}")
    if isinstance(expr, Lit) and expr.value is None:
        return Lit(None, to)
    if expr.type.kind is Kind.INT and to.kind is Kind.FLOAT and isinstance(expr, Lit):
        return Lit(float(expr.value), to)  # type: ignore[arg-type]
    return Call(fn, (expr,), to)


def call(name: str, args: Sequence[Expr], params: tuple[object, ...] = ()) -> Call:
    """The typed call, with casts around the arguments that need one and its constants checked.
    Raises " "FunctionError."""
    found = resolve(name, [a.type for a in args])
    typed = tuple(a if to is None else cast(a, to) for a, to in zip(args, found.casts, strict=True))
    check_constants(found.fn, function(found.fn).constants, typed, params)
    return Call(SHORT_FOR.get(found.fn, found.fn), typed, found.type, params)
