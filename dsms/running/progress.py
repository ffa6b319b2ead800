"""How fresh the answers of a query are, and how often it gives them (the measures of Golab 2006,
§7.5.1 and §8.5)."""

from __future__ import annotations

from dsms.periodic.evaluated import EvaluatedQuery
from dsms.periodic.query import PeriodicQuery
from dsms.running.registered import Registered
from dsms.running.runtime import ENDED, Runtime
from dsms.sql.types import ALWAYS

SECOND = 1_000_000


def progress(runtime: Runtime, query: Registered) -> dict[str, float]:
    """Figures of a periodic query, in seconds of its streams' time; {} for others.

    evaluations         executions so far (their rate is the throughput)
    staleness_seconds   by how much the clock of its streams is ahead of its last answer
    interval_seconds    between two executions, on average: its period, unless it falls behind
    lateness            boundaries that passed unanswered, on average per execution
    """
    if not isinstance(query, EvaluatedQuery):
        return {}
    late = runtime.backlog.lateness(query.name)
    found: dict[str, float] = {
        "evaluations": query.evaluations,
        "lateness": 0.0 if late is None else late.average,
    }
    if query.answered != ALWAYS and query.numbers is None:
        clock = runtime.clock_of(query.reads)
        if clock < ENDED:
            found["staleness_seconds"] = max(0, clock + 1 - query.answered) / SECOND
        if isinstance(query, PeriodicQuery) and query.evaluations > 1 and query.first != ALWAYS:
            found["interval_seconds"] = (
                (query.answered - query.first) / (query.evaluations - 1) / SECOND
            )
    return found
