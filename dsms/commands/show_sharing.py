"""SHOW SHARING: which queries share what, by which rule, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsms.api import Rows
from dsms.commands.rows import as_rows
from dsms.commands.slices import Free, one_by_one
from dsms.intake.values import duration_text
from dsms.plan.text import aggregate, describe, expression
from dsms.running.part import Part, parts_below
from dsms.running.query import RunningQuery
from dsms.running.registered import is_hidden
from dsms.running.runtime import Runtime
from dsms.sharing.feed import Feed, SingleFeed
from dsms.sharing.group import Group
from dsms.sharing.report import Shared
from dsms.sharing.rules import RULES, Rule
from dsms.sql import logical as lp
from dsms.sql.expr import AggCall, conjunction
from dsms.sql.types import INT, STRING, Schema

INDEX = "PI"  # the predicate index
PARTS = "SP"  # shared parts of plans
ONCE = "the queries have this part of their plans in common: it runs, and has its state, once"
WHY = "a row meets only the queries that an index over their conditions finds for it"


def show_sharing(runtime: Runtime) -> Free[Rows]:
    """One line per rule and shared thing."""
    lines = [line for line in (yield from one_by_one(_lines(runtime))) if line is not None]
    columns: list[Any] = list(zip(*lines, strict=True)) if lines else [[] for _ in range(6)]
    names = ("rule", "shared", "synopses", "queries", "count", "reason")
    types = (STRING, STRING, STRING, STRING, INT, STRING)
    return as_rows([(n, t, list(c)) for n, t, c in zip(names, types, columns, strict=True)])


def _lines(runtime: Runtime) -> Iterator[tuple[Any, ...] | None]:
    """None: a piece of work is done.  Queries may come and go between two of what it yields."""
    groups = runtime.shared.all()
    for rule in RULES:
        for group in groups:
            if all(side in runtime.inputs for side in group.sides):
                yield from [_line(runtime, rule, group, found) for found in rule.found(group)]
            yield None
    yield from _index(runtime)
    yield from _parts(runtime)


def _index(runtime: Runtime) -> Iterator[tuple[Any, ...] | None]:
    """Conditions by which rows are looked up."""
    looked: dict[tuple[str, int, str], list[str]] = {}
    for query in list(runtime.queries.values()):
        if (found := runtime.dispatch.looked_up(query.home)) is not None:
            looked.setdefault(found, []).append(query.name)
        yield None
    for (stream, column, how), names in looked.items():
        if len(names) > 1 and stream in runtime.inputs:
            definition = runtime.inputs[stream].definition
            what = f"{definition.name} by {how} of {definition.schema[column].name}"
            yield INDEX, what, None, ", ".join(names), len(names), WHY


def _parts(runtime: Runtime) -> Iterator[tuple[Any, ...] | None]:
    """Parts of plans that several queries stand on."""
    standing: dict[str, list[str]] = {}
    for query in list(runtime.queries.values()):
        if isinstance(query, RunningQuery) and not is_hidden(query.home):
            for name in {part.name for part in parts_below(query.pipeline)}:
                standing.setdefault(name, []).append(query.name)
        yield None
    for name, part in list(runtime.dispatch.parts.items()):
        if len(names := standing.get(name, [])) > 1:
            yield PARTS, part_text(part), None, ", ".join(names), len(names), ONCE


def users(runtime: Runtime, part: Part) -> list[str]:
    """The names of the queries that stand on a part."""
    known = (q for key, q in runtime.queries.items() if not is_hidden(key))
    continuous = [q for q in known if isinstance(q, RunningQuery)]
    return [q.name for q in continuous if any(p is part for p in parts_below(q.pipeline))]


def part_text(part: Part) -> str:
    """A part in words: its topmost operator, and what it reads."""
    reads = dict.fromkeys(
        leaf.stream.name if isinstance(leaf, lp.StreamScan) else leaf.table.name
        for leaf in lp.leaves_of(part.phys.node)
    )
    return f"{describe(part.phys.node)}, of {', '.join(reads)}"


def _line(runtime: Runtime, rule: Rule, group: Group, found: Shared) -> tuple[Any, ...]:
    schema = tuple(f for s in group.sides for f in runtime.inputs[s].definition.schema)
    names = [m.query.name for m in found.members if m.query is not None]
    what = _feed(found.feed, group, schema)
    if found.others:
        what = _combined(found, schema)
    if found.length is not None:
        what += f", windows of {_length(found.length, found.feed)}"
    return rule.name, what, _synopses(found, schema), ", ".join(names), len(names), rule.says


def _feed(feed: SingleFeed, group: Group, schema: Schema) -> str:
    """A feed in words."""
    span = _length(feed.span, feed)
    if not isinstance(feed, Feed):
        return f"{' JOIN '.join(group.sides)}, sub-windows of {span}"
    by = ", ".join(expression(e, schema) for e in feed.space.exprs)
    where = _predicate(feed, schema)
    return (
        f"{feed.stream}{where and ' WHERE ' + where}{by and ' GROUP BY ' + by}, sub-windows of "
        f"{span}"
    )


def _predicate(feed: Feed, schema: Schema) -> str:
    condition = conjunction(list(feed.where))
    return "" if condition is None else expression(condition, schema)


def _combined(found: Shared, schema: Schema) -> str:
    """Feeds that cover a predicate."""
    plus = " + ".join(f"({_predicate(f, schema)})" for f, less in found.others if not less)
    minus = "".join(f" - ({_predicate(f, schema)})" for f, less in found.others if less)
    by = ", ".join(expression(e, schema) for e in found.feed.space.exprs)
    span = _length(found.feed.span, found.feed)
    return (
        f"{found.feed.stream} WHERE {plus}{minus}{by and ' GROUP BY ' + by}, sub-windows of {span}"
    )


def _length(length: int, feed: SingleFeed) -> str:
    return f"{length} rows" if feed.counted else duration_text(length)


def _synopses(found: Shared, schema: Schema) -> str | None:
    """Which synopses, and of what."""
    kinds = ", ".join(found.kinds)
    if not found.calls:
        return kinds or None
    return f"{kinds}: {', '.join(_call(c, schema) for c in found.calls)}"


def _call(call: AggCall, schema: Schema) -> str:
    return aggregate(call, schema)
