"""What EXPLAIN says of a periodic query besides its plan: the access path, the synopses, who shares them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dsms.commands.periodic_plan import Plan, periodic_plan
from dsms.intake.values import duration_text
from dsms.periodic.query import PeriodicQuery
from dsms.plan.paths import MEANINGS
from dsms.plan.text import aggregate, expression
from dsms.running.runtime import Runtime
from dsms.sharing.answer_source import AnswerSource
from dsms.sharing.columns import needed
from dsms.sharing.feed import Feed
from dsms.sharing.member import Answering, Member
from dsms.sharing.request import Request, span_of
from dsms.sql import logical as lp
from dsms.sql.catalog import Option
from dsms.sql.expr import AggCall, conjunction


def of_registered(runtime: Runtime, query: PeriodicQuery) -> list[str]:
    """Lines for a query that runs."""
    path = query.evaluator.path
    lines = [f"access path: {path} ({MEANINGS[path]}): {query.why}" if query.why else f"access path: {path}"]
    if isinstance(query.evaluator, Member):
        lines += _synopses(runtime, query.evaluator.request, query.evaluator.group, query.evaluator.view)
        others = [m.query.name for m in _sharing(query.evaluator) if m.query is not None]
        lines.append(f"shared with: {_some(sorted(others))}" if others else "shared with: no other query")
    return lines


def of_statement(runtime: Runtime, bound: lp.Output, options: dict[str, Option]) -> tuple[Plan, list[str]]:
    """The plan of a query that is not registered, and the lines."""
    plan = periodic_plan(runtime, bound, options)
    lines = [f"access path: {plan.path.kind} ({MEANINGS[plan.path.kind]}): {plan.path.why}"]
    if plan.path.kind in ("SS", "ISS") and isinstance(plan.wanted, Request):
        registry, covers = runtime.shared, options.get("synopsis") != "own"
        found = registry.place(plan.wanted, plan.counted)
        if found is None and covers:
            found = registry.covered(plan.wanted, plan.counted)
        if found is None:
            lines.append(f"synopses: new ones, of sub-windows of {_span(span_of(plan.wanted), plan.counted)}")
        else:
            group, view = found
            lines += _synopses(runtime, plan.wanted, group, view)
            names = [m.query.name for g in registry.all() for m in g.members if m.query and _meets(m, view)]
            lines.append(f"shared with: {_some(sorted(names))}")
    return plan, lines


def _meets(member: Member, view: AnswerSource) -> bool:
    """Whether both are answered from some feed."""
    return member.view is not None and any(member.view.reads(p.feed) for p in view.parts)


def _sharing(member: Member) -> list[Member]:
    """The others that are answered from a feed that it is answered from."""
    others = [m for m in member.group.members if m is not member]
    return [m for m in others if member.view is None or _meets(m, member.view)]


def _synopses(runtime: Runtime, wanted: Request, group: Answering, view: AnswerSource | None) -> Iterator[str]:
    """A line for each aggregate, and column that answers it."""
    parts: list[tuple[Feed, Mapping[AggCall, AggCall] | None, bool]] = [(f, None, False) for f in group.feed.feeds]
    if view is not None:
        parts = [(p.feed, p.sources, p.less) for p in view.parts]
    schema = tuple(f for s in group.sides for f in runtime.inputs[s].definition.schema)
    for call in needed(wanted.aggs, bool(wanted.keys)):
        for feed, sources, less in parts:
            source = call if sources is None else sources[call]
            told = aggregate(call, schema) + ("" if source == call else f", from {aggregate(source, schema)}")
            if view is not None and not view.single:
                whole = conjunction(list(feed.where))
                told += f", {'less' if less else 'with'} {'' if whole is None else expression(whole, schema)}"
            width, span = (wanted.length - wanted.until) // feed.span, _span(feed.span, feed.counted)
            column = feed.columns.get(source)
            where = "a new one, " if column is None else ""
            yield f"synopsis: {told}: {where}{width} sub-windows of {span}" + (f" in {column.why}" if column else "")


def _span(span: int, counted: bool) -> str:
    return f"{span} rows" if counted else duration_text(span)


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
