"""Evaluates one expression every way it can reach the engine, and insists on one answer.

Whole, in two parts, row by row, as slices of longer arrays, and with constants in place of columns:
values, types and counted errors must agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa

from dsms.operators.expressions import ErrorCounter, compile_expr
from dsms.sql.expr import Col, Expr, Lit, rewrite
from dsms.sql.functions import call, cast
from dsms.sql.types import BOOL, BYTES, FLOAT, INT, STRING, Type, decimal

DEC = decimal(10, 2)
WIDE = decimal(38, 10)
_KINDS = {bool: BOOL, int: INT, float: FLOAT, str: STRING, bytes: BYTES, Decimal: DEC}


def lit(value: object, type_: Type | None = None) -> Lit:
    return Lit(value, type_ or _KINDS[type(value)])


def array(values: Sequence[object], type_: Type) -> pa.Array:
    return pa.array(values, type_.arrow)


def same(a: object, b: object) -> bool:
    """Equal in SQL's sense and of one Python type; -0.0 is 0.0."""
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or a == b
    return type(a) is type(b) and a == b


def agree(got: Sequence[object], want: Sequence[object]) -> bool:
    return len(got) == len(want) and all(same(g, w) for g, w in zip(got, want, strict=True))


def once(expr: Expr, cols: Sequence[pa.Array], n: int) -> tuple[list[object], int]:
    """Values and number of errors; the array must be whole, valid, and of exactly the expression's
    physical type."""
    errors = ErrorCounter()
    out = compile_expr(expr)(cols, n, errors)
    assert isinstance(out, pa.Array), type(out)
    assert out.type == expr.type.arrow, f"{out.type} instead of {expr.type.arrow}"
    assert len(out) == n
    out.validate(full=True)
    return out.to_pylist(), errors.count


def _shifted(column: pa.Array, type_: Type) -> pa.Array:
    """The same values as a slice in the middle of a longer array, with other values and NULLs
    around."""
    extra = column if len(column) else pa.nulls(1, type_.arrow)
    whole = pa.concat_arrays(
        [pa.nulls(3, type_.arrow), extra, column, extra, pa.nulls(2, type_.arrow)]
    )
    return whole.slice(3 + len(extra), len(column))


def every_way(
    expr: Expr, types: Sequence[Type], rows: Sequence[Sequence[object]]
) -> tuple[list[object], int]:
    """Values and errors over the rows, having tried all the ways."""
    n = len(rows)
    cols = [array([r[i] for r in rows], t) for i, t in enumerate(types)]
    values, count = once(expr, cols, n)
    for what, (others, errors) in {
        "sliced": once(expr, [_shifted(c, t) for c, t in zip(cols, types, strict=True)], n),
        "in parts": _parts(expr, cols, n, max(n // 2, 1)),
        "row by row": _parts(expr, cols, n, 1),
        "empty, then all": _parts(expr, cols, n, n or 1),
    }.items():
        assert agree(others, values), f"{what}: {others} instead of {values}"
        assert errors == count, f"{what}: {errors} errors instead of {count}"
    for row, value in list(zip(rows, values, strict=True))[:6]:
        constant = rewrite(expr, lambda c, row=row: Lit(row[c.index], c.type))
        (found,), _ = once(constant, [], 1)
        assert same(found, value), f"of constants {row}: {found!r} instead of {value!r}"
    for i, type_ in enumerate(types):
        _one_constant(expr, types, rows[:6], values[:6], i, type_)
    return values, count


def _parts(expr: Expr, cols: Sequence[pa.Array], n: int, size: int) -> tuple[list[object], int]:
    values, errors = once(expr, [c.slice(0, 0) for c in cols], 0)
    for start in range(0, n, size):
        more, count = once(expr, [c.slice(start, size) for c in cols], min(size, n - start))
        values, errors = values + more, errors + count
    return values, errors


def _one_constant(
    expr: Expr,
    types: Sequence[Type],
    rows: Sequence[Sequence[object]],
    values: Sequence[object],
    at: int,
    type_: Type,
) -> None:
    """One column replaced by a constant at a time, the others as they are."""
    for row, value in zip(rows, values, strict=True):
        fixed = rewrite(expr, lambda c, row=row: Lit(row[at], type_) if c.index == at else c)
        (found,), _ = once(fixed, [array([v], t) for v, t in zip(row, types, strict=True)], 1)
        assert same(found, value), f"with constant {row[at]!r}: {found!r} instead of {value!r}"


def columns(*types: Type) -> list[Col]:
    return [Col(i, t) for i, t in enumerate(types)]


def apply(
    name: str,
    types: Sequence[Type],
    rows: Sequence[Sequence[object]],
    params: tuple[object, ...] = (),
):
    """`every_way` of a function over columns of those types."""
    return every_way(call(name, columns(*types), params), types, rows)


def cast_all(source: Type, to: Type, values: Sequence[object]) -> tuple[list[object], int]:
    """`every_way` of a cast."""
    return every_way(cast(Col(0, source), to), [source], [(v,) for v in values])


__all__ = [
    "DEC", "WIDE", "agree", "apply", "array", "cast_all", "columns", "every_way", "lit", "once",
    "same",
]  # a long list  # fmt: skip
