"""Where a departure and an arrival of one instant may cancel, and which operators report every
change by itself."""

from __future__ import annotations

from dsms.sql import logical as lp
from dsms.sql.episodes import at_close
from dsms.sql.expr import Col


def may_cancel(node: lp.Node) -> bool:
    """Whether a departure and an equal arrival can meet at one instant in the output of this node.

    Only where rows without parts are below: a value handed on, a group's row replaced, and the
    difference projected away.  Not where GROUP BY's columns all come through: a group's new row
    differs from its old one, and from others'.
    """
    return _restless(node) and not _keeps_groups(node)


def announces(node: lp.Node) -> bool:
    """Whether the node tells of every change by rows of its own, and what it has reported can be
    read from GROUP BY."""
    while isinstance(node, lp.Select | lp.Project):
        node = node.child
    return isinstance(node, lp.GroupBy) and not at_close(node.child)


def _restless(node: lp.Node) -> bool:
    match node:
        case lp.GroupBy() if at_close(node.child):
            return False
        case lp.GroupBy() | lp.Distinct() | lp.SetOp():
            return True
        case lp.Append():
            return False
        case _:
            return any(_restless(c) for c in lp.children(node))


def _keeps_groups(node: lp.Node) -> bool:
    columns = None
    if isinstance(node, lp.Project):
        columns = {e.index for e in node.exprs if isinstance(e, Col)}
        node = node.child
    while isinstance(node, lp.Select):
        node = node.child
    if isinstance(node, lp.Answer):
        return (columns is None or columns >= set(range(len(node.schema)))) and _keeps_groups(
            node.child
        )
    return isinstance(node, lp.GroupBy) and (
        columns is None or set(range(len(node.schema))) <= columns
    )
