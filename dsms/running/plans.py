"""How queries are planned: under measured figures, and with what others run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from dsms.plan.above import Offered
from dsms.plan.answers import AtWork, none_at_work
from dsms.plan.options import PlanOptions
from dsms.plan.physical import Phys
from dsms.plan.planner import plan
from dsms.plan.statistics import Statistics
from dsms.sql import logical as lp
from dsms.sql.catalog import Option

Planner = Callable[[lp.Output, Iterable[tuple[str, Option]]], Phys]


def planner(
    figures: Statistics,
    optimize: bool,
    offered: Offered | None,
    at_work: AtWork = none_at_work,
) -> Planner:
    """Makes the physical plan of a bound query with its options; any thread may call it."""

    def made(bound: lp.Output, options: Iterable[tuple[str, Option]] = ()) -> Phys:
        chosen = PlanOptions.of(options)
        chosen = chosen if optimize else replace(chosen, optimize=False)
        alone = chosen.over == "shed"  # what is let go is its own affair
        return plan(bound, figures, chosen, None if alone else offered, at_work)

    return made
