"""Equalities between the two sides become join keys, so that the join can hash."""

from dataclasses import replace

from dsms.plan.exprs import as_key
from dsms.plan.rules.base import Context
from dsms.sql import logical as lp
from dsms.sql.expr import Expr, conjunction, conjuncts


def residual_to_keys(node: lp.Node, ctx: Context) -> lp.Node:
    """Join(l, r, e_l = e_r AND p) -> Join(l, r, keys (e_l, e_r), p); so for EXISTS, negation and
    ⋈NRR.

    Keys and condition are one conjunction; NULL equals nothing in either.  Not under NOT IN, whose
    keys are aware of NULL; nor if a side can fail, which would then be worked out for rows that
    meet no partner.
    """
    match node:
        case lp.Join() | lp.SemiJoin(null_aware=False):
            width = len(node.left.schema)
        case lp.JoinNRR():
            width = len(node.child.schema)
        case _:
            return node
    keys: list[tuple[Expr, Expr]] = []
    rest: list[Expr] = []
    for part in conjuncts(node.residual):
        key = as_key(part, width)
        if key is None:
            rest.append(part)
        else:
            keys.append(key)
    return replace(node, keys=(*node.keys, *keys), residual=conjunction(rest)) if keys else node
