"""Identity: the id columns of every edge (`dsms.state.batch`), and what is derived from them.

A row with parts is the arrival numbers of its parts.  Re-ordering joins changes the order of the id
columns but never what they are, so `order` says how to sort the rows of one instant as if the joins
stood in FROM order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TypeVar, assert_never

from dsms.sql import logical as lp

T = TypeVar("T")

NO_LEAF = -1


def width(node: lp.Node) -> int:
    """The number of id columns of the node's output edge.

    A Union prepends the branch number and pads shorter branches with -1 (`places`); EXCEPT and
    INTERSECT append the number of the copy, UNNEST the place of the item; Append numbers its
    results serially.  Behind the number of a dated leaf stands the row's timestamp, and behind the
    ids of a `timed` edge the instant at which the row entered.
    """
    match node:
        case lp.StreamScan() | lp.TableScan() | lp.Append():
            return 1 + node.dated
        case lp.Values():
            return 1
        case lp.Join() | lp.MultiJoin():
            return sum(map(width, lp.children(node)))
        case lp.Match():
            return sum(map(width, node.parts))
        case lp.JoinNRR():
            return width(node.child) + 1
        case lp.AsofJoin():
            return width(node.left) + 1
        case lp.Union():
            return len(timing(node))
        case lp.SetOp():
            return width(node.left) + 1
        case lp.Unnest():
            return width(node.child) + 1
        case lp.SemiJoin():
            return width(node.left)
        case lp.Distinct() | lp.GroupBy():
            return width(node.child) + timed(node)
        case lp.Window() | lp.Select() | lp.Project() | lp.Answer() | lp.Sort() | lp.Output():
            return width(node.child)
        case lp.TopN() | lp.Over():
            return width(node.child)
        case _:
            assert_never(node)


def leaves(node: lp.Node) -> tuple[int, ...]:
    """For each id column the FROM-order number of the leaf whose rows it numbers.

    The columns of a Union, an EXCEPT/INTERSECT or an Append all count as the first leaf below, so
    that a stable sort keeps them together.
    """
    match node:
        case lp.StreamScan() | lp.TableScan():
            return (node.leaf,) * width(node)
        case lp.Values():
            return (NO_LEAF,)
        case lp.Join() | lp.MultiJoin():
            return _joined(map(leaves, lp.children(node)))
        case lp.Match():
            return _joined(map(leaves, node.parts))
        case lp.JoinNRR():
            return leaves(node.child) + (node.table.leaf,)
        case lp.AsofJoin():
            return leaves(node.left) + (min(leaves(node.right)),)
        case lp.Union():
            return (min(min(leaves(child)) for child in node.inputs),) * width(node)
        case lp.SetOp():
            return (min(leaves(node.left)),) * width(node)
        case lp.Unnest():
            return (*leaves(node.child), min(leaves(node.child)))
        case lp.Append():
            return (min(leaves(node.child)),) * width(node)
        case lp.SemiJoin():
            return leaves(node.left)
        case lp.Distinct() | lp.GroupBy():
            below = leaves(node.child)
            return below + (min(below),) * timed(node)
        case lp.Project() if node.ids:
            return moved(node, leaves(node.child))
        case lp.Window() | lp.Select() | lp.Project() | lp.Answer() | lp.Sort() | lp.Output():
            return leaves(node.child)
        case lp.TopN() | lp.Over():
            return leaves(node.child)
        case _:
            assert_never(node)


def moved(node: lp.Project, below: tuple[T, ...]) -> tuple[T, ...]:
    """What is known of each id column, behind a projection that moves them."""
    return tuple(below[k] for k in node.ids)


def _joined(parts: Iterable[tuple[T, ...]]) -> tuple[T, ...]:
    """One after the other."""
    return tuple(chain.from_iterable(parts))


def timed(node: lp.Node) -> bool:
    """Whether the rows of a DISTINCT or GROUP BY need the instant of their entering among their
    ids.

    A value that stays keeps the ids of the row that began it.  Where these have passed on to a row
    of another value, that one may begin another value here, and two live rows would have the same
    ids; but never of one instant."""
    return isinstance(node, lp.Distinct | lp.GroupBy) and _passes_on(node.child)


def _passes_on(node: lp.Node) -> bool:
    """Whether ids pass on to rows of other values: those of a group do, whenever its aggregates
    change."""
    match node:
        case lp.GroupBy():
            return not timed(node)
        case (
            lp.Distinct()
            | lp.SetOp()
            | lp.Values()
            | lp.StreamScan()
            | lp.TableScan()
            | lp.Append()
        ):
            return False
        case lp.SemiJoin() | lp.AsofJoin():
            return _passes_on(node.left)
        case _:
            return any(map(_passes_on, lp.children(node)))


def timing(node: lp.Node) -> tuple[bool, ...]:
    """For each id column whether it is the instant at which a row of a `timed` node entered."""
    match node:
        case lp.Distinct() | lp.GroupBy():
            return timing(node.child) + (True,) * timed(node)
        case lp.Join() | lp.MultiJoin():
            return _joined(map(timing, lp.children(node)))
        case lp.Match():
            return _joined(map(timing, node.parts))
        case lp.JoinNRR():
            return (*timing(node.child), False)
        case lp.AsofJoin():
            return (*timing(node.left), False)
        case lp.Union():
            first, last = _widest([timing(child) for child in node.inputs])
            return (False,) * (1 + first) + (True,) * last
        case lp.SetOp():
            return (*timing(node.left), False)
        case lp.Unnest():
            return (*timing(node.child), False)
        case lp.SemiJoin():
            return timing(node.left)
        case lp.Project() if node.ids:
            return moved(node, timing(node.child))
        case lp.Window() | lp.Select() | lp.Project() | lp.Answer() | lp.Sort() | lp.Output():
            return timing(node.child)
        case lp.TopN() | lp.Over():
            return timing(node.child)
        case _:
            return (False,) * width(node)


def places(node: lp.Union) -> tuple[tuple[int, ...], ...]:
    """For each branch what its id columns become: of each column behind the branch number the
    position in the branch (-1: padding).  Instants of entering come last, so that no arrival is
    compared with one."""
    sorts = [timing(child) for child in node.inputs]
    first, last = _widest(sorts)
    return tuple((*_filled(sort, False, first), *_filled(sort, True, last)) for sort in sorts)


def _widest(sorts: Sequence[tuple[bool, ...]]) -> tuple[int, int]:
    """How many other columns, and how many instants of entering, the widest branches have."""
    return max(len(s) - sum(s) for s in sorts), max(map(sum, sorts))


def _filled(sort: tuple[bool, ...], kind: bool, wide: int) -> list[int]:
    at = [i for i, is_instant in enumerate(sort) if is_instant is kind]
    return at + [-1] * (wide - len(at))


def numbering(node: lp.Node) -> tuple[bool, ...]:
    """For each id column whether it merely tells copies apart (a branch or copy number, the instant
    of entering) and is no arrival number.

    A timestamp counts as such: it says nothing that the number before it does not."""
    match node:
        case lp.StreamScan() | lp.TableScan() | lp.Append():
            return (False, True)[: width(node)]
        case lp.Values():
            return (False,)
        case lp.Join() | lp.MultiJoin():
            return _joined(map(numbering, lp.children(node)))
        case lp.Match():
            return _joined(map(numbering, node.parts))
        case lp.JoinNRR():
            return (*numbering(node.child), False)
        case lp.AsofJoin():
            return (*numbering(node.left), False)
        case lp.Union():
            return (True,) + _numbers(node)
        case lp.SetOp():
            return (*numbering(node.left), True)
        case lp.Unnest():
            return (*numbering(node.child), True)
        case lp.SemiJoin():
            return numbering(node.left)
        case lp.Distinct() | lp.GroupBy():
            return numbering(node.child) + (True,) * timed(node)
        case lp.Project() if node.ids:
            return moved(node, numbering(node.child))
        case lp.Window() | lp.Select() | lp.Project() | lp.Answer() | lp.Sort() | lp.Output():
            return numbering(node.child)
        case lp.TopN() | lp.Over():
            return numbering(node.child)
        case _:
            assert_never(node)


def _numbers(node: lp.Union) -> tuple[bool, ...]:
    """A column that is a number in one branch and an arrival in another counts as an arrival."""
    numbered = [(numbering(child), at) for child, at in zip(node.inputs, places(node), strict=True)]
    branches = [[p < 0 or numbers[p] for p in at] for numbers, at in numbered]
    return tuple(map(all, zip(*branches, strict=True)))


def arrivals(node: lp.Node) -> tuple[int, ...]:
    """The leaves of the id columns that are arrival numbers."""
    return tuple(
        leaf for leaf, number in zip(leaves(node), numbering(node), strict=True) if not number
    )


def order(node: lp.Node) -> tuple[int, ...]:
    """Positions of the id columns by which rows of one instant are sorted: arrivals in FROM order,
    numbers last."""
    where, numbers = leaves(node), numbering(node)
    return tuple(sorted(range(len(where)), key=lambda i: (numbers[i], where[i])))


def by_value(node: lp.Node) -> bool:
    """Whether anything in a row of this edge has no parts (aggregate, DISTINCT, set operation,
    constant row).

    Such rows are identified by value: their ids may pass to another arrival while the row stays.
    What an Append hands on are arrivals, whatever they are made of.
    """
    match node:
        case lp.GroupBy() | lp.Distinct() | lp.SetOp() | lp.Values():
            return True
        case lp.StreamScan() | lp.TableScan() | lp.Append():
            return False
        case lp.SemiJoin() | lp.AsofJoin():
            return by_value(node.left)
        case _:
            return any(by_value(child) for child in lp.children(node))
