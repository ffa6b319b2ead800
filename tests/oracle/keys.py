"""The order of the rows that enter or leave at one instant: arrival numbers of their parts, in FROM
order.

A key is a tuple of places, one per part: (is it a mere number, FROM-order number of the leaf,
arrival number), sorted, so that keys of one node compare as their arrival numbers do in FROM order,
and numbers that only tell branches or copies apart come last.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from dsms.sql import logical as lp
from dsms.sql.multi_joins import as_joins

Place = tuple[bool, int, int]
Key = tuple[Place, ...]
PAD = -1


def merged(a: Key, b: Key) -> Key:
    """The key of a pair."""
    return tuple(sorted(a + b, key=lambda place: place[:2]))


def matched(keys: Iterable[Key]) -> Key:
    """The key of rows one after the other."""
    return reduce(merged, keys)


def numbered(leaf: int, number: int) -> Key:
    """The key of the row of a leaf, or of an appended result, that has this arrival number."""
    return ((False, leaf, number),)


def first_leaf(node: lp.Node) -> int:
    """The number of the first leaf below, in FROM order."""
    match node:
        case lp.StreamScan() | lp.TableScan():
            return node.leaf
        case lp.Values():
            return -1
        case lp.SemiJoin() | lp.SetOp():
            return first_leaf(node.left)
        case _:
            return min(first_leaf(child) for child in lp.children(node))


def by_value(node: lp.Node) -> bool:
    """Are rows of this node identified by value: is anything in them without parts (aggregate,
    DISTINCT, EXCEPT...)?

    What INTERNAL windows append is a stream: its rows are arrivals, whatever they were made of.
    """
    match node:
        case lp.GroupBy() | lp.Distinct() | lp.SetOp() | lp.Values():
            return True
        case lp.Append():
            return False
        case lp.SemiJoin() | lp.AsofJoin():
            return by_value(node.left)
        case _:
            return any(by_value(child) for child in lp.children(node))


def blank(node: lp.Node) -> Key:
    """The key of a row of this node that has no parts at all: padding, or the empty answer of a
    global aggregate."""
    match node:
        case lp.StreamScan() | lp.TableScan() | lp.Values() | lp.Append():
            return numbered(first_leaf(node), PAD)
        case lp.Join():
            return merged(blank(node.left), blank(node.right))
        case lp.MultiJoin():
            return blank(as_joins(node))
        case lp.Match():
            return matched([blank(part) for part in node.parts])
        case lp.AsofJoin():
            return merged(blank(node.left), blank(node.right))
        case lp.JoinNRR():
            return merged(blank(node.child), blank(node.table))
        case lp.Union():
            return branch(node, 0, ())
        case lp.SetOp():
            return (*blank(node.left), (True, first_leaf(node), PAD))
        case lp.Unnest():
            return placed(node, blank(node.child), PAD)
        case lp.SemiJoin():
            return blank(node.left)
        case lp.GroupBy() | lp.Distinct() if timed(node):
            return (*blank(node.child), entered(node, PAD))
        case _:
            return blank(node.child)


def placed(node: lp.Unnest, key: Key, place: int) -> Key:
    """The key of an item of a row's list: that of the row, and its place."""
    return merged(key, ((True, first_leaf(node), place),))


def timed(node: lp.GroupBy | lp.Distinct) -> bool:
    """Can two values here be placed by one row below?  One stays, and the row that placed it
    becomes another one: a group's row, say, of which the count has changed.  Where they tie, the
    one that entered first goes first."""
    return _becomes_another(node.child)


def entered(node: lp.Node, now: int) -> Place:
    """The last place in the key of such a row."""
    return (True, first_leaf(node), now)


def _becomes_another(node: lp.Node) -> bool:
    match node:
        case lp.GroupBy():
            return not timed(node)
        case (
            lp.Distinct()
            | lp.SetOp()
            | lp.Append()
            | lp.StreamScan()
            | lp.TableScan()
            | lp.Values()
        ):
            return False
        case lp.SemiJoin() | lp.AsofJoin():
            return _becomes_another(node.left)
        case _:
            return any(_becomes_another(child) for child in lp.children(node))


def branch(node: lp.Union, number: int, key: Key) -> Key:
    """The key of a row of one branch: its arrivals, padded to the widest branch, the number of the
    branch, and what numbers it had inside."""
    leaf = first_leaf(node)
    blanks = [blank(child) for child in node.inputs]
    own, inner = (_padded(key, blanks, number=flag) for flag in (False, True))
    return (
        *((False, leaf, n) for n in own),
        (True, leaf, number),
        *((True, leaf, n) for n in inner),
    )


def _padded(key: Key, blanks: list[Key], number: bool) -> list[int]:
    found = [place[2] for place in key if place[0] is number]
    wide = max(sum(place[0] is number for place in b) for b in blanks)
    return found + [PAD] * (wide - len(found))


def ambiguous(node: lp.Node) -> bool:
    """Is there a UNION ALL of a branch with numbers of its own (a union in a union, copies of
    EXCEPT ALL)?

    Its rows of one instant compare by arrivals, but where these tie no order is better than
    another.
    """
    if isinstance(node, lp.Union) and any(
        place[0] for child in node.inputs for place in blank(child)
    ):
        return True
    return any(ambiguous(child) for child in lp.children(node))


def arrivals(key: Key) -> tuple[int, ...]:
    """The plain numbers of a key."""
    return tuple(place[2] for place in key)
