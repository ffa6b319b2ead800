"""A query with SLIDE while it is being registered, before it has an evaluator."""

from __future__ import annotations

from dataclasses import dataclass

from dsms.commands.periodic_plan import Plan
from dsms.operators.expressions import ErrorCounter
from dsms.periodic.evaluated import Evaluator
from dsms.periodic.query import PeriodicQuery
from dsms.plan.identity import by_value, width
from dsms.plan.planner import notes
from dsms.running.results import ResultLog
from dsms.running.runtime import Runtime
from dsms.sql import logical as lp
from dsms.sql.catalog import Option, QueryDef


@dataclass(frozen=True, slots=True)
class Registration:
    """bound  the query as it is written, with names and types;  plan: how it is evaluated"""

    runtime: Runtime
    definition: QueryDef
    bound: lp.Output
    plan: Plan

    @property
    def options(self) -> dict[str, Option]:
        return dict(self.definition.options)

    @property
    def limit(self) -> int:
        """Bytes that the query may keep."""
        return int(self.options.get("max_state", self.runtime.settings.state_bytes))

    def errors(self) -> ErrorCounter:
        return ErrorCounter.of_query(self.limit)

    def query(
        self,
        evaluator: Evaluator,
        errors: ErrorCounter,
        streams: dict[int, str],
        tables: tuple[str, ...],
    ) -> PeriodicQuery:
        """The query, which that evaluator answers from those streams (by leaf) and tables."""
        settings, child = self.runtime.settings, self.bound.child
        rows = int(self.options.get("result_log", settings.result_log_rows))
        query = PeriodicQuery(
            self.definition,
            self.plan.phys,
            ResultLog(rows, settings.result_log_bytes),
            errors,
            streams,
            tables,
            self.limit,
            evaluator=evaluator,
            sort=child if isinstance(child, lp.Sort) else None,
            width=0 if by_value(child) else width(self.plan.core.child),
        )
        query.notes = notes(self.plan.phys)
        return query
