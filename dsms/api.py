"""What goes in and out of the engine: results, pushes, reports.  Plain data, shared by engine, server and tests.

Instants are int64 microseconds since the epoch, UTC.  Row data is Arrow with physical types (`dsms.sql.types`):
TIMESTAMP and INTERVAL are int64 microseconds here and become Arrow timestamps only at the outermost edge.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from dsms.errors import UsageError

PushKind = Literal["snapshot", "insert", "delete", "result", "progress", "end"]


@dataclass(frozen=True, slots=True)
class Done:
    """A statement that answers with a sentence; `warnings` are things the user should know (state that grows...)."""

    message: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rows:
    """A statement that answers with rows.  `types`: SQL type names, `as_of`: the instant it holds at."""

    data: pa.RecordBatch
    types: tuple[str, ...]
    as_of: int | None = None


Result = Done | Rows


@dataclass(frozen=True, slots=True)
class Push:
    """A run of result rows of one kind of a persistent query.

    `seq` numbers the first row; the rows are numbered on without gaps.  `at` is the instant of the last row; `ats`
    gives each row's own instant (int64 array, non-decreasing) where they differ, else None.
    A snapshot's rows are not numbered: its `seq` is the number of the next delta row.
    """

    query: str
    seq: int
    kind: PushKind
    at: int | None
    data: pa.RecordBatch | None = None
    ats: pa.Array | None = None
    message: str | None = None  # for `end`: why
    code: str | None = None


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What became of a frame of rows: accepted + late + refused = rows sent (all 0 and `repeated` for a repeat)."""

    accepted: int
    late: int = 0
    refused: int = 0
    repeated: bool = False
    reasons: tuple[str, ...] = ()  # a sentence per reason for refusal, with the first offending row


@dataclass(frozen=True, slots=True)
class Column:
    """A column as the outside sees it: name as declared and SQL type name, e.g. ``DECIMAL(10,2)``."""

    name: str
    type: str


class Cancel:
    """A request to stop, shared by the thread that asks and the engine, which looks between slices of work."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        self._event.set()

    def check(self) -> None:
        """Raise DS610 if the statement was cancelled."""
        if self._event.is_set():
            raise UsageError("DS610", "the statement was cancelled")


@dataclass
class Subscription:
    """A reader of one query's result rows.  The engine appends pushes; the owner takes them with `take`.

    `limit_bytes` bounds what may wait; past it the engine drops what waits, leaves one `end` push (DS620) and closes.
    `on_ready` is called (in the engine's thread) when `pending` goes from empty to non-empty.
    """

    query: str
    columns: tuple[Column, ...]
    limit_bytes: int = 64 << 20
    on_ready: Callable[[], None] | None = None
    pending: list[Push] = field(default_factory=list)
    pending_bytes: int = 0
    closed: bool = False

    def take(self) -> list[Push]:
        """All pushes that wait, oldest first."""
        out, self.pending, self.pending_bytes = self.pending, [], 0
        return out
