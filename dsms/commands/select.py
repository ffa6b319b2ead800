"""One-time SELECT: the plan run once over what windows hold now (`dsms.adhoc`), as of the clock of what it reads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from dsms.adhoc.reads import reads
from dsms.api import Cancel, Rows, shown_instant
from dsms.commands.explain import plan_query
from dsms.commands.leaves import batches, instant
from dsms.operators.expressions import ErrorCounter
from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.binder import bind_query
from dsms.sql.types import ALWAYS, FOREVER, arrow_schema

if TYPE_CHECKING:
    from dsms.engine import Engine


def select(engine: Engine, statement: ast.SelectStatement, cancel: Cancel | None) -> Rows:
    """Answer a SELECT now."""
    bound = bind_query(statement, engine.world.catalog, persistent=False)
    batch, clock = answer_of(engine, bound, cancel)
    return Rows(batch, tuple(str(f.type) for f in bound.schema), shown_instant(clock))


def answer_of(engine: Engine, bound: lp.Output, cancel: Cancel | None = None) -> tuple[pa.RecordBatch, int]:
    """Rows of a one-time query and the instant they hold at (ALWAYS: nothing it reads has a clock).

    A window that reaches back further than what is kept is an error, never a silent part: DS407.  A row that fails ends
    the query (DS7xx), as does what takes too much memory (DS633)."""
    world = engine.world
    plan = _optimized(engine, bound)
    needed = reads(plan)
    at = instant(world, needed.values())
    given = {leaf: batches(engine, read, at, cancel) for leaf, read in needed.items()}
    world.adhoc.limit(world.settings.statement_bytes)
    rows = world.adhoc.run(plan, given, at, ErrorCounter("stop"), cancel)
    clock = ALWAYS if at == FOREVER else at
    return pa.RecordBatch.from_arrays(rows.columns, schema=arrow_schema(bound.schema)), clock


def _optimized(engine: Engine, bound: lp.Output) -> lp.Node:
    """The plan after the rewrites that persistent queries get; ORDER BY stays on top."""
    sort = bound.child if isinstance(bound.child, lp.Sort) else None
    core = bound.child if sort is None else sort.child
    root = plan_query(engine, lp.Output(core, "rstream", True, False, None, core.schema), ()).node
    assert isinstance(root, lp.Output)
    return root.child if sort is None else replace(sort, child=root.child)
