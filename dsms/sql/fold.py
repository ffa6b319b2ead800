"""Constant folding: calls over constants become constants, and conditionals lose the branches that
are never taken.

What a constant expression gives is asked of `evaluate` (the engine's own evaluator, handed in
because this layer may not import it).  A call that fails stays as it is, so that the failure still
comes, and is counted, where a row meets it; for the same reason nothing is dropped that a row would
have evaluated: `x AND FALSE` stays, `FALSE AND x` does not.
"""

from __future__ import annotations

from collections.abc import Callable

from dsms.sql.expr import NOW, PARAMETER, Call, Expr, Lit
from dsms.sql.types import BOOL

# the value of an expression without columns; None if it fails
Evaluate = Callable[[Expr], "Lit | None"]


def fold(expr: Expr, evaluate: Evaluate) -> Expr:
    """The expression with its constant parts worked out; same type, same values, same failures."""
    if not isinstance(expr, Call):
        return expr
    call = Call(expr.fn, tuple(fold(a, evaluate) for a in expr.args), expr.type, expr.params)
    match call.fn:
        case "and" | "or":
            return _connective(call, evaluate)
        case "case":
            return _case(call)
        case "coalesce":
            return _coalesce(call)
    return _constant(call, evaluate)


def _constant(call: Call, evaluate: Evaluate) -> Expr:
    if call.fn in (PARAMETER, NOW) or not all(isinstance(a, Lit) for a in call.args):
        return call
    found = evaluate(call)
    return call if found is None else found


def _connective(call: Call, evaluate: Evaluate) -> Expr:
    neutral = call.fn == "and"
    kept: list[Expr] = []
    for arg in call.args:
        if isinstance(arg, Lit) and arg.value is neutral:
            continue
        kept.append(arg)
        if isinstance(arg, Lit) and arg.value is (not neutral):
            break  # it decides, whatever comes after
    if not kept:
        return Lit(neutral, BOOL)
    if len(kept) == 1:
        return kept[0]
    return _constant(Call(call.fn, tuple(kept), call.type, call.params), evaluate)


def _case(call: Call) -> Expr:
    kept: list[Expr] = []
    otherwise = call.args[-1]
    for condition, value in zip(call.args[:-1:2], call.args[1::2], strict=True):
        if isinstance(condition, Lit):
            if condition.value is True:
                otherwise = value
                break
            continue
        kept += [condition, value]
    if not kept:
        return otherwise
    return Call(call.fn, (*kept, otherwise), call.type, call.params)


def _coalesce(call: Call) -> Expr:
    kept: list[Expr] = []
    for arg in call.args:
        if isinstance(arg, Lit) and arg.value is None:
            continue
        kept.append(arg)
        if isinstance(arg, Lit):
            break
    if not kept:
        return Lit(None, call.type)
    return kept[0] if len(kept) == 1 else Call(call.fn, tuple(kept), call.type, call.params)
