"""Aggregates over INTERNAL windows of episodes, which are told as these end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dsms.sql import ast
from dsms.sql.binder.aggregates import Grouping
from dsms.sql.binder.context import Block
from dsms.sql.codes import error
from dsms.sql.expr import Col, Expr, rewrite
from dsms.sql.logical import Append, Node, Project, Select, Window, children
from dsms.sql.window import Session, When


def closing(
    block: Block, groups: Grouping, inputs: Sequence[Node], joined: Sequence[object]
) -> list[Node]:
    """The rows that each grouping set of a block reads: over INTERNAL windows of episodes those of
    the episodes that end.

    Raises DS348 where keys of the window are no keys of the groups, DS349 where the block reads
    more than that window."""
    sets = groups.sets or (tuple(range(len(groups.keys))),)
    found = []
    for node, of in zip(inputs, sets, strict=True):
        window = next(_internal(node), None)
        if window is not None:
            at = next(s.at for s in block.sources if s.internal)
            if joined or len({id(s.at) for s in block.sources}) > 1:
                raise _not_alone(at)
            node = _closing(node, [groups.keys[k] for k in of], at)
        found.append(node)
    return found


def _internal(node: Node) -> Iterator[Window]:
    """The INTERNAL windows of episodes of the block itself."""
    if isinstance(node, Window) and isinstance(node.spec, Session | When) and node.spec.internal:
        yield node
    if not isinstance(node, Append):
        for child in children(node):
            yield from _internal(child)


def _closing(node: Node, keys: Sequence[Expr], at: ast.Node) -> Node:
    """`keys`: of the groups, over the node."""
    match node:
        case Select():
            return replace(node, child=_closing(node.child, keys, at))
        case Project(exprs=exprs):
            below = [rewrite(key, lambda c: exprs[c.index]) for key in keys]
            return replace(node, child=_closing(node.child, below, at))
        case Window(spec=Session() | When() as spec):
            _check(node, spec, keys, at)
            return replace(node, spec=replace(spec, at_close=True))
        case _:
            raise _not_alone(at)


def _check(node: Window, spec: Session | When, keys: Sequence[Expr], at: ast.Node) -> None:
    if spec.slide is not None:
        message = "aggregates over INTERNAL windows of episodes are told as these end, not by SLIDE"
        hint = "leave SLIDE out, or INTERNAL; what has been told is read with [RANGE t SLIDE t]"
        raise error("DS349", message, at, f"{hint} over (SELECT ...)")
    grouped = {key.index for key in keys if isinstance(key, Col)}
    missing = [node.schema[k].name for k in spec.by if k not in grouped]
    if missing:
        names = ", ".join(missing)
        message = f"an episode ends for its key alone, and GROUP BY has not got {names}"
        raise error("DS348", message, at, f"add {names} to GROUP BY, or leave INTERNAL out")


def _not_alone(at: ast.Node) -> Exception:
    message = (
        "aggregates over an INTERNAL window of episodes are told as these end, and this block "
        "reads more than that window"
    )
    hint = (
        "join what is told: FROM (SELECT k, COUNT(*) AS n FROM s [SESSION 10 s BY k INTERNAL] "
        "GROUP BY k) e JOIN ..."
    )
    return error("DS349", message, at, hint)
