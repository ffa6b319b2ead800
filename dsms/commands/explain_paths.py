"""What EXPLAIN says of a periodic query besides its plan: the access path, the synopses, who shares them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dsms.commands.periodic import Plan, periodic_plan
from dsms.intake.values import duration_text
from dsms.plan.text import aggregate
from dsms.running.periodic import PeriodicQuery
from dsms.running.sharing.columns import needed
from dsms.running.sharing.group import Group
from dsms.running.sharing.member import Member
from dsms.running.sharing.registry import span_of
from dsms.running.sharing.request import Request
from dsms.sql import logical as lp
from dsms.sql.catalog import Option

if TYPE_CHECKING:
    from dsms.engine import Engine

MEANINGS = {
    "WS": "window scan", "IS": "incremental scan", "SS": "synopsis scan", "ISS": "incremental synopsis scan",
}  # fmt: skip


def of_registered(engine: Engine, query: PeriodicQuery) -> list[str]:
    """Lines for a query that runs."""
    path = query.evaluator.path
    lines = [f"access path: {path} ({MEANINGS[path]}): {query.why}" if query.why else f"access path: {path}"]
    if isinstance(query.evaluator, Member):
        lines += _synopses(engine, query.evaluator.request, query.evaluator.group)
        others = [m.query.name for m in query.evaluator.group.members if m.query not in (None, query)]
        lines.append(f"shared with: {_some(sorted(others))}" if others else "shared with: no other query")
    return lines


def of_statement(engine: Engine, bound: lp.Output, options: dict[str, Option]) -> tuple[Plan, list[str]]:
    """The plan of a query that is not registered, and the lines."""
    plan = periodic_plan(engine, bound, options)
    lines = [f"access path: {plan.path.name} ({MEANINGS[plan.path.name]}): {plan.path.why}"]
    if plan.path.name in ("SS", "ISS") and isinstance(plan.wanted, Request):
        group = engine.world.shared.fitting(plan.wanted, plan.counted)
        if group is None:
            lines.append(f"synopses: new ones, of sub-windows of {_span(span_of(plan.wanted), plan.counted)}")
        else:
            lines += _synopses(engine, plan.wanted, group)
            lines.append(f"shared with: {_some(sorted(m.query.name for m in group.members if m.query))}")
    return plan, lines


def _synopses(engine: Engine, wanted: Request, group: Group) -> Iterator[str]:
    feed = group.feed
    schema = engine.world.inputs[feed.stream].definition.schema
    width = (wanted.length - wanted.until) // feed.span
    for call in needed(wanted.aggs, bool(wanted.keys)):
        column = feed.columns.get(call)
        span = _span(feed.span, feed.counted)
        if column is None:
            yield f"synopsis: {aggregate(call, schema)}: a new one, {width} sub-windows of {span}"
        else:
            yield f"synopsis: {aggregate(call, schema)}: {width} sub-windows of {span} in {column.why}"


def _span(span: int, counted: bool) -> str:
    return f"{span} rows" if counted else duration_text(span)


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
