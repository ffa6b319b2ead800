"""From a window of a physical plan to the operator that runs it."""

from __future__ import annotations

from typing import assert_never

from dsms.operators import window, window_aged, window_episodes, window_latest, window_rows
from dsms.operators.base import Builds, Operator
from dsms.operators.passing import Piped, Through
from dsms.operators.periodic import LazyOp
from dsms.operators.timeline import (
    TimedDeathsOp,
    TimedDelayOp,
    TimedSinceOp,
    TimedWindowOp,
    Timeline,
)
from dsms.operators.window_first import FirstWindowOp
from dsms.operators.window_lasting import LastingWindowOp
from dsms.operators.window_throttled import ThrottleOp
from dsms.plan.deaths import Deaths
from dsms.plan.identity import width
from dsms.plan.physical import Phys
from dsms.sql import logical as lp
from dsms.sql.window import (
    First,
    Landmark,
    Lasting,
    Latest,
    Now,
    Partitioned,
    Rows,
    Session,
    Slide,
    Throttled,
    Time,
    Unbounded,
    When,
)


def window_op(
    make: Builds,
    phys: Phys,
    node: lp.Window,
    life: str | None,
    slide: Slide | None,
    timeline: Timeline | None,
) -> Operator:
    """The operator of a window.  `life`: as in `dsms.operators.window.TimeWindowOp`; `slide`,
    `timeline`: as in `dsms.operators.build.Builder`."""
    spec = node.spec
    made: Operator
    match spec:
        case Time() | Now() | Landmark() | Unbounded() | Lasting() | Throttled() if (
            timeline is not None
        ):
            return _timed(node, spec, life, timeline)
        case Time():
            deaths = Deaths(spec) if spec.calendar is not None else None
            made = window.TimeWindowOp(spec.length, life, deaths)
            if spec.until:
                made = window.HistoricalWindowOp(spec.length, spec.until, life, deaths)
        case Now():
            made = window.TimeWindowOp(1, life)
        case Rows():
            return window_rows.RowsWindowOp(spec.count, spec.until, node.schema, width(node))
        case Partitioned(age=int()):
            return window_aged.AgedWindowOp(spec, node.schema, width(node), timeline)
        case Partitioned():
            return window_rows.PartitionedWindowOp(
                spec.count, spec.until, spec.by, node.schema, width(node)
            )
        case Latest():
            return window_latest.LatestWindowOp(
                spec, node.schema, width(node), phys.state(0), phys.children[0].strict
            )
        case Session() | When():
            return window_episodes.episodes_op(make, node, spec)
        case First():
            return FirstWindowOp(spec)
        case Throttled():
            picked = ThrottleOp(spec)
            stamped: Operator = window.TimeWindowOp(spec.length, life)
            if spec.until:
                stamped = window.HistoricalWindowOp(spec.length, spec.until, life)
            made = Piped(picked, stamped)
        case Lasting():
            made = LastingWindowOp(spec, life)
        case Landmark():
            since = window.LandmarkWindowOp(spec.since)
            return Piped(since, window.DelayOp(spec.until)) if spec.until else since
        case Unbounded():
            return window.DelayOp(spec.until) if spec.until else Through()
        case _:
            assert_never(spec)
    if slide is not None and life is None:
        made = Piped(made, LazyOp(slide))
    if phys.strategy != "nt":
        return made
    kept = phys.states[-1]
    return Piped(made, window.NegativeOp(node.schema, width(node), kept))


def _timed(
    node: lp.Window,
    spec: Time | Now | Landmark | Unbounded | Lasting | Throttled,
    life: str | None,
    timeline: Timeline,
) -> Operator:
    match spec:
        case Landmark():
            since = TimedSinceOp(spec.since, timeline)
            return Piped(since, TimedDelayOp(spec.until, timeline)) if spec.until else since
        case Unbounded():
            return TimedDelayOp(spec.until, timeline) if spec.until else Through()
        case Lasting():
            lasting = LastingWindowOp(spec, life, timeline)
            deaths = TimedDeathsOp(timeline, node.schema, width(node))
            return Piped(lasting, deaths)
        case Now():
            return TimedWindowOp(1, 0, timeline, node.schema, width(node), life)
        case Time():
            return TimedWindowOp(spec.length, spec.until, timeline, node.schema, width(node), life)
        case Throttled(length, until):
            timed = TimedWindowOp(length, until, timeline, node.schema, width(node), life)
            return Piped(ThrottleOp(spec, timeline), timed)
