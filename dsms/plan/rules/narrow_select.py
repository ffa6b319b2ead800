"""Columns that neither a filter nor anything after it reads are dropped before it."""

from dsms.plan.exprs import reads, remap
from dsms.plan.rules.base import Context, narrow, narrows
from dsms.sql import logical as lp


def narrow_select(node: lp.Node, ctx: Context) -> lp.Node:
    """Project(Select(x, p), e) -> Project(Select(Project(x), p), e) with what e and p read.

    Columns are values; the same rows pass at the same instants.  Over a scan it would save nothing.
    """
    match node:
        case lp.Project(lp.Select() as inner, exprs) if not isinstance(
            inner.child, lp.StreamScan | lp.TableScan
        ):
            needed = reads([*exprs, inner.predicate])
            if not narrows(inner.child, needed):
                return node
            child, moves = narrow(inner.child, needed)
            slim = lp.Select(child, remap(inner.predicate, moves), child.schema)
            return lp.Project(slim, tuple(remap(e, moves) for e in exprs), node.schema)
        case _:
            return node
