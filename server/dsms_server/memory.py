"""One budget for the memory of a server: who holds what, and who is refused when it is used up.

    requests, replies   bytes that sessions have sent and not been answered, been sent and not read
    statements          lent to plans that run once, for the time that they run; at most half of the
                        budget
    all else            what the engine holds, as it says itself (`dsms.commands.show_memory`),
                        looked at every so often
    rows                that come count as what the engine has grown by for rows of their size

Who asks for more than there is gets DS625: rows, statements that run once, declarations,
subscriptions.  What drops or shows something goes on, and so does what is registered:
`--state-bytes` is the limit of a query.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager

from dsms.api import Cancel
from dsms.errors import UsageError
from dsms.sessions import MemoryLine
from dsms_server.freed import WORTH, Freed
from dsms_server.parties import Peer

LEAST = 8 << 20  # bytes with which a plan can be run at all
SELDOM = 100  # a look at what the engine holds may take one in so many seconds
MIB = 1 << 20
ENOUGH = 1 << 16  # bytes of rows by which growth is judged
STEEPEST = 64.0
FAR = 8  # one in so many bytes of the budget
SHARE = 16  # ... but there is one when one in so many bytes of the budget may have come or gone


class Memory:
    """`limit`: bytes; None: there is none.  `sessions` gives those that there are; any thread may
    ask."""

    def __init__(self, limit: int | None, sessions: Callable[[], Iterable[Peer]]) -> None:
        self.limit = limit
        self._sessions = sessions
        self._lock = threading.Lock()
        self._lent: dict[Cancel, int] = {}
        self._engine: Counter[str] = Counter()
        self._held = 0  # bytes of it in all
        self.requests = self.replies = 0  # kept by the server
        self.arrived = 0  # bytes of rows since the last look; kept by the server
        self._waited = 0  # bytes of requests that were not answered at the last look
        self._steep = 0.0  # bytes that the engine grew by for each byte of rows, at most of late
        self._next_look = 0.0
        self._worth = WORTH if limit is None else min(WORTH, limit // SHARE)
        self._freed = Freed(self._worth)

    # -- what there is -----------------------------------------------------------------------------

    @property
    def used(self) -> int:
        """Bytes of all parts."""
        lent = sum(list(self._lent.values())) if self._lent else 0
        return self.requests + self.replies + self._held + lent

    @property
    def pressing(self) -> int:
        """Bytes beyond three quarters of the budget, for which what nobody has asked to keep goes:
        a quarter is what a statement takes."""
        return 0 if self.limit is None else max(0, self.used - self.limit // 4 * 3)

    def parts(self) -> dict[str, int]:
        """Bytes by part."""
        own = {
            "requests": self.requests,
            "replies": self.replies,
            "statements": sum(list(self._lent.values())),
        }
        return {**self._engine, **own}

    def is_due(self, now: float) -> bool:
        """Whether the last look at what the engine holds is long enough ago, or much has come
        since."""
        return now >= self._next_look or self.arrived * max(1.0, self._steep) >= self._worth

    def looking(
        self, held: Callable[[], Iterable[MemoryLine]], elapsed: Callable[[], float]
    ) -> Generator[None, None, None]:
        """Ask the engine, in its thread, what it holds: a line at a time, so that others go in
        between."""
        began = going = elapsed()
        took, lines = 0.0, []
        arrived, requests = self.arrived, self.requests
        for line in held():
            lines.append(line)
            took += elapsed() - going
            yield
            going = elapsed()
        self._see(lines, arrived, requests)
        self._freed.look(self._held)
        took += elapsed() - going
        self._next_look = began + max(1.0, SELDOM * took)

    def _see(self, held: Iterable[MemoryLine], arrived: int, requests: int) -> None:
        """`arrived`, `requests`: as they were at the beginning of the look."""
        found: Counter[str] = Counter()
        for line in held:
            found[line.part] += line.bytes
        applied = self._waited + arrived - requests
        total = found.total()
        if applied >= ENOUGH:
            steep = (total - self._held) / applied
            self._steep = min(STEEPEST, max(steep, self._steep / 2))
        self._engine, self._held = found, total
        self.arrived, self._waited = max(0, self.arrived - arrived), requests

    def bound(self, size: int) -> int:
        """A bound of the server on bytes on their way, or a quarter of the budget if that is
        less."""
        return size if self.limit is None else min(size, self.limit // 4)

    def lines(self) -> list[MemoryLine]:
        """Of the parts that are the server's, a line for each session."""
        lines = []
        for session in list(self._sessions()):
            name = f"session {session.account.id}"
            held = {"requests": session.unprocessed, "replies": session.unread}
            lines += [MemoryLine(part, name, size) for part, size in held.items() if size]
        lent = list(self._lent.items())
        return [*lines, *(MemoryLine("statements", self._holder(who), size) for who, size in lent)]

    def _holder(self, who: Cancel) -> str | None:
        for session in list(self._sessions()):
            work = session.account.work
            if work is not None and work.cancel is who:
                return f"session {session.account.id}"
        return None

    # -- who asks ----------------------------------------------------------------------------------

    def check(self, what: str) -> None:
        """Raise DS625 if there is none left for `what`."""
        if self.limit is not None and (used := self.used) >= self.limit:
            raise _none_left(what, used, self.limit)

    def take_rows(self, size: int) -> None:
        """Rows of so many bytes come.  Raises DS625 if there is none left, or where what they would
        grow to, with those that have come since the last look, goes far beyond it."""
        if self.limit is not None:
            if (used := self.used) >= self.limit:
                raise _none_left("rows", used, self.limit)
            more = int((self.arrived + size) * self._steep)
            if used + more >= self.limit + self.limit // FAR:
                raise _none_left(f"rows that take {more / MIB:.1f} MiB", used, self.limit)
        self.arrived += size

    def grow(self, what: str, more: int, held: Iterable[MemoryLine]) -> None:
        """Take `more` bytes, which count until the next look finds them; the engine's thread asks,
        with what it holds.  Raises DS625 if they are not left."""
        self._see(held, self.arrived, self.requests)
        if self.limit is not None and (used := self.used) + more > self.limit:
            raise _none_left(f"{what} of {more / MIB:.1f} MiB", used, self.limit)
        self._engine["streams"] += more
        self._held += more

    @contextmanager
    def lent(self, most: int, who: Cancel | None) -> Iterator[int]:
        """Bytes for a plan that runs once: `most`, or as much as leaves some for the next one.
        Raises DS625."""
        who = who or Cancel()
        size = most
        with self._lock:
            if self.limit is not None:
                statements = sum(self._lent.values())
                left = min((self.limit // 2 - statements) // 2, self.limit - self.used)
                size = most if most <= left else _round(left)
                if size < min(most, LEAST):
                    raise _none_left("a statement", self.used, self.limit)
            self._lent[who] = size
        try:
            yield size
        finally:
            with self._lock:
                del self._lent[who]


def _round(size: int) -> int:
    """A power of two, as a connection to DuckDB is made anew for each other limit."""
    return 1 << (size.bit_length() - 1) if size > 0 else 0


def _none_left(what: str, used: int, limit: int) -> UsageError:
    message = f"there is no memory left for {what}: {used >> 20} MiB of {limit >> 20} MiB are held"
    return UsageError("DS625", message, hint="SHOW MEMORY says by whom; the limit is --memory")
