"""How far a read transaction has come over one ring, in three reading orders.

Sub-windows have absolute numbers: the update that made number j replaced number j - size in slot j
mod size.  A reader over the youngest n sub-windows reads newest - n + 1 .. newest, each once.

Conflict  When update j comes, number j - n leaves the reader's window.  A reader that wants the
          latest state must start again if it has read it: `B[(j + n - n_k) mod n]` of Golab 2006,
          Algorithms 7 and 8.  All numbers read lie in the window before the update, so looking at
          the oldest one read is enough, however far the window moves.
Order     oldest first, as of the start    a snapshot: old sub-windows can be let go as early as
          possible
          by slot                          Algorithm 7: as stored
          youngest first                   Algorithm 8: the longest time to update first.  A new
                                           sub-window goes before all others, so the oldest is read
                                           last, and then the reader is done
Twin      tests/test_transactions_thesis.py: both algorithms with bit arrays, line by line.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator

NONE_YET = 1 << 62


class Scan(ABC):
    """One reader on one ring.

    newest   the youngest sub-window of the state that is being read
    version  the updates of the ring that this state has seen
    length   how many sub-windows the reader reads;  left: how many it still has to read
    """

    __slots__ = ("left", "length", "newest", "oldest_read", "size", "version")

    def __init__(self, length: int, size: int, newest: int, version: int) -> None:
        self.length, self.size, self.newest, self.version = length, size, newest, version
        self.oldest_read, self.left = NONE_YET, length

    @abstractmethod
    def take(self) -> int:
        """The next one's number; it counts as read from now on."""

    @abstractmethod
    def move(self, newest: int, version: int) -> bool:
        """The ring was updated; True: this reader has read what has left its window and must start
        again."""

    @abstractmethod
    def missed(self, number: int) -> bool:
        """Whether rows inserted into that sub-window now belong to the state read, yet will not be
        read."""

    def urgency(self) -> tuple[bool, int]:
        """Which ring of several goes first: the greatest.  Without an opinion, the first one that
        has any left."""
        return (False, 0)


class SnapshotOrder(Scan):
    """The window as of the start, oldest first.  Updates change nothing."""

    __slots__ = ("_next",)

    def __init__(self, length: int, size: int, newest: int, version: int) -> None:
        super().__init__(length, size, newest, version)
        self._next = newest - length + 1

    def take(self) -> int:
        self.left -= 1
        self._next += 1
        return self._next - 1

    def move(self, newest: int, version: int) -> bool:
        return False

    def missed(self, number: int) -> bool:
        return False

    def unread_below(self, limit: int) -> Iterator[int]:
        """Numbers still to read that are smaller than `limit`."""
        return iter(range(self._next, min(limit, self.newest + 1)))


class _Latest(Scan):
    """What both orders over the latest state share."""

    __slots__ = ("_read",)

    def __init__(self, length: int, size: int, newest: int, version: int) -> None:
        super().__init__(length, size, newest, version)
        self._read: set[int] = set()

    def move(self, newest: int, version: int) -> bool:
        before, self.newest, self.version = self.newest, newest, version
        if self.oldest_read <= newest - self.length:
            return True
        self._enter(range(max(before, newest - self.length) + 1, newest + 1))
        return False

    def missed(self, number: int) -> bool:
        return number in self._read

    def _took(self, number: int) -> int:
        self.left -= 1
        self._read.add(number)
        if number < self.oldest_read:
            self.oldest_read = number
        return number

    @abstractmethod
    def _enter(self, numbers: range) -> None:
        """Those are in the window now."""


class StorageOrder(_Latest):
    """The smallest slot that has not been read."""

    __slots__ = ("_unread",)

    def __init__(self, length: int, size: int, newest: int, version: int) -> None:
        super().__init__(length, size, newest, version)
        self._unread: list[tuple[int, int]] = []
        self._enter(range(newest - length + 1, newest + 1))

    def take(self) -> int:
        while True:
            _, number = heapq.heappop(self._unread)
            if number > self.newest - self.length:
                return self._took(number)

    def _enter(self, numbers: range) -> None:
        for number in numbers:
            heapq.heappush(self._unread, (number % self.size, number))


class YoungestFirst(_Latest):
    """The sub-window that is updated last.

    One read between any two updates of the ring is enough never to be aborted: with r read, u new
    ones unread and r + u <= n, an update aborts only if r + u = n, which after a read means u = 0
    and r = n: done.
    """

    __slots__ = ("_began", "_unread")

    def __init__(self, length: int, size: int, newest: int, version: int) -> None:
        super().__init__(length, size, newest, version)
        # ascending; what leaves falls off
        self._unread = deque(range(newest - length + 1, newest + 1), maxlen=length)
        self._began = newest

    def take(self) -> int:
        return self._took(self._unread.pop())

    def urgency(self) -> tuple[bool, int]:
        """What came after the first read goes first (that makes no abort likelier), then the
        longest time to update: in how many updates the sub-window leaves this reader's window."""
        number = self._unread[-1]
        return (number > self._began and bool(self._read), number - (self.newest - self.length))

    def _enter(self, numbers: range) -> None:
        if not self._read:
            self._began = self.newest
        self._unread.extend(numbers)
