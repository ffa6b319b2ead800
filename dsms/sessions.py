"""What statements see of the server that an engine runs in: its sessions, the memory that all of it
may take, and its sources and sinks.

An engine in a program of its own has none of them, and says so (DS661, DS446) or shows nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from dsms.errors import UsageError


@dataclass(frozen=True, slots=True)
class SessionLine:
    """A session.

    since          when it began, µs since the epoch
    state          idle, running, waiting (its statement has no place yet) or closing (its peer has
                   said all)
    statement      what it runs, cut short and without control characters; `seconds`: for how long
    rows_in        rows that it has sent, whatever became of them; rows_out: of answers and pushes
    waiting_bytes  of requests that are not answered, and of replies and results that it has not
                   read
    """

    id: int
    user: str | None
    client: str | None
    peer: str
    since: int
    state: str
    statement: str | None
    seconds: float | None
    rows_in: int
    rows_out: int
    waiting_bytes: int
    subscriptions: int


@dataclass(frozen=True, slots=True)
class MemoryLine:
    """`bytes` that `holder` has of a `part` of the memory; `limit`: at which that part is stopped,
    if there is one."""

    part: str
    holder: str | None
    bytes: int
    limit: int | None = None


class Caller(Protocol):
    """The session that a statement comes from."""

    statement_timeout: float
    """Seconds; 0: none."""

    def begins(self, text: str, statement: Any) -> bool:
        """A statement of that text is next; it is told again once it is parsed (an
        `ast.Statement`, None before).  Answers whether there is something to be waited for before
        it is done."""
        ...


def no_session(number: int) -> UsageError:
    """DS660, also for a session of which the user may not know."""
    return UsageError("DS660", f"there is no session {number}", hint="SHOW SESSIONS lists them")


class Sessions(Protocol):
    """The sessions of a server."""

    def lines(self) -> list[SessionLine]: ...

    def rows_per_second(self, user: str) -> int:
        """Rows that the user has sent in the last second, about."""
        ...

    def cancel(self, number: int, close: bool) -> str:
        """End what a session runs, or the session; a sentence that says what was done.  Raises
        DS660."""
        ...


class Memory(Protocol):
    """The memory that a server may take."""

    @property
    def limit(self) -> int | None:
        """Bytes that may be held in all; None: any number."""
        ...

    def lines(self) -> list[MemoryLine]:
        """What the server itself holds."""
        ...

    def check(self, what: str) -> None:
        """Raise DS625 if there is none left for something new."""
        ...

    def grow(self, what: str, more: int, held: Iterable[MemoryLine]) -> None:
        """Take so many bytes at once, with what the engine holds now.  Raises DS625 if they are
        not left."""
        ...

    def bound(self, size: int) -> int:
        """So many bytes for what is on its way, or fewer if that is too much of all there is."""
        ...

    def lent(self, most: int, who: Any) -> AbstractContextManager[int]:
        """Bytes for a statement that runs once, `most` or fewer, for the time that it runs.  Raises
        DS625.

        who  its `Cancel`, by which its session is known; or None"""
        ...


@dataclass(frozen=True, slots=True)
class ConnectorLine:
    """How a source or sink does.

    state       running, waiting (for the next try), failed (it is not tried again) or paused
    rows        that it has brought in or told since the server started; `rejected`: messages and
                rows that were none
    lag         what it has not brought in or told yet, as far as that is known: rows or messages
    error       the last one, on one line, even if it runs again
    restarts    since the server started
    position    where it stands: for a source of the other side, for a sink the next result row
    since       when it came into its state, µs since the epoch
    """

    state: str
    rows: int = 0
    rejected: int = 0
    lag: int | None = None
    error: str | None = None
    restarts: int = 0
    position: str | None = None
    since: int | None = None


class Connectors(Protocol):
    """What runs the sources and sinks that are declared."""

    def check(
        self, kind: str, connector: str, options: Mapping[str, Any], place: tuple[int, int]
    ) -> None:
        """Raise DS447, DS448, DS449, DS663 if there can be none of that kind with these
        options.  `place`: line and column of the statement"""
        ...

    def changed(self) -> None:
        """There are others now, or a state is asked for anew."""
        ...

    def retry(self, key: str) -> None:
        """One that waits or has failed is to be tried at once."""
        ...

    def line(self, key: str) -> ConnectorLine:
        """How the source or sink of that key does."""
        ...
