"""INSERT, UPDATE and DELETE on tables."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa

from dsms.api import Cancel, Done
from dsms.commands.dating import instant_of_change, unseen
from dsms.commands.planning import TRIES
from dsms.commands.select import answer_of
from dsms.commands.slices import Apart, Pieces
from dsms.commands.staged import Commit, Prepared, are_many
from dsms.commands.store import Store
from dsms.intake.values import instant_text
from dsms.operators.expressions import ErrorCounter, compile_expr, compile_predicate
from dsms.operators.pieces import finished
from dsms.periodic.query import PeriodicQuery
from dsms.python_functions.cutting import uncut
from dsms.running.faults import stop
from dsms.running.holds import Hold
from dsms.running.query import RunningQuery
from dsms.running.runtime import Runtime
from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.binder import Delete, Insert, Merge, Update, bind_table_statement
from dsms.sql.catalog import Catalog
from dsms.sql.expr import Expr
from dsms.sql.types import ALWAYS, MIN_INSTANT
from dsms.storage.packed_changes import packed, packed_rows
from dsms.tables.changes import Change, Matched
from dsms.tables.conflicts import (
    Columns,
    Meeting,
    Merged,
    joined,
    keeping,
    meeting,
    meeting_in_pieces,
    merged,
    merged_in_pieces,
)
from dsms.tables.conflicts import Merge as Merging
from dsms.tables.keys import KeyCodes
from dsms.tables.matching import MATCHED, matching
from dsms.tables.versioned import VersionedTable

T = TypeVar("T")


def change_table(
    runtime: Runtime,
    store: Store,
    statement: ast.Insert | ast.Update | ast.Delete,
    see: Callable[[], Catalog],
    cancel: Cancel | None,
) -> Pieces[Done]:
    """Check the whole statement, store it, apply it, and let queries that read the table react.

    The rows of a big table that UPDATE or DELETE concern are found and computed in pieces; where
    others change the table meanwhile, once more, and after TRIES in one go."""
    for _ in range(TRIES):
        yield from nobody_else(runtime, lambda: bind_table_statement(statement, see()), cancel)
        change = bind_table_statement(statement, see())
        if isinstance(change, Insert) or len(runtime.tables[change.table.home]) <= MATCHED:
            break
        hold = runtime.holds.take(change.table.home)
        try:
            done = yield from _changing_many(runtime, store, change, see, cancel)
        finally:
            runtime.holds.release(hold)
        if done is not None:
            return done
    catalog = see()
    bound = bind_table_statement(statement, catalog)
    return changed(runtime, store, bound, None, cancel, catalog.sees_all)


def nobody_else(
    runtime: Runtime, bound: Callable[[], Insert | Update | Delete], cancel: Cancel | None
) -> Generator[Hold, None, None]:
    """Wait until nobody else is changing the table of what is `bound`, as it is then."""
    while runtime.holds.held and (hold := runtime.holds.of(bound().table.home)) is not None:
        yield hold
        if cancel is not None:
            cancel.check()


def _changing_many(
    runtime: Runtime,
    store: Store,
    change: Update | Delete,
    see: Callable[[], Catalog],
    cancel: Cancel | None,
) -> Pieces[Done | None]:
    key = change.table.home
    table = runtime.tables[key]
    made = table.changes_made
    found = yield from watched(_matching(runtime, table, change), cancel)
    new = found.new if isinstance(change, Update) else None
    codes = yield from watched(table.coding(new, found.old), cancel)

    def unchanged() -> bool:
        return runtime.tables.get(key) is table and table.changes_made == made

    if not unchanged():
        return None
    told = see().sees_all
    if not are_many(new or (), len(found.slots)):
        return changed(runtime, store, change, None, cancel, told, codes, found)
    open_table(runtime, key, change.at)  # what is wrong with its instant is said first
    if new is not None:
        yield from watched(table.checking(new, found.old, codes), cancel)
    come = tuple(c.slice(0, 0) for c in found.old) if new is None else new
    gone, rows = table.deleting(found, ALWAYS).deleted, len(found.slots)
    said = f"{rows} rows {'deleted' if new is None else 'updated'}"
    prepared = Prepared(gone, come, rows, said, codes)
    return (yield from committed(runtime, store, change, prepared, unchanged, told, cancel))


def committed(
    runtime: Runtime,
    store: Store,
    change: Insert | Update | Delete,
    prepared: Prepared,
    unchanged: Callable[[], bool],
    tell: bool,
    cancel: Cancel | None,
) -> Pieces[Done | None]:
    """Make a big change that was checked; None: it was overtaken.

    unchanged  whether the table, and what else it stands on, is as it was when it was checked
    tell       who asks may know of all queries that read the table"""
    key = change.table.home

    def instant() -> int:
        return open_table(runtime, key, change.at)[1]

    commit = Commit(runtime, store, key, prepared, unchanged, instant, cancel)
    if not (yield from commit.pieces()):
        return None
    react(runtime, key, commit.made, cancel)
    return _done(runtime, key, commit.made.at, change.at is not None, prepared.told, tell)


def _done(runtime: Runtime, key: str, at: int, said: bool, told: str, tell: bool) -> Done:
    when = "" if at < MIN_INSTANT else f" as of {instant_text(at)}"
    return Done(told + when, unseen(runtime, key, at, said) if tell else ())


def prepared_rows(
    runtime: Runtime,
    table: VersionedTable,
    change: Insert,
    columns: Columns,
    codes: KeyCodes | None,
) -> Pieces[Prepared]:
    """The columns of an INSERT, checked in pieces.  Raises DS520-DS522."""
    if change.conflict is None:
        yield from table.checking(columns, None, codes)
        told = f"{len(columns[0])} rows inserted"
        return Prepared(np.empty(0, np.int64), columns, len(columns[0]), told, codes)
    met = yield from meeting_in_pieces(table, columns, codes)
    which, merge = _wanted(runtime, table, change.conflict, columns, met)
    parts = yield from merged_in_pieces(table, columns, met, which, merge)
    joining = Apart(partial(joined, parts))
    yield joining
    made = joining.result()
    said = _told(made, len(columns[0]))
    return Prepared(made.change.deleted, made.change.inserted, made.change.rows, said, made.codes)


def watched(pieces: Generator[None, None, T], cancel: Cancel | None) -> Pieces[T]:
    """The pieces, unless they are cancelled."""
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        yield None
        if cancel is not None:
            cancel.check()


def _matching(
    runtime: Runtime, table: VersionedTable, change: Update | Delete
) -> Generator[None, None, Matched]:
    room = runtime.settings.statement_bytes
    new = (
        {i: _evaluator(e, room) for i, e in change.assignments}
        if isinstance(change, Update)
        else None
    )
    return matching(table, _predicate(change.predicate, room), new)


def changed(
    runtime: Runtime,
    store: Store,
    change: Insert | Update | Delete,
    values: list[pa.Array] | None,
    cancel: Cancel | None,
    tell: bool,
    codes: KeyCodes | None = None,
    found: Matched | None = None,
) -> Done:
    """Store it and apply it.

    values, found  the columns of an INSERT, or the rows that match, if they are at hand
    codes          ... and what is known of their keys
    tell           who asks may know of all queries that read the table"""
    key = change.table.home
    table, at = open_table(runtime, key, change.at)
    if not isinstance(change, Insert) and found is None:
        found = finished(_matching(runtime, table, change))
    told = ""
    match change:
        case Insert():
            columns = values or _rows(runtime, change, cancel)
            if change.conflict is None:
                prepared, verb = table.inserting(columns, at, codes), "inserted"
            else:
                made = _merged(runtime, table, change.conflict, tuple(columns), at, codes)
                prepared, codes = made.change, made.codes
                verb, told = "inserted", _told(made, len(columns[0]))
        case Update():
            assert found is not None
            prepared, verb = table.updating(found, at, codes), "updated"
        case Delete():
            assert found is not None
            prepared, verb = table.deleting(found, at), "deleted"
    if cancel is not None:
        cancel.check()  # the last time: what is stored is applied
    rows = max(len(prepared.new), len(prepared.deleted))
    stored = packed_rows(prepared.inserted)
    store(
        lambda s: s.add_change(key, prepared, stored),
        "change",
        packed(key, prepared, stored),
    )
    apply(runtime, key, prepared, cancel, codes)
    said = told or f"{rows} {'row' if rows == 1 else 'rows'} {verb}"
    return _done(runtime, key, at, change.at is not None, said, bool(rows) and tell)


def open_table(runtime: Runtime, key: str, at: int | None) -> tuple[VersionedTable, int]:
    """A table that is about to change, and the instant of that.  `at`: what was said of it."""
    if any(key in runtime.queries[name].tables for name in runtime.beginnings):
        runtime.begin_all()  # it reads the table as it was
    return runtime.tables[key], instant_of_change(runtime, key, at)


def _merged(
    runtime: Runtime,
    table: VersionedTable,
    merge: Merge,
    columns: tuple[pa.Array, ...],
    at: int,
    codes: KeyCodes | None,
) -> Merged:
    """INSERT ... ON CONFLICT.  Raises DS520-DS522."""
    met = meeting(table, columns, codes)
    which, become = _wanted(runtime, table, merge, columns, met)
    return merged(table, columns, met, which, at, become)


def _wanted(
    runtime: Runtime, table: VersionedTable, merge: Merge, columns: Columns, met: Meeting
) -> tuple[np.ndarray, Merging]:
    """Which of the new rows are to come (a mask), and what becomes of those whose keys are there.
    Raises DS521, DS522."""
    assert table.keys is not None
    if not merge.assignments:
        table.keys.refuse(np.zeros_like(met.dead), met.dead, columns)
        return ~met.repeated, keeping
    table.keys.refuse(met.repeated, met.dead, columns)
    room = runtime.settings.statement_bytes
    values = {i: _evaluator(e, room) for i, e in merge.assignments}
    passes = _predicate(merge.predicate, room)

    def become(before: Columns, after: Columns) -> tuple[Columns, np.ndarray]:
        both, rows = (*before, *after), len(after[0])
        made = {i: value(both, rows) for i, value in values.items()}
        which = np.ones(rows, np.bool_)
        if passes is not None:
            which = passes(both, rows).fill_null(False).to_numpy(zero_copy_only=False)
        return tuple(made.get(i, c) for i, c in enumerate(before)), which

    return np.ones(len(met.codes), np.bool_), become


def _told(made: Merged, rows: int) -> str:
    """What a statement with ON CONFLICT has done."""
    left = rows - made.inserted - made.updated
    parts = [f"{made.inserted} {'row' if made.inserted == 1 else 'rows'} inserted"]
    parts += [f"{made.updated} updated"] if made.updated else []
    parts += [f"{left} left out"] if left else []
    return ", ".join(parts)


def apply(
    runtime: Runtime,
    key: str,
    change: Change,
    cancel: Cancel | None = None,
    codes: KeyCodes | None = None,
) -> None:
    """A change that has been checked and stored; queries that read the table react."""
    runtime.tables[key].apply(change, codes)
    react(runtime, key, change, cancel)


@uncut()
def react(runtime: Runtime, key: str, change: Change, cancel: Cancel | None) -> None:
    """The table has changed: queries that read it move."""
    table = runtime.tables[key]
    for part in runtime.dispatch.parts_of(None):
        if key in part.tables and change.at < MIN_INSTANT:
            part.advance(runtime.due(part), cancel)
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
