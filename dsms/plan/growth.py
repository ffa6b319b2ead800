"""Which state of a plan has no bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from dsms.plan import over
from dsms.plan.cost import is_unbounded
from dsms.plan.estimate import Estimate
from dsms.plan.physical import Pattern, Phys, State
from dsms.sql import logical as lp
from dsms.sql.episodes import at_close
from dsms.sql.window import (
    First,
    Landmark,
    Lasting,
    Latest,
    Now,
    Partitioned,
    Rows,
    Session,
    Throttled,
    Time,
    Unbounded,
    When,
    WindowSpec,
)

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


def growth(
    node: lp.Node, plans: Sequence[Phys], sizes: list[Estimate], states: tuple[State, ...]
) -> tuple[str, ...]:
    """What of this node's state has no bound, worded so that a user can act on it."""
    match node:
        case lp.Window(spec=Latest()) if is_unbounded(plans[0].pattern, sizes[0]):
            return ("state grows with the number of keys that are there",)
        case lp.Window(spec=Lasting(end=end)) if node.child.schema[end].nullable:
            return ("rows whose end is NULL never leave",)
        case lp.Window():
            return _window_growth(node.spec)
        case lp.GroupBy() if at_close(node.child):
            return ()
        case lp.GroupBy(keys=keys) | lp.TopN(by=keys) if plans[0].pattern is Pattern.MON and keys:
            return ("state grows with the number of groups: the input has no window",)
        case lp.Distinct() if plans[0].pattern is Pattern.MON:
            return ("state grows with the number of different rows: the input has no window",)
        case lp.Join() | lp.MultiJoin() | lp.SemiJoin() | lp.SetOp():
            names = ("left", "right") if len(plans) == 2 else ORDINALS
            sides = [
                s
                for s, p, e in zip(names, plans, sizes, strict=False)
                if is_unbounded(p.pattern, e)
            ]
            return tuple(
                f"state grows without bound: the {side} input has no window" for side in sides
            )
        case lp.AsofJoin() if node.keys and node.span is None:
            return ("state grows with the number of keys on the right: say WITHIN",)
        case lp.Over() if over.by_keys(node):
            return ("state grows with the number of keys of OVER: no row leaves for its age",)
        case lp.Output() if (
            states and states[0].kind == "grow" and is_unbounded(plans[0].pattern, sizes[0])
        ):
            return ("the answer grows without bound: no result ever leaves",)
        case _:
            return ()


def _window_growth(spec: WindowSpec) -> tuple[str, ...]:
    match spec:
        case Partitioned(age=int()):
            return ()
        case Partitioned():
            return (
                f"state grows with the number of partitions ({spec.count} rows each): they do not "
                "expire; RANGE t behind ROWS lets go of those that are silent for t",
            )
        case When():
            return ("state grows while no row says that an episode stops",)
        case Time() | Now() | Rows() | Unbounded() | Landmark() | Latest() | Session():
            return ()
        case First():
            return (
                "state grows with the number of partitions (a counter each): they do not expire",
            )
        case Lasting() | Throttled():
            return ()
        case _:
            assert_never(spec)
