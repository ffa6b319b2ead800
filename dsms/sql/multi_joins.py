"""Joins of many inputs as joins of two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dsms.sql.expr import Expr, shift
from dsms.sql.logical import Join, MultiJoin, Node, children, with_children


def as_joins(node: MultiJoin) -> Join:
    """The same as Joins of two, from the first input on."""
    made = node.inputs[0]
    for k, right in enumerate(node.inputs[1:], 1):
        keys = tuple(pair for same in node.keys for pair in _pairs(node, same, k))
        residual = node.residual if k == len(node.inputs) - 1 else None
        made = Join(made, right, "inner", keys, residual, made.schema + right.schema)
    assert isinstance(made, Join)
    return made


def _pairs(node: MultiJoin, same: Sequence[Expr | None], k: int) -> Iterator[tuple[Expr, Expr]]:
    """The equality of the k-th input with the first of those before it, if both have part in it."""
    first = 0
    for child, mine in zip(node.inputs[:k], same, strict=False):
        if mine is not None and (right := same[k]) is not None:
            yield shift(mine, first), right
            return
        first += len(child.schema)


def binary(node: Node) -> Node:
    """The plan with Joins of two instead of any MultiJoin."""
    new = tuple(map(binary, children(node)))
    made = node if all(map(lambda a, b: a is b, new, children(node))) else with_children(node, new)
    return as_joins(made) if isinstance(made, MultiJoin) else made
