"""Two projections in a row become one."""

from collections import Counter

from dsms.plan.exprs import substitute, total
from dsms.plan.rules.base import Context
from dsms.sql import logical as lp
from dsms.sql.expr import Col, walk


def merge_projections(node: lp.Node, ctx: Context) -> lp.Node:
    """Project(Project(x, e), f) -> Project(x, f with e put in).

    Values only; rows come and go as before.  Not if a computed e is read more than once: it would
    be computed more often.  Not if one that can fail is not read at all: its errors would not be
    counted.
    """
    match node:
        case lp.Project(lp.Project() as inner, exprs) if not (node.ids or inner.ids):
            used = Counter(e.index for f in exprs for e in walk(f) if isinstance(e, Col))
            computed = [
                (used[i], total(e)) for i, e in enumerate(inner.exprs) if not isinstance(e, Col)
            ]
            if any(times > 1 or (times == 0 and not safe) for times, safe in computed):
                return node
            return lp.Project(
                inner.child, tuple(substitute(f, inner.exprs) for f in exprs), node.schema
            )
        case _:
            return node
