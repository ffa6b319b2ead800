"""INSERT, UPDATE and DELETE on tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from dsms.api import Cancel, Done
from dsms.commands.dating import instant_of_change, unseen
from dsms.commands.select import answer_of
from dsms.commands.store import Store
from dsms.intake.values import instant_text
from dsms.operators.expressions import ErrorCounter, compile_expr, compile_predicate
from dsms.periodic.query import PeriodicQuery
from dsms.running.faults import stop
from dsms.running.query import RunningQuery
from dsms.running.runtime import Runtime
from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.binder import Delete, Insert, Update, bind_table_statement
from dsms.sql.catalog import Catalog
from dsms.sql.expr import Expr
from dsms.sql.types import MIN_INSTANT
from dsms.storage.catalog import packed
from dsms.tables.changes import Change
from dsms.tables.keys import KeyCodes


def change_table(
    runtime: Runtime,
    store: Store,
    statement: ast.Insert | ast.Update | ast.Delete,
    catalog: Catalog,
    cancel: Cancel | None,
) -> Done:
    """Check the whole statement, store it, apply it, and let queries that read the table react."""
    return changed(
        runtime, store, bind_table_statement(statement, catalog), None, cancel, catalog.sees_all
    )


def changed(
    runtime: Runtime,
    store: Store,
    change: Insert | Update | Delete,
    values: list[pa.Array] | None,
    cancel: Cancel | None,
    tell: bool,
    codes: KeyCodes | None = None,
) -> Done:
    """Store it and apply it.

    values, codes  the columns of an INSERT, and what is known of their keys, if they are at hand
    tell           who asks may know of all queries that read the table"""
    key = Catalog.key(change.table.name)
    if any(key in runtime.queries[name].tables for name in runtime.beginnings):
        runtime.begin_all()  # it reads the table as it was
    table = runtime.tables[key]
    at = instant_of_change(runtime, key, change.at)
    room = runtime.settings.statement_bytes
    match change:
        case Insert():
            prepared, verb = (
                table.inserting(values or _rows(runtime, change, cancel), at, codes),
                "inserted",
            )
        case Update():
            new = {i: _evaluator(e, room) for i, e in change.assignments}
            prepared, verb = table.updating(new, _predicate(change.predicate, room), at), "updated"
        case Delete():
            prepared, verb = table.deleting(_predicate(change.predicate, room), at), "deleted"
    if cancel is not None:
        cancel.check()  # the last time: what is stored is applied
    rows = max(len(prepared.new), len(prepared.deleted))
    store(lambda s: s.add_change(table.definition.name, prepared), "change", packed(key, prepared))
    apply(runtime, key, prepared, cancel, codes)
    when = "" if at < MIN_INSTANT else f" as of {instant_text(at)}"
    notes = unseen(runtime, key, at, change.at is not None) if rows and tell else ()
    return Done(f"{rows} {'row' if rows == 1 else 'rows'} {verb}{when}", notes)


def apply(
    runtime: Runtime,
    key: str,
    change: Change,
    cancel: Cancel | None = None,
    codes: KeyCodes | None = None,
) -> None:
    """A change that has been checked and stored; queries that read the table react."""
    table = runtime.tables[key]
    table.apply(change, codes)
    for query in runtime.queries.values():
        if key not in query.tables:
            continue
        try:
            if isinstance(query, PeriodicQuery):
                if change.at >= MIN_INSTANT:
                    query.heard(f"table {key}", np.array([change.at]))
            elif not isinstance(query, RunningQuery):
                continue  # it looks when it is asked
            elif not query.streams:
                query.advance(table.last_change, cancel)
            elif change.at < MIN_INSTANT:  # no row can come before it
                query.advance(runtime.due(query), cancel)
        except Exception as fault:
            stop([query], fault)
    runtime.forget()


def _evaluator(expr: Expr, room: int) -> Callable[[Sequence[pa.Array], int], pa.Array]:
    run = compile_expr(expr)
    return lambda cols, n: run(cols, n, ErrorCounter.once(room))


def _predicate(
    expr: Expr | None, room: int
) -> Callable[[Sequence[pa.Array], int], pa.Array] | None:
    if expr is None:
        return None
    run = compile_predicate(expr)
    return lambda cols, n: run(cols, n, ErrorCounter.once(room))


def _rows(runtime: Runtime, change: Insert, cancel: Cancel | None) -> list[pa.Array]:
    """The columns to insert: VALUES expressions, or a one-time query's answer."""
    if change.query is not None:
        batch, _ = answer_of(runtime, output_of(change.query), cancel)
        return list(batch.columns)
    room = runtime.settings.statement_bytes
    return [
        column_of(change.rows, k, f.type.arrow, room) for k, f in enumerate(change.table.schema)
    ]


def column_of(rows: Sequence[tuple[Expr, ...]], k: int, type_: pa.DataType, room: int) -> pa.Array:
    """The values of the k-th column of rows of VALUES."""
    parts = [compile_expr(row[k])([], 1, ErrorCounter.once(room)) for row in rows]
    return pa.concat_arrays([p.cast(type_) for p in parts])


def output_of(node: lp.Node) -> lp.Output:
    """The query of an INSERT as one that runs once."""
    if isinstance(node, lp.Output):
        return node
    return lp.Output(node, "rstream", True, False, None, node.schema)
