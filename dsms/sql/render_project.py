"""Which projections of a plan the binder would make of a select list, and what its windows say."""

from __future__ import annotations

from dsms.sql.expr import Col, walk
from dsms.sql.logical import Append, GroupBy, JoinNRR, Node, Project, Select, Window, children


def is_exists(node: Project, found: JoinNRR) -> bool:
    """Whether of each row that finds one in the table its own columns are left."""
    own = [isinstance(e, Col) and e.index == i for i, e in enumerate(node.exprs)]
    return found.kind == "inner" and all(own) and len(own) == len(found.child.schema)


def same_grouping(node: Project) -> bool:
    """Would the binder find the aggregates of the grouping below in the order they have, and all of
    them?"""
    below = node.child
    having = below.predicate if isinstance(below, Select) else None
    below = below.child if isinstance(below, Select) else below
    if not isinstance(below, GroupBy):
        return True
    first, last = len(below.keys), len(below.schema)
    for split in range(len(node.exprs), -1, -1):  # what only ORDER BY needs is bound after HAVING
        exprs = [*node.exprs[:split], *([having] if having else []), *node.exprs[split:]]
        cols = (part for e in exprs for part in walk(e) if isinstance(part, Col))
        used = [col.index for col in cols if col.index >= first]
        if list(dict.fromkeys(used)) == list(range(first, last)) and (used or below.keys):
            return True
    return False


def has_internal(node: Node) -> bool:
    """Does a window of this block say INTERNAL?"""
    if isinstance(node, Window) and node.spec.internal:
        return True
    return not isinstance(node, Append) and any(has_internal(c) for c in children(node))
