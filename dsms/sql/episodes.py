"""Episodes that are read as they end: aggregates over INTERNAL windows of sessions and such."""

from __future__ import annotations

from dsms.sql.logical import Node, Project, Select, Window
from dsms.sql.window import Session, When


def at_close(node: Node) -> bool:
    """Whether the rows of the node are those of episodes that end at this very instant, as a GROUP
    BY above reads them: once, a row for each group of each episode."""
    while isinstance(node, Select | Project):
        node = node.child
    return isinstance(node, Window) and isinstance(node.spec, Session | When) and node.spec.at_close
