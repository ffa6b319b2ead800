"""CREATE QUERY: planned apart if it is big, and filled with what is kept of its windows piece by
piece, while others come in.

It is stored, and gets what streams hand on, before the first piece; others know of it behind the
last one.  So it answers as if it had been filled at once, and where the engine ends in between it
is there after a restart.  One that is cancelled is dropped.  What needs all queries to stand where
their clocks are (a checkpoint, a change of a table) fills it to the end first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dsms.api import Cancel, Done
from dsms.archiving.archiving import Archiving
from dsms.commands.archives import created
from dsms.commands.dating import unseen_tables
from dsms.commands.define import (
    archive_for,
    check_free,
    check_name,
    check_number,
    forget_query,
    start_query,
)
from dsms.commands.existing import there_already
from dsms.commands.feeding import catch_up, check_acyclic, check_running
from dsms.commands.planning import Planner, foreseen, planned
from dsms.commands.replacing import Replacing
from dsms.commands.slices import Pieces
from dsms.commands.store import Store
from dsms.errors import DsmsError
from dsms.operators.pieces import go_on
from dsms.plan.physical import Phys
from dsms.plan.planner import notes
from dsms.python_functions.cutting import CUT
from dsms.running.beginning import beginning
from dsms.running.faults import CANCELLED
from dsms.running.prepare import prepare
from dsms.running.query import RunningQuery
from dsms.running.runtime import Runtime
from dsms.running.turns import Pause
from dsms.sharing.group import Group
from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.binder import bind_create_query
from dsms.sql.binder.unreached import without_window
from dsms.sql.catalog import Catalog, QueryDef
from dsms.sql.printer import to_sql


@dataclass(frozen=True, slots=True)
class _Bound:
    definition: QueryDef
    bound: lp.Output | None
    phys: Phys | None  # of a continuous one


@dataclass(frozen=True, slots=True)
class Registering:
    """A CREATE QUERY at work.  `see`: gives the catalog as who asks sees it now."""

    runtime: Runtime
    store: Store
    statement: ast.CreateQuery
    text: str
    see: Callable[[], Catalog]
    cancel: Cancel | None = None
    big: bool = False

    def pieces(self) -> Pieces[Done]:
        """Register a persistent query and start it.

        It reads what its creator may read, and goes on so, whoever asks for its answers."""
        runtime = self.runtime
        shared = not self._replaces
        found = yield from planned(runtime, self.see, self._plan, self.cancel, self.big, shared)
        definition, bound = found.definition, found.bound
        if bound is None:
            return there_already(runtime, definition, self.statement, self.see())
        definition = runtime.catalog.placed(definition)
        catalog = self.see()
        if self._replaces:
            change = Replacing(runtime, self.store, self.text, definition, bound, catalog)
            return (yield from change.pieces(found.phys, self.cancel))
        check_number(runtime, catalog.user)
        check_acyclic(runtime, definition, bound, catalog)
        check_running(runtime, definition)
        if definition.feeds is not None or runtime.feeding.order:
            catch_up(runtime)
        check_name(definition.name)
        check_free(runtime, self.statement.name)
        archiving = archive_for(runtime, definition, catalog)
        user = catalog.user
        running = None if found.phys is None else prepare(runtime, definition, found.phys)
        plain = archiving is None and definition.feeds is None
        if running is not None and plain and running.streams and not running.early:
            warnings = yield from self._filled(running, user)
            unseen = unseen_tables(runtime, running)
        else:
            warnings = self._at_once(definition, bound, archiving, running, user)
            yield from self._synopses_filled(definition)
            unseen = unseen_tables(runtime, runtime.queries[definition.home])
        unreached = without_window(self.statement.query, catalog)
        told = (*warnings, *unseen, *unreached)
        return Done(f"query {definition.name} registered{created(archiving)}", told)

    @property
    def _replaces(self) -> bool:
        return self.statement.or_replace and self._key in self.runtime.catalog.queries

    @property
    def _key(self) -> str:
        return self.runtime.catalog.key_of(self.statement.name.text)

    def _plan(self, catalog: Catalog, planner: Planner) -> _Bound:
        definition, bound = bind_create_query(self.statement, catalog, self.text)
        if bound is None or bound.slide is not None or definition.on_lookup:
            return _Bound(definition, bound, None)
        phys = planner(bound, definition.options)
        if self.big:
            foreseen(bound, phys)
        return _Bound(definition, bound, phys)

    def _at_once(
        self,
        definition: QueryDef,
        bound: lp.Output,
        archiving: Archiving | None,
        running: RunningQuery | None,
        user: str | None,
    ) -> tuple[str, ...]:
        """Cancelled on the way to its first answer it is not there."""
        runtime, key = self.runtime, definition.home
        later = definition.feeds is None
        warnings = start_query(runtime, definition, bound, self.cancel, archiving, running, later)
        try:
            self._stored(definition)
        except DsmsError:
            forget_query(runtime, key, "it could not be stored")
            raise
        self.runtime.rights = self.runtime.rights.owned(key, user)
        return warnings

    def _synopses_filled(self, definition: QueryDef) -> Pieces[None]:
        """What is kept goes into the synopses that the query shares, piece by piece.  Others know
        of the query meanwhile; cancelled it is dropped."""
        runtime = self.runtime
        query = runtime.queries[definition.home]
        if not query.grouped or definition.feeds is not None:
            return
        try:
            for group in list(runtime.shared.of(query.reads[0])):
                while left(runtime, group):
                    yield None
                    if self.cancel is not None:
                        self.cancel.check()
        except BaseException:
            if runtime.queries.get(definition.home) is query:
                forget_query(runtime, definition.home, "it was cancelled")
                runtime.rights = runtime.rights.without(definition.home)
                self._store_drop(definition)
            raise

    def _stored(self, definition: QueryDef) -> None:
        self.store(lambda s: s.add_query(definition), "statement", self.text.encode())

    def _filled(self, query: RunningQuery, user: str | None) -> Pieces[tuple[str, ...]]:
        """Stored, and filled piece by piece."""
        runtime, definition, key = self.runtime, query.definition, query.home
        self._stored(definition)
        runtime.rights = runtime.rights.owned(key, user)  # it counts in his quota from here on
        runtime.dispatch.register(key, query)
        runtime.recents.registered(query)
        runtime.clocks.reads(key, sorted(set(query.streams.values())))
        query.notes = notes(query.phys)
        if self.cancel is not None:
            query.pipeline.look = self.cancel.check
        past, filling = beginning(runtime, query)
        runtime.beginnings[key] = to_the_end = self._to_the_end(query, filling)
        try:
            for _ in to_the_end:
                yield None
                if key not in runtime.beginnings:  # somebody could not wait
                    break
                if self.cancel is not None:
                    self.cancel.check()
        except BaseException:
            if runtime.beginnings.pop(key, None) is not None:
                self._dropped(query)
            raise
        if query.failure is not None and query.failure.code in (CANCELLED, CUT):
            query.check()
        return (*query.notes, *past)

    def _to_the_end(self, query: RunningQuery, filling: Iterator[None]) -> Iterator[None]:
        """Behind the last piece others know of it; or it is gone, if it was cancelled."""
        yield from filling
        runtime, key = self.runtime, query.home
        del runtime.beginnings[key]
        query.pipeline.look = go_on
        if query.failure is not None and query.failure.code in (CANCELLED, CUT):
            self._dropped(query)
            return
        runtime.answers.known(key, runtime.catalog)
        runtime.parts.joined(key)

    def _dropped(self, query: RunningQuery) -> None:
        """It is not wanted any more: as if it had been dropped at once."""
        runtime, definition, key = self.runtime, query.definition, query.home
        gone_query = runtime.dispatch.unregister(key)
        runtime.parts.left(key, gone_query)
        gone_query.close("it was cancelled")
        runtime.recents.unregistered(gone_query)
        runtime.rights = runtime.rights.without(key)
        runtime.clocks.forget(key)
        self._store_drop(definition)

    def _store_drop(self, definition: QueryDef) -> None:
        gone = ast.Drop(ast.ObjectKind.QUERY, ast.Ident(definition.name, quoted=True))
        self.store(lambda s: s.drop("query", definition.home), "statement", to_sql(gone).encode())


class _OnePiece(Cancel):
    """Ends a call behind its first piece."""

    __slots__ = ()

    def between(self) -> None:
        raise Pause(CANCELLED, "a piece is done")


def left(runtime: Runtime, group: Group) -> bool:
    """Let the group do a piece of what there is for it to do; False if that was the last."""
    try:
        runtime.run_unit(group, _OnePiece())
    except Pause:
        return True
    return False
