"""The engine: statements, rows and time in; results out.  A library: no sockets, no clock, no
threads of its own.

    engine = dsms.Engine()
    engine.execute("CREATE STREAM s (k STRING, v FLOAT, t TIMESTAMP) TIMESTAMP BY t")
    engine.execute("CREATE QUERY q AS SELECT k, AVG(v) FROM s [RANGE 1 min] GROUP BY k")
    results = engine.subscribe("q")
    engine.ingest("s", {"k": ["a"], "v": [1.5], "t": [0]})
    engine.heartbeat("s", 60_000_000)
    for push in results.take(): ...

Not thread-safe: one thread at a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dsms.api import Cancel, Column, Done, Result, Rows, Subscription
from dsms.archiving import tidy
from dsms.commands import statements
from dsms.commands.own_functions import changed_sources
from dsms.commands.replanning import Replanner
from dsms.commands.slices import Statement
from dsms.commands.stats import engine_stats
from dsms.commands.stops import Stops
from dsms.commands.store import Store, Write
from dsms.errors import DsmsError, UsageError
from dsms.file_folders import Files, Folders
from dsms.hosting import Hosting
from dsms.listening import telling
from dsms.operators.pieces import finished
from dsms.python_functions import Functions, host
from dsms.rights import Rights
from dsms.rights.check import check_request
from dsms.rights.seen import seen
from dsms.running.approximation import approximate
from dsms.running.conflating import Conflating, check_conflation
from dsms.running.first_answers import anew, arrive, arriving
from dsms.running.registered import Registered
from dsms.running.runtime import Runtime
from dsms.running.shed import share_of
from dsms.running.turns import Turns
from dsms.running.writers import Writers
from dsms.sessions import Caller
from dsms.settings import Settings
from dsms.sql import ast
from dsms.sql.parameters import Values
from dsms.sql.suggest import hint

if TYPE_CHECKING:
    from dsms.recovering.durability import Durability


class Engine(Hosting):
    """One data stream management system in this process.

    data      folder in which everything survives: declarations, tables, windows, answers; None: in
              memory only
    settings  limits and defaults
    disk      how files are used (tests let them fail); None: as the operating system does
    state_key what the data folder is encrypted with: 32 random bytes or more (`dsms.state_key`
              reads a file of them); None: it is not
    files     folders below which CREATE ... LIKE FILE may look at files (DS422 elsewhere, DS426 for
              one that is not there); None: it reads none, unless `settings` say how

    functions folder whose modules have functions in Python that statements may name, with
              limits if wanted (CREATE FUNCTION ... AS PYTHON 'module:name'); None: there are none.
              Engines of one process share their folders

    What was there goes on where it was (see `dsms.recovering`); `recovered` says how.
    """

    def __init__(
        self,
        data: str | None = None,
        settings: Settings | None = None,
        disk: Any = None,
        state_key: bytes | None = None,
        files: Folders | None = None,
        functions: str | Functions | None = None,
    ) -> None:
        super().__init__()
        settings = settings or Settings()
        if functions is not None:
            made = Functions(functions) if isinstance(functions, str) else functions
            host.name(made.checked())
        if files is not None:
            settings = replace(settings, files=Files(files).checked())
        self.runtime = Runtime(settings)
        self.now: int | None = None
        self.writers = Writers()
        self.turns = Turns()
        self.replanner = Replanner(self.store)
        self.stops = Stops()
        self.saver: Durability | None = None
        self.unsaved: DsmsError | None = None  # why `close` could not write the state down
        if data is not None:
            from dsms.recovering.opening import open_data

            self.saver = open_data(self, data, disk, state_key)
            self.saver.recovered.notes += changed_sources(self.runtime.catalog)

    # -- statements --------------------------------------------------------------------------------

    @telling
    def execute(
        self,
        text: str,
        params: Values | None = None,
        cancel: Cancel | None = None,
        user: str | None = None,
    ) -> list[Result]:
        """Run one or more statements.

        params  values for its parameters: a list for ? or $1, $2, ...; a dict for :name (DS617,
                DS618)
        user    on whose behalf: what he may not do is refused (DS670), what he may not see is not
                there for him; None: the program's own, which may do all

        Statements before a failing one stand: the DsmsError has `statement`, the index of the one
        that failed, and `done`, the results of those before it."""
        slices = self.slices(text, cancel, user=user, params=params)
        while True:
            try:
                statement = next(slices)
            except StopIteration as end:
                results: list[Result] = end.value
                return results
            if statement.waits is not None:
                statement.waits.let_go()  # who has it goes on with a later call, if ever

    def slices(
        self,
        text: str,
        cancel: Cancel | None = None,
        priority: int = 0,
        caller: Caller | None = None,
        user: str | None = None,
        params: Values | None = None,
    ) -> Generator[Statement, None, list[Result]]:
        """`execute`, one slice of work at a time: rows and other statements may come in between.

        Yields the statement that is at work.  If it is `ready`, its `run` may be called in another
        thread before the next slice, which then waits for nothing.  Close the generator to give up.

        caller  the session of a server that it comes from
        user    whose rights it has; None: it may do all
        params  as for `execute`"""
        return statements.slices(self, text, cancel, priority, caller, user, params)

    def begin(self, sql: str, priority: int = 0, cancel: Cancel | None = None) -> Statement:
        """One statement, to be done by `step`s: a SELECT reads one sub-window at a time, and
        windows may slide meanwhile (setting `transaction_scheduler`); others are done in one.

        priority  of a SELECT: larger ones suspend smaller ones
        Raises what binding it raises; UsageError DS400 unless `sql` is one statement."""
        return statements.begin(self, sql, priority, cancel)

    def declare(self, statement: ast.Statement, sql: str, user: str | None = None) -> Result:
        """One statement that was parsed, its text, and whose it was; out of the data folder."""
        return statements.run(
            self, statement, sql, seen(self.runtime.catalog, self.runtime.rights, user), None
        )

    def store_by(self, user: str | None) -> Store:
        """`store` for a statement of that user, whose rights say what it means."""

        def store(write: Write, kind: str, body: bytes) -> None:
            if kind == "statement" and user is not None:
                kind, body = "of_user", json.dumps([user, body.decode()]).encode()
            self.store(write, kind, body)

        return store

    def tidy(self) -> None:
        """Take note of what `Settings.archive_writer` has written, and hand it the next rows that
        are ripe."""
        self._whole()
        if not self.turns.behind:  # else once queries have read what they are to read
            tidy(self.runtime)

    # -- results -----------------------------------------------------------------------------------

    def subscribe(
        self,
        query: str,
        start: int | None = None,
        limit_bytes: int | None = None,
        on_ready: Callable[[], None] | None = None,
        conflate: bool = False,
    ) -> Subscription:
        """Read a query's results: a snapshot (Rstream) and what follows, or all rows numbered
        `start` and above.  With `conflate` (an Rstream; DS646 else) whatever the reader has not
        taken yet is summed up: `take_changes` gives the net change, and it is never too slow."""
        running = self._query(query)
        self._whole()
        limit = self.runtime.settings.subscriber_bytes if limit_bytes is None else limit_bytes
        kind = Conflating if conflate else Subscription
        reader = kind(running.name, running.columns(), limit)
        reader.approximate = approximate(self.runtime.queries, [running.home])
        reader.share = self._share
        if conflate:
            check_conflation(running.name, running.output)
        running.subscribe(reader, start)
        reader.on_ready = on_ready
        if reader.pending and on_ready is not None:
            on_ready()
        return reader

    def _share(self, name: str) -> float | None:
        query = self.runtime.queries.get(self.key_of(name))
        return None if query is None else share_of(self.runtime, query)

    def arrives(self, query: str) -> bool:
        """Where the query of that name is registered anew, bring it a piece nearer to its first
        answer; False if it is there.  Who can't wait, as `subscribe`, brings it there at once."""
        keys = anew(self.runtime, [self.key_of(query)])
        return next(arriving(self.runtime, keys), keys) is None

    def unsubscribe(self, subscription: Subscription) -> None:
        """Stop reading."""
        self._whole()
        subscription.closed = True
        running = self.runtime.queries.get(self.key_of(subscription.source))
        if running is not None:
            running.readers = [r for r in running.readers if r is not subscription]

    def next_seq(self, query: str) -> int:
        """The number of the next result row of a query."""
        return self._query(query).seq

    def _query(self, name: str) -> Registered:
        key = self.key_of(name)
        arrive(self.runtime, key)
        running = self.runtime.dispatch.told(key)
        if running is None or key in self.runtime.beginnings:
            names = [q.name for q in self.runtime.catalog.queries.values()]
            raise UsageError("DS401", f"there is no query {name}", hint=hint(name, names))
        return running

    # -- users and rights --------------------------------------------------------------------------

    @property
    def rights(self) -> Rights:
        """Users, roles and what they may do.  It never changes: after a change there is another
        one, so any thread may ask for it."""
        return self.runtime.rights

    def check_request(self, user: str | None, op: str, name: str | None) -> None:
        """Whether a user may make a request of the protocol about the stream or query of that name.

        Raises DS401 (he sees none of that name), DS670 (he may not)."""
        check_request(self.runtime.rights, self.runtime.catalog, user, op, name)

    # -- about itself ------------------------------------------------------------------------------

    def names(self, user: str | None = None) -> dict[str, dict[str, list[Column]]]:
        """Declared objects and their columns, for completion; those that `user` may know of."""
        catalog = seen(self.runtime.catalog, self.runtime.rights, user)
        kinds = {"streams": catalog.streams, "tables": catalog.tables, "queries": catalog.queries}
        return {
            kind: {
                d.name: [Column(f.name, str(f.type)) for f in catalog.columns(d)]
                for d in defs.values()  # type: ignore[attr-defined]
            }
            for kind, defs in kinds.items()
        }

    def _repr_html_(self) -> str:
        """What is declared, for notebooks."""
        from dsms.tabular.html import names_html

        return names_html(self.names())

    def stats(self) -> dict[str, Any]:
        """Counters for metrics: of transactions, streams, queries (`dsms.running.progress`)."""
        return finished(self.counting())

    def counting(self) -> Generator[Any, Any, dict[str, Any]]:
        """`stats`, piece by piece: others may come in between."""
        return {
            **(yield from engine_stats(self.runtime)),
            "replans": self.replanner.made,
            **({} if self.saver is None else self.saver.figures()),
        }

    def sync(self) -> None:
        """Bring what streams of durability `interval` have had so far to the disk.

        A program that runs an engine in its own process calls it when it likes; a server calls it
        every second, and checkpoints and `close` call it too."""
        if self.saver is not None:
            self.saver.durable.commit()

    @telling
    def close(self) -> None:
        """End all subscriptions and close the catalog."""
        self._whole()
        for query in self.runtime.queries.values():
            query.close("the engine is stopping")
        for archiving in self.runtime.archivings.values():
            archiving.flush()
        self.runtime.adhocs.close()
        if self.saver is not None:
            saver, self.saver = self.saver, None
            saver.close()
            self.unsaved = saver.unsaved


__all__ = ["Done", "Engine", "Rows", "Settings", "Statement"]
