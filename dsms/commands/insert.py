"""INSERT of many rows: read, computed, looked up and made ready in pieces, shown in one go.

Nothing is shown before the last piece, so what is cancelled or fails leaves nothing.  Others come
in between; where they have changed what the statement stands on, it begins again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from dsms.api import Cancel, Done, Rows
from dsms.commands.change import (
    changed,
    column_of,
    committed,
    nobody_else,
    open_table,
    output_of,
    prepared_rows,
    watched,
)
from dsms.commands.planning import TRIES, is_big
from dsms.commands.select import Selection, refuse_archives
from dsms.commands.slices import Pieces
from dsms.commands.staged import are_many
from dsms.commands.store import Store
from dsms.running.runtime import Runtime
from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.binder import Insert, bind_table_statement
from dsms.sql.catalog import Catalog
from dsms.sql.expr import Expr
from dsms.tables.versioned import VersionedTable

Versions = dict[str, tuple[VersionedTable, int]]  # tables by key, and how far they have come
ROWS = 64  # VALUES that are bound, or computed, in one go


@dataclass(frozen=True, slots=True)
class Inserting:
    """An INSERT at work.  `see`: gives the catalog as who asks sees it now."""

    runtime: Runtime
    store: Store
    statement: ast.Insert
    text: str
    see: Callable[[], Catalog]
    cancel: Cancel | None

    def values(self) -> Pieces[Done]:
        """Of many VALUES: bound and computed ROWS at a time."""
        room = self.runtime.settings.statement_bytes
        rows = self.statement.rows
        tries = 0
        while True:
            tries += 1
            bound: list[tuple[Expr, ...]] = []
            for first in range(0, len(rows), ROWS):
                change = self._bound(rows[first : first + ROWS])
                bound += change.rows
                yield from self._between()
            columns = []
            for k, f in enumerate(change.table.schema):
                parts = []
                for first in range(0, len(bound), ROWS):
                    parts.append(column_of(bound[first : first + ROWS], k, f.type.arrow, room))
                    yield from self._between()
                columns.append(pa.concat_arrays(parts))
            done = yield from self._inserted(change, columns, lambda: True, tries > TRIES)
            if done is not None:
                return done

    def selected(self) -> Pieces[Done]:
        """Of what a SELECT answers.  What it reads of tables is what stands there when its rows are
        applied; where that can't be had in TRIES, nobody comes in between any more."""
        for _ in range(TRIES):
            found: list[Insert] = []

            def bind(catalog: Catalog, found: list[Insert] = found) -> lp.Output:
                change = bind_table_statement(self.statement, catalog)
                assert isinstance(change, Insert) and change.query is not None
                found[:] = [change]
                return output_of(change.query)

            big = is_big(self.statement, self.text)
            selection = Selection(
                self.runtime, bind, self.see, 0, self.cancel, big, refuse_archives, True
            )
            try:
                if selection.ready:
                    yield selection
                began = self._versions(selection)
                while not selection.step():
                    yield selection
                    began = self._versions(selection) if began is None else began
            finally:
                selection.close()
            assert isinstance(selection.result, Rows)

            def as_read(selection: Selection = selection, began: Versions | None = began) -> bool:
                return self._versions(selection) == began

            columns = selection.result.data.columns
            done = yield from self._inserted(found[0], columns, as_read)
            if done is not None:
                return done
        change_ = bind_table_statement(self.statement, self.see())
        return changed(self.runtime, self.store, change_, None, self.cancel, self.see().sees_all)

    def _inserted(
        self,
        change: Insert,
        columns: Sequence[pa.Array],
        as_read: Callable[[], bool],
        at_once: bool = False,
    ) -> Pieces[Done | None]:
        """Insert these columns; None: it is to begin again.

        as_read  whether what they come of is as it was
        at_once  also where they are many"""
        yield from nobody_else(self.runtime, lambda: change, self.cancel)
        table = self._table(change)
        if table is None:
            return None
        hold = self.runtime.holds.take(change.table.home)
        try:
            return (yield from self._stored(change, table, tuple(columns), as_read, at_once))
        finally:
            self.runtime.holds.release(hold)

    def _stored(
        self,
        change: Insert,
        table: VersionedTable,
        columns: tuple[pa.Array, ...],
        as_read: Callable[[], bool],
        at_once: bool,
    ) -> Pieces[Done | None]:
        tell = self.see().sees_all
        codes = yield from watched(table.coding(columns), self.cancel)
        if self._table(change) is not table or not as_read():
            return None
        args = self.runtime, self.store, change
        if at_once or not are_many(columns):
            return changed(*args, list(columns), self.cancel, tell, codes)
        open_table(self.runtime, change.table.home, change.at)  # what is wrong with its instant
        made = table.changes_made

        def unchanged() -> bool:
            return self._table(change) is table and table.changes_made == made and as_read()

        prepared = yield from prepared_rows(self.runtime, table, change, columns, codes)
        return (yield from committed(*args, prepared, unchanged, tell, self.cancel))

    def _bound(self, rows: tuple[tuple[ast.Expr, ...], ...]) -> Insert:
        change = bind_table_statement(replace(self.statement, rows=rows), self.see())
        assert isinstance(change, Insert)
        return change

    def _between(self) -> Iterator[None]:
        yield
        if self.cancel is not None:
            self.cancel.check()

    def _table(self, change: Insert) -> VersionedTable | None:
        """The table, if it is still the one for which the change was bound."""
        key = change.table.home
        same = self.runtime.catalog.tables.get(key) is change.table
        return self.runtime.tables[key] if same else None

    def _versions(self, selection: Selection) -> Versions | None:
        """How far the tables have come that it reads; None: it is not planned yet."""
        tables = selection.tables()
        if tables is None:
            return None
        return {
            key: (found, found.changes_made)
            for key in tables
            if (found := self.runtime.tables.get(key)) is not None
        }
