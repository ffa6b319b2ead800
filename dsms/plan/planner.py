"""From a bound query to a physical plan: rewrite, then choose."""

from __future__ import annotations

from dataclasses import replace

from dsms.plan.above import Offered, with_selection_above
from dsms.plan.advice import advice
from dsms.plan.answers import AtWork, none_at_work, settled
from dsms.plan.chooser import Chooser, with_kind
from dsms.plan.optimize import optimize
from dsms.plan.options import PlanOptions
from dsms.plan.physical import Phys
from dsms.plan.statistics import Statistics
from dsms.sql import logical as lp


def plan(
    output: lp.Output,
    stats: Statistics | None = None,
    options: PlanOptions | None = None,
    offered: Offered | None = None,
    at_work: AtWork = none_at_work,
) -> Phys:
    """The physical plan of a bound query.

    `stats` are measured figures (defaults where none), `options` the query's WITH options.  The
    root's node is an Output whose `kind` is resolved; `rules` on the root names the rewrites that
    made the plan, and `notes(plan)` tells what a user should know of it.  `offered`: what others
    run, which a persistent query may share (`dsms.plan.above`).  `at_work`: the plan
    of a query whose operators work for its readers, too (`dsms.plan.answers`).  Raises
    InternalError DS910 if a rewrite rule misbehaves (our bug).
    """
    chosen = options or PlanOptions()
    output, running = settled(output, at_work, chosen.strategy)
    chooser = Chooser(stats or Statistics(), chosen, running)
    resolved = with_kind(output)
    best, rules = optimize(resolved, chooser)
    phys, _ = chooser.build(best)
    found = replace(phys, rules=rules)
    if offered is not None and chooser.options.optimize:
        found = with_selection_above(resolved, chooser, found, offered)
    return replace(found, notes=(*advice(output), *found.notes))


def notes(phys: Phys) -> tuple[str, ...]:
    """The notes of all nodes, without repetitions, from the root down."""
    found = list(phys.notes)
    for child in phys.children:
        found += [n for n in notes(child) if n not in found]
    return tuple(dict.fromkeys(found))
