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
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

from dsms.api import Cancel, Column, Done, IngestReport, Result, Rows, Subscription
from dsms.archiving import check as check_archives
from dsms.archiving import tidy
from dsms.commands import statements
from dsms.commands.quotas import mind_state
from dsms.commands.show_memory import held
from dsms.commands.slices import Statement
from dsms.commands.stats import engine_stats
from dsms.commands.store import Store, Write
from dsms.commands.table_rows import check_upsert, take_rows
from dsms.errors import DsmsError, UsageError
from dsms.forms.moments import Moment, moment
from dsms.frames import Frame, take_frames
from dsms.intake.convert import Converted, to_batch
from dsms.intake.defaults import filled
from dsms.intake.handed_on import not_too_far
from dsms.intake.outcome import Accepted
from dsms.intake.stream import StreamInput
from dsms.listening import Listening, telling
from dsms.reads.archives import ArchiveRunner
from dsms.rights import Rights
from dsms.rights.check import check_request
from dsms.rights.seen import seen
from dsms.running.computing import completed
from dsms.running.conflating import Conflating, check_conflation
from dsms.running.registered import Registered
from dsms.running.runtime import Runtime
from dsms.running.turns import Turns
from dsms.running.writers import FramePart, Writers
from dsms.sessions import Caller, Memory, MemoryLine, Sessions
from dsms.settings import Settings
from dsms.sql import ast
from dsms.sql.catalog import Catalog, StreamDef, TableDef
from dsms.sql.parameters import Values
from dsms.sql.suggest import hint

if TYPE_CHECKING:
    from dsms.recovering.durability import Durability
    from dsms.recovering.face import Recovered


