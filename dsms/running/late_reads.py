"""How far back a query may still ask a non-retroactive table: rows that a window holds back (`UNTIL
... AGO`) ask for it as of their timestamps."""

from __future__ import annotations

from collections.abc import Iterator

from dsms.operators.window_aged import AgedWindowOp
from dsms.operators.window_rows import PartitionedWindowOp, RowsWindowOp
from dsms.plan import windows
from dsms.plan.ages import reads_late
from dsms.running.part import all_stages
from dsms.running.pipeline import Pipeline
from dsms.sql import logical as lp
from dsms.sql.types import ALWAYS, FOREVER
from dsms.sql.window import counts


def late_reads(node: lp.Node, pipeline: Pipeline, clock: int, points: int = 0) -> int:
    """The instant up to which the plan will not ask for tables again, when it is at `clock`.

    points  by so much what its operators take for instants may be later than these"""
    late = _late(node)
    if not late or clock <= ALWAYS:
        return clock
    waiting = (at - points for at in _waiting(pipeline))
    return min([clock, *waiting]) - _longest(late) - 1


def late_memory(node: lp.Node) -> int:
    """µs for which a row may be held back before it asks; FOREVER where rows that come decide."""
    late = _late(node)
    below = [n for join in late for n in lp.nodes_of(join.child) if isinstance(n, lp.Window)]
    if any(counts(n.spec) and windows.until(n.spec) for n in below):
        return FOREVER
    return _longest(late)


def _late(node: lp.Node) -> list[lp.JoinNRR]:
    return [n for n in lp.nodes_of(node) if isinstance(n, lp.JoinNRR) and reads_late(n)]


def _longest(late: list[lp.JoinNRR]) -> int:
    return max((sum(_delays(join.child)) for join in late), default=0)


def _delays(node: lp.Node) -> Iterator[int]:
    """µs by which windows in time hold rows back."""
    for n in lp.nodes_of(node):
        if isinstance(n, lp.Window) and not counts(n.spec):
            yield windows.until(n.spec)


def _waiting(pipeline: Pipeline) -> Iterator[int]:
    """The oldest rows that count windows keep."""
    for stage in all_stages(pipeline):
        match stage.operator:
            case (
                RowsWindowOp(store=store)
                | PartitionedWindowOp(store=store)
                | AgedWindowOp(store=store)
            ) if store.live:
                yield int(store.ts.view[store.alive.view].min())
