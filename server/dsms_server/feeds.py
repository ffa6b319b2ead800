"""A session's subscription: what it has been handed so far, and whether it has room for more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from dsms.api import Chunk, NetChange, Push, Subscription
from dsms.errors import DsmsError, UsageError


class Reader(Protocol):
    """What takes the pushes of a feed (a session); called on the event loop."""

    def deliver(self, feed: SubscriptionFeed, items: list[Push | Chunk]) -> None: ...

    def take_back(
        self, feed: SubscriptionFeed, problem: DsmsError, seq: int | None = None
    ) -> None: ...


def asked_for(reader: Reader, message: Mapping[str, Any], changes: bool) -> SubscriptionFeed:
    """What a `subscribe` asks for; `changes`: as its session has it.  Raises DS604."""
    conflate = message.get("conflate", False)
    if conflate and not message.get("changes", True):
        raise UsageError(
            "DS604",
            "conflate: true comes as changes, and changes: false refuses these",
            hint="leave `changes` out",
        )
    return SubscriptionFeed(reader, message["query"], message.get("changes", changes), conflate)


class SubscriptionFeed:
    """One session's subscription.  All but `credit` belongs to the engine thread until the
    subscribe is answered."""

    __slots__ = (
        "changes",
        "conflate",
        "credit",
        "dropped",
        "next_seq",
        "query",
        "reader",
        "share",
        "snapshot",
        "sub",
        "types",
    )

    def __init__(
        self, reader: Reader, query: str, changes: bool = False, conflate: bool = False
    ) -> None:
        self.reader = reader
        self.query = query
        self.changes = changes or conflate  # rows of all kinds in one push
        self.conflate = conflate  # the net change of what it has not had
        self.sub: Subscription | None = None
        self.types: tuple[str, ...] = ()
        self.next_seq = 0  # of the row after the last one handed over
        self.snapshot = False  # what comes first is one
        self.share: float | None = None  # of the rows that came, kept as it was handed these over
        self.dropped = False  # the engine gave up on a reader that is too slow
        self.credit = False  # the reader has room for what comes next

    @property
    def source(self) -> str:
        """What its query is called now; `query` is the name that it was asked for by."""
        return self.query if self.sub is None else self.sub.source

    def number(self, item: Push | Chunk) -> Push | Chunk:
        """The item, with the number of the next row if it has none; `next_seq` moves behind it."""
        if isinstance(item, Push) and item.seq < 0:
            return replace(item, seq=self.next_seq)
        match item:
            case NetChange():
                count = 0
            case Chunk():
                count = len(item)
            case Push(kind="insert" | "delete" | "result", data=data) if data is not None:
                count = data.num_rows
            case _:
                count = 0
        self.next_seq = item.seq + count
        return item


def subscribed(query: str) -> UsageError:
    return UsageError("DS643", f"this session has a subscription to {query} already")
