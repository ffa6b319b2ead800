"""EXPLAIN [ANALYZE]."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from dsms.api import Cancel, Rows
from dsms.commands.explain_archives import archive_plan, reads_archive
from dsms.commands.explain_index import index_lines
from dsms.commands.explain_paths import of_registered, of_statement
from dsms.commands.plan_lines import plan_lines
from dsms.commands.planning import Planner, planned
from dsms.commands.select import optimized
from dsms.commands.show_sharing import users
from dsms.commands.slices import Pieces
from dsms.errors import UsageError
from dsms.periodic.evaluated import EvaluatedQuery
from dsms.plan.explain import explain
from dsms.plan.explain_text import without_figures
from dsms.plan.parts import Path, node_at
from dsms.plan.physical import Phys
from dsms.plan.text import describe
from dsms.running.letting_go import bound_line
from dsms.running.promise_uses import promise_lines
from dsms.running.query import RunningQuery
from dsms.running.registered import Registered
from dsms.running.runtime import Runtime
from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.binder import bind_create_query, bind_query, check_options
from dsms.sql.catalog import Catalog, Option, QueryDef
from dsms.sql.plan_reads import answers_of
from dsms.sql.printer import to_sql
from dsms.sql.suggest import hint, listed


@dataclass(frozen=True, slots=True)
class _Bound:
    """A statement with names and types (None: of a query that is there already).

    phys  the plan, if it is continuous
    read  the plan by which a SELECT is asked once, if that has to be made"""

    options: dict[str, Option]
    output: lp.Output | None
    into: str | None = None
    phys: Phys | None = None
    read: list[Phys] = field(default_factory=list)


def explaining(
    runtime: Runtime,
    statement: ast.Explain,
    see: Callable[[], Catalog],
    cancel: Cancel | None,
    big: bool,
) -> Pieces[Rows]:
    """The plan as text, one row per line; with ANALYZE the live counts of a registered query.

    Who may read something in part alone is shown the plan without that, and told so.  `see` gives
    the catalog as who asks sees it now; `big`: it may take long to plan."""
    target, found = statement.target, None
    if not isinstance(target, ast.Ident):
        shared = isinstance(target, ast.CreateQuery) or _reads_queries(target, see())
        found = yield from planned(
            runtime, see, lambda *there: _bound(target, *there), cancel, big, shared
        )
    return _explained(runtime, statement, see(), found)


def _reads_queries(target: ast.SelectStatement, catalog: Catalog) -> bool:
    refs = (part.name for part in ast.walk(target) if isinstance(part, ast.TableRef))
    return any(isinstance(catalog.find(name.text, name.quoted), QueryDef) for name in refs)


def _reads_history(target: ast.SelectStatement, catalog: Catalog) -> bool:
    """Whether it reads what a query has told, as one-time queries alone do."""
    refs = (part for part in ast.walk(target) if isinstance(part, ast.TableRef) and part.window)
    return any(isinstance(catalog.find(r.name.text, r.name.quoted), QueryDef) for r in refs)


def _bound(
    target: ast.CreateQuery | ast.SelectStatement, catalog: Catalog, planner: Planner
) -> _Bound:
    if isinstance(target, ast.CreateQuery):
        definition, bound = bind_create_query(target, catalog)
        options, into = dict(definition.options), definition.feeds
        if bound is None or bound.slide is not None or definition.on_lookup:
            return _Bound(options, bound, into)
        return _Bound(options, bound, into, planner(bound, options.items()))
    options, once = dict(check_options(target.options, "select")), reads_archive(target)
    persistent = not (once or _reads_history(target, catalog))
    bound = bind_query(target, catalog, persistent=persistent, now=True)
    if once:
        return _Bound(options, bound)
    phys = None if bound.slide is not None else planner(bound, options.items())
    found = _Bound(options, bound, phys=phys)

    def kept(*asked: Any) -> Phys:
        found.read.append(planner(*asked))
        return found.read[-1]

    optimized(kept, bound)
    return found


def _explained(
    runtime: Runtime, statement: ast.Explain, catalog: Catalog, found: _Bound | None
) -> Rows:
    form = statement.format.value.lower()
    live, more, into = None, [], None
    options: Mapping[str, Option] = {} if found is None else found.options
    match statement.target:
        case ast.Ident() as name:
            running = registered(runtime, name, catalog)
            check_shown(runtime, name, running, catalog)
            phys, live = running.phys, running.live() if statement.analyze else None
            into, options = running.definition.feeds, dict(running.definition.options)
            more = _more(runtime, running)
            if statement.analyze and isinstance(running, EvaluatedQuery):
                more = [*more, f"evaluations: {running.evaluations}"]
        case ast.CreateQuery(name=name):
            assert found is not None
            into = found.into
            phys, more = (
                _planned(runtime, found) if found.output else _known(runtime, name, catalog)
            )
        case ast.SelectStatement() as select:
            assert found is not None and found.output is not None
            once = reads_archive(select)
            phys, more = (
                archive_plan(runtime, found.output, str(found.options.get("archive", "auto")))
                if once
                else _planned(runtime, found)
            )
            if not once and not _in_part(catalog, statement):
                more = [*more, *index_lines(runtime, found.output, lambda *_: found.read[0])]
    _check_read(runtime, statement, found, phys, catalog)
    if statement.analyze and live is None:
        raise UsageError(
            "DS406",
            "EXPLAIN ANALYZE shows live counts, which only a registered query has",
            statement.pos.line,
            statement.pos.column,
            "register it with CREATE QUERY, then EXPLAIN ANALYZE QUERY name",
        )
    if late := _seen_late(phys, catalog):
        phys, more = without_figures(phys), []
    lines = explain(phys, form, live).splitlines()
    # of queries of others, with which this one shares, only who sees them is told
    if form == "text":
        lines += [f"feeds stream {into}"] if into is not None else []
        lines += bound_line(options, phys)
        lines += [f"{to_sql(call)} stands for {to_sql(made)}" for call, made in statement.calls]
        lines += (more if catalog.sees_all else more[:1]) + _in_part(catalog, statement)
        lines += [
            f"{catalog.user} sees rows of {n} late: figures are not shown"
            for n in late
            if catalog.find(n) is not None
        ]
    return Rows(pa.record_batch({"plan": pa.array(lines, pa.string())}), ("STRING",))


def _seen_late(phys: Phys, catalog: Catalog) -> list[str]:
    """Streams of the plan whose rows the user sees late."""
    scans = (leaf for leaf in lp.leaves_of(phys.node) if isinstance(leaf, lp.StreamScan))
    streams = {scan.stream.home: scan.stream.name for scan in scans}
    return sorted(name for key, name in streams.items() if catalog.sees_late([key]))


def _planned(runtime: Runtime, found: _Bound) -> tuple[Phys, list[str]]:
    """The plan, and what more there is to say of a periodic query."""
    assert found.output is not None
    if found.phys is not None:
        return found.phys, []
    if found.output.slide is None:
        return runtime.plan(found.output, found.options.items()), []
    periodic, lines = of_statement(runtime, found.output, found.options)
    return periodic.phys, lines


def check_shown(runtime: Runtime, name: ast.Ident, running: Registered, catalog: Catalog) -> None:
    """The plan of a query holds what its creator may see of what it reads: that is shown to those
    who may grant it."""
    if catalog.sees_late(running.reads):
        message = f"the plan of {running.name} counts rows that {catalog.user} does not see yet"
        hint = "EXPLAIN its SELECT, which counts none"
        raise UsageError("DS670", message, name.pos.line, name.pos.column, hint)
    rights, owner = runtime.rights, runtime.rights.owners.get(running.home)
    for key in () if catalog.sees_all else {*running.reads, *running.tables}:
        whole = owner is not None and rights.views(owner, key) is None
        if not (whole or rights.owns(catalog.user, key)):
            message = (
                f"the plan of {running.name} shows what may be seen of what it reads, and "
                "of which rows"
            )
            hint = "EXPLAIN its SELECT, which leaves that out"
            raise UsageError("DS670", message, name.pos.line, name.pos.column, hint)


def _check_read(
    runtime: Runtime, statement: ast.Explain, found: _Bound | None, phys: Phys, catalog: Catalog
) -> None:
    """The plans of queries that it reads, where they stand in its own, are for those alone whom
    EXPLAIN shows them."""
    if found is not None and found.output is not None:
        names = [answer.query for answer in answers_of(found.output)]
    else:
        target = statement.target
        name = target.name if isinstance(target, ast.CreateQuery) else target
        assert isinstance(name, ast.Ident)
        names = list(registered(runtime, name, catalog).definition.over)
    shown = {answer.query for answer in answers_of(phys.node)}
    names = [name for name in names if name not in shown]
    for read in names:
        running = runtime.queries[Catalog.key(read)]
        place = ast.Ident(running.name, True, pos=statement.pos)
        check_shown(runtime, place, running, catalog)
        names += [n for n in running.definition.over if n not in names]


def _in_part(catalog: Catalog, statement: ast.Explain) -> list[str]:
    """What is read in part."""
    if isinstance(statement.target, ast.Ident):
        return []
    refs = [r for r in ast.walk(statement.target) if isinstance(r, ast.TableRef)]
    found = [(r, catalog.find(r.name.text, r.name.quoted)) for r in refs]
    names = dict.fromkeys(
        d.name for r, d in found if d is not None and catalog.views(d, r) is not None
    )
    return [
        f"of {n} is read what {catalog.user} may see of it, which is not shown here" for n in names
    ]


def _known(runtime: Runtime, name: ast.Ident, catalog: Catalog) -> tuple[Phys, list[str]]:
    running = registered(runtime, name, catalog)
    return running.phys, _more(runtime, running)


def _more(runtime: Runtime, running: Registered) -> list[str]:
    return [*_found(runtime, running), *promise_lines(running, runtime.inputs)]


def _found(runtime: Runtime, running: Registered) -> list[str]:
    if isinstance(running, EvaluatedQuery):
        return [*of_registered(runtime, running), *plan_lines(runtime, running)]
    if isinstance(running, RunningQuery):
        planned = list(plan_lines(runtime, running))
        if running.feeds or planned:
            return [*_shared(runtime, running), *planned]
    found = runtime.dispatch.lookup(running.home)
    if found is None:
        return []
    stream, atom = found
    schema = runtime.inputs[stream].definition.schema
    name, column = runtime.inputs[stream].definition.name, schema[atom.column].name
    return [f"rows of {name}: those that the predicate index finds by {column}"]


def _shared(runtime: Runtime, running: RunningQuery) -> Iterator[str]:
    """Which parts of the plan run for others, too; behind that for whom."""
    feeds = sorted(running.feeds, key=lambda feed: feed.path)
    if not feeds:
        return
    texts = [_described(running.phys, feed.path) for feed in feeds]
    yield f"runs once for all queries that have it: {'; '.join(texts)}"
    for feed, text in zip(feeds, texts, strict=True):
        others = [name for name in users(runtime, feed.part) if name != running.name]
        yield f"{text}: shared with {listed(others) if others else 'none now'}"


def _described(phys: Phys, path: Path) -> str:
    """A part of the plan in words; of a query that is read, its name."""
    above = node_at(phys, path[:-1]).node
    return describe(above if isinstance(above, lp.Answer) else node_at(phys, path).node)


def registered(runtime: Runtime, name: ast.Ident, catalog: Catalog) -> Registered:
    """The running query of that name; raises DS401."""
    key = catalog.key_of(name.text)
    running = runtime.queries.get(key) if key in catalog.queries else None
    if running is None:
        known = [q.name for q in catalog.queries.values()]
        message = f"there is no query {name.text}"
        raise UsageError("DS401", message, name.pos.line, name.pos.column, hint(name.text, known))
    return running
