"""Identity: the id columns of every edge (`dsms.state.batch`), and what they are good for.

A row with parts is the arrival numbers of its parts.  Re-ordering joins changes the order of the id columns but never
what they are, so `order` says how to sort the rows of one instant as if the joins stood in FROM order.
"""

from __future__ import annotations

from typing import assert_never

from dsms.sql import logical as lp

NO_LEAF = -1


def width(node: lp.Node) -> int:
    """The number of id columns of the node's output edge.

    A Union prepends the branch number and pads shorter branches with -1; EXCEPT and INTERSECT append the number of the
    copy; Append numbers its results serially.  Behind the number of a dated leaf stands the row's timestamp.
    """
    match node:
        case lp.StreamScan() | lp.TableScan() | lp.Append():
            return 1 + node.dated
        case lp.Values():
            return 1
        case lp.Join():
            return width(node.left) + width(node.right)
        case lp.JoinNRR():
            return width(node.child) + 1
        case lp.Union():
            return 1 + max(width(child) for child in node.inputs)
        case lp.SetOp():
            return width(node.left) + 1
        case lp.SemiJoin():
            return width(node.left)
        case lp.Window() | lp.Select() | lp.Project() | lp.Distinct() | lp.GroupBy() | lp.Sort() | lp.Output():
            return width(node.child)
        case _:
            assert_never(node)


def leaves(node: lp.Node) -> tuple[int, ...]:
    """For each id column the FROM-order number of the leaf whose rows it numbers.

    The columns of a Union, an EXCEPT/INTERSECT or an Append all count as the first leaf below, so that a stable sort
    keeps them together.
    """
    match node:
        case lp.StreamScan() | lp.TableScan():
            return (node.leaf,) * width(node)
        case lp.Values():
            return (NO_LEAF,)
        case lp.Join():
            return leaves(node.left) + leaves(node.right)
        case lp.JoinNRR():
            return leaves(node.child) + (node.table.leaf,)
        case lp.Union():
            return (min(min(leaves(child)) for child in node.inputs),) * width(node)
        case lp.SetOp():
            return (min(leaves(node.left)),) * width(node)
        case lp.Append():
            return (min(leaves(node.child)),) * width(node)
        case lp.SemiJoin():
            return leaves(node.left)
        case lp.Window() | lp.Select() | lp.Project() | lp.Distinct() | lp.GroupBy() | lp.Sort() | lp.Output():
            return leaves(node.child)
        case _:
            assert_never(node)


def numbering(node: lp.Node) -> tuple[bool, ...]:
    """For each id column whether it merely tells copies apart (a branch or copy number) and is no arrival number.

    A timestamp counts as such: it says nothing that the number before it does not."""
    match node:
        case lp.StreamScan() | lp.TableScan() | lp.Append():
            return (False, True)[: width(node)]
        case lp.Values():
            return (False,)
        case lp.Join():
            return numbering(node.left) + numbering(node.right)
        case lp.JoinNRR():
            return (*numbering(node.child), False)
        case lp.Union():
            return (True,) + _widest(node)
        case lp.SetOp():
            return (*numbering(node.left), True)
        case lp.SemiJoin():
            return numbering(node.left)
        case lp.Window() | lp.Select() | lp.Project() | lp.Distinct() | lp.GroupBy() | lp.Sort() | lp.Output():
            return numbering(node.child)
        case _:
            assert_never(node)


def _widest(node: lp.Union) -> tuple[bool, ...]:
    """A column that is a number in one branch and an arrival in another counts as an arrival."""
    branches = [numbering(child) for child in node.inputs]
    return tuple(all(b[i] for b in branches if i < len(b)) for i in range(max(map(len, branches))))


def order(node: lp.Node) -> tuple[int, ...]:
    """Positions of the id columns by which rows of one instant are sorted: arrivals in FROM order, numbers last."""
    where, numbers = leaves(node), numbering(node)
    return tuple(sorted(range(len(where)), key=lambda i: (numbers[i], where[i])))


def by_value(node: lp.Node) -> bool:
    """Whether anything in a row of this edge has no parts (aggregate, DISTINCT, set operation, constant row).

    Such rows are told apart by value: their ids may pass to another arrival while the row stays.  What an Append hands
    on are arrivals, whatever they are made of.
    """
    match node:
        case lp.GroupBy() | lp.Distinct() | lp.SetOp() | lp.Values():
            return True
        case lp.StreamScan() | lp.TableScan() | lp.Append():
            return False
        case lp.SemiJoin():
            return by_value(node.left)
        case _:
            return any(by_value(child) for child in lp.children(node))
