"""Feeds that move together, because some query is answered from several of them (covers, Golab
2006, §8.3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from dsms.sharing.column import AggregateColumn
from dsms.sharing.feed import Feed
from dsms.sharing.key_space import KeySpace
from dsms.sql.expr import AggCall
from dsms.state.batch import Batch


class FeedSet:
    """To its group it is one feed.  All have the same stream, keys and sub-windows; each has its
    own condition."""

    __slots__ = ("columns", "counted", "feeds", "phase", "space", "span", "stream")

    def __init__(self, feeds: Iterable[Feed]) -> None:
        self.feeds: Sequence[Feed] = list(feeds)
        first = self.feeds[0]
        self.stream: str = first.stream
        self.space: KeySpace = first.space
        self.span, self.phase, self.counted = first.span, first.phase, first.counted
        self.columns: dict[AggCall, AggregateColumn] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"children": self.feeds}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """From a checkpoint: all else is read off the feeds."""
        FeedSet.__init__(self, state["children"])

    @property
    def open(self) -> int | None:
        """The furthest; those that had no rows for a while follow with the next `close`."""
        return max((f.open for f in self.feeds if f.open is not None), default=None)

    @property
    def began(self) -> int:
        """The first sub-window of any."""
        return min((f.began for f in self.feeds if f.open is not None), default=0)

    @property
    def nbytes(self) -> int:
        return sum(f.nbytes for f in self.feeds)

    def number(self, instant: int) -> int:
        return self.feeds[0].number(instant)

    def numbers(self, instants: np.ndarray) -> np.ndarray:
        return self.feeds[0].numbers(instants)

    def push(self, rows: Batch) -> None:
        for feed in self.feeds:
            feed.push(rows)

    def pushing(self, rows: Batch) -> Iterator[None]:
        for feed in self.feeds:
            yield from feed.pushing(rows)

    def flush(self) -> None:
        for feed in self.feeds:
            feed.flush()

    def close(self, number: int) -> None:
        for _ in self.closing(number):
            pass

    def closing(self, number: int) -> Iterator[None]:
        for feed in self.feeds:  # first all, so that they know the same groups
            yield from feed.lifting()
        for feed in self.feeds:
            yield from feed.closing(number)

    def jump(self, number: int) -> None:
        for feed in self.feeds:
            feed.jump(number)

    def trim(self, number: int) -> None:
        for feed in self.feeds:
            feed.trim(number)
