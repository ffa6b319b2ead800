"""Read transactions at work: the rings of an engine under its transaction scheduler (Golab 2006,
§7.2.3-7.4).

A window update, the closing of a sub-window, is a write; it is executed at once, as rows come.  The
scheduler is notified of it before the next read is chosen, which gives the same schedule and costs
nothing while nothing is read.  A transaction that answers as of its commit and has read what has
left its window meanwhile starts again (`lws`, `ttu`); `ws` answers as of its first read, and
`serial` reads all in one go.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from dsms.running.read_transaction import ReadTransaction
from dsms.schedulers.transaction_reads import Counters
from dsms.schedulers.transactions import TransactionScheduler
from dsms.settings import Settings
from dsms.sql.types import ALWAYS
from dsms.state.ring import Ring

ATOMIC, SNAPSHOTS = "serial", ("serial", "ws")
# sub-windows that a transaction reads one by one; what there is beyond it reads at its commit
MOST = 8192


@dataclass(frozen=True, slots=True)
class _Declared:
    """A ring as the scheduler knows it: other sub-windows make it another one."""

    ring: Ring
    span: int


class Transactions:
    """The transactions that wait, and which of them goes on next.

    rings     of the streams, by key; followed as they are
    settings  `transaction_scheduler` may change at any time: running transactions start again under
              the new one
    """

    def __init__(self, rings: Mapping[str, Ring], settings: Settings) -> None:
        self._rings, self._settings = rings, settings
        self._scheduler = TransactionScheduler(settings.transaction_scheduler)
        self._declared: dict[str, _Declared] = {}
        self._readings: dict[int, ReadTransaction] = {}
        # those that have nothing to read before the commit
        self._free: deque[ReadTransaction] = deque()
        self._counts = Counters()
        self._before = Counters()  # of schedulers that have been replaced

    # -- for owners of readings --------------------------------------------------------------------

    def begin(self, reading: ReadTransaction) -> None:
        """A new transaction.  Raises DS407 where something that it would read is not kept."""
        self._follow()
        self._enter(reading)
        self._counts.begun += 1

    def passed(self) -> None:
        """A transaction that had nothing to wait for has been done meanwhile."""
        self._counts.begun += 1
        self._counts.committed += 1

    def close(self, reading: ReadTransaction) -> None:
        """Its answer is not wanted any more."""
        if self._gone(reading) and not reading.done:
            self._counts.cancelled += 1
        reading.forget()

    def advance(self) -> bool:
        """One sub-window is read, by the next transaction; under `serial` all of its sub-windows.
        False: there is nothing to read."""
        self._follow()
        if self._free:
            self._commit(self._free.popleft())
            return True
        while (read := self._scheduler.next()) is not None:
            reading = self._readings[read.transaction]
            try:
                found = self._take(reading, read.ring, read.number)
            except Exception as error:
                self._fail(reading, error)
                return True
            if self._scheduler.read(read):
                self._commit(reading)
                return True
            if found and not self.atomic:
                return True
        return False

    @property
    def atomic(self) -> bool:
        """Whether transactions run one after the other."""
        return self._settings.transaction_scheduler == ATOMIC

    def counters(self) -> Counters:
        """Transactions begun, committed, aborted..., and window updates of the rings that are
        there."""
        now, then = self._scheduler.counters, self._before
        return Counters(
            self._counts.begun,
            self._counts.committed,
            self._counts.aborted,
            self._counts.cancelled,
            sum(r.updates for r in self._rings.values()),
            now.suspended + then.suspended,
        )

    def waiting(self) -> int:
        """Transactions that have not ended."""
        return len(self._readings) + len(self._free)

    # -- inside ------------------------------------------------------------------------------------

    def _take(self, reading: ReadTransaction, stream: str, number: int) -> bool:
        if reading.snapshot is None and self._scheduler.kind in SNAPSHOTS:
            reading.access.check()
            reading.hold()
        return reading.take(stream, number, self._rings[stream].find(number))

    def _commit(self, reading: ReadTransaction) -> None:
        self._readings.pop(reading.id, None)
        self._let_go(reading)
        try:
            reading.commit()
        except Exception as error:
            reading.fail(error)
        else:
            self._counts.committed += 1

    def _fail(self, reading: ReadTransaction, error: Exception) -> None:
        self._gone(reading)
        reading.fail(error)

    def _gone(self, reading: ReadTransaction) -> bool:
        """Take it out; False if it was not there."""
        if reading in self._free:
            self._free.remove(reading)
            return True
        if self._readings.pop(reading.id, None) is None:
            return False
        self._scheduler.give_up(reading.id)
        self._let_go(reading)
        return True

    def _let_go(self, reading: ReadTransaction) -> None:
        """It has ended: rings that nobody reads now need not be known, and their streams may be
        dropped, which takes their rows along."""
        for stream in reading.rings:
            if not self._in_use(stream):
                self._declared.pop(stream, None)
                self._scheduler.drop(stream)

    def _enter(self, reading: ReadTransaction) -> None:
        reading.settle()
        wanted = _wanted(reading, self._rings)
        for stream, count in wanted.items():
            if not self._in_use(stream):
                self._declare(stream, count)
        sizes = {s: min(n, self._scheduler.size(s)) for s, n in wanted.items()}
        reading.rings = tuple(sizes)
        if not sizes:
            self._free.append(reading)
            return
        reading.id = self._scheduler.begin(sizes, reading.priority)
        self._readings[reading.id] = reading

    def _in_use(self, stream: str) -> bool:
        return any(stream in r.rings for r in self._readings.values())

    def _declare(self, stream: str, count: int) -> None:
        ring = self._rings[stream]
        self._declared[stream] = _Declared(ring, ring.span)
        self._scheduler.ring(stream, max(ring.size, count), ring.front)

    def _follow(self) -> None:
        """Tell the scheduler what has happened since."""
        if self._scheduler.kind != self._settings.transaction_scheduler:
            self._replace()
        for stream in {s for r in self._readings.values() for s in r.rings}:
            ring, known = self._rings.get(stream), self._declared[stream]
            if ring is not known.ring or ring.span != known.span:
                self._again([r for r in self._readings.values() if stream in r.rings])
                continue
            moved = ring.front - self._scheduler.newest(stream)
            if moved > 0:
                for id in self._scheduler.write(stream, by=moved):
                    self._restarted(self._readings[id])

    def _replace(self) -> None:
        old = self._scheduler
        self._before.suspended += old.counters.suspended
        self._scheduler = TransactionScheduler(self._settings.transaction_scheduler, old.patience)
        self._declared.clear()
        self._again(list(self._readings.values()))

    def _again(self, readings: list[ReadTransaction]) -> None:
        """The ground has changed under them: they begin anew."""
        for reading in readings:
            if self._readings.pop(reading.id, None) is not None:
                self._scheduler.give_up(reading.id)
                self._let_go(reading)
        for reading in readings:
            self._restarted(reading)
            try:
                reading.access.check()
                self._enter(reading)
            except Exception as error:
                reading.fail(error)

    def _restarted(self, reading: ReadTransaction) -> None:
        reading.forget()
        reading.aborts += 1
        self._counts.aborted += 1


def _wanted(reading: ReadTransaction, rings: Mapping[str, Ring]) -> dict[str, int]:
    """How many of the youngest closed sub-windows of each ring it reads; none of a ring that it
    needs nothing of."""
    at, wanted = reading.access.instant(), dict[str, int]()
    for leaf, stream in reading.streams.items():
        read = reading.needed[leaf]
        there = reading.access.subwindows(read, at)
        if reading.at_once(leaf):
            continue  # all at the commit
        ring = rings.get(stream)
        if ring is None or ring.newest == ALWAYS or at == ALWAYS:
            continue
        front, oldest = ring.front, there[0].number if there else ring.front + 1
        since = read.since(min(at, (front + 1) * ring.span - 1))
        if since != ALWAYS and read.rows is None:
            oldest = min(oldest, ring.number(since + 1))
        if oldest <= front:
            wanted[stream] = max(wanted.get(stream, 0), min(front - oldest + 1, MOST))
    return wanted
