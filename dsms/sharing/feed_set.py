"""Feeds that move together, because some query is answered from several of them (covers, Golab 2006, §8.3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dsms.operators.expressions import ErrorCounter
from dsms.sharing.feed import Feed
from dsms.state.batch import Batch


class FeedSet(Feed):
    """To its group it is one feed.  All have the same stream, keys and sub-windows; each has its own condition."""

    __slots__ = ("children",)

    def __init__(self, children: Iterable[Feed]) -> None:
        self.children = list(children)
        first = self.children[0]
        self.stream, self.where, self.space = first.stream, (), first.space
        self.span, self.phase, self.counted = first.span, first.phase, first.counted
        self.columns, self.pending, self.errors, self.predicate = {}, [], ErrorCounter(), None
        self.terms = None

    def __getstate__(self) -> dict[str, Any]:
        return {"children": self.children}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """From a checkpoint: all else is read off the children."""
        FeedSet.__init__(self, state["children"])

    @property
    def feeds(self) -> Sequence[Feed]:
        return self.children

    @property
    def open(self) -> int | None:  # type: ignore[override]
        """The furthest; those that had no rows for a while follow with the next `close`."""
        return max((f.open for f in self.children if f.open is not None), default=None)

    @property
    def began(self) -> int:  # type: ignore[override]
        """The first sub-window of any."""
        return min((f.began for f in self.children if f.open is not None), default=0)

    @property
    def rows(self) -> int:  # type: ignore[override]
        """How many wait."""
        return sum(f.rows for f in self.children)

    @property
    def newest(self) -> int:  # type: ignore[override]
        """The last sub-window that has rows."""
        return max(f.newest for f in self.children)

    @property
    def updates(self) -> int:  # type: ignore[override]
        """Sub-windows closed so far."""
        return max(f.updates for f in self.children)

    def push(self, rows: Batch) -> None:
        for feed in self.children:
            feed.push(rows)

    def flush(self) -> None:
        for feed in self.children:
            feed.flush()

    def close(self, number: int) -> None:
        self.flush()  # first all, so that they know the same groups
        for feed in self.children:
            feed.close(number)

    def jump(self, number: int) -> None:
        for feed in self.children:
            feed.jump(number)

    def trim(self, number: int) -> None:
        for feed in self.children:
            feed.trim(number)

    @property
    def nbytes(self) -> int:
        return sum(f.nbytes for f in self.children)
