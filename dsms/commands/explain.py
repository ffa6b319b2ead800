"""Planning a bound query, and EXPLAIN [ANALYZE]."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from dsms.api import Rows
from dsms.commands.explain_archives import archive_plan, reads_archive
from dsms.errors import UsageError
from dsms.periodic.query import PeriodicQuery
from dsms.plan.explain import explain
from dsms.plan.options import PlanOptions
from dsms.plan.physical import Phys
from dsms.plan.planner import plan
from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.binder import bind_create_query, bind_query, check_options
from dsms.sql.catalog import Catalog, Option
from dsms.sql.suggest import hint

if TYPE_CHECKING:
    from dsms.engine import Engine
    from dsms.running.query import RunningQuery


def plan_query(engine: Engine, bound: lp.Output, options: Iterable[tuple[str, Option]]) -> Phys:
    """The physical plan under the engine's measured statistics."""
    chosen = PlanOptions.of(options)
    if not engine.runtime.settings.optimize:
        chosen = replace(chosen, optimize=False)
    return plan(bound, engine.runtime.statistics(), chosen)


def explain_statement(engine: Engine, statement: ast.Explain) -> Rows:
    """The plan as text, one row per line; with ANALYZE the live counts of a registered query."""
    form = statement.format.value.lower()
    live, more = None, []
    match statement.target:
        case ast.Ident() as name:
            running = registered(engine, name)
            phys, live = running.phys, running.live() if statement.analyze else None
            more = _more(engine, running)
        case ast.CreateQuery() as create:
            definition, bound = bind_create_query(create, engine.runtime.catalog)
            phys, more = _planned(engine, bound, dict(definition.options)) if bound else _known(engine, create.name)
        case ast.SelectStatement() as select:
            options = dict(check_options(select.options, "query"))
            once = reads_archive(select)
            bound = bind_query(select, engine.runtime.catalog, persistent=not once)
            phys, more = archive_plan(engine, bound) if once else _planned(engine, bound, options)
    if statement.analyze and live is None:
        raise UsageError("DS406", "EXPLAIN ANALYZE shows live counts, which only a registered query has",
                         statement.pos.line, statement.pos.column,
                         "register it with CREATE QUERY, then EXPLAIN ANALYZE QUERY name")  # fmt: skip
    lines = explain(phys, form, live).splitlines() + (more if form == "text" else [])
    return Rows(pa.record_batch({"plan": pa.array(lines, pa.string())}), ("STRING",))


def _planned(engine: Engine, bound: lp.Output, options: dict[str, Option]) -> tuple[Phys, list[str]]:
    """The plan, and what more there is to say of a periodic query."""
    if bound.slide is None:
        return plan_query(engine, bound, options.items()), []
    from dsms.commands.explain_paths import of_statement

    found, lines = of_statement(engine, bound, options)
    return found.phys, lines


def _known(engine: Engine, name: ast.Ident) -> tuple[Phys, list[str]]:
    running = registered(engine, name)
    return running.phys, _more(engine, running)


def _more(engine: Engine, running: RunningQuery | PeriodicQuery) -> list[str]:
    from dsms.commands.explain_paths import of_registered

    return of_registered(engine, running) if isinstance(running, PeriodicQuery) else []


def registered(engine: Engine, name: ast.Ident) -> RunningQuery | PeriodicQuery:
    """The running query of that name; raises DS401."""
    running = engine.runtime.queries.get(Catalog.key(name.text))
    if running is None:
        known = [q.name for q in engine.runtime.queries.values()]
        message = f"there is no query {name.text}"
        raise UsageError("DS401", message, name.pos.line, name.pos.column, hint(name.text, known))
    return running
