"""NOW() in plans of one-time queries: it is a call without a value until the instant is known that
the answer holds at, and then a constant.  So whatever of a plan is done before must not contain it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from dsms.operators.expressions import evaluate_constant
from dsms.sql import logical as lp
from dsms.sql.expr import NOW, AggCall, Call, Lit
from dsms.sql.fold import fold
from dsms.sql.types import FOREVER, TIMESTAMP

_PARTS = (lp.Node, lp.Frame, AggCall, Call, tuple)


def asks_now(plan: lp.Node) -> bool:
    """Whether NOW() stands somewhere in it."""
    stack: list[Any] = [plan]
    while stack:
        part = stack.pop()
        if isinstance(part, Call) and part.fn == NOW:
            return True
        stack += _below(part)
    return False


def _below(part: Any) -> Iterator[Any]:
    inside = part if isinstance(part, tuple) else (getattr(part, name) for name in _names(part))
    return (p for p in inside if isinstance(p, _PARTS))


def _names(part: Any) -> Iterator[str]:
    return (f.name for f in fields(part) if f.name != "schema")


def as_of(plan: lp.Node, at: int) -> lp.Node:
    """The plan with that instant (NULL for FOREVER, where nothing has a clock) in place of NOW(),
    and constants worked out."""
    if not asks_now(plan):
        return plan
    instant = Lit(None if at == FOREVER else at, TIMESTAMP)
    made: lp.Node = _put(plan, instant)
    return made


def _put(part: Any, instant: Lit) -> Any:
    match part:
        case Call():
            return fold(_told(part, instant), evaluate_constant)
        case tuple():
            return tuple(_put(p, instant) for p in part)
    if not isinstance(part, _PARTS):
        return part
    given = {name: getattr(part, name) for name in _names(part)}
    changed = {name: _put(p, instant) for name, p in given.items()}
    whole: Any = part
    return replace(whole, **changed)


def _told(expr: Any, instant: Lit) -> Any:
    if not isinstance(expr, Call):
        return expr
    if expr.fn == NOW:
        return instant
    return replace(expr, args=tuple(_told(a, instant) for a in expr.args))
