"""Evaluators for operators of persistent queries that are run once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from dsms.operators.expressions import ErrorCounter, compile_expr, compile_predicate
from dsms.sql.expr import Expr


@dataclass(frozen=True, slots=True)
class Evaluates:
    """Evaluators whose failing rows are counted in `errors`."""

    errors: ErrorCounter

    def expr(self, expr: Expr) -> Callable[..., pa.Array]:
        """(cols, n) -> array."""
        run = compile_expr(expr)
        return lambda cols, n: run(cols, n, self.errors)

    def predicate(self, expr: Expr) -> Callable[..., pa.BooleanArray]:
        """(cols, n) -> bool array."""
        run = compile_predicate(expr)
        return lambda cols, n: run(cols, n, self.errors)