class Engine(Listening):
    """One data stream management system in this process.

    data      folder in which everything survives: declarations, tables, windows, answers; None: in
              memory only
    settings  limits and defaults
    files     how files are used (tests let them fail); None: as the operating system does
    state_key what the data folder is encrypted with: 32 random bytes or more (`dsms.state_key`
              reads a file of them); None: it is not

    What was there goes on where it was (see `dsms.recovering`); `recovered` says how.
    """

    def __init__(
        self,
        data: str | None = None,
        settings: Settings | None = None,
        files: Any = None,
        state_key: bytes | None = None,
    ) -> None:
        super().__init__()
        self.runtime = Runtime(settings or Settings())
        self.now: int | None = None
        self.writers = Writers()
        self.turns = Turns()
        self.saver: Durability | None = None
        self.unsaved: DsmsError | None = None  # why `close` could not write the state down
        if data is not None:
            from dsms.recovering.opening import open_data

            self.saver = open_data(self, data, files, state_key)

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
                next(slices)
            except StopIteration as end:
                results: list[Result] = end.value
                return results

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

    def store(self, write: Write, kind: str, body: bytes) -> None:
        """Write to the catalog file, if there is one, and with it what the journal says of it."""
        self._whole()
        if self.saver is not None:
            self.saver.store(write, kind, body)

    # -- rows and time -----------------------------------------------------------------------------
    # A `cancel` here ends the call (DS610), not the work: what was handed over stands, and queries
    # that have not got to it go on with the next call that moves them.

    @telling
    def ingest(
        self,
        stream: str,
        data: Any,
        *,
        client: str | None = None,
        seq: int | None = None,
        first: int = 0,
        last: bool = True,
        cancel: Cancel | None = None,
        upsert: bool = False,
    ) -> IngestReport:
        """Rows for a stream or table: Arrow, pandas, polars, a dict of columns or a list of rows.

        Rows of a table are inserted; those with a key that is there are refused, or with `upsert`
        take the place of the rows that have it (DS440: there are no keys).

        `client` and `seq`: a frame with a `seq` not above the client's last one on this stream is a
        repeat and changes nothing.  A frame may come in parts: these are its rows from number
        `first` on, and `last` says that none follow; what of it has been applied is not applied
        again.  With a data folder the rows are written down first, as the stream's `durability`
        says.  Raises UsageError DS401 (no such stream), DS5xx (data that can't be taken as a whole,
        or written down)."""
        key = self._taker(stream)
        part: FramePart | None = None
        done = 0
        if client is not None and seq is not None:
            known = self.writers.applied(client, key, seq)
            if known is None:
                return IngestReport(0, repeated=1)
            done = known
        table = self.runtime.tables.get(key)
        if upsert:
            check_upsert(f"stream {stream}" if table is None else f"table {stream}", table)
        rows = data if isinstance(data, Converted) else self._converted(key, data)
        if client is not None and seq is not None:
            part = FramePart(client, seq, max(done, first + len(rows)), last)
            if done > first:
                rows = rows.after(done - first)
        if table is not None:
            self._whole()
            return take_rows(
                self.runtime, self.store, self.writers, key, rows, upsert, part, cancel
            )
        return self.take(key, rows, part=part, cancel=cancel)

    def _converted(self, key: str, data: Any) -> Converted:
        """Rows as the stream or table of that key takes them."""
        if key in self.runtime.tables:
            table = self.runtime.tables[key].definition
            return to_batch(data, table.schema, f"table {table.name}")
        stream = self.runtime.inputs[key].definition
        return to_batch(data, stream.given, f"stream {stream.name}", stream.made)

    def take(
        self,
        key: str,
        rows: Converted,
        now: int | None = None,
        part: FramePart | None = None,
        cancel: Cancel | None = None,
    ) -> IngestReport:
        """Converted rows for a stream, by its key: written down, then applied.

        now   the system time at which they came; None: the engine's
        part  which rows of which frame of which writer they are"""
        entry, now = self._open(key, now)
        if self.saver is not None:
            self.saver.rows(key, rows, now, part)
        if part is not None:
            self.writers.note(part, key)
        rows = self._completed(entry, rows)
        return self._apply(key, entry, rows, now, cancel).report(rows)

    def _completed(self, entry: StreamInput, rows: Converted) -> Converted:
        return completed(rows, entry.definition, self.runtime.settings.statement_bytes)

    @telling
    def ingest_group(self, stream: str, frames: Sequence[Frame]) -> list[IngestReport | DsmsError]:
        """Frames of one stream, one after the other as `ingest` takes them, applied as one where
        that makes no difference: what became of each, its report or why it was not taken.

        With a data folder they are written down as one record.  Raises UsageError DS401."""
        return take_frames(self, self._stream(stream), frames)

    def take_group(
        self,
        key: str,
        rows: Converted,
        now: int | None = None,
        parts: Sequence[FramePart] = (),
        cancel: Cancel | None = None,
    ) -> None:
        """`take` for the rows of several whole frames, `parts` those that have numbers, of which no
        row is refused."""
        entry, now = self._open(key, now)
        if self.saver is not None:
            self.saver.group(key, rows, now, parts)
        for part in parts:
            self.writers.note(part, key)
        self._apply(key, entry, self._completed(entry, rows), now, cancel)

    def _open(self, key: str, now: int | None) -> tuple[StreamInput, int | None]:
        """The stream, which takes rows, and the system time at which they come."""
        self._whole()
        entry, now = self.runtime.inputs[key], self.now if now is None else now
        check_archives(self.runtime, key, now)
        if self.saver is not None:
            entry.check_rows(now)
        return entry, now

    def _apply(
        self, key: str, entry: StreamInput, rows: Converted, now: int | None, cancel: Cancel | None
    ) -> Accepted:
        entry.count_refused(rows.refusals)
        taken = entry.accept(rows.columns, now, rows.kept)
        if taken.accepted:
            self.runtime.clocks.active(key)
        if taken.late_columns is not None and entry.definition.late_into is not None:
            self._take_late(key, entry.definition.late_into, taken.late_columns, cancel)
        self._moved(key, cancel)
        self._settled()
        return taken

    def _take_late(self, source: str, name: str, columns: Any, cancel: Cancel | None) -> None:
        key = Catalog.key(name)
        columns = self._handed_on(source, key, columns)
        added = self.runtime.inputs[key].definition.schema[len(columns) :]
        columns = (*columns, *(filled(f, len(columns[0])) for f in added))
        if not len(columns[0]):
            return
        if self.saver is not None:
            self.saver.late(source, key, columns, self.now)
        self.take_late(key, columns, self.now, cancel)

    def _handed_on(self, source: str, key: str, columns: Any) -> Any:
        """The late rows of a stream that its owner may write to that of LATE INTO, as things are
        now: none without INSERT, none beyond its MAX FUTURE without ADMIN."""
        owner = self.rights.owners.get(source)
        if owner is None or self.rights.owns(owner, key):
            return columns
        if not self.rights.may(owner, "INSERT", key):
            return tuple(c.slice(0, 0) for c in columns)
        return not_too_far(self.runtime.inputs[key], columns)

    def take_late(
        self, key: str, columns: Any, now: int | None, cancel: Cancel | None = None
    ) -> None:
        """Late rows of another stream go to this one, as they come."""
        if self.runtime.inputs[key].accept_late(columns, now).accepted:
            self.runtime.clocks.active(key)
        self._moved(key, cancel)

    def _settled(self) -> None:
        """What was taken is applied: it may be time for a checkpoint."""
        if self.saver is not None and not self.turns.behind:
            self.saver.settled()

    def _moved(self, key: str, cancel: Cancel | None = None) -> None:
        """A stream may have released rows; idle streams move with it."""
        if any(s.definition.idle_timeout is not None for s in self.runtime.inputs.values()):
            self._turn(self.runtime.pump_all, cancel)
        else:
            self._turn(lambda turn: self.runtime.pump(key, turn), cancel)

    def _turn(self, move: Callable[[Cancel | None], None], cancel: Cancel | None) -> None:
        """Let queries move, until `Settings.pause` says that the rest is for `work`."""
        self.turns.take(move, self.runtime.settings.pause, cancel)

    def _stream(self, name: str) -> str:
        key = self.key_of(name)
        if key not in self.runtime.inputs:
            names = [s.name for s in self.runtime.catalog.streams.values()]
            raise UsageError("DS401", f"there is no stream {name}", hint=hint(name, names))
        return key

    def key_of(self, name: str) -> str:
        """The key of the stream, table or query of that name; any thread may ask."""
        return self.runtime.catalog.key_of(name)

    def _taker(self, name: str) -> str:
        """The key of the stream or table that rows of that name are for."""
        key = self.key_of(name)
        return key if key in self.runtime.tables else self._stream(name)

    @telling
    def heartbeat(self, stream: str, ts: Moment, cancel: Cancel | None = None) -> None:
        """The source promises that no row with a timestamp <= `ts` follows: µs since the epoch, a
        datetime, or an instant of NumPy or pandas.  Raises UsageError DS508 for one outside the
        years 0001-9999."""
        self.heartbeat_of(self._stream(stream), moment(ts, "a heartbeat"), cancel)

    def check_heartbeat(self, stream: str, ts: int) -> None:
        """Raise what `heartbeat` would raise, and DS508 for one beyond MAX FUTURE.

        The program that this engine runs in may move a clock as far as it likes; its users may
        not."""
        source = self.runtime.inputs[self._stream(stream)]
        source.check_heartbeat(ts)
        source.check_future(ts)

    def heartbeat_of(self, key: str, ts: int, cancel: Cancel | None = None) -> None:
        """`heartbeat`, by the stream's key."""
        self._whole()
        self.runtime.inputs[key].check_heartbeat(ts)
        if self.saver is not None:
            self.saver.heartbeat(key, ts)
        self.runtime.inputs[key].heartbeat(ts)
        self.runtime.clocks.active(key)
        self._moved(key, cancel)
        self._settled()

    @telling
    def end(self, stream: str, cancel: Cancel | None = None) -> None:
        """The stream has ended: all its rows are complete, and it holds no clock back.

        A query with SLIDE, all of whose streams have ended, answers at boundaries until the last
        row has left its windows."""
        self.end_of(self._stream(stream), cancel)

    def end_of(self, key: str, cancel: Cancel | None = None) -> None:
        """`end`, by the stream's key."""
        self._whole()
        self.runtime.inputs[key].check_end()
        if self.saver is not None:
            self.saver.ended(key)
        self.runtime.inputs[key].end()
        self.runtime.clocks.follow()
        self._turn(self.runtime.pump_all, cancel)
        self._settled()

    @telling
    def advance(self, now: Moment, cancel: Cancel | None = None) -> None:
        """System time is `now`: drives system-time streams and IDLE TIMEOUT.  Instants as for
        `heartbeat`.

        It may go back: streams whose rows bear later stamps stand still meanwhile, others do not
        know of it."""
        now = moment(now, "the engine's time")
        self._whole()
        if self.saver is not None and not self.saver.advanced(now):
            return
        self.now = now
        self.runtime.clocks.advance(now)
        self._turn(self.runtime.pump_all, cancel)

    @telling
    def work(self) -> bool:
        """Go on with what a call has left (`Settings.pause`), else evaluate elastic queries whose
        deadline is nearest (`Settings.deferred`); False if nothing is due."""
        return self.catch_up() or self.runtime.work()

    def catch_up(self) -> bool:
        """Go on with what a call has left; False if that is nothing."""
        if self.copy_on():
            return True
        if not self.turns.behind:
            return False
        self.turns.behind = False
        self._turn(self.runtime.go_on, None)
        self._settled()
        return True

    def has_work(self) -> bool:
        """Whether `work` would find anything."""
        copying = self.saver is not None and self.saver.checkpointer.copying is not None
        return copying or self.turns.behind or self.runtime.backlog.pending()

    def copy_on(self) -> bool:
        """Where the state is being copied for a checkpoint, copy on for a while; False if it is
        not, or not any more.

        What would change the state in between copies what is left of it first, in one go: whoever
        has others to think of calls this until it is False."""
        return self.saver is not None and self.saver.checkpointer.copy_on()

    def _whole(self) -> None:
        if self.saver is not None:
            self.saver.checkpointer.whole()

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
        if conflate:
            check_conflation(running.name, running.output)
        running.subscribe(reader, start)
        reader.on_ready = on_ready
        if reader.pending and on_ready is not None:
            on_ready()
        return reader

    def unsubscribe(self, subscription: Subscription) -> None:
        """Stop reading."""
        self._whole()
        subscription.closed = True
        running = self.runtime.queries.get(Catalog.key(subscription.source))
        if running is not None:
            running.readers = [r for r in running.readers if r is not subscription]

    def _query(self, name: str) -> Registered:
        key = self.key_of(name)
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
        return {
            **engine_stats(self.runtime),
            **({} if self.saver is None else self.saver.figures()),
        }

    def sync(self) -> None:
        """Bring what streams of durability `interval` have had so far to the disk.

        A program that runs an engine in its own process calls it when it likes; a server calls it
        every second, and checkpoints and `close` call it too."""
        if self.saver is not None:
            self.saver.durable.commit()

    # -- for a program that runs it among threads of its own, as a server does ---------------------

    def held(self) -> list[MemoryLine]:
        """Who holds what part of its memory."""
        return list(held(self.runtime))

    def give_way(self, size: int) -> int:
        """Let go of rows that are kept by default until so many bytes are free, or there are none
        left; how many bytes there were."""
        return self.runtime.recents.let_go(size)

    def mind_quotas(self) -> dict[str, UsageError]:
        """Whose streams take no more rows, and why: by their owners' keys (`dsms.commands.quotas`).
        Stops queries of who has much more than he may."""
        return mind_state(self.runtime)

    def streams(self) -> list[StreamDef]:
        """What is declared of each stream."""
        return list(self.runtime.catalog.streams.values())

    def tables(self) -> list[TableDef]:
        """What is declared of each table."""
        return list(self.runtime.catalog.tables.values())

    def next_seq(self, query: str) -> int:
        """The number of the next result row of a query."""
        return self._query(query).seq

    @property
    def recovered(self) -> Recovered | None:
        """How it came back; None: it has no data folder."""
        return None if self.saver is None else self.saver.recovered

    @property
    def is_stored(self) -> bool:
        """Whether it has a data folder."""
        return self.runtime.durable is not None

    def stamped_after(self, instant: int) -> dict[str, int]:
        """The streams on system time whose clock is later than `instant` (µs), by name, and where
        it stands."""
        streams = [s for s in self.runtime.inputs.values() if not s.event_time and not s.ended]
        return {s.definition.name: s.now for s in streams if s.now is not None and s.now > instant}

    def durability(self, stream: str) -> str | None:
        """That of the stream's rows: sync, interval or none; None: there is no data folder."""
        durable = self.runtime.durable
        return None if durable is None else durable.journal.policies.get(self.key_of(stream))

    def log_files(self) -> int:
        """How many logs it may have open at once: of as many descriptors nobody else should
        dispose."""
        durable = self.runtime.durable
        return 0 if durable is None else durable.journal.open.most()

    def uncommitted(self, durability: str) -> bool:
        """Whether rows of streams of that durability are not on the disk yet."""
        durable = self.runtime.durable
        return durable is not None and durable.journal.pending(durability)

    def commit(self, durability: str | None = None) -> None:
        """Bring rows of streams of that durability (None: of all) to the disk.  Any thread may call
        it."""
        durable = self.runtime.durable
        if durable is not None:
            durable.commit(durability)

    def untold(self, query: str) -> DsmsError | None:
        """Why results of a query may not be told: they come from rows of a `sync` stream that could
        not be brought to the disk.  Any thread may ask."""
        durable, entry = self.runtime.durable, self.runtime.queries.get(self.key_of(query))
        if durable is None or entry is None or not durable.journal.unsynced:
            return None
        return durable.journal.untold(entry.name, self.runtime.feeding.sources(entry.reads))

    def check_written(self, stream: str) -> None:
        """Raise why the stream takes no rows: what was written of it may be lost (DS55x)."""
        durable = self.runtime.durable
        if durable is not None:
            durable.journal.check(self.key_of(stream))

    def seal_with(self, executor: Executor | None) -> None:
        """The executor that writes closed sub-windows and checkpoints; None: the thread that closes
        them."""
        if self.runtime.durable is not None:
            self.runtime.durable.background = executor

    def archive_with(self, writer: Any = None, runner: ArchiveRunner | None = None) -> None:
        """The executor that writes landing files, and the runner of archive queries, unless the
        settings name them."""
        settings = self.runtime.settings
        settings.archive_writer = settings.archive_writer if writer is None else writer
        settings.archive_runner = settings.archive_runner or runner

    def pause_with(self, over: Callable[[], bool]) -> None:
        """Ask `over` between two steps whether the call has held its thread for long enough
        (`Settings.pause`)."""
        self.runtime.settings.pause = over

    def serve_with(self, sessions: Sessions, memory: Memory | None = None) -> None:
        """What statements see of the server that it runs in (`Settings.sessions`,
        `Settings.memory`)."""
        self.runtime.settings.sessions, self.runtime.settings.memory = sessions, memory

    def under_way(self) -> str:
        """The name of the query that has its turn, or had the last one."""
        return self.turns.at

    def archives_fail(self) -> bool:
        """Whether some landing file could not be written and is to be tried again."""
        return any(a.failures and a.flying is None for a in self.runtime.archivings.values())

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
