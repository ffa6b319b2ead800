"""What all registered queries have in common: a result log, readers, a failure, a clock."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa

from dsms.api import Cancel, Chunk, Column, Push, Subscription, shown_instant
from dsms.errors import DsmsError
from dsms.intake.fed import Feed
from dsms.operators.expressions import ErrorCounter
from dsms.plan.physical import Phys
from dsms.running.pipeline import Path
from dsms.running.results import ResultLog
from dsms.running.sources import StreamConsumer
from dsms.sql import logical as lp
from dsms.sql.catalog import QueryDef
from dsms.sql.types import ALWAYS, FOREVER, MIN_INSTANT
from dsms.state.batch import Batch

ENDED = FOREVER - 1  # the clock of streams that have ended
HIDDEN = "\0"  # behind the name of a query that is to take the place of another one


def is_hidden(key: str) -> bool:
    """Whether that is the key of such a query."""
    return key.endswith(HIDDEN)


class ResultTap(Protocol):
    """What takes the results of a query to its archive (`dsms.archiving.queries`)."""

    @property
    def nbytes(self) -> int:
        """Of what it keeps, about."""
        ...

    def step(self, rows: Batch, chunk: Chunk, upto: int) -> None:
        """A step of a continuous query."""
        ...

    def before(self, rows: Batch, clock: int, upto: int) -> None:
        """A step over what was there when the query, which begins at `clock`, was registered."""
        ...

    def begun(self, answer: pa.RecordBatch | None, clock: int) -> None:
        """Behind those steps: the answer that it begins with, where it keeps one."""
        ...

    def report(self, chunk: Chunk) -> None:
        """Answers of a periodic one."""
        ...


@dataclass(slots=True)
class Registered(ABC):
    """One query.  `streams` are the keys of the streams it reads, per stream leaf of the plan;
    `reads` each once."""

    stops: ClassVar[int] = 0  # of any query of this process

    definition: QueryDef
    phys: Phys
    log: ResultLog
    errors: ErrorCounter
    streams: dict[int, str]
    tables: tuple[str, ...]
    state_limit: int
    clock: int = ALWAYS
    readers: list[Subscription] = field(default_factory=list)
    failure: DsmsError | None = None
    notes: tuple[str, ...] = ()
    # before this instant its answers miss rows that were gone when it was registered
    partial_until: int = ALWAYS
    # by stream, where windows of its last rows miss some: the arrival number of the first row with
    # which they are full
    full_at: tuple[tuple[str, int], ...] = ()
    archived: ResultTap | None = None  # its results go to an archive
    feed: Feed | None = None  # ... to a stream
    reads: tuple[str, ...] = field(init=False)
    grouped: bool = field(default=False, init=False)  # a group takes its rows and answers it
    # it is on the way to its first answer: nobody moves it but who registers it
    beginning: bool = field(default=False, init=False)
    # rows of the newest instant may pass before it is complete
    early: bool = field(default=False, init=False)

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def home(self) -> str:
        """The key by which it is found."""
        return self.definition.home

    @property
    def output(self) -> lp.Output:
        """The plan's root."""
        assert isinstance(self.phys.node, lp.Output)
        return self.phys.node

    @property
    def seq(self) -> int:
        """The number of the next result row."""
        return self.log.next_seq

    @property
    def left_to_group(self) -> bool:
        """Whether its group answers it."""
        return False

    @property
    def approximate(self) -> float | None:
        """By which share groups may miss a threshold of its HAVING."""
        said = dict(self.definition.options).get("approximate")
        return None if said is None else float(said)

    @property
    def lets_go(self) -> bool:
        """Whether its joins let go of rows, as WITH (over = shed) has them."""
        return dict(self.definition.options).get("over") == "shed"

    def at_work(self) -> tuple[object, int]:
        """The continuous query whose operators work for it by instants (None: there is none), and
        before which instant it will not be further than it is."""
        return None, FOREVER

    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(f.name, str(f.type)) for f in self.output.schema)

    @property
    @abstractmethod
    def begun(self) -> int:
        """The instant up to which it has looked at tables."""

    @property
    @abstractmethod
    def read_tables(self) -> int:
        """Of what ended up to this instant in tables nothing will be asked again."""

    def put_in(self, clock: int, due: Callable[[], int]) -> tuple[int, bool]:
        """Of what it puts into its stream: the instant up to which all is there, and whether
        nothing follows.

        clock  of the streams that it reads, ENDED where all have;  due  the instant up to which
        it may answer"""
        if clock < ENDED:
            return min(self.clock, clock), False
        limit = due()
        return min(self.clock, limit), self.failure is None and self.clock >= limit

    @abstractmethod
    def advance(self, upto: int, cancel: Cancel | None = None) -> None:
        """Answer all instants <= `upto`.  An error stops the query and is kept."""

    @abstractmethod
    def answer(self) -> pa.RecordBatch | None:
        """The answer as it stands; None for a query that only streams."""

    @abstractmethod
    def answer_rows(self) -> int:
        """Rows of the answer."""

    @abstractmethod
    def sources_of(self, stream: str) -> Iterator[StreamConsumer]:
        """Where rows of a stream go."""

    def take_rows(self, stream: str, rows: Sequence[Batch]) -> None:
        """Rows of a stream come."""
        for source in self.sources_of(stream):
            for batch in rows:
                source.push(batch)

    @abstractmethod
    def live(self) -> dict[Path, dict[str, Any]]:
        """Live counts per place in the plan."""

    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of state and waiting rows, about."""

    def publish(self, chunk: Chunk) -> None:
        """Result rows, numbered on from `seq`."""
        if not len(chunk):
            return
        if chunk.at[0] < MIN_INSTANT:
            chunk.at = np.where(chunk.at < MIN_INSTANT, ALWAYS, chunk.at)
        self.log.append(chunk)
        self.tell(chunk)
        if self.feed is not None:
            self.feed.take(chunk.at, chunk.data)

    def tell(self, item: Chunk | Push) -> None:
        """Give every reader an item."""
        if not self.readers:
            return
        for reader in self.readers:
            if reader.renamed is not None and isinstance(item, Push):
                reader.give(replace(item, query=reader.query))
            else:
                reader.give(item)
        self.readers = [r for r in self.readers if not r.closed]

    def fail(self, error: DsmsError) -> None:
        """The query stops; its readers get the error, its last answers stay readable."""
        # which hold on to all that the step was working on
        error.__traceback__ = error.__context__ = None
        self.failure = error
        Registered.stops += 1
        for reader in self.readers:
            reader.finish(error.code, f"query {self.name} stopped: {error.message}")
        self.readers.clear()

    def check(self) -> None:
        """Raise what stopped the query: a copy, since an error that is raised holds on to what was
        at work."""
        if self.failure is not None:
            raise copy(self.failure)

    def close(self, message: str) -> None:
        """The query is dropped, or the engine stops."""
        for reader in self.readers:
            reader.finish(None, message)
        self.readers.clear()

    def subscribe(self, reader: Subscription, start: int | None) -> None:
        """Begin with a snapshot (Rstream) and go on with what is new; or with result row number
        `start`."""
        if start is not None:
            for chunk in self.log.since(start):
                reader.give(chunk)
        else:
            rows = self.answer() if self.output.kind == "rstream" else None
            if rows is not None:
                reader.give(
                    Push(self.name, self.seq, "snapshot", shown_instant(self.shown_clock), rows)
                )
        if self.failure is not None:
            reader.finish(self.failure.code, f"query {self.name} stopped: {self.failure.message}")
        else:
            self.readers.append(reader)

    @property
    def shown_clock(self) -> int:
        """The instant of `answer`."""
        return self.clock
