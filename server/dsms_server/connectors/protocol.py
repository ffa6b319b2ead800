"""What a connector is.

A module has one `CONNECTOR`, of a source, a sink or both, and is found by its name in
`registry.py` or by an entry point of the group ``dsms.connectors``.  All of it runs in the server's
event loop, so it awaits whatever takes time; what only blocks goes to `self.apart`.
Whatever it raises is told to users (`SHOW SOURCES`), and it is begun anew after a while, from where
it stood; a `Failed` ends that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from dsms.errors import UsageError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Option:
    """One of WITH (...).

    kind      text, whole (a number), number, flag, length (seconds, from `5 s`) or secret
    default   None: it may be left out, and then is None
    words     of a text that is one of these"""

    name: str
    meaning: str
    kind: str = "text"
    default: Any = None
    needed: bool = False
    words: tuple[str, ...] = ()


class Writes(Protocol):
    """Result rows as messages (`dsms_server.connectors.formats.base.Writing`).  It may take a
    while: `Sink.lines` and `Sink.whole` call it in a thread."""

    @property
    def media(self) -> str:
        """The media type."""
        ...

    def lines(self, told: Told) -> list[bytes]: ...

    def whole(self, told: Told) -> bytes: ...

    def head(self, told: Told) -> bytes: ...

    def table(self, told: Told) -> pa.Table: ...


@dataclass(frozen=True, slots=True)
class Place:
    """What a connector may know of the server that runs it.

    name     what the source or sink is called: unique among its kind, and stays
    files    folders below which files may be read and written
    changes  of a sink: rows of its query also leave (`Told.signs`)
    columns  of a sink: names of the columns, and types as SQL has them
    writing  of a sink: makes messages, as WITH (format = ...) says"""

    name: str
    files: tuple[str, ...] = ()
    changes: bool = False
    columns: tuple[tuple[str, str], ...] = ()
    writing: Writes | None = None


class Failed(UsageError):
    """It makes no sense to try again: somebody has to change something, and then RESUME it."""


class Unreachable(UsageError):
    """The other side is not there, or has gone: it is tried again."""


@dataclass(slots=True)
class Messages:
    """What a source brings: messages, each of one row or several as its format has it, or rows.

    position  where the source stands behind them: whatever JSON can say; None: the other side
              keeps that (`Source.commit`)
    beside    of each message, what the other side says beside it: topic, key, ...
    header    of formats whose first line names columns: that line, where it came earlier
    receipt   whatever `Source.commit` needs to know of them
    """

    bodies: Sequence[bytes] = ()
    position: Any = None
    beside: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    rows: pa.Table | None = None
    header: bytes | None = None
    receipt: Any = None

    def __len__(self) -> int:
        return len(self.bodies) if self.rows is None else self.rows.num_rows


class Apart:
    """Something with a thread of its own for what blocks, from when it is first needed."""

    _thread: ThreadPoolExecutor | None = None

    async def apart(self, function: Callable[..., T], *args: Any) -> T:
        """Run it in that thread."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="dsms-connector")
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *args)

    def end_thread(self) -> None:
        """Once what it does is done; nobody waits for that."""
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)


class Source(Apart):
    """Rows from elsewhere.  One object is one connection: after a fault another one is made.

    lag  how many messages wait at the other side, if it says so
    """

    options: ClassVar[tuple[Option, ...]] = ()
    needs_format: ClassVar[bool] = True
    """Whether it brings messages, which WITH (format = ...) says how to read."""
    beside: ClassVar[tuple[str, ...]] = ()
    """What it says beside each message; WITH (word_column = 'c') puts that into a column."""

    def __init__(self, options: Mapping[str, Any], place: Place) -> None:
        self.said = options
        self.place = place
        self.lag: int | None = None

    async def open(self, position: Any) -> Any:
        """Connect, to go on behind `position` (None: from the beginning, or as options say).
        Answers the position where it begins; None: the other side keeps it."""
        return position

    def read(self) -> AsyncIterator[Messages]:
        """What comes, for ever: some thousand messages at a time where they are there, none that
        waits for others to come.  It is asked for more when there is room."""
        raise NotImplementedError

    async def commit(self, messages: Messages) -> None:
        """The rows of these messages, which `read` gave, are the stream's, and those before them:
        the other side may forget them."""

    async def close(self) -> None:
        """Let go of everything, whatever has happened before."""


@dataclass(slots=True)
class Told:
    """Result rows of a query, in order.

    rows      the values, TIMESTAMP as timestamp[us] (UTC, naive)
    signs     int8[n]: 1 enters, -1 leaves, 0 is part of a periodic answer
    ats       int64[n]: each row's instant, µs
    first     the number of the first row; the others follow
    upto      the number of the row behind the last
    snapshot  the answer as it stands: it takes the place of all that was told before
    """

    rows: pa.Table
    signs: np.ndarray
    ats: np.ndarray
    first: int
    upto: int
    snapshot: bool = False

    def __len__(self) -> int:
        return self.rows.num_rows

    def parts(self, most: int | None) -> Iterator[Told]:
        """The same, at most so many rows at a time; a snapshot stays whole."""
        if most is None or len(self) <= most or self.snapshot:
            yield self
            return
        for start in range(0, len(self), most):
            rows, signs = self.rows.slice(start, most), self.signs[start : start + most]
            first, ats = self.first + start, self.ats[start : start + most]
            yield Told(rows, signs, ats, first, first + len(rows))


class Sink(Apart):
    """Results to elsewhere.  One object is one connection: after a fault another one is made."""

    options: ClassVar[tuple[Option, ...]] = ()
    needs_format: ClassVar[bool] = True
    """Whether it writes messages, which WITH (format = ...) says how to write."""

    def __init__(self, options: Mapping[str, Any], place: Place) -> None:
        self.said = options
        self.place = place
        self.at_once: int | None = None  # rows that it is told at a time, at most

    async def lines(self, told: Told) -> list[bytes]:
        """A message for each row."""
        assert self.place.writing is not None
        return await self.apart(self.place.writing.lines, told)

    async def whole(self, told: Told) -> bytes:
        """One message for all rows."""
        assert self.place.writing is not None
        return await self.apart(self.place.writing.whole, told)

    async def open(self, note: Any) -> int | None:
        """Connect.  `note`: what the last `write` that was kept has answered, None at first.
        Answers the number of the next result row where the other side keeps that, else None."""
        return None

    async def write(self, told: Told) -> Any:
        """Tell the rows; when it returns they are there.  What it answers (JSON can say it) is
        kept with the number of the row behind them, and given to `open` again.

        A fault between the two: the same rows come once more, and perhaps others behind them."""
        raise NotImplementedError

    async def close(self) -> None:
        """Let go of everything, whatever has happened before."""


@dataclass(frozen=True, slots=True)
class Connector:
    """A kind of connector.

    library  the module that it needs, and `extra`: what ``pip install 'dsms[extra]'`` calls it
    """

    name: str
    source: type[Source] | None = None
    sink: type[Sink] | None = None
    library: str | None = None
    extra: str | None = None
