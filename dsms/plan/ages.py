"""Ages: where an aggregate goes by (timestamp, arrival) over rows that do not come in that order.

FIRST, LAST, ARGMIN and ARGMAX go by the age of a row: the largest timestamp of its parts, then
their arrival numbers in FROM order; so do the groups that change at one instant, by their oldest
rows.  Mostly rows enter in the order of their ages.  They do not where a window ends some time ago,
and where a row comes back because a match has come or gone (EXISTS, outer joins): the leaves below
such an aggregate are dated, which puts each row's timestamp behind its number among the ids,
through all operators in between.  So are those below a non-retroactive join whose rows enter later
than at their timestamps: it reads the table as of these.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from dsms.aggregates.cards import CARDS
from dsms.plan import windows
from dsms.plan.identity import moved, order, width
from dsms.plan.physical import Phys
from dsms.sql import logical as lp

Leaf = lp.StreamScan | lp.TableScan | lp.Append


def with_ages(phys: Phys) -> Phys:
    """The plan with dated leaves wherever an aggregate needs them; itself if none does."""
    if isinstance(phys.node, lp.Answer):  # it is planned already
        return phys
    children = tuple(map(with_ages, phys.children))
    if needs_ages(phys.node):
        children = (_dated(children[0]),)
    return (
        phys
        if all(a is b for a, b in zip(children, phys.children, strict=True))
        else _over(phys, children)
    )


def timestamps(node: lp.Node) -> tuple[bool, ...]:
    """For each id column whether it is a timestamp; that of the number before it."""
    match node:
        case lp.StreamScan() | lp.TableScan() | lp.Append():
            return (False, True)[: width(node)]
        case lp.Join() | lp.MultiJoin():
            return tuple(chain.from_iterable(map(timestamps, lp.children(node))))
        case lp.Match():
            return tuple(chain.from_iterable(map(timestamps, node.parts)))
        case lp.JoinNRR():
            return (*timestamps(node.child), False)
        case lp.AsofJoin():
            return (*timestamps(node.left), False)
        case lp.Union():
            flags = (False, *max(map(timestamps, node.inputs), key=len))
            return flags + (False,) * (width(node) - len(flags))
        case lp.SemiJoin():
            return timestamps(node.left)
        case lp.Unnest():
            return (*timestamps(node.child), False)
        case lp.Project() if node.ids:
            return moved(node, timestamps(node.child))
        case lp.Window() | lp.Select() | lp.Project() | lp.Over() | lp.TopN() | lp.Answer():
            return timestamps(node.child)
        case _:
            return (False,) * width(node)


def numbers(node: lp.Node) -> tuple[int, ...]:
    """Positions of the other id columns, in the order in which they compare."""
    at = timestamps(node)
    return tuple(i for i in order(node) if not at[i])


def dated(node: lp.Node) -> bool:
    """Whether all rows of the edge tell their ages."""
    return _datable(node) and width(node) == width(_dated_node(node))


def as_of_timestamps(node: lp.JoinNRR) -> bool:
    """Whether it reads its table as of the timestamps of its rows.  Rows that leave and come back,
    and those that have no timestamp of their own, go by the instant at which they came (back)."""
    return _stamped(node.child) and _datable(node.child)


def _stamped(node: lp.Node) -> bool:
    match node:
        case lp.StreamScan() | lp.TableScan() | lp.Append():
            return True
        case lp.Join() if node.kind != "inner":
            return False
        case (
            lp.Window()
            | lp.Select()
            | lp.Project()
            | lp.Union()
            | lp.JoinNRR()
            | lp.Join()
            | lp.MultiJoin()
            | lp.AsofJoin()
            | lp.Match()
            | lp.Unnest()
            | lp.Over()
            | lp.Answer()
        ):
            return all(map(_stamped, lp.children(node)))
        case _:
            return False


def reads_late(node: lp.JoinNRR) -> bool:
    """Whether rows ask for the table as it was before they entered."""
    return as_of_timestamps(node) and not _punctual(node.child)


def needs_ages(node: lp.Node) -> bool:
    """Whether the leaves below it are dated."""
    if isinstance(node, lp.JoinNRR):
        return reads_late(node)
    if not isinstance(node, lp.GroupBy) or not (
        node.keys or any(CARDS[call.fn].ordered for call in node.aggs)
    ):
        return False
    return not _in_order(node.child) and _datable(node.child)


def _in_order(node: lp.Node) -> bool:
    """Whether rows enter in the order of their ages."""
    match node:
        case lp.Select() | lp.Project() | lp.Answer():
            return _in_order(node.child)
        case lp.Window():
            return _punctual(node.child) and windows.in_order(node.spec)
        case _:
            return _punctual(node)


def _punctual(node: lp.Node) -> bool:
    """Whether a row enters at the largest timestamp of its parts."""
    match node:
        case lp.Window():
            return not windows.until(node.spec) and _punctual(node.child)
        case lp.Join():
            return node.kind == "inner" and _punctual(node.left) and _punctual(node.right)
        case lp.SemiJoin() | lp.TopN():
            return False
        case lp.StreamScan() | lp.TableScan() | lp.Append():
            return True
        case _:
            return all(map(_punctual, lp.children(node)))


def _datable(node: lp.Node) -> bool:
    """Whether all rows are made of parts that have timestamps, and all branches of unions tell them
    alike."""
    match node:
        case lp.StreamScan() | lp.TableScan() | lp.Append():
            return True
        case lp.Union():
            dated = (
                [timestamps(_dated_node(child)) for child in node.inputs]
                if all(map(_datable, node.inputs))
                else []
            )
            widest = max(dated, key=len, default=())
            return bool(dated) and all(d == widest[: len(d)] for d in dated)
        case lp.SemiJoin() | lp.AsofJoin():
            return _datable(node.left)
        case lp.Window() | lp.Select() | lp.Project() | lp.Over() | lp.TopN() | lp.Unnest():
            return _datable(node.child)
        case lp.Join() | lp.MultiJoin() | lp.JoinNRR() | lp.Match():
            return all(map(_datable, lp.children(node)))
        case _:
            return False


def _dated_node(node: lp.Node) -> lp.Node:
    match node:
        case lp.StreamScan() | lp.TableScan() | lp.Append():
            return replace(node, dated=True)
        case lp.SemiJoin() | lp.AsofJoin():
            return replace(node, left=_dated_node(node.left))
        case _:
            return lp.with_children(node, tuple(map(_dated_node, lp.children(node))))


def _dated(phys: Phys) -> Phys:
    match phys.node:
        case lp.StreamScan() | lp.TableScan() | lp.Append():
            node = replace(phys.node, dated=True)
            return replace(phys, node=node, width=width(node))
        case lp.SemiJoin() | lp.AsofJoin():
            return _over(phys, (_dated(phys.children[0]), *phys.children[1:]))
        case _:
            return _over(phys, tuple(map(_dated, phys.children)))


def _over(phys: Phys, children: tuple[Phys, ...]) -> Phys:
    node = lp.with_children(phys.node, tuple(c.node for c in children))
    return replace(phys, node=node, children=children, width=width(node))
