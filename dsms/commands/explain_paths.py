"""What EXPLAIN says of a periodic query besides its plan: the access path, the synopses, and the
queries that share them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal

from dsms.commands.periodic_plan import Plan, periodic_plan
from dsms.intake.values import duration_text
from dsms.periodic.evaluated import EvaluatedQuery
from dsms.plan.paths import MEANINGS
from dsms.plan.text import aggregate, expression
from dsms.running.runtime import Runtime
from dsms.sharing import searches
from dsms.sharing.answer_source import AnswerSource, SignedFeed
from dsms.sharing.columns import needed
from dsms.sharing.feed import SingleFeed
from dsms.sharing.member import Answering, Member
from dsms.sharing.request import Request, made_of
from dsms.sharing.threshold import Threshold, apart, extreme, threshold
from dsms.sql import logical as lp
from dsms.sql.catalog import Option
from dsms.sql.expr import AggCall, conjunction
from dsms.sql.types import Schema

NO_INDEX = (
    "HAVING has no count, sum of whole numbers or MAX above a constant, nor a COUNT(*) or MIN "
    "below one"
)


def of_registered(runtime: Runtime, query: EvaluatedQuery) -> list[str]:
    """Lines for a query that runs."""
    path = query.evaluator.path
    lines = [
        f"access path: {path} ({MEANINGS[path]}): {query.why}"
        if query.why
        else f"access path: {path}"
    ]
    if isinstance(query.evaluator, Member):
        lines += _synopses(
            runtime, query.evaluator.request, query.evaluator.group, query.evaluator.view
        )
        lines += _index(runtime, query.evaluator)
        others = [m.query.name for m in _sharing(query.evaluator) if m.query is not None]
        lines.append(
            f"shared with: {_some(sorted(others))}" if others else "shared with: no other query"
        )
    return lines


def of_statement(
    runtime: Runtime, bound: lp.Output, options: dict[str, Option]
) -> tuple[Plan, list[str]]:
    """The plan of a query that is not registered, and the lines."""
    plan = periodic_plan(runtime, bound, options)
    lines = [f"access path: {plan.path.kind} ({MEANINGS[plan.path.kind]}): {plan.path.why}"]
    if plan.path.kind in ("SS", "ISS") and isinstance(plan.wanted, Request):
        registry = runtime.shared
        found = registry.find(plan.wanted, plan.counted, not apart(options))
        if found is None:
            declared = runtime.inputs[plan.wanted.stream].definition.subwindow
            span = _span(made_of(plan.wanted, plan.counted, declared), plan.counted)
            lines.append(f"synopses: new ones, of sub-windows of {span}")
        else:
            group, view = found
            lines += _synopses(runtime, plan.wanted, group, view)
            names = [
                m.query.name
                for g in registry.all()
                for m in g.members
                if m.query and _meets(m, view)
            ]
            lines.append(f"shared with: {_some(sorted(names))}")
        if options.get("synopsis") == "collective":
            known = threshold(plan.wanted, plan.wanted.above, below=True) is not None
            lines.append(f"collective index: {'a new one' if known else f'none, {NO_INDEX}'}")
    return plan, lines


def _meets(member: Member, view: AnswerSource) -> bool:
    """Whether both are answered from some feed."""
    return member.view is not None and any(member.view.reads(p.feed) for p in view.parts)


def _sharing(member: Member) -> list[Member]:
    """The others that are answered from a feed that it is answered from."""
    others = [m for m in member.group.members if m is not member]
    return [m for m in others if member.view is None or _meets(m, member.view)]


def _synopses(
    runtime: Runtime, wanted: Request, group: Answering, view: AnswerSource | None
) -> Iterator[str]:
    """A line for each aggregate, and column that answers it."""
    schema = tuple(f for s in group.sides for f in runtime.inputs[s].definition.schema)
    parts: list[tuple[SingleFeed, Mapping[AggCall, AggCall] | None, str]] = [
        (f, None, "") for f in group.feed.feeds
    ]
    if view is not None:
        parts = [(p.feed, p.sources, "" if view.single else _cover(p, schema)) for p in view.parts]
    for call in needed(wanted.aggs, bool(wanted.keys)):
        for feed, sources, cover in parts:
            source = call if sources is None else sources[call]
            described = aggregate(call, schema) + (
                "" if source == call else f", from {aggregate(source, schema)}"
            )
            width, span = (
                (wanted.length - wanted.until) // feed.span,
                _span(feed.span, feed.counted),
            )
            column = feed.columns.get(source)
            where = "a new one, " if column is None else ""
            why = f" in {column.why}" if column else ""
            yield f"synopsis: {described}{cover}: {where}{width} sub-windows of {span}{why}"


def _index(runtime: Runtime, member: Member) -> Iterator[str]:
    """How a collective index finds its groups, if one does or is asked for."""
    asked, found = searches.threshold_of(member), searches.search_of(member)
    wished = member.seeking.wish == "collective"
    if asked is None:
        if member.seeking.any_value and not member.above.nodes:
            yield "collective index: as the values of LOOKUP say"
        elif wished:
            yield f"collective index: none, {NO_INDEX}"
        return
    if not wished and searches.index_of(member) is None:
        return
    what = _threshold(runtime, asked, member.group)
    if member.loose is not None:
        what += f", approximate by {member.seeking.within:.0%}"
    if found is None or found.index is None:
        yield f"collective index: {what}, to be asked first at the next boundary"
        return
    assert member.view is not None
    groups = member.view.column(asked.call).synopsis.groups
    yield (
        f"collective index: {what}: looked at {found.found} of {groups} groups last, found by "
        f"{found.index.levels} levels"
    )


def _threshold(runtime: Runtime, asked: Threshold, group: Answering) -> str:
    schema = tuple(f for s in group.sides for f in runtime.inputs[s].definition.schema)
    if extreme(asked.call):
        sign = ">=" if asked.call.fn == "max" else "<="
        return f"{aggregate(asked.call, schema)} {sign} {_unsigned(asked):.10g}"
    least = Decimal(asked.least).scaleb(-asked.call.type.scale)
    return f"{aggregate(asked.call, schema)} {'<' if asked.below else '>'} {least}"


def _unsigned(asked: Threshold) -> float:
    return asked.least if asked.call.fn == "max" else -asked.least


def _span(span: int, counted: bool) -> str:
    return f"{span} rows" if counted else duration_text(span)


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _cover(part: SignedFeed, schema: Schema) -> str:
    condition = conjunction(list(part.feed.where))
    return (
        f", {'less' if part.less else 'with'} "
        f"{'' if condition is None else expression(condition, schema)}"
    )
