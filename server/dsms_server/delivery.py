"""Results on their way from the engine to the readers that have room for them."""

from __future__ import annotations

import asyncio

from dsms.api import Chunk, Push
from dsms_server.commit import Committer
from dsms_server.face import EngineFace
from dsms_server.feeds import SubscriptionFeed
from dsms_server.names import Names
from dsms_server.slices import nothing, whole
from dsms_server.worker import EngineJob, Steps, Urgency, Worker


class Delivery:
    """`grant` and `settled` belong to the event loop, all else to the engine's thread.

    ready         feeds for which something waits
    slow_readers  feeds that ended for slowness"""

    def __init__(
        self,
        engine: EngineFace,
        worker: Worker,
        names: Names,
        committer: Committer,
        loop: asyncio.AbstractEventLoop,
        subscriber_bytes: int,
    ) -> None:
        self._engine = engine
        self._worker = worker
        self._names = names
        self._committer = committer
        self._loop = loop
        self._subscriber_bytes = subscriber_bytes
        self._flushing = False
        self.ready: set[SubscriptionFeed] = set()
        self.slow_readers = 0

    def subscribe_steps(
        self, feed: SubscriptionFeed, start: int | None, user: str | None = None
    ) -> Steps:
        """Attach the feed; no push is handed over before `grant`.

        What is given at once (a snapshot, the log from `start` on) is shared with the engine and
        may be of any size; the limit is for what comes after it.  As much again may wait in the
        session, hence half of it here.
        """
        yield from whole(self._engine)
        self._names.check(user, "subscribe", feed.query)
        while self._engine.arrives(feed.query):
            yield None
        feed.next_seq = start or 0
        feed.sub = self._engine.subscribe(
            feed.query,
            start,
            1 << 62,
            on_ready=lambda: self.ready.add(feed),
            conflate=feed.conflate,
        )
        feed.sub.reported_limit = self._subscriber_bytes
        feed.snapshot = any(
            isinstance(item, Push) and item.kind == "snapshot" for item in feed.sub.waiting
        )
        if start is None:
            feed.next_seq = self._engine.next_seq(feed.sub.query)
        feed.sub.limit_bytes = feed.sub.pending_bytes + self._subscriber_bytes // 2
        feed.query = feed.sub.query
        feed.types = tuple(c.type for c in feed.sub.columns)
        return feed.sub

    def unsubscribe_steps(self, feed: SubscriptionFeed) -> Steps:
        yield from whole(self._engine)
        self.ready.discard(feed)
        if feed.sub is not None:
            if not feed.sub.closed:
                self._engine.unsubscribe(feed.sub)
            feed.sub.on_ready = None  # which knows the feed, as the feed knows it

    def grant(self, feed: SubscriptionFeed) -> None:
        """The reader has room: hand over what waits now, or what comes next.

        The order matters: either the engine thread sees the credit, or we see that something waits.
        """
        feed.credit = True
        if feed in self.ready and not self._flushing:
            self._flushing = True
            self._worker.submit(
                EngineJob(self._flush_steps, nothing, Urgency.CONTROL, kind="grant")
            )

    def _flush_steps(self) -> Steps:
        self._flushing = False  # the slice ends with `hand_over`
        return
        yield

    def settled(self, feed: SubscriptionFeed) -> bool:
        """Whether all that the engine gave so far has gone to the reader's socket."""
        return feed.credit and feed not in self.ready

    def hand_over(self) -> None:
        """After a slice: what waits goes to the readers that have room."""
        if not self.ready:
            return
        for feed in self.ready:
            # ended for slowness while the reader had no room
            if feed.sub is not None and feed.sub.closed and not feed.credit and not feed.dropped:
                feed.dropped = True
                self.slow_readers += 1
        for feed in [f for f in self.ready if f.credit]:
            items = feed.sub.take_chunks() if feed.sub is not None else []
            if items and feed.sub is not None:
                feed.sub.limit_bytes = self._subscriber_bytes // 2
                feed.credit = False
                feed.share = feed.sub.share_kept()
            self.ready.discard(feed)  # after the credit: `settled` must not see it without both
            if items:
                self._deliver(feed, [feed.number(item) for item in items])

    def _deliver(self, feed: SubscriptionFeed, items: list[Push | Chunk]) -> None:
        """Hand items to the reader: at once, or when the rows that they come from are where `sync`
        wants them."""
        if not self._engine.uncommitted("sync"):
            self._give(feed, items)
        else:
            kept = self._committer.wait()
            kept.add_done_callback(lambda _: self._give(feed, items))

    def _give(self, feed: SubscriptionFeed, items: list[Push | Chunk]) -> None:
        """Unless they could not be kept: a reader that was told of them would be told others of
        those numbers after a restart."""
        problem = self._engine.untold(feed.source)
        if problem is None:
            self._loop.call_soon_threadsafe(feed.reader.deliver, feed, items)
        else:
            self._loop.call_soon_threadsafe(feed.reader.take_back, feed, problem, items[0].seq)
