"""Two selections in a row become one."""

from dsms.plan.rules.base import Context, select
from dsms.sql import logical as lp
from dsms.sql.expr import conjuncts


def merge_selections(node: lp.Node, ctx: Context) -> lp.Node:
    """Select(Select(x, p), q) -> Select(x, p AND q).

    Row by row the same, at every instant.  AND looks at p first, so q's errors count only where p
    lets a row pass.
    """
    match node:
        case lp.Select(lp.Select() as inner, predicate):
            parts = conjuncts(inner.predicate)
            return select(inner.child, parts + [c for c in conjuncts(predicate) if c not in parts])
        case _:
            return node
