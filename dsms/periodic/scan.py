"""WS, window scan: the whole window read and the query computed from scratch at each boundary
(Golab 2006, §7.2.1).

The rows come from rings of raw sub-windows, the plan runs on DuckDB (`dsms.oneshot`).  It is the
fallback for what no other path can answer, and the cheapest path for what is asked so seldom that
keeping state for it would not pay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, assert_never

import numpy as np

from dsms.api import Cancel
from dsms.oneshot.reads import Read
from dsms.oneshot.run import Prepared
from dsms.operators.answers import Answer
from dsms.operators.expressions import ErrorCounter
from dsms.periodic.counted import Numbers
from dsms.periodic.evaluated import Fed
from dsms.plan import paths
from dsms.running.read_transaction import ReadTransaction
from dsms.running.sources import StreamConsumer
from dsms.running.transactions import Transactions
from dsms.sql import logical as lp
from dsms.sql.types import ALWAYS, FOREVER
from dsms.sql.window import (
    First,
    Landmark,
    Lasting,
    Latest,
    Now,
    Partitioned,
    Rows,
    Session,
    Throttled,
    Time,
    Unbounded,
    When,
)
from dsms.state.batch import Batch, narrow
from dsms.state.ring import Need, Ring

Fetch = Callable[[Read, int, Cancel | None], list[Batch]]


@dataclass(slots=True)
class NumbersOnly:
    """Takes note of which row has which timestamp."""

    numbers: Numbers

    def push(self, rows: Batch) -> None:
        if len(rows):
            self.numbers.see(rows)


class Reader(Protocol):
    """Reads what a plan needs as transactions."""

    @property
    def transactions(self) -> Transactions: ...

    def begin(self, instant: Callable[[], int], errors: ErrorCounter) -> ReadTransaction:
        """A transaction; `instant`: as of which it would answer now."""
        ...


@dataclass(slots=True)
class Sliced:
    """rest: the plan over leaves that have done their part;  reader: what reads these."""

    rest: Prepared
    reader: Reader


@dataclass(slots=True)
class Scan(Fed):
    """prepared  the plan, rendered;  needed: what it reads, by leaf;  fetch: gets it
    sliced    how to read it one sub-window at a time, if it may be interrupted
    counted   the leaves over the stream whose rows the SLIDE counts, and its key; none if it counts
              time
    """

    prepared: Prepared
    needed: Mapping[int, Read]
    fetch: Fetch
    errors: ErrorCounter
    rings: Mapping[str, Ring]
    counted: tuple[int, ...] = ()
    stream: str = ""
    numbers: Numbers | None = None
    path: paths.Kind = "WS"
    together: bool = False
    deltas: bool = False
    scans: int = 0
    rows: int = field(default=0)
    sliced: Sliced | None = None
    scanned: int | None = None
    _reading: ReadTransaction | None = None

    def scan(self, boundary: Callable[[], int]) -> Iterator[None]:
        """Read as a transaction, which rows may come in between and one-time queries go before."""
        self.scanned = None
        if self.sliced is None:
            return
        reader = self.sliced.reader
        reading = self._reading = reader.begin(lambda: boundary() - 1, self.errors)
        try:
            while not reading.done:
                reader.transactions.advance()
                yield
            self.scanned = reading.at + 1 if reading.failure is None else boundary()
        finally:
            reader.transactions.close(reading)

    def evaluate(self, boundary: int, cancel: Cancel | None) -> Answer:
        if self.scanned == boundary and self._reading is not None:
            return self._scanned(self._reading, cancel)
        at = boundary - 1
        if self.numbers is not None:
            self.numbers.forget(boundary - 1)
            at = self.numbers.ts(boundary - 1)
        given = {
            leaf: self.fetch(r, at, cancel)
            for leaf, r in self.needed.items()
            if leaf not in self.counted
        }
        for leaf in self.counted:
            width = len(self.needed[leaf].node.schema)
            given[leaf] = [
                narrow(_upto(rows, boundary), width)
                for rows in self.rings[self.stream].rows(ALWAYS, at)
            ]
        self.scans += 1
        self.rows += sum(len(b) for batches in given.values() for b in batches)
        rows, ids = self.prepared.rows(given, at, self.errors, cancel)
        return Answer(rows.num_rows, tuple(rows.columns), ids)

    def _scanned(self, reading: ReadTransaction, cancel: Cancel | None) -> Answer:
        self.scanned = self._reading = None
        if reading.failure is not None:
            raise reading.failure
        assert reading.given is not None and self.sliced is not None
        self.scans += 1
        self.rows += sum(len(b) for batches in reading.given.values() for b in batches)
        rows, ids = self.sliced.rest.rows(reading.given, reading.at, self.errors, cancel)
        return Answer(rows.num_rows, tuple(rows.columns), ids)

    def sources_of(self, stream: str) -> Iterator[StreamConsumer]:
        """The rings take the rows; here only rows are counted."""
        if self.numbers is not None and stream == self.stream:
            yield NumbersOnly(self.numbers)

    def nbytes(self) -> int:
        streams = {
            r.node.stream.home for r in self.needed.values() if isinstance(r.node, lp.StreamScan)
        }
        return sum(self.rings[s].nbytes for s in streams if s in self.rings)


def _upto(rows: Batch, number: int) -> Batch:
    """The rows with arrival numbers below `number`."""
    return rows.slice(0, int(np.searchsorted(rows.ids[0], number)))


def need_of(read: Read, span: int, reached: Callable[[], int]) -> Need:
    """What of a stream's past must be kept to read it at any boundary to come, as far as the query
    has `reached`.

    Rows of the instant of the last row that counts are needed beside the last `length` of them."""
    spec = read.spec
    match spec:
        case Time():
            return Need(spec.length + span, 0, span, reached, read.ago)
        case Now():
            return Need(span + 1, 0, span, reached, read.ago)
        case Rows():
            return Need(0, spec.count, span, reached, read.ago)
        case Partitioned(age=int(age)):
            return Need(age + span, 0, span, reached, read.ago)
        case Partitioned() | Unbounded() | Landmark() | Latest():
            return Need(FOREVER // 4, 0, span)
        case Session() | When() | Lasting() | Throttled() | First():
            return Need(FOREVER // 4, 0, span)
        case _:
            assert_never(spec)
