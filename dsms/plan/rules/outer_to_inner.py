"""An outer join whose padded rows would be filtered away is an inner join."""

from dataclasses import replace
from typing import Literal

from dsms.plan.exprs import rejects_null
from dsms.plan.rules.base import Context
from dsms.sql import logical as lp


def outer_to_inner(node: lp.Node, ctx: Context) -> lp.Node:
    """Select(LeftJoin(l, r), p) -> Select(Join(l, r), p), if p rejects NULLs in r's columns; so for
    RIGHT and FULL.

    The padded rows never pass p, at no instant; all others are those of the inner join, with the
    same parts.  The result is no longer STR because of the join: this is update pattern
    simplification.
    """
    match node:
        case lp.Select(lp.Join(kind="left" | "right" | "full") as join, predicate):
            width = len(join.left.schema)
            no_right = rejects_null(predicate, set(range(width, len(join.schema))))
            no_left = rejects_null(predicate, set(range(width)))
            kind = _KINDS[join.kind, no_left, no_right]
            return node if kind == join.kind else replace(node, child=replace(join, kind=kind))
        case lp.Select(lp.JoinNRR(kind="left") as nrr, predicate):
            width = len(nrr.child.schema)
            if rejects_null(predicate, set(range(width, len(nrr.schema)))):
                return replace(node, child=replace(nrr, kind="inner"))
            return node
        case lp.Select(lp.AsofJoin(kind="left") as asof, predicate):
            width = len(asof.left.schema)
            if rejects_null(predicate, set(range(width, len(asof.schema)))):
                return replace(node, child=replace(asof, kind="inner"))
            return node
        case _:
            return node


Kind = Literal["inner", "left", "right", "full"]

# (kind, rows without a left part are rejected, rows without a right part are rejected)
_KINDS: dict[tuple[str, bool, bool], Kind] = {
    ("left", False, False): "left",
    ("left", True, False): "left",
    ("left", False, True): "inner",
    ("left", True, True): "inner",
    ("right", False, False): "right",
    ("right", False, True): "right",
    ("right", True, False): "inner",
    ("right", True, True): "inner",
    ("full", False, False): "full",
    ("full", True, False): "left",
    ("full", False, True): "right",
    ("full", True, True): "inner",
}
