"""Subscriptions of a PostgreSQL session: the changes of a query as rows, with two columns before
those of the query.

    $kind  snapshot (the answer as the subscription begins), insert, delete, result (of a periodic
           answer)
    $at    the instant

What has come and is not given out waits here; nothing more is taken from the engine before that."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from dsms.api import Changes, Chunk, Push, Subscription
from dsms.errors import DsmsError, UsageError
from dsms.sql.types import MIN_INSTANT
from dsms.tabular.tables import to_edge
from dsms_server.feeds import SubscriptionFeed, subscribed
from dsms_server.postgres import types
from dsms_server.postgres.codec import Shown
from dsms_server.postgres.peer import Peer
from dsms_server.postgres.work import asked
from dsms_server.worker import Steps, Urgency

_KINDS = pa.array(["delete", "result", "insert"])  # by sign, from -1 on
_AT = pa.timestamp("us")


class Stream:
    """One subscription, on its way to the client."""

    def __init__(self, feed: SubscriptionFeed, sub: Subscription) -> None:
        self.feed = feed
        names = [c.name for c in sub.columns]
        edge = types.edge_schema(names, feed.types)
        own = [pa.field("$kind", pa.string()), pa.field("$at", _AT)]
        self.schema = pa.schema([*own, *edge])
        self.columns: tuple[Shown, ...] = types.shown(self.schema)
        self.sub = sub
        self.waiting: list[pa.Table] = []
        self.over: DsmsError | None = None  # why nothing more comes
        self.woken: asyncio.Future[None] | None = None

    def wake(self) -> None:
        if self.woken is not None and not self.woken.done():
            self.woken.set_result(None)


class Streams:
    """Those of one session.  Belongs to the event loop."""

    def __init__(self, session: Peer) -> None:
        self.session = session
        self._open: dict[SubscriptionFeed, Stream] = {}
        self._cancelled: DsmsError | None = None
        self._waits: Stream | None = None

    async def subscribe(self, query: str) -> Stream:
        """Begin with the answer as it is now, if the query has one.  Raises what the engine
        does."""
        session, core = self.session, self.session.server.core
        feed = SubscriptionFeed(session, query, True)
        session.server.memory.check("a subscription")
        session.server.audit.check("subscribe")

        def steps() -> Steps:
            return (yield from core.delivery.subscribe_steps(feed, None, session.user))

        try:
            sub = await asked(session, "subscribe", lambda cancel: steps(), Urgency.CONTROL)
        except DsmsError as problem:
            session.server.audit.request("subscribe", session.account, feed.query, problem)
            raise
        if session.closed or feed.query in session.requests.feeds:
            self.session.requests.detach(feed)
            raise subscribed(feed.query)
        session.server.audit.request("subscribe", session.account, feed.query, None)
        session.requests.feeds[feed.query] = feed
        stream = self._open[feed] = Stream(feed, sub)
        core.delivery.grant(feed)
        return stream

    def deliver(self, feed: SubscriptionFeed, items: Sequence[Push | Chunk]) -> None:
        """Results have come."""
        stream = self._open.get(feed)
        if stream is None:
            return
        changes = Changes.of(items, stream.sub.columns)
        rows = [r for r in (_snapshot(changes, stream), _rows(changes, stream)) if r is not None]
        self.session.account.rows_out += sum(table.num_rows for table in rows)
        stream.waiting += rows
        if changes.end is not None:
            why = changes.end.message or "the subscription is over"
            stream.over = UsageError(changes.end.code or "DS620", why)
        elif not rows:
            self.session.server.core.delivery.grant(feed)
        stream.wake()

    def fail(self, feed: SubscriptionFeed, problem: DsmsError) -> None:
        """It is taken back."""
        stream = self._open.get(feed)
        if stream is not None:
            stream.over = problem
            stream.wake()

    async def take(self, stream: Stream, most: int, wait: float | None) -> pa.Table:
        """The next rows, `most` of them (0: all that are there): waits for one, for so many seconds
        (None: for ever).  Raises why there will be none."""
        await self._wait(stream, wait)
        if not stream.waiting:
            if stream.over is not None:
                raise stream.over
            return stream.schema.empty_table()
        table = pa.concat_tables(stream.waiting)
        taken = table.slice(0, most) if most else table
        rest = table.slice(taken.num_rows)
        stream.waiting = [rest] if rest.num_rows else []
        if not stream.waiting and stream.over is None:
            self.session.server.core.delivery.grant(stream.feed)
        return taken

    async def _wait(self, stream: Stream, wait: float | None) -> None:
        loop = self.session.server.loop
        self._cancelled, self._waits = None, stream
        stream.woken = loop.create_future()
        timer = None if wait is None else self.session.server.later(wait, stream.wake)
        try:
            if not stream.waiting and stream.over is None:
                with self.session.at_leisure():
                    await stream.woken
            if self._cancelled is not None:
                raise self._cancelled
        finally:
            self._waits, stream.woken = None, None
            if timer is not None:
                timer.cancel()

    def cancel(self, why: DsmsError) -> None:
        """Stop waiting."""
        if self._waits is not None:
            self._cancelled = why
            self._waits.wake()

    def close(self, stream: Stream) -> None:
        """It is not read any more."""
        self._open.pop(stream.feed, None)
        if self.session.requests.feeds.get(stream.feed.query) is stream.feed:
            del self.session.requests.feeds[stream.feed.query]
            self.session.requests.detach(stream.feed)
            self.session.server.audit.request(
                "unsubscribe", self.session.account, stream.feed.query
            )

    def lost(self) -> None:
        """The connection is gone."""
        self._open.clear()


def _snapshot(changes: Changes, stream: Stream) -> pa.Table | None:
    found = changes.snapshot
    if found is None or found.data is None or not found.data.num_rows:
        return None
    count = found.data.num_rows
    kinds = pa.array(["snapshot"] * count)
    ats = pa.array([found.at] * count, pa.int64())
    return _table(stream, kinds, ats, found.data)


def _rows(changes: Changes, stream: Stream) -> pa.Table | None:
    rows = changes.rows
    if rows is None or not len(rows):
        return None
    kinds = _KINDS.take(pa.array(rows.sign.astype(np.int64) + 1))
    from_the_first = rows.at < MIN_INSTANT
    return _table(stream, kinds, pa.array(rows.at, mask=from_the_first), rows.data)


def _table(stream: Stream, kinds: pa.Array, ats: pa.Array, data: pa.RecordBatch) -> pa.Table:
    edge = to_edge(data, stream.feed.types)
    return pa.table([kinds, ats.cast(_AT), *edge.columns], schema=stream.schema)
