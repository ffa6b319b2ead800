"""What EXPLAIN says of the plan of a query that runs: since when it has it, and why; whether it may
change."""

from __future__ import annotations

from collections.abc import Iterator

from dsms.commands.replanning import why_never
from dsms.commands.shared_joins import disagree, running_of
from dsms.intake.values import instant_text
from dsms.plan.rejoin import Unfit, places
from dsms.running.exchanging import inputs_at
from dsms.running.query import RunningQuery
from dsms.running.registered import Registered
from dsms.running.runtime import Runtime
from dsms.sql.types import ALWAYS


def plan_lines(runtime: Runtime, query: Registered) -> Iterator[str]:
    """Of a query that joins three inputs or more."""
    running = running_of(query)
    if running is None or next(places(running.phys), None) is None:
        return
    chosen = running.chosen
    times = "" if not chosen.changes else f" (change {chosen.changes})"
    since = "" if chosen.since <= ALWAYS else f" since {instant_text(chosen.since)}"
    yield f"this plan{since}{times}: {chosen.why}"
    why = why_never(runtime, query) or _hindered(runtime, running)
    if why is not None:
        yield f"it does not change with the data: {why}"


def _hindered(runtime: Runtime, query: RunningQuery) -> str | None:
    """Why none of its joins can be exchanged as things are."""
    problems = []
    for path in places(query.phys):
        try:
            inputs_at(query, path)
        except Unfit as problem:
            problems.append(str(problem))
            continue
        against = disagree(runtime, query, path)
        if against is None:
            return None
        problems.append(against)
    return problems[0]
