"""What a logical plan reads: queries, streams and tables, and all that a stream with KEY holds."""

from __future__ import annotations

from collections.abc import Iterator

from dsms.sql.logical import (
    Answer,
    Node,
    Project,
    StreamScan,
    Window,
    children,
    leaves_of,
    with_children,
)
from dsms.sql.window import Latest, Unbounded


def holds_all(node: Node) -> bool:
    """Whether it is all that a stream with KEY holds, whatever the age of its rows."""
    if not isinstance(node, Window) or not isinstance(node.spec, Latest):
        return False
    below = node.child
    while isinstance(below, Project):
        below = below.child
    return isinstance(below, Window) and isinstance(below.spec, Unbounded) and not below.spec.until


def answers_of(node: Node) -> Iterator[Answer]:
    """The queries that a plan reads itself, not those that these read."""
    if isinstance(node, Answer):
        yield node
        return
    for child in children(node):
        yield from answers_of(child)


def own_reads(node: Node) -> tuple[str, ...]:
    """Addresses of the streams and tables that a plan reads itself, not by way of queries."""
    inner = {leaf.leaf for answer in answers_of(node) for leaf in leaves_of(answer)}
    own = [leaf for leaf in leaves_of(node) if leaf.leaf not in inner]
    names = [n.stream.address if isinstance(n, StreamScan) else n.table.address for n in own]
    return tuple(dict.fromkeys(names))


def unwindowed(step: Node) -> Node:
    """The input of a step of MATCH without the window over it."""
    if isinstance(step, Window):
        return step.child
    (child,) = children(step)
    return with_children(step, (unwindowed(child),))
