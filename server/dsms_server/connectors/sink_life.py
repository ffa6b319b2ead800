"""A sink at work: result rows of a query, in order, to the other side.

Delivery.  Result rows are numbered without gaps, and after a restart the same rows have the same
numbers: a sink begins at the number that the other side keeps, or else at the one that was kept
here behind the last rows that it took.  The former is exactly once; with the latter the rows that
were told last may be told again.  A query whose log has let go of the next row can't go on
(DS666)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from dsms.api import Chunk, Push, Subscription, joined
from dsms.errors import DsmsError
from dsms.sql.catalog import ConnectorDef
from dsms.tabular.tables import own_names, to_edge
from dsms_server.connectors.context import Context
from dsms_server.connectors.protocol import Failed, Sink, Told, Unreachable
from dsms_server.connectors.supervisor import Supervised
from dsms_server.feeds import SubscriptionFeed
from dsms_server.slices import nothing
from dsms_server.worker import EngineJob, Steps, Urgency

SLOW, NO_ROWS = "DS620", "DS409"


class Inbox:
    """Takes what a feed is handed (`dsms_server.feeds.Reader`), in the event loop."""

    def __init__(self) -> None:
        self._items: list[Push | Chunk] = []
        self._problem: DsmsError | None = None
        self._came = asyncio.Event()

    def deliver(self, feed: SubscriptionFeed, items: list[Push | Chunk]) -> None:
        self._items += items
        self._came.set()

    def take_back(self, feed: SubscriptionFeed, problem: DsmsError, seq: int | None = None) -> None:
        self._problem = problem
        self._came.set()

    async def take(self) -> list[Push | Chunk]:
        """What has come.  Raises what ended the feed."""
        await self._came.wait()
        self._came.clear()
        if self._problem is not None:
            raise Unreachable(self._problem.code, self._problem.message)
        items, self._items = self._items, []
        return items


class SinkLife:
    def __init__(
        self, context: Context, definition: ConnectorDef, values: Mapping[str, Any]
    ) -> None:
        self._context = context
        self._definition = definition
        self._values = values

    @property
    def _name(self) -> str:
        return position_name(self._definition)

    async def __call__(self, watched: Supervised) -> None:
        context = self._context
        changes, columns = await context.core.worker.call(self._query)
        loop = asyncio.get_running_loop()
        number, note = await loop.run_in_executor(context.pool, context.positions.load, self._name)
        sink = context.sink(self._definition, self._values, watched, changes, columns)
        try:
            there = await sink.open(note)
            number = there if there is not None else number
            watched.stands(None if number is None else str(number))
            while True:
                number = await self._told(sink, number, watched)
        finally:
            await sink.close()
            sink.end_thread()

    def _query(self) -> tuple[bool, tuple[tuple[str, str], ...]]:
        """Whether rows of its answer leave, and its columns.  In the engine's thread."""
        engine = self._context.core.engine
        name = engine.called(self._definition.object)
        known = engine.names()["queries"]
        if name not in known:
            raise Failed("DS666", f"there is no query {name} any more")
        return engine.tells_signs(name), tuple((c.name, c.type) for c in known[name])

    async def _told(self, sink: Sink, number: int | None, watched: Supervised) -> int | None:
        """Tell what comes, until it came faster than it was told; the number to go on with."""
        core, inbox = self._context.core, Inbox()
        query = core.engine.called(self._definition.object)
        feed = SubscriptionFeed(inbox, query, changes=True)
        start = 0 if number is None and self._values["start"] == "beginning" else number
        try:
            sub: Subscription = await core.worker.work(
                lambda: core.delivery.subscribe_steps(feed, start), Urgency.CONTROL
            )
        except DsmsError as problem:
            if problem.code == NO_ROWS:
                hint = "DROP it and make it again; a larger result_log of the query keeps more"
                raise Failed("DS666", problem.message, hint=hint) from None
            raise
        try:
            if number is None and not feed.snapshot:
                await self._keep(feed.next_seq if start is None else start, None, watched)
            watched.works(lambda: _lag(core.engine.results_of(feed.source), watched.position))
            core.delivery.grant(feed)
            while True:
                items = await inbox.take()
                for told in (p for t in tellings(items, sub) for p in t.parts(sink.at_once)):
                    kept = await sink.write(told)
                    number = told.upto
                    await self._keep(number, kept, watched)
                    watched.took(len(told))
                if _ended(items):
                    return number
                core.delivery.grant(feed)
        finally:
            steps = partial(_unsubscribed, core.delivery.unsubscribe_steps, feed)
            core.worker.submit(EngineJob(steps, nothing, Urgency.CONTROL))

    async def _keep(self, number: int, note: Any, watched: Supervised) -> None:
        pool, save = self._context.pool, self._context.positions.save
        await asyncio.get_running_loop().run_in_executor(pool, save, self._name, number, note)
        watched.stands(str(number))


def position_name(definition: ConnectorDef) -> str:
    """Under which is kept where a sink stands."""
    return f"{definition.home}#{definition.number}"


def _unsubscribed(steps: Any, feed: SubscriptionFeed) -> Steps:
    return (yield from steps(feed))


def _lag(made: int | None, position: str | None) -> int | None:
    """Result rows that are not told yet."""
    return None if made is None or position is None else max(0, made - int(position))


def _ended(items: Sequence[Push | Chunk]) -> bool:
    """Whether the feed has ended as what waited was too much: it goes on from the log.  Raises why
    it has ended otherwise."""
    for item in items:
        if isinstance(item, Push) and item.kind == "end":
            if item.code == SLOW:
                return True
            raise Unreachable(item.code or "DS666", item.message or "the query has ended")
    return False


def tellings(items: Sequence[Push | Chunk], sub: Subscription) -> list[Told]:
    """What a feed was handed, for a sink: rows that follow each other together."""
    types = [c.type for c in sub.columns]
    out: list[Told] = []
    chunks: list[Chunk] = []

    def flush() -> None:
        if chunks:
            whole = joined(chunks)
            rows = own_names(to_edge(whole.data, types))
            out.append(Told(rows, whole.sign, whole.at, whole.seq, whole.seq + len(whole)))
            chunks.clear()

    for item in items:
        if isinstance(item, Chunk):
            if len(item):
                chunks.append(item)
        elif item.kind == "snapshot" and item.data is not None:
            flush()
            rows = own_names(to_edge(item.data, types))
            count, at = rows.num_rows, 0 if item.at is None else item.at
            signs, ats = np.ones(count, np.int8), np.full(count, at, np.int64)
            out.append(Told(rows, signs, ats, item.seq, item.seq, True))
    flush()
    return out
