"""The asynchronous client: requests over a connection that mends itself.

Order and once-ness: `ingest`, `heartbeat` and `end` are remembered until answered, and after a
reconnect they are sent again in their order; ingest frames carry the writer's name and a number, so
the server applies each once.  What the server died over twice, or was lost over five times, is
given up with DS614.  Statements are not repeated: if the connection is lost while one runs, DS611
says that its fate is unknown.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any

from dsms.errors import DsmsError, UsageError
from dsms.forms.moments import Moment, moment
from dsms_client.link import Link, no_hello
from dsms_client.outgoing import Values, frame_bytes, frame_of, frames_of, values_of
from dsms_client.patience import given_up_after, may_pass
from dsms_client.protocol import DEFAULT_PORT, VERSION, error_from_map
from dsms_client.results import IngestReport, Result, RowSet, report_of, result_of
from dsms_client.subscription import AsyncChanges, AsyncSubscription, Reading
from dsms_client.unanswered import Pending, Unanswered, set_error
from dsms_client.url import is_url, parse_url
from dsms_client.values import sendable

PAUSE = 0.1  # seconds between attempts to reach a server that is starting
UNANSWERED_BYTES = 32 << 20  # of ingest frames under way; past it `ingest` waits
FIRST_DELAY, LONGEST_DELAY = 0.05, 2.0


class AsyncClient:
    """A session with a dsms server.  ``async with AsyncClient(...) as client`` connects and
    closes."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = DEFAULT_PORT,
        *,
        token: str | None = None,
        user: str | None = None,
        password: str | None = None,
        tls: bool | ssl.SSLContext = False,
        client: str | None = None,
        data: str = "auto",
        connect_seconds: float = 0.0,
        reconnect_seconds: float = 30.0,
        seq: int | None = None,
        on_link: Callable[[DsmsError | None], None] | None = None,
    ) -> None:
        """`token`, or `user` and `password`: who this is, where the server asks; `client`:
        this writer's name (made up unless said); `data`: how results travel, rows, arrow or
        auto; `connect_seconds`: how long to try while no server answers, or one that is
        starting or stopping; `reconnect_seconds`: how long to try again after the
        connection is lost, and again at each later request (0: not at all); `seq`: frames
        are numbered from there on, for a writer that sends the same ones when it is started
        again (unsaid: ever anew); `on_link`: called, in the event loop, with the error when
        the connection is lost, and with None when it is there again."""
        self.host, self.port = host, port
        self.name = client or os.urandom(12).hex()
        shown = {"token": token, "user": user, "password": None if token else password}
        self._shown = {name: value for name, value in shown.items() if value}
        self._tls = ssl.create_default_context() if tls is True else tls or None
        self._data = data
        self._first_patience, self._patience = connect_seconds, reconnect_seconds
        self._on_link = on_link or (lambda problem: None)
        self._link: Link | None = None
        self._met = False  # the server has answered once
        self._unanswered = Unanswered(f"{host}:{port}")
        self._subs: dict[str, Reading[Any]] = {}
        self._knows_changes = False  # the server does
        self._frame_bytes = frame_bytes(None)
        self._ids = 0
        # grows across restarts of a writer that keeps its name
        self._seq = time.time_ns() if seq is None else seq
        self._under_way = 0
        self._room = asyncio.Event()
        self._room.set()
        self._late_error: DsmsError | None = None
        self._farewell: DsmsError | None = None
        self._mending: asyncio.Task[None] | None = None
        self._closed = False
        self._next_ping: asyncio.TimerHandle | None = None

    # -- connecting --------------------------------------------------------------------------------

    async def __aenter__(self) -> AsyncClient:
        return await self.connect()

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def connect(self) -> AsyncClient:
        """Connect and say hello.  Raises DS605, DS606, DS612."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._first_patience
        while True:
            try:
                await self._open()
                return self
            except UsageError as problem:
                if not may_pass(problem):
                    raise
                if loop.time() + PAUSE > until:
                    raise given_up_after(problem, self._first_patience, "connect_seconds") from None
            await asyncio.sleep(PAUSE)

    async def close(self) -> None:
        """Wait until rows under way are acknowledged (if connected), then close."""
        if self._closed:
            return
        if self._link is not None:
            with contextlib.suppress(DsmsError):
                await self.flush()
        self._closed = True
        if self._mending is not None:
            self._mending.cancel()
            await asyncio.wait([self._mending])
        if self._next_ping is not None:
            self._next_ping.cancel()
        if self._link is not None:
            await self._link.close()
            self._link = None
        self._fail_all(UsageError("DS611", "the client was closed"))

    async def _open(self) -> None:
        hello: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._farewell = None

        def first(message: dict[str, Any]) -> None:
            if hello.done():
                self._receive(message)
            else:
                hello.set_result(message)

        def lost(link: Link) -> None:
            if not hello.done():
                hello.set_exception(no_hello(self.host, self.port, link.foreign))
            elif link is self._link:
                self._lost()

        link = await Link.open(self.host, self.port, self._tls, first, lost)
        fields = {"version": VERSION, "client": self.name, "data": self._data}
        link.write(frame_of("hello", 0, {**fields, **self._shown}))
        try:
            reply = await hello
            if "error" in reply:
                raise error_from_map(reply["error"])
            if link.lost:
                raise UsageError("DS611", "the connection was lost again")
        except BaseException:
            await link.close()
            raise
        self._link, self._met = link, True
        self._knows_changes = "changes" in reply
        self._frame_bytes = frame_bytes(reply.get("max_frame"))
        self._keep_up(link, reply.get("ping_seconds"))
        self._send_again(reply.get("run"))

    def _keep_up(self, link: Link, seconds: float | None) -> None:
        """The server wants to hear something every so often, lest it takes this client for dead.
        The first ping is the promise."""
        if not seconds or link.lost or link is not self._link:
            return
        self._ids += 1
        link.write(frame_of("ping", self._ids, {"every": seconds}))
        self._next_ping = asyncio.get_running_loop().call_later(
            seconds, self._keep_up, link, seconds
        )

    def _send_again(self, run: str | None) -> None:
        assert self._link is not None
        self._unanswered.connected(self._link, run)
        for sub in list(self._subs.values()):
            sub._attach_again()

    def _lost(self) -> None:
        self._link = None
        if self._closed:
            return
        why = f": {self._farewell.message}" if self._farewell else ""
        problem = UsageError(
            "DS611",
            f"the connection to {self.host}:{self.port} was lost{why}",
            hint="a statement that was under way may have been done or not; it is not repeated",
        )
        self._on_link(problem)
        self._unanswered.lost(problem, self._farewell)
        taken_over = self._farewell is not None and self._farewell.code == "DS642"
        if self._patience <= 0 or taken_over:
            self._fail_all(self._farewell or UsageError("DS611", "the connection was lost"))
        elif self._mending is None:
            self._mending = asyncio.get_running_loop().create_task(self._mend())

    @property
    def connected(self) -> bool:
        """Whether there is a connection now; where there is none, a request waits for one."""
        return self._link is not None

    async def _mend(self) -> None:
        """Reconnect, waiting longer after each failure."""
        loop = asyncio.get_running_loop()
        until, delay = loop.time() + self._patience, FIRST_DELAY
        while True:
            try:
                await self._open()
                self._on_link(None)
                break
            except DsmsError as problem:
                if problem.code in ("DS605", "DS606"):
                    self._fail_all(problem)
                    break
                if loop.time() > until:
                    self._fail_all(given_up_after(problem, self._patience, "reconnect_seconds"))
                    break
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))
            delay = min(2 * delay, LONGEST_DELAY)
        self._mending = None

    def _fail_all(self, problem: DsmsError) -> None:
        self._unanswered.fail_all(problem)
        for sub in list(self._subs.values()):
            sub._broken(problem)
        self._subs.clear()

    @property
    def about(self) -> str:
        """Where it is connected to, and as whom, in a line for people."""
        who = self._shown.get("user") or ("whose token was shown" if self._shown else "nobody")
        how = "encrypted (TLS)" if self._tls else "not encrypted"
        state = "connected" if self._link is not None else "not connected"
        return f"{state} to {self.host}:{self.port}, {how}, as {who}; writer {self.name}"

    # -- messages ----------------------------------------------------------------------------------

    def _receive(self, message: dict[str, Any]) -> None:
        if "push" in message:
            sub = self._subs.get(message["push"])
            if sub is not None:
                sub._receive(message)
            return
        if message.get("id") is None:
            self._farewell = error_from_map(message.get("error", {}))
            return
        pending = self._unanswered.pop(message["id"])
        if pending is None:
            return
        if pending.on_reply is not None:
            pending.on_reply(message)
        if "error" in message:
            problem = error_from_map(message["error"])
            problem.done = [result_of(r) for r in message.get("results", ())]  # type: ignore[attr-defined]
            set_error(pending.future, problem)
        elif not pending.future.done():
            pending.future.set_result(message)

    def _send(
        self,
        op: str,
        fields: dict[str, Any],
        again: bool = False,
        on_reply: Callable[[dict[str, Any]], None] | None = None,
    ) -> tuple[int, asyncio.Future[dict[str, Any]], int]:
        """Queue a request; returns its id, the future of its reply and the size of its frame."""
        if self._closed:
            raise UsageError("DS611", "the client is closed")
        if self._link is None and self._mending is None:
            self._seek()
        self._ids += 1
        frame = frame_of(op, self._ids, fields)
        what = f"`{op}` for {fields['stream']}" if "stream" in fields else f"`{op}`"
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._unanswered.add(self._ids, Pending(frame, future, again, what, on_reply))
        return self._ids, future, sum(map(len, frame))

    def _seek(self) -> None:
        """Look for the server that was given up.  Raises DS611, DS642 if there is nothing to look
        for."""
        taken_over = self._farewell is not None and self._farewell.code == "DS642"
        if not self._met or self._patience <= 0 or taken_over:
            raise self._farewell or UsageError(
                "DS611", "the client is not connected", hint="call connect() first"
            )
        self._mending = asyncio.get_running_loop().create_task(self._mend())

    async def _request(self, op: str, again: bool = False, **fields: Any) -> dict[str, Any]:
        ident, future, _ = self._send(op, fields, again)
        try:
            return await future
        except asyncio.CancelledError:
            self._give_up(ident)
            raise

    def _give_up(self, ident: int) -> None:
        """The caller no longer waits: stop the request on the server too."""
        pending = self._unanswered.pop(ident)
        if pending is not None and pending.sent and self._link is not None:
            self._ids += 1
            self._link.write(frame_of("cancel", self._ids, {"request": ident}))

    # -- statements --------------------------------------------------------------------------------

    async def execute(self, sql: str, params: Values | None = None) -> list[Result]:
        """Run one or more statements; a result for each.

        `params`: values for the parameters of the text, a list for ? or $1, $2, ..., a dict for
        :name.  They travel beside it, as what they are.  Raises DS617, DS618.

        Cancelling the task stops the statement on the server.  A failing statement raises its
        DsmsError, which has the results of those before it in `done`.
        """
        reply = await self._request("execute", sql=sql, **values_of(params))
        return [result_of(r) for r in reply["results"]]

    async def query(self, sql: str, params: Values | None = None) -> RowSet:
        """Run statements and return the rows of the last one that has rows.  Raises DS613 if none
        has."""
        return last_rows(await self.execute(sql, params))

    async def names(self) -> dict[str, dict[str, list[tuple[str, str]]]]:
        """Streams, tables and queries with their columns: {"streams": {name: [(column, type),
        ...]}, ...}."""
        reply = await self._request("names")
        kinds = ("streams", "tables", "queries")
        return {k: {n: [tuple(c) for c in cols] for n, cols in reply[k].items()} for k in kinds}

    async def ping(self) -> None:
        """A round trip."""
        await self._request("ping")

    # -- rows --------------------------------------------------------------------------------------

    async def ingest(
        self,
        stream: str,
        data: Any,
        *,
        wait: bool = True,
        positions: bool = False,
        upsert: bool = False,
    ) -> IngestReport:
        """Send rows: a DataFrame, Arrow data, a dict of columns or a list of rows in column order.

        `stream` may be a table: its rows are inserted, and those with a key that is there are
        refused, or with `upsert` take the place of the rows that have it.

        Each frame is applied once even if the connection breaks.  With `wait` the report covers all
        rows; without, the rows are on their way when this returns, the report is empty, and `flush`
        (or the next call) raises what went wrong.  Waits while too much is unanswered, so a fast
        writer is slowed to the server's pace.  With `positions` (and `wait`) the report says which
        rows were late or refused, up to 100,000 of a frame.
        """
        self._raise_late()
        futures, starts, rows = [], [], 0
        for field, count in frames_of(data, stream, self._frame_bytes):
            await self._room.wait()
            if positions:
                field["positions"] = True
            if upsert:
                field["upsert"] = True
            futures.append(self._send_rows(stream, field, wait))
            starts.append(rows)
            rows += count
            if self._link is not None:
                await self._link.drain()
        if not wait:
            return IngestReport()
        replies = await asyncio.gather(*futures)
        return sum(map(report_of, replies, starts), IngestReport())

    def _send_rows(
        self, stream: str, field: dict[str, Any], wait: bool
    ) -> asyncio.Future[dict[str, Any]]:
        self._seq += 1
        _, future, size = self._send(
            "ingest", {"stream": stream, "seq": self._seq, **field}, again=True
        )
        self._under_way += size
        if self._under_way > UNANSWERED_BYTES:
            self._room.clear()

        def answered(future: asyncio.Future[dict[str, Any]]) -> None:
            self._under_way -= size
            if self._under_way <= UNANSWERED_BYTES:
                self._room.set()
            if (
                not wait
                and not future.cancelled()
                and isinstance(problem := future.exception(), DsmsError)
            ):
                self._late_error = problem

        future.add_done_callback(answered)
        return future

    async def flush(self) -> None:
        """Wait until all rows sent so far are acknowledged; raises what went wrong with those
        nobody waited for."""
        waiting = self._unanswered.repeatable()
        if waiting:
            await asyncio.wait(waiting)
        else:
            await asyncio.sleep(0)  # a reply that has just come notes its error now
        self._raise_late()

    def _raise_late(self) -> None:
        problem, self._late_error = self._late_error, None
        if problem is not None:
            raise problem

    async def heartbeat(
        self, stream: str, ts: Moment | None, where: Mapping[str, Any] | None = None
    ) -> None:
        """Promise that no row with a timestamp <= `ts` follows on the stream: microseconds since
        1970 (UTC), a datetime, or an instant of NumPy or pandas.  Raises DS508 for one outside the
        years 0001-9999.

        `where`: no such row of these values: {"k": 5}, {"k": [5, 6], "j": "a"}; `ts` None: none at
        all.  Raises DS335, DS336, DS501."""
        fields: dict[str, Any] = {}
        if where is None or ts is not None:
            fields["ts"] = moment(ts, "a heartbeat")
        if where is not None:
            fields["where"] = {str(name): sendable(value) for name, value in where.items()}
        await self._request("heartbeat", again=True, stream=stream, **fields)

    async def end(self, stream: str) -> None:
        """Say that the stream has ended."""
        await self._request("end", again=True, stream=stream)

    # -- results -----------------------------------------------------------------------------------

    async def subscribe(
        self, query: str, start: int | None = None, *, resume: bool = True
    ) -> AsyncSubscription:
        """The pushes of a persistent query, as an async iterator.

        `start`: the number of the first row wanted (default: what comes from now on; a view begins
        with a snapshot).  `resume`: go on without a gap after a reconnect, or after this reader was
        too slow for its buffer.
        """
        sub = AsyncSubscription(self, query, start, resume)
        await sub._attach()
        return sub

    async def changes(
        self,
        query: str,
        start: int | None = None,
        *,
        resume: bool = True,
        conflate: bool = False,
    ) -> AsyncChanges:
        """As `subscribe`, with rows of all kinds together, in columns: much faster where rows enter
        and leave by turns.  `AsyncChanges.view` keeps the current answer.

        `conflate` (an Rstream; DS646 else): the net change since what was read last, instead of
        all that happened; such a reader is never too slow."""
        sub = AsyncChanges(self, query, start, resume, conflate)
        await sub._attach()
        return sub


def last_rows(results: list[Result]) -> RowSet:
    """The last result that has rows.  Raises DS613 if there is none."""
    for result in reversed(results):
        if isinstance(result, RowSet):
            return result
    raise UsageError(
        "DS613", "no statement answered with rows", hint="use execute() for statements without rows"
    )


async def connect(host: str = "127.0.0.1", port: int = DEFAULT_PORT, **options: Any) -> AsyncClient:
    """A connected AsyncClient; options as there.  Instead of `host` a URL may be given
    (`dsms_client.url`); options beside it count more than its own."""
    if is_url(host):
        host, port, said = parse_url(host)
        options = said | options
    return await AsyncClient(host, port, **options).connect()
