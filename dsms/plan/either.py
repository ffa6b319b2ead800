"""Conditions of which one of several equalities must hold: ``l.a = r.a OR l.b = r.b``.

For each operand of the OR there is a way to find pairs by its equalities.  A pair that an earlier
way finds is none of a later one's, so the ways find disjoint sets of pairs, and together each pair
once, as often as its rows are there.
"""

from __future__ import annotations

from dataclasses import dataclass

from dsms.plan.exprs import as_key, total
from dsms.sql import logical as lp
from dsms.sql.expr import Call, Expr, Lit, conjunction, conjuncts
from dsms.sql.types import BOOL

MOST = 8  # ways: each keeps the rows of both sides
Keys = tuple[tuple[Expr, Expr], ...]


@dataclass(frozen=True, slots=True)
class Way:
    """Pairs that are equal in `keys` and meet `residual`, a condition over left ++ right."""

    keys: Keys
    residual: Expr | None


def ways(node: lp.Join | lp.SemiJoin) -> tuple[Way, ...]:
    """The ways to find the pairs of a node without keys; none if there are no such, or if its
    condition can fail: it might be asked of a pair more than once."""
    if node.keys or node.residual is None or not total(node.residual):
        return ()
    parts = conjuncts(node.residual)
    width = len(node.left.schema)
    for k, part in enumerate(parts):
        if isinstance(part, Call) and part.fn == "or" and len(part.args) <= MOST:
            found = _of_or(part.args, parts[:k] + parts[k + 1 :], width)
            if found:
                return found
    return ()


def _of_or(operands: tuple[Expr, ...], others: list[Expr], width: int) -> tuple[Way, ...]:
    out: list[Way] = []
    for k, operand in enumerate(operands):
        keys, rest = list[tuple[Expr, Expr]](), list[Expr]()
        for part in conjuncts(operand):
            key = as_key(part, width)
            if key is None:
                rest.append(part)
            else:
                keys.append(key)
        if not keys:
            return ()
        before = [_not_true(earlier) for earlier in operands[:k]]
        out.append(Way(tuple(keys), conjunction([*rest, *others, *before])))
    return tuple(out)


def _not_true(expr: Expr) -> Expr:
    known = Call("coalesce", (expr, Lit(False, BOOL)), BOOL)
    return Call("not", (known,), BOOL)
