"""Plans made comparable: without names, aliases and the numbering of leaves, and without nodes that change nothing."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from dsms.sql.expr import AggCall, Col
from dsms.sql.logical import Node, Output, Project, Window, WindowSpec, children, with_children
from dsms.sql.types import Field

_NOT_COMPARED = {"name": "", "qualifier": None, "alias": "", "nullable": True, "leaf": 0}


def nameless(value: Any) -> Any:
    """The plan without names: structure, types, expressions and windows remain."""
    if isinstance(value, tuple):
        return tuple(nameless(v) for v in value)
    if isinstance(value, Field | Col | AggCall) or (is_dataclass(value) and hasattr(value, "schema")):
        changed = {f.name: _NOT_COMPARED.get(f.name, nameless(getattr(value, f.name))) for f in fields(value)}
        return replace(value, **changed)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: nameless(getattr(value, f.name)) for f in fields(value)})
    return value


def plain(node: Node) -> Node:
    """The plan without projections to all columns in order, and without windows that hold everything."""
    node = with_children(node, tuple(plain(c) for c in children(node))) if children(node) else node
    if isinstance(node, Project):
        same = [isinstance(e, Col) and e.index == i for i, e in enumerate(node.exprs)]
        if all(same) and len(same) == len(node.child.schema):
            return node.child
    if isinstance(node, Window) and node.spec == WindowSpec("unbounded"):
        return node.child
    return node


def comparable(plan: Output) -> Any:
    """Equal for plans that say the same."""
    return nameless(plain(plan))


def outline(node: Node, depth: int = 0) -> str:
    """The kinds of nodes, indented: what a failing comparison shows."""
    lines = ["  " * depth + type(node).__name__]
    return "\n".join(lines + [outline(c, depth + 1) for c in children(node)])
