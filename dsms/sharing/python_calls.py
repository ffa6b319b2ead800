"""Calls of functions and aggregates in Python, each of which may fail: whoever makes none of a
shared feed's must not share it, nor whoever makes others."""

from __future__ import annotations

from collections.abc import Iterable

from dsms.aggregates.cards.python import PYTHON_AGGREGATE
from dsms.sql.expr import PYTHON, AggCall, Call, Expr, walk


def python_calls(asked: Iterable[Expr | AggCall]) -> frozenset[Expr | AggCall]:
    """Those of the expressions and aggregates that run Python."""
    return frozenset(e for e in asked if _runs(e))


def _runs(asked: Expr | AggCall) -> bool:
    if not isinstance(asked, AggCall):
        return any(isinstance(e, Call) and e.fn == PYTHON for e in walk(asked))
    parts = (*asked.args, *(() if asked.filter is None else (asked.filter,)))
    return asked.fn == PYTHON_AGGREGATE or any(map(_runs, parts))
