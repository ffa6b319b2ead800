"""The synchronous client: the asynchronous one on a private event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from dsms.errors import UsageError
from dsms.forms.moments import Moment
from dsms_client.aio import AsyncClient
from dsms_client.aio import connect as connect_async
from dsms_client.outgoing import Values
from dsms_client.protocol import DEFAULT_PORT
from dsms_client.results import IngestReport, Push, Result, RowSet
from dsms_client.subscription import AsyncChanges, Reading, Told

if TYPE_CHECKING:
    from dsms_client.changes import Changes  # noqa: F401
    from dsms_client.view import View

T = TypeVar("T")
P = TypeVar("P", bound=Told)


class Client:
    """A session with a dsms server, for code without asyncio.  ``with connect() as client`` closes
    it.

    Ctrl-C during a call stops the statement on the server and raises KeyboardInterrupt here.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = DEFAULT_PORT, **options: Any) -> None:
        """Connects; options, or a URL, as for `dsms_client.aio.connect`.  Raises DS605, DS606,
        DS612, DS619."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="dsms-client", daemon=True
        )
        self._thread.start()
        try:
            self._client = self._run(connect_async(host, port, **options))
        except BaseException:
            self._stop()
            raise

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Wait until rows under way are acknowledged, then close."""
        if self._thread.is_alive():
            self._run(self._client.close())
            self._stop()

    @property
    def about(self) -> str:
        """Where it is connected to, and as whom, in a line for people."""
        return self._client.about

    def execute(self, sql: str, params: Values | None = None) -> list[Result]:
        """Run one or more statements; a result for each.  See AsyncClient.execute."""
        return self._run(self._client.execute(sql, params))

    def query(self, sql: str, params: Values | None = None) -> RowSet:
        """Run statements and return the rows of the last one that has rows."""
        return self._run(self._client.query(sql, params))

    def ingest(
        self,
        stream: str,
        data: Any,
        *,
        wait: bool = True,
        positions: bool = False,
        upsert: bool = False,
    ) -> IngestReport:
        """Send rows to a stream or table: a DataFrame, Arrow data, a dict of columns or a list of
        rows.  See AsyncClient.ingest."""
        return self._run(
            self._client.ingest(stream, data, wait=wait, positions=positions, upsert=upsert)
        )

    def flush(self) -> None:
        """Wait until all rows sent so far are acknowledged."""
        self._run(self._client.flush())

    def heartbeat(
        self, stream: str, ts: Moment | None, where: Mapping[str, Any] | None = None
    ) -> None:
        """Promise that no row with a timestamp <= `ts` follows on the stream, or none of some
        values.  See AsyncClient.heartbeat."""
        self._run(self._client.heartbeat(stream, ts, where))

    def end(self, stream: str) -> None:
        """Say that the stream has ended."""
        self._run(self._client.end(stream))

    @property
    def connected(self) -> bool:
        """Whether there is a connection now; where there is none, a call waits for one."""
        return self._client.connected

    def names(self, timeout: float | None = None) -> dict[str, dict[str, list[tuple[str, str]]]]:
        """Streams, tables and queries with their columns.  Raises TimeoutError after `timeout`
        seconds."""
        return self._run(_within(timeout, self._client.names()))

    def functions(self, timeout: float | None = None) -> list[str]:
        """Names of all functions, in capitals.  Raises TimeoutError after `timeout` seconds."""
        known = self._run(_within(timeout, self._client.query("SHOW FUNCTIONS")))
        return list(dict.fromkeys(str(row[0]).upper() for row in known))

    def ping(self) -> None:
        """A round trip."""
        self._run(self._client.ping())

    def subscribe(
        self, query: str, start: int | None = None, *, resume: bool = True
    ) -> Subscription:
        """The pushes of a persistent query, as an iterator.  See AsyncClient.subscribe."""
        return Subscription(self, self._run(self._client.subscribe(query, start, resume=resume)))

    def changes(
        self,
        query: str,
        start: int | None = None,
        *,
        resume: bool = True,
        conflate: bool = False,
    ) -> ChangesReader:
        """Changes of a persistent query in columns, as an iterator.  See AsyncClient.changes."""
        work = self._client.changes(query, start, resume=resume, conflate=conflate)
        return ChangesReader(self, self._run(work))

    def work(self, make: Callable[[AsyncClient], Coroutine[Any, Any, T]]) -> T:
        """Do something with the session as code with asyncio sees it, and wait for it."""
        return self._run(make(self._client))

    def start(self, make: Callable[[AsyncClient], Coroutine[Any, Any, T]]) -> Future[T]:
        """As `work`, without waiting for it; the future that is given can be cancelled."""
        return asyncio.run_coroutine_threadsafe(make(self._client), self._loop)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if not self._thread.is_alive():
            work.close()
            raise UsageError("DS611", "the client is closed")
        call = _Call(work)
        try:
            return asyncio.run_coroutine_threadsafe(call.run(), self._loop).result()
        # it may come at any point, even before there is a future to cancel
        except KeyboardInterrupt:
            self._loop.call_soon_threadsafe(call.cancel)
            raise

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class _Call(Generic[T]):
    """Work on its way to the loop, to be cancelled there wherever it is."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._task: asyncio.Task[Any] | None = None
        self._cancelled = False

    async def run(self) -> T:
        if self._cancelled:
            self._work.close()
            raise asyncio.CancelledError
        self._task = asyncio.current_task()
        return await self._work

    def cancel(self) -> None:
        self._cancelled = True
        if self._task is not None:
            self._task.cancel()


class _Iterating(Iterator[P]):
    """``for push in subscription``; `next(timeout=...)` waits only so long."""

    def __init__(self, client: Client, inner: Reading[P]) -> None:
        self._client = client
        self._inner = inner

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def query(self) -> str:
        return self._inner.query

    @property
    def columns(self) -> tuple[str, ...]:
        return self._inner.columns

    @property
    def types(self) -> tuple[str, ...]:
        return self._inner.types

    @property
    def next_seq(self) -> int | None:
        """The number of the row that follows what was received."""
        return self._inner.next_seq

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> P:
        push = self.next()
        if push is None:
            raise StopIteration
        return push

    def next(self, timeout: float | None = None) -> P | None:
        """The next push, or None when the subscription is over.  Raises TimeoutError after
        `timeout` seconds."""
        return self._client._run(_within(timeout, _next(self._inner)))

    def close(self, timeout: float | None = None) -> None:
        """Give the subscription up.  Raises TimeoutError where the server does not say so within
        `timeout` seconds."""
        self._client._run(_within(timeout, self._inner.close()))


class Subscription(_Iterating[Push]):
    """``for push in subscription``: rows of one kind at a time."""


class ChangesReader(_Iterating["Changes"]):
    """``for changes in subscription``: rows of all kinds in columns, until the query ends."""

    def __init__(self, client: Client, inner: AsyncChanges) -> None:
        super().__init__(client, inner)
        self._changes = inner

    def view(self) -> View:
        """The current answer, kept up with all that is read.  See AsyncChanges.view."""
        return self._changes.view()


async def _next(inner: Reading[P]) -> P | None:
    return await anext(inner, None)


async def _within(timeout: float | None, work: Coroutine[Any, Any, T]) -> T:
    async with asyncio.timeout(timeout):
        return await work


def connect(host: str = "127.0.0.1", port: int = DEFAULT_PORT, **options: Any) -> Client:
    """A connected Client; options, or a URL, as for `dsms_client.aio.connect`."""
    return Client(host, port, **options)
