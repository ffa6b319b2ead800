"""The values that LOOKUP gives to the parameters of a query."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast as typed

from dsms.sql import ast
from dsms.sql.binder.calls import cast
from dsms.sql.binder.changes import is_midnight
from dsms.sql.binder.context import Context
from dsms.sql.binder.expressions import Env, bind
from dsms.sql.binder.scope import Scope
from dsms.sql.binder.select import bind_nested
from dsms.sql.catalog import Catalog, QueryDef
from dsms.sql.codes import error
from dsms.sql.expr import Call, Expr, Lit
from dsms.sql.functions import common_type
from dsms.sql.types import DATE, FLOAT, NULL, Kind, Type


def bind_values(statement: ast.Lookup, definition: QueryDef, catalog: Catalog) -> tuple[Lit, ...]:
    """A constant of the right type for each parameter of the query.  QueryError DS352 more or
    fewer, DS353 none of its type."""
    wanted, given = definition.parameters, statement.values
    if len(wanted) != len(given):
        raise _unlike(statement, definition)
    env = Env(Context(catalog, False, bind_nested), Scope(), "LOOKUP")
    return tuple(
        _value(bind(env, node), type_, node) for node, type_ in zip(given, wanted, strict=True)
    )


def _unlike(statement: ast.Lookup, definition: QueryDef) -> Exception:
    name, wanted, given = definition.name, definition.parameters, statement.values
    hint = f"LOOKUP {name}{shown(wanted)}"
    if not wanted:
        message = f"query {name} has no parameters, and LOOKUP gives {_count(len(given))}"
        return error("DS352", message, given[0], hint)
    told = _count(len(given)) if given else "none"
    message = f"LOOKUP of {name} takes {_count(len(wanted))}, and there is {told}"
    if len(given) > 1:
        message = f"LOOKUP of {name} takes {_count(len(wanted))}, and there are {told}"
    return error("DS352", message, given[-1] if given else statement.name, hint)


def _count(n: int) -> str:
    return "1 value" if n == 1 else f"{n} values"


def shown(types: Sequence[Type]) -> str:
    """The parameters of a query in a text: `` (INT, STRING)``."""
    return f" ({', '.join(map(str, types))})" if types else ""


def _value(found: Expr, type_: Type, at: ast.Expr) -> Lit:
    constant = _constant(found)
    if constant is None:
        raise error(
            "DS353", "a value of LOOKUP is a constant", at, "write a literal, or a parameter"
        )
    if constant.type == NULL:
        return Lit(None, type_)
    if constant.type == type_:
        return constant
    if type_ == DATE and is_midnight(constant):
        return Lit(constant.value, DATE)
    if _fits(constant.type, type_):
        made = _as_float(constant, type_) or cast(constant, type_)
        if isinstance(made, Lit):
            return made
    message = f"this parameter of LOOKUP is {type_}, and the value is {constant.type}"
    raise error("DS353", message, at, _hint(type_))


def _fits(source: Type, target: Type) -> bool:
    if target.kind is Kind.DECIMAL:
        return source.kind in (Kind.INT, Kind.DECIMAL)
    return common_type(source, target) == target


def _as_float(constant: Lit, type_: Type) -> Lit | None:
    if type_ != FLOAT or not constant.type.numeric or constant.value is None:
        return None
    return Lit(float(typed(float, constant.value)), FLOAT)


def _constant(expr: Expr) -> Lit | None:
    """What the expression is, if it is a literal, also negative, or a FLOAT that has none."""
    match expr:
        case Lit():
            return expr
        case Call("cast", (Lit(value=str() as text),), type_) if type_ == FLOAT:
            try:
                value = float(text)
            except ValueError:
                return None
            return None if math.isfinite(value) else Lit(value, FLOAT)
    return None


def _hint(type_: Type) -> str:
    match type_.kind:
        case Kind.TIMESTAMP:
            return "write TIMESTAMP '2013-01-01 00:00:00'"
        case Kind.INTERVAL:
            return "write INTERVAL '5' MINUTE"
        case Kind.DATE:
            return "write DATE '2013-01-31'"
        case Kind.TIME:
            return "write TIME '12:30:00'"
        case Kind.UUID:
            return "write UUID '...'"
        case Kind.DECIMAL:
            return f"write DECIMAL '1.50', of {type_}; or ?::FLOAT in the query"
        case Kind.INT:
            return "write a whole number; or ?::FLOAT in the query"
        case _:
            return f"write a constant of {type_}"
