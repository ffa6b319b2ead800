"""The part of the engine for a program that runs it among threads of its own, as a server does."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any

from dsms.api import Column
from dsms.commands.declared import declared
from dsms.commands.described import described, parameter_types
from dsms.commands.quotas import minding_state
from dsms.commands.show_memory import held
from dsms.errors import DsmsError, UsageError
from dsms.reads.archives import ArchiveRunner
from dsms.running.writers import FramePart
from dsms.sessions import Connectors, Memory, MemoryLine, Sessions
from dsms.sql.catalog import ConnectorDef, StreamDef, TableDef
from dsms.sql.listed import Declared
from dsms.sql.parameters import Values
from dsms.taking import Taking

if TYPE_CHECKING:
    from dsms.recovering.face import Recovered


class Hosting(Taking):
    """See `dsms.engine.Engine`."""

    def held(self) -> Iterator[MemoryLine]:
        """Who holds what part of its memory; others may come in between two lines."""
        return held(self.runtime)

    def give_way(self, size: int) -> int:
        """Let go of rows that are kept by default until so many bytes are free, or there are none
        left; how many bytes there were."""
        return self.runtime.recents.let_go(size)

    def minding_quotas(self) -> Generator[Any, Any, dict[str, UsageError]]:
        """Whose streams take no more rows, and why: by their owners' keys (`dsms.commands.quotas`).
        Stops queries of who has much more than he may.  Piece by piece: others may come in
        between."""
        return minding_state(self.runtime)

    def streams(self) -> list[StreamDef]:
        """What is declared of each stream."""
        return list(self.runtime.catalog.streams.values())

    def tables(self) -> list[TableDef]:
        """What is declared of each table."""
        return list(self.runtime.catalog.tables.values())

    def declared(self, user: str | None = None) -> tuple[Declared, ...]:
        """All that the user may know of, as catalogs of other systems need it."""
        return declared(self.runtime, user)

    def describe(
        self, text: str, user: str | None = None, params: Values | None = None
    ) -> tuple[Column, ...] | None:
        """The columns of the answer to a SELECT, which is bound and not run; None for another
        statement.  Raises what binding it raises."""
        return described(self.runtime, text, user, params)

    def parameter_types(
        self, text: str, user: str | None, known: Sequence[str | None]
    ) -> Generator[None, None, tuple[str, ...]]:
        """The SQL types of a statement's $1, $2, ..., as far as their places tell; `known`: those
        that were said.  Piece by piece: others may come in between."""
        return parameter_types(self.runtime, text, user, known)

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

    def changing(self, name: str) -> Future[None] | None:
        """Where a statement is changing the table of that name piece by piece: done when that is
        over.  Who sends rows before then makes it begin anew."""
        hold = self.runtime.holds.of(self.key_of(name))
        return None if hold is None else hold.over

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

    def serve_with(
        self,
        sessions: Sessions,
        memory: Memory | None = None,
        connectors: Connectors | None = None,
    ) -> None:
        """What statements see of the server that it runs in (`Settings.sessions`,
        `Settings.memory`, `Settings.connectors`)."""
        settings = self.runtime.settings
        settings.sessions, settings.memory, settings.connectors = sessions, memory, connectors

    def connectors(self) -> dict[str, ConnectorDef]:
        """What is declared of sources and sinks, by key.  It never changes: after a change there
        is another one, so any thread may ask for it."""
        return self.runtime.catalog.connectors

    def called(self, address: str) -> str:
        """The name of the stream or query that has the address (`ConnectorDef.object`)."""
        return self.runtime.catalog.called(address)

    def tells_signs(self, query: str) -> bool:
        """Whether rows of its answer leave, as well as enter: of a view, or of Dstream."""
        output = self.runtime.queries[self.key_of(query)].output
        return output.kind in ("rstream", "dstream") and output.slide is None

    def results_of(self, query: str) -> int | None:
        """The number of its next result row; None: there is no such query.  Any thread may ask."""
        found = self.runtime.queries.get(self.key_of(query))
        return None if found is None else found.seq

    def writer(self, client: str, stream: str) -> FramePart | None:
        """The newest frame of a writer on a stream, or what of it has been applied."""
        return self.writers.newest.get((client, self.key_of(stream)))

    def under_way(self) -> str:
        """The name of the query that has its turn, or had the last one."""
        return self.turns.at

    def archives_fail(self) -> bool:
        """Whether some landing file could not be written and is to be tried again."""
        return any(a.failures and a.flying is None for a in self.runtime.archivings.values())
