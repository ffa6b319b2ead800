"""EXPLAIN [ANALYZE]."""

from __future__ import annotations

import pyarrow as pa

from dsms.api import Rows
from dsms.commands.explain_archives import archive_plan, reads_archive
from dsms.commands.explain_paths import of_registered, of_statement
from dsms.errors import UsageError
from dsms.periodic.evaluated import EvaluatedQuery
from dsms.plan.explain import explain
from dsms.plan.physical import Phys
from dsms.running.registered import Registered
from dsms.running.runtime import Runtime
from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.binder import bind_create_query, bind_query, check_options
from dsms.sql.catalog import Catalog, Option
from dsms.sql.suggest import hint


def explain_statement(runtime: Runtime, statement: ast.Explain) -> Rows:
    """The plan as text, one row per line; with ANALYZE the live counts of a registered query."""
    form = statement.format.value.lower()
    live, more = None, []
    match statement.target:
        case ast.Ident() as name:
            running = registered(runtime, name)
            phys, live = running.phys, running.live() if statement.analyze else None
            more = _more(runtime, running)
        case ast.CreateQuery() as create:
            definition, bound = bind_create_query(create, runtime.catalog)
            phys, more = (
                _planned(runtime, bound, dict(definition.options))
                if bound
                else _known(runtime, create.name)
            )
        case ast.SelectStatement() as select:
            options = dict(check_options(select.options, "query"))
            once = reads_archive(select)
            bound = bind_query(select, runtime.catalog, persistent=not once)
            phys, more = archive_plan(runtime, bound) if once else _planned(runtime, bound, options)
    if statement.analyze and live is None:
        raise UsageError(
            "DS406",
            "EXPLAIN ANALYZE shows live counts, which only a registered query has",
            statement.pos.line,
            statement.pos.column,
            "register it with CREATE QUERY, then EXPLAIN ANALYZE QUERY name",
        )
    lines = explain(phys, form, live).splitlines() + (more if form == "text" else [])
    return Rows(pa.record_batch({"plan": pa.array(lines, pa.string())}), ("STRING",))


def _planned(
    runtime: Runtime, bound: lp.Output, options: dict[str, Option]
) -> tuple[Phys, list[str]]:
    """The plan, and what more there is to say of a periodic query."""
    if bound.slide is None:
        return runtime.plan(bound, options.items()), []
    found, lines = of_statement(runtime, bound, options)
    return found.phys, lines


def _known(runtime: Runtime, name: ast.Ident) -> tuple[Phys, list[str]]:
    running = registered(runtime, name)
    return running.phys, _more(runtime, running)


def _more(runtime: Runtime, running: Registered) -> list[str]:
    return of_registered(runtime, running) if isinstance(running, EvaluatedQuery) else []


def registered(runtime: Runtime, name: ast.Ident) -> Registered:
    """The running query of that name; raises DS401."""
    running = runtime.queries.get(Catalog.key(name.text))
    if running is None:
        known = [q.name for q in runtime.queries.values()]
        message = f"there is no query {name.text}"
        raise UsageError("DS401", message, name.pos.line, name.pos.column, hint(name.text, known))
    return running
