"""Queries that read the answers of others: whose operators work for both.

A continuous query that reads the answer of another one, FROM q, has the plan of q in its own.
Where q runs, and its operators hand on what stands above asks for, that part is left as it runs:
no rule of the optimizer looks into it, and what comes out of it goes to q's own sink and to its
readers.  Elsewhere its plan is rewritten together with what stands above, as that of a subquery is.

What a block of such a query has appended rests on all that its input ever was, not on what that is
now: below it nothing of other queries is taken over, so that it begins with what streams hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from dsms.plan.ages import needs_ages
from dsms.plan.demand import Demand, demand
from dsms.plan.physical import Phys, Strategy
from dsms.sql import logical as lp
from dsms.sql.catalog import Catalog

AtWork = Callable[[str], Phys | None]
HAND_ON = {"delta-star", "input-storing"}  # forms of DISTINCT that hand a value on


def settled(
    output: lp.Output, at_work: AtWork, strategy: Strategy
) -> tuple[lp.Output, dict[int, Phys]]:
    """The plan with an Answer only where the query it names works for this one, too; and what runs
    that, by the id of the Answer's child.

    at_work  the whole plan of a query by its key, if it may do so"""
    found = _Settling(at_work, strategy)
    made = found.settle(output, Demand.PLACE, False)
    assert isinstance(made, lp.Output)
    return made, found.running


def none_at_work(query: str) -> Phys | None:
    """Where nothing is shared."""
    return None


@dataclass(slots=True)
class _Settling:
    at_work: AtWork
    strategy: Strategy
    running: dict[int, Phys] = field(default_factory=dict)
    inside: bool = False  # in the plan of a query that is read, but doesn't work for this one

    def settle(self, node: lp.Node, asked: Demand, ages: bool) -> lp.Node:
        """`ages`: what stands above goes by timestamps that leaves have to tell."""
        if isinstance(node, lp.Answer):
            return self._answer(node, asked, ages)
        old = lp.children(node)
        reads = any(isinstance(n, lp.Answer) for n in lp.nodes_of(node))
        ages = ages or (reads and needs_ages(without_answers(node)))
        gone_by = self.inside and isinstance(node, lp.Append)
        below = replace(self, at_work=none_at_work) if gone_by else self
        new = tuple(below.settle(c, demand(node, i, asked), ages) for i, c in enumerate(old))
        same = all(a is b for a, b in zip(old, new, strict=True))
        return node if same else lp.with_children(node, new)

    def _answer(self, node: lp.Answer, asked: Demand, ages: bool) -> lp.Node:
        whole = self.at_work(Catalog.key(node.query))
        if whole is not None and not ages and self._fits(whole, asked):
            phys = shifted(whole.children[0], node.first)
            self.running[id(phys.node)] = phys
            return replace(node, child=phys.node)
        child = replace(self, inside=True).settle(node.child, asked, ages)
        return replace(child, schema=node.schema)

    def _fits(self, whole: Phys, asked: Demand) -> bool:
        hands_on = any(p.variant in HAND_ON for p in plans_of(whole))
        return whole.strategy == self.strategy and not (hands_on and asked is Demand.AGE)


def plans_of(phys: Phys) -> Iterator[Phys]:
    """The node of a plan and all below it."""
    yield phys
    for child in phys.children:
        yield from plans_of(child)


def without_answers(node: lp.Node) -> lp.Node:
    """The plan with the plans of other queries as if their texts stood there."""
    if isinstance(node, lp.Answer):
        return replace(without_answers(node.child), schema=node.schema)
    return lp.with_children(node, tuple(map(without_answers, lp.children(node))))


def shifted(phys: Phys, by: int) -> Phys:
    """The plan with other numbers for its leaves."""
    children = tuple(shifted(child, by) for child in phys.children)
    node = lp.with_children(phys.node, tuple(child.node for child in children))
    match node:
        case lp.StreamScan() | lp.TableScan():
            node = replace(node, leaf=node.leaf + by)
        case lp.JoinNRR():
            node = replace(node, table=replace(node.table, leaf=node.table.leaf + by))
        case lp.Answer():
            node = replace(node, first=node.first + by)
    return replace(phys, node=node, children=children)
