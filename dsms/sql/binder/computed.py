"""Computed columns of streams: `c T AS (expr)`, and that of `TIMESTAMP BY (expr) AS c`."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from typing import Any

import pyarrow as pa

from dsms import lists
from dsms.sql import ast
from dsms.sql.binder.changes import assigned
from dsms.sql.binder.context import Context
from dsms.sql.binder.expressions import Env, bind
from dsms.sql.binder.scope import Scope, relation_scope
from dsms.sql.binder.select import bind_nested
from dsms.sql.catalog import Catalog
from dsms.sql.codes import error
from dsms.sql.expr import Call, Expr, Lit
from dsms.sql.types import INT, TIMESTAMP, Field, Kind, Schema, Type, item_of

Computed = tuple[tuple[int, Expr], ...]


def bind_computed(statement: ast.CreateStream, schema: Schema, catalog: Catalog) -> Computed:
    """The computed columns of a stream of that schema: their places, and what they are made of,
    over the columns that are given, which stand in their order.

    Raises DS234 where one stands on another, or none is given, and DS2xx, DS3xx."""
    columns = statement.columns
    given = tuple(f for f, c in zip(schema, columns, strict=False) if c.computed is None)
    if not given:
        message = f"all columns of {statement.name.text} are computed, and of nothing"
        raise error("DS234", message, statement.name, "declare what its rows bring")
    _check_apart(statement)
    env = Env(Context(catalog, True, bind_nested), relation_scope(given, statement.name.text), "AS")
    made = []
    for i, column in enumerate(columns):
        if column.computed is not None:
            made.append((i, assigned(bind(env, column.computed), schema[i], column.computed)))
    by = statement.timestamp
    if by is not None and by.computed is not None:
        made.append((len(columns), bind(env, by.computed)))
    return tuple(made)


def _check_apart(statement: ast.CreateStream) -> None:
    """No computed column stands on another: there would be an order among them."""
    columns, by = statement.columns, statement.timestamp
    made = [c.name for c in columns if c.computed is not None]
    exprs: list[ast.Expr | None] = [c.computed for c in columns]
    exprs.append(None if by is None else by.computed)
    for expr in exprs:
        for ref in ast.walk(expr) if expr is not None else ():
            if isinstance(ref, ast.ColumnRef) and any(ref.name.matches(n.text) for n in made):
                message = f"`{ref.name.text}` is computed itself"
                raise error("DS234", message, ref, "write what it is made of in its place")


def with_timestamp(statement: ast.CreateStream, schema: Schema, catalog: Catalog) -> Schema:
    """The schema with the column that TIMESTAMP BY (expr) AS c adds."""
    by = statement.timestamp
    if by is None or by.computed is None:
        return schema
    if any(f.name.casefold() == by.column.text.casefold() for f in schema):
        message = f"column `{by.column.text}` is declared already"
        raise error("DS212", message, by.column, "TIMESTAMP BY (expr) AS c adds a column c")
    made = bind_computed(statement, schema, catalog)[-1][1]
    if made.type not in (TIMESTAMP, INT):
        message = f"TIMESTAMP BY needs a TIMESTAMP or an INT, and this is {made.type}"
        raise error("DS223", message, by.computed, "CAST it, or give INT its UNIT")
    return (*schema, Field(by.column.text, made.type))


def default_of(expr: ast.Expr, column: Field, catalog: Catalog) -> object:
    """The value of DEFAULT as the column has it.  Raises DS218, DS235 where it is no constant."""
    env = Env(Context(catalog, True, bind_nested), Scope(), "DEFAULT")
    found = assigned(bind(env, expr), replace(column, nullable=True), expr)
    try:
        return _constant(found)
    except OverflowError:
        what = f"the DEFAULT of {column.name} is too large for {column.type}"
        raise error("DS235", what, expr, "write one that fits, or a larger type") from None
    except ValueError:
        what = f"the DEFAULT of {column.name} is no constant"
        raise error("DS235", what, expr, "write a literal") from None


def _constant(expr: Expr) -> Any:
    match expr:
        case Lit(value):
            return value
        case Call("neg", (operand,)):
            value = _constant(operand)
            return None if value is None else -value
        case Call("cast", (operand,), target) if target.numeric:
            value = _constant(operand)
            return _number(_read(value, target) if isinstance(value, str) else value, target)
        case Call("cast", (Lit(str() as text, source),), target) if _of_numbers(source, target):
            return _numbers(text, source, target)
    raise ValueError


def _number(value: Any, to: Type) -> Any:
    """A number as another type has it.  Raises OverflowError."""
    if value is None or to.kind is Kind.INT:
        return value
    return float(value) if to.kind is Kind.FLOAT else _decimal(value, to)


def _read(text: str, to: Type) -> int | Decimal | float:
    """The number that a text is.  Raises ValueError, OverflowError."""
    if "_" in text or not text.isascii():
        raise ValueError
    if to.kind is Kind.INT:
        value = int(text)
        if not -(2**63) <= value < 2**63:
            raise OverflowError
        return value
    try:
        return float(text) if to.kind is Kind.FLOAT else Decimal(text)
    except InvalidOperation:
        raise ValueError from None


def _of_numbers(*types: Type) -> bool:
    return all(t.kind is Kind.LIST and item_of(t).numeric for t in types)


def _numbers(text: str, source: Type, to: Type) -> str:
    """A list with its items as those of another list.  Raises OverflowError."""
    (values,) = lists.read(pa.array([text]), str(item_of(source))).to_pylist()
    items = [_number(v, item_of(to)) for v in values]
    spelled = lists.spelled_items(pa.array(items, item_of(to).arrow), str(item_of(to)))
    return f"[{', '.join(spelled.to_pylist())}]"


def _decimal(value: float | Decimal, to: Type) -> Decimal:
    """Rounded as CAST does.  Raises OverflowError."""
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite():
        raise OverflowError
    if exact and exact.adjusted() >= to.precision:
        raise OverflowError
    with localcontext() as context:
        context.prec = 400  # digits of the longest FLOAT and a DECIMAL
        found = exact.quantize(Decimal(1).scaleb(-to.scale), ROUND_HALF_UP)
    if found and found.adjusted() >= to.precision - to.scale:
        raise OverflowError
    return found
