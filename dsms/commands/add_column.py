"""ALTER STREAM s ADD COLUMN c T [NOT NULL] [DEFAULT v].

The column stands behind the others, and rows that are there already have its default.  Queries that
read the stream go on over the columns that they were registered with: they see the first ones of
each row.  What is kept of the stream is written anew, with the column in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pyarrow as pa

from dsms.api import Done
from dsms.commands.feeding import catch_up
from dsms.commands.quotas import check_state
from dsms.commands.show_memory import held
from dsms.commands.slices import Pieces
from dsms.commands.store import Store
from dsms.errors import UsageError
from dsms.intake.defaults import filled
from dsms.intake.fed import FedInput
from dsms.intake.stream import StreamInput
from dsms.running.first_answers import arriving
from dsms.running.runtime import Runtime
from dsms.sql import ast
from dsms.sql.binder.definitions import bind_column
from dsms.sql.catalog import NOTHING, Catalog, StreamDef
from dsms.sql.codes import error
from dsms.sql.parser import parse_one
from dsms.sql.printer import to_sql
from dsms.sql.suggest import hint
from dsms.sql.types import Field
from dsms.state.batch import Batch

SAMPLE = 8  # rows by which a default is measured


def adding_column(
    runtime: Runtime, store: Store, statement: ast.AddColumn, see: Callable[[], Catalog]
) -> Pieces[Done]:
    """`add_column`, once queries that are on the way to their first answer are there."""
    yield from arriving(runtime)
    return add_column(runtime, store, statement, see())


def add_column(runtime: Runtime, store: Store, statement: ast.AddColumn, catalog: Catalog) -> Done:
    """Add it.

    Raises DS401 no such stream, DS212 a name that is taken, DS235 where it can't be; DS625, DS681
    where the rows that are kept would take more with it than may be held."""
    name = statement.name
    found = catalog.find(name.text, name.quoted)
    if not isinstance(found, StreamDef):
        known = [s.name for s in catalog.streams.values()]
        message = f"there is no stream {name.text}"
        raise UsageError("DS401", message, name.pos.line, name.pos.column, hint(name.text, known))
    key = found.home
    before = runtime.catalog.streams[key]
    column = bind_column(statement.column, before, catalog)
    after = replace(
        before, schema=(*before.schema, column), sql=_declared(before, statement.column)
    )
    _check(runtime, statement, before, after)
    if not runtime.replaying:
        _check_room(runtime, statement, catalog, key, column)
    runtime.begin_all()
    runtime.pump_all()
    catch_up(runtime)
    runtime.dispatch.all_told()
    for group in list(runtime.shared.of(key)):
        group.feed.flush()
    archiving = runtime.archivings.get(key)
    if archiving is not None and not runtime.replaying:
        archiving.widen(after.schema)
    store(lambda s: s.redeclare(after), "statement", to_sql(statement).encode())
    widen(runtime, key, after)
    shown = f"{column.name} {column.type}"
    return Done(f"stream {found.name} has a column {shown}")


def _declared(stream: StreamDef, column: ast.ColumnDef) -> str:
    """The statement that declares the stream with the column, whose columns stand as they do."""
    said = parse_one(stream.sql)
    assert isinstance(said, ast.CreateStream)
    columns, by = list(said.columns), said.timestamp
    if by is not None and by.computed is not None:
        made = stream.schema[len(columns)]
        kind = ast.TypeName(made.type.kind.value)
        columns.append(ast.ColumnDef(by.column, kind, False, by.computed))
        by = replace(by, computed=None)
    column = replace(column, default=column.default or ast.NullLit())
    return to_sql(replace(said, columns=(*columns, column), timestamp=by))


def _check(runtime: Runtime, statement: ast.AddColumn, before: StreamDef, after: StreamDef) -> None:
    """Raise DS235 where the stream can't have another column."""
    column, why, helps = after.schema[-1], "", None
    if before.derived is not None:
        why = "its columns are those of its query"
        helps = "declare another stream, with that column in its SELECT"
    elif before.key:
        why = "it has a KEY, and what it holds has its columns"
        helps = "declare another stream, and send it the rows"
    elif before.weight is not None:
        why = "it may shed, and the weights of its rows stand behind all that they bring"
        helps = "declare another stream, and send it the rows"
    elif not column.nullable and _empty(column):
        why = f"{column.name} is NOT NULL, and the rows that are there have no value"
        helps = "add DEFAULT value"
    elif before.late_into is not None and not runtime.replaying:
        into = runtime.catalog.streams[Catalog.key(before.late_into)].schema
        types = [f.type for f in after.schema]
        if [f.type for f in into[: len(types)]] != types:
            name = runtime.catalog.called(before.late_into)
            why = f"its late rows go to {name}, which has no such column"
            helps = f"ALTER STREAM {name} ADD COLUMN first"
    if why:
        message = f"stream {before.name} can't get a column: {why}"
        raise error("DS235", message, statement.column, helps)


def _check_room(
    runtime: Runtime, statement: ast.AddColumn, catalog: Catalog, key: str, column: Field
) -> None:
    """Raise DS625 or DS681 where the column, in all rows that are kept, is too large."""
    entry, ring = runtime.inputs[key], runtime.rings.get(key)
    recent, memory = runtime.recents.streams.get(key), runtime.settings.memory
    own = entry.waiting + (0 if ring is None else ring.count)
    more = _bytes(column, own)
    if catalog.user is not None:
        check_state(runtime, catalog.user, statement, more)
    if memory is not None:
        more += 0 if recent is None else _bytes(column, recent.count)
        memory.grow("a column", more, held(runtime))


def _bytes(column: Field, rows: int) -> int:
    """About what so many defaults take."""
    return rows * filled(column, SAMPLE).nbytes // SAMPLE


def _empty(column: Field) -> bool:
    return column.default is None or column.default.value is None


def widen(runtime: Runtime, key: str, after: StreamDef) -> None:
    """The stream has that schema from now on, which is longer by one column."""
    entry, wider = runtime.inputs[key], Wider(after.schema[-1])
    runtime.redeclare(after)
    _widen_entry(entry, wider)
    runtime.figures[key].definition = after
    if runtime.durable is not None:
        runtime.durable.schemas[key] = after.schema
    if (ring := runtime.rings.get(key)) is not None:
        ring.change(wider)
    if (archiving := runtime.archivings.get(key)) is not None:
        archiving.schema = after.schema
        archiving.set_back()
    runtime.recents.change(key, wider)
    runtime.indices.forget(key)
    runtime.indices.declare(after)


def _widen_entry(entry: StreamInput, wider: Wider) -> None:
    entry.change(wider)
    if isinstance(entry, FedInput):
        for feed in entry.feeds.values():
            feed.rows = [wider(rows) for rows in feed.rows]
            feed.schema, feed.places = entry.definition.schema, (*feed.places, NOTHING)


@dataclass(slots=True)
class Wider:
    """Gives rows with a column of its default behind the others.  All share one array of it, so
    that it takes no time by rows."""

    column: Field
    defaults: pa.Array = field(init=False)

    def __post_init__(self) -> None:
        self.defaults = filled(self.column, 0)

    def __call__(self, rows: Batch) -> Batch:
        n = len(rows)
        if n > len(self.defaults):
            self.defaults = filled(self.column, 2 * n)
        return rows.with_cols((*rows.cols, self.defaults.slice(0, n)))
