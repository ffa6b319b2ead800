"""Costs per unit of time (one second of event time).

The model is that of Golab 2006, §3.5.3 and §5.3.1 (after Kang, Naughton and Viglas 2003): what an
operator does per second is

  processing   one operation per row that reaches it, positive or negative; a join also touches the
               rows it meets: λ1·C2 + λ2·C1 by nested loops, λ1·(1 + C2/v) + λ2·(1 + C1/v) by
               hashing, v = max(v1, v2)
  state        per kept input, with i insertions, e silent expirations and n announced deaths per
               second, C rows live and l looks for expired rows per second (at each arrival if
               eager, 20 times a window if lazy: §3.6.1):
                 fifo      i + e
                 calendar  i + e + n + s·l·C/p    p partitions, one of which is looked through
                 list      i + n + s·l·C
                 hash      i + n                  but every death is a negative tuple, processed
                           above as well
                 grow      i
               s = 1/16: to look at a row in passing costs that share of what it costs to process
               one

Joins of two and of many must be comparable, so their operators' steps were timed, inside the
queries of `python -m tests.benchmarks multijoin`, over windows of 4,000 to 20,000 rows with 1,000
to two million values.  A row that finds nothing, which counts as three operations (one to process,
two to keep it), took 560 to 820 ns in a Join, and 490 to 675 in a MultiJoin with its look into one
window: an operation is some 210 ns.  A result took 240 ns in a MultiJoin and 120 to 345 in a Join,
and counts as one operation in both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import assert_never

from dsms.plan.either import Keys, ways
from dsms.plan.estimate import Estimate, match_share
from dsms.plan.physical import Adaptive, JoinOrder, Pattern, State, Strategy
from dsms.plan.statistics import column_of
from dsms.sql import logical as lp

LOOK = 1 / 16
LAZY_LOOKS = 20.0  # a lazy operator looks for expired rows every twentieth of a window


def keep_cost(state: State, rows: Estimate, strategy: Strategy, arrivals: float) -> float:
    """Operations per second to keep `rows` in that structure; `arrivals`: rows/s that make an eager
    operator look."""
    announced = rows.announced(strategy)
    silent = max(0.0, rows.deaths - announced)
    looks = LAZY_LOOKS / rows.span if state.lazy and not math.isinf(rows.span) else arrivals
    match state.kind:
        case "none":
            return 0.0
        case "fifo":
            return rows.rate + rows.deaths
        case "calendar":
            return (
                rows.rate + silent + announced + LOOK * looks * rows.size / max(1, state.partitions)
            )
        case "list":
            return rows.rate + announced + LOOK * looks * rows.size
        case "hash":
            return rows.rate + announced
        case "grow":
            return rows.rate
        case _:
            assert_never(state.kind)


def process_cost(
    node: lp.Node,
    variant: str,
    inputs: Sequence[Estimate],
    strategy: Strategy,
    made: float = 0.0,
    order: JoinOrder | Adaptive | None = None,
) -> float:
    """Operations per second to process what comes in, apart from keeping state.  `made`: results
    per second before the residual of a MultiJoin is asked, which has that `order`."""
    flow = [e.rate + e.announced(strategy) for e in inputs]
    match node:
        case lp.Join() if variant == "hash-each":
            return sum(_joined(way.keys, inputs, flow) for way in ways(node))
        case lp.Join():
            return _joined(node.keys, inputs, flow)
        case lp.MultiJoin():
            assert order is not None
            return sum(flow) + order.cost + (made if isinstance(order, JoinOrder) else 0.0)
        case lp.JoinNRR():
            return flow[0] * 2
        case lp.AsofJoin():
            return flow[0] * 2 + flow[1]
        case lp.Match():
            return flow[0] * len(flow) + sum(flow)
        case lp.Over():
            return flow[0] * (1 + sum(1 + len(frame.calls) for frame in node.frames))
        case lp.SemiJoin() | lp.SetOp():
            reached = [e.rate + e.deaths for e in inputs]  # eager: expirations are events too
            return sum(reached) + _touched(node, inputs)
        case lp.Distinct() | lp.GroupBy() | lp.TopN() | lp.Sort():
            return inputs[0].rate + inputs[0].deaths
        case lp.StreamScan() | lp.TableScan() | lp.Values():
            return 0.0
        case _:
            return sum(flow)


def _joined(keys: Keys, inputs: Sequence[Estimate], flow: Sequence[float]) -> float:
    """Each row of either side meets those of the other that are equal in the keys."""
    left, right = inputs
    share = match_share(keys, left, right.columns) if keys else 1.0
    return flow[0] * (1 + right.size * share) + flow[1] * (1 + left.size * share)


def _touched(node: lp.SemiJoin | lp.SetOp, inputs: Sequence[Estimate]) -> float:
    """Results that change because a right row comes or goes: of a set operation one copy; of a
    semi-join all left rows of that key value, but only if the row is the only one of it,
    exp(-C2/v2), or a further condition must be asked."""
    left, right = inputs
    events = right.rate + right.deaths
    if isinstance(node, lp.SetOp):
        return events
    values = math.prod(column_of(b, right.columns).distinct for _, b in node.keys)
    alone = math.exp(-right.size / values) if node.residual is None else 1.0
    return events * alone * left.size * match_share(node.keys, left, right.columns)


def is_unbounded(pattern: Pattern, rows: Estimate) -> bool:
    """Whether keeping this edge keeps ever more."""
    return pattern is Pattern.MON and rows.rate > 0
