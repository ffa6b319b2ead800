"""What the server asks of an engine (`dsms.engine.Engine`): it knows no room behind this."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from typing import Any, Protocol

from dsms.api import Cancel, Column, IngestReport, Result, Subscription
from dsms.errors import DsmsError, UsageError
from dsms.frames import Frame
from dsms.intake.shedding import Waited
from dsms.rights import Rights
from dsms.sessions import Caller, Connectors, Memory, MemoryLine, Sessions
from dsms.sql.catalog import ConnectorDef, StreamDef, TableDef
from dsms.sql.listed import Declared
from dsms.sql.parameters import Values


class Wait(Protocol):
    """What a statement waits for.  `over`: done when that is over."""

    @property
    def over(self) -> Future[None]: ...


class Statement(Protocol):
    """A statement at work, in slices."""

    @property
    def result(self) -> Result | None:
        """Once it is done."""
        ...

    @property
    def ready(self) -> bool:
        """Whether `run`, in any thread, does what is left."""
        ...

    @property
    def elsewhere(self) -> bool:
        """Whether `run` mostly waits for another process."""
        ...

    @property
    def waits(self) -> Wait | None:
        """What it waits for; until that is over a slice does nothing."""
        ...

    def run(self) -> None: ...


class Recovered(Protocol):
    """How an engine came back: the record of its checkpoint, the records behind it, their rows, and
    what is missing."""

    checkpoint: int
    records: int
    rows: int
    notes: list[str]


class Written(Protocol):
    """The newest frame of a writer: its number, how many of its rows are applied, whether that is
    all of it, and the position that came with them."""

    @property
    def seq(self) -> int: ...

    @property
    def done(self) -> int: ...

    @property
    def last(self) -> bool: ...

    @property
    def position(self) -> str | None: ...


class EngineFace(Protocol):
    """As `dsms.engine.Engine` says.  In one thread, unless said otherwise."""

    @property
    def unsaved(self) -> DsmsError | None: ...

    @property
    def recovered(self) -> Recovered | None: ...

    @property
    def is_stored(self) -> bool: ...

    @property
    def rights(self) -> Rights:
        """In any thread."""
        ...

    def key_of(self, name: str) -> str:
        """In any thread."""
        ...

    def check_request(self, user: str | None, op: str, name: str | None) -> None: ...

    def slices(
        self,
        text: str,
        cancel: Cancel | None = None,
        priority: int = 0,
        caller: Caller | None = None,
        user: str | None = None,
        params: Values | None = None,
    ) -> Generator[Statement, None, list[Result]]: ...

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
        waited: Waited | None = None,
        position: str | None = None,
    ) -> IngestReport: ...

    def writer(self, client: str, stream: str) -> Written | None: ...

    def connectors(self) -> Mapping[str, ConnectorDef]:
        """In any thread."""
        ...

    def called(self, address: str) -> str: ...

    def results_of(self, query: str) -> int | None:
        """In any thread."""
        ...

    def tells_signs(self, query: str) -> bool: ...

    def changing(self, name: str) -> Future[None] | None:
        """Where a statement is changing the table of that name, until when rows for it wait."""
        ...

    def ingest_group(
        self, stream: str, frames: Sequence[Frame]
    ) -> list[IngestReport | DsmsError]: ...

    def check_heartbeat(self, stream: str, ts: int) -> None: ...

    def heartbeat(
        self,
        stream: str,
        ts: int | None,
        cancel: Cancel | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> None: ...

    def end(self, stream: str, cancel: Cancel | None = None) -> None: ...

    def advance(self, now: int, cancel: Cancel | None = None) -> None: ...

    def stamped_after(self, instant: int) -> dict[str, int]: ...

    def work(self) -> bool: ...

    def has_work(self) -> bool: ...

    def tidy(self) -> None: ...

    def subscribe(
        self,
        query: str,
        start: int | None = None,
        limit_bytes: int | None = None,
        on_ready: Callable[[], None] | None = None,
        conflate: bool = False,
    ) -> Subscription: ...

    def arrives(self, query: str) -> bool: ...

    def unsubscribe(self, subscription: Subscription) -> None: ...

    def held(self) -> Iterator[MemoryLine]: ...

    def give_way(self, size: int) -> int: ...

    def minding_quotas(self) -> Generator[Any, Any, dict[str, UsageError]]: ...

    def streams(self) -> list[StreamDef]: ...

    def tables(self) -> list[TableDef]: ...

    def next_seq(self, query: str) -> int: ...

    def names(self, user: str | None = None) -> dict[str, dict[str, list[Column]]]: ...

    def declared(self, user: str | None = None) -> tuple[Declared, ...]: ...

    def describe(
        self, text: str, user: str | None = None, params: Values | None = None
    ) -> tuple[Column, ...] | None: ...

    def parameter_types(
        self, text: str, user: str | None, known: Sequence[str | None]
    ) -> Generator[None, None, tuple[str, ...]]: ...

    def counting(self) -> Generator[Any, Any, dict[str, Any]]: ...

    def durability(self, stream: str) -> str | None: ...

    def log_files(self) -> int: ...

    def uncommitted(self, durability: str) -> bool: ...

    def commit(self, durability: str | None = None) -> None:
        """In any thread."""
        ...

    def untold(self, query: str) -> DsmsError | None:
        """In any thread."""
        ...

    def check_written(self, stream: str) -> None: ...

    def seal_with(self, executor: Executor | None) -> None: ...

    def archive_with(self, writer: Any = None, runner: Any = None) -> None: ...

    def pause_with(self, over: Callable[[], bool]) -> None: ...

    def serve_with(
        self,
        sessions: Sessions,
        memory: Memory | None = None,
        connectors: Connectors | None = None,
    ) -> None: ...

    def under_way(self) -> str: ...

    def catch_up(self) -> bool: ...

    def copy_on(self) -> bool: ...

    def archives_fail(self) -> bool: ...

    def close(self) -> None: ...
