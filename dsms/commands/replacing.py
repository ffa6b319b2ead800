"""CREATE OR REPLACE QUERY, where there is a query of that name."""

from __future__ import annotations

from dataclasses import dataclass

from dsms.api import Cancel, Done
from dsms.commands.altering import FREE, applied
from dsms.commands.anew import bound_again
from dsms.commands.define import check_number
from dsms.commands.feeding import check_acyclic, check_running
from dsms.commands.slices import Pieces
from dsms.commands.store import Store
from dsms.commands.succeeding import Successor, check_alone, check_unread, stand
from dsms.errors import DsmsError, UsageError
from dsms.plan.physical import Phys
from dsms.rights.model import key_of
from dsms.running.faults import too_much_state
from dsms.running.letting_go import state_limit
from dsms.running.paused import PausedQuery
from dsms.running.registered import Registered
from dsms.running.runtime import Runtime
from dsms.sql import logical as lp
from dsms.sql.catalog import Catalog, QueryDef
from dsms.storage.redefine import redefine


@dataclass(frozen=True, slots=True)
class Replacing:
    """The query that is there becomes what `definition` says; it is then whose `catalog` this is,
    since it reads what he may read."""

    runtime: Runtime
    store: Store
    text: str
    definition: QueryDef
    bound: lp.Output
    catalog: Catalog

    @property
    def key(self) -> str:
        return self.definition.home

    def pieces(self, phys: Phys | None, cancel: Cancel | None) -> Pieces[Done]:
        """Raises DS438 for one that can't be replaced, DS436, and what registering it raises: then
        the old one is as it was."""
        runtime, old = self.runtime, self.runtime.queries[self.key]
        check_alone(runtime, old)
        self._check(old)
        check_running(runtime, self.definition)
        if self._owner:
            check_number(runtime, self.catalog.user, -1)
        check_acyclic(runtime, self.definition, self.bound, self.catalog)
        if self._is_as_it_was(old):
            return self._kept(old)
        check_unread(runtime, old, "DS438")
        successor = Successor(
            runtime,
            self.store,
            self.key,
            self.definition,
            self.bound,
            phys,
            self.text,
            lambda s: redefine(s, self.key, self.definition),
            self._owner,
            cancel,
        )
        told = yield from successor.pieces()
        return Done(f"query {self.definition.name} replaced", told)

    @property
    def _owner(self) -> tuple[str | None, ...]:
        """Whose it is then, if that is another one."""
        user = self.catalog.user
        new = None if user is None else key_of(user)
        return () if self.runtime.rights.owners.get(self.key) == new else (new,)

    def _check(self, old: Registered) -> None:
        """Raise DS438 where others rest on what it is."""
        feeds = [Catalog.key(d.feeds or "") for d in (old.definition, self.definition)]
        own = self.runtime.catalog.whose(old.definition)
        if own is not None:
            message = f"query {old.name} belongs to stream {own.name}"
            raise UsageError("DS438", message, hint=f"DROP STREAM {own.name}, and declare it anew")
        if feeds[0] != feeds[1]:
            stream = self.runtime.catalog.streams.get(feeds[0])
            fed = stream.name if stream is not None else self.definition.feeds
            message = f"a query that feeds stream {fed} can't come, or go, in the place of another"
            raise UsageError("DS438", message, hint="DROP QUERY, then CREATE QUERY")
        if self.key in map(Catalog.key, self.definition.over):
            raise UsageError("DS438", f"query {old.name} can't read its own answer")
        if old.archived is not None or self.definition.archive:
            message = f"an archive has the results of one query, and {old.name} would be another"
            raise UsageError("DS438", message, hint="DROP QUERY, then CREATE QUERY")

    # ------------------------------------------------------------ nothing is different

    def _is_as_it_was(self, old: Registered) -> bool:
        """Whether it is planned as it was, and runs."""
        if old.failure is not None or isinstance(old, PausedQuery):
            return False
        before, after = (
            {n: v for n, v in d.options if n not in FREE or n == "on_error"}
            for d in (old.definition, self.definition)
        )
        try:
            _, bound = bound_again(self.runtime, old)
        except DsmsError:
            return False
        same = old.definition.on_lookup == self.definition.on_lookup
        return same and before == after and bound == self.bound

    def _kept(self, old: Registered) -> Done:
        """Its state, its readers and its numbers are those it had."""
        runtime = self.runtime
        stand(runtime, self.key)
        limit = state_limit(self.definition, runtime.settings.state_bytes)
        if (used := old.nbytes()) > limit:
            raise too_much_state(old.name, used, limit)
        self.store(
            lambda s: redefine(s, self.key, self.definition), "statement", self.text.encode()
        )
        applied(runtime, self.key, old, self.definition)
        for user in self._owner:
            runtime.rights = runtime.rights.changed({"owners": [[self.key, user]]})
        return Done(f"query {self.definition.name} is as it was")
