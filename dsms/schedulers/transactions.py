"""Which sub-window next: window updates between the reads of queries that are still running.

A window update is one write; a re-execution of a periodic query, or a one-time query, is a read
transaction: the youngest n sub-windows of each ring it needs, each read once.  Writes are executed
at once; a transaction that is reading meanwhile:

serial   transactions one after the other: a write waits while a transaction is running
ws       each reads the window as of its first read (window-serializable, a snapshot); old
         sub-windows stay pinned
lws      each reads the window as of its commit, in storage order (latest-window-serializable); one
         that has read what has left its window is aborted and starts again
ttu      as lws, but the sub-window with the longest time to update first, which aborts least.  The
         default.

Order    of transactions: higher priority first, suspending others between two sub-windows; then the
         older one.
Bound    One that has been aborted `patience` times goes before all others and reads youngest first:
         from then on it needs one sub-window read for each of its rings between two updates to
         commit.  Otherwise priorities are strict.
Cost     O(log transactions) a read, O(readers of the ring) a write; no clock, no threads, no data.
Source   Golab 2006, §7.3-7.4 (Algorithms 7 and 8; late insertions §7.4.3).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dsms.schedulers.scans import Scan, SnapshotOrder, StorageOrder, YoungestFirst
from dsms.schedulers.transaction_reads import Counters, Insert, Late, Read

ORDERS: dict[str, type[Scan]] = {
    "serial": SnapshotOrder,
    "ws": SnapshotOrder,
    "lws": StorageOrder,
    "ttu": YoungestFirst,
}
KINDS = tuple(ORDERS)


@dataclass(slots=True)
class _Ring:
    size: int
    newest: int
    version: int = 0
    readers: dict[int, _Transaction] = field(default_factory=dict)  # those that have begun to read


@dataclass(slots=True)
class _Transaction:
    id: int
    reads: dict[str, int]
    left: int = 0  # sub-windows still to read, once it reads
    aborts: int = 0
    scans: dict[str, Scan] = field(default_factory=dict)  # empty: has read nothing yet
    late: list[Late] = field(default_factory=list)
    turn: tuple[bool, int, int] = (True, 0, 0)  # the smallest is next

    @property
    def urgent(self) -> bool:
        return not self.turn[0]

    def next_scan(self) -> tuple[str, Scan]:
        if len(self.scans) == 1:
            return next(iter(self.scans.items()))
        return max(
            ((n, s) for n, s in self.scans.items() if s.left), key=lambda item: item[1].urgency()
        )


class TransactionScheduler:
    """Interleaves reads of sub-windows with window updates.

    kind      "serial" | "ws" | "lws" | "ttu"
    patience  after how many aborts a transaction goes before all others
    Misuse (an unknown ring, a read that was not handed out) raises ValueError: it is never a user's
    doing.
    """

    def __init__(self, kind: str = "ttu", patience: int = 8) -> None:
        if kind not in ORDERS:
            raise ValueError(f"no transaction scheduler {kind!r}; there are {', '.join(KINDS)}")
        self.kind, self.patience, self.counters = kind, patience, Counters()
        self._rings: dict[str, _Ring] = {}
        self._running: dict[int, _Transaction] = {}
        # heap; an urgent reader's older turn lies behind its new one
        self._turns: list[tuple[bool, int, int]] = []
        self._last: _Transaction | None = None  # the one that read last, unless it is done
        self._handed: Read | None = None
        self._late: dict[int, list[Late]] = {}  # of committed ones, until taken
        self._waiting: list[tuple[str, tuple[Insert, ...], int]] = []  # serial only

    def ring(self, name: str, size: int, newest: int | None = None) -> None:
        """A ring of `size` sub-windows, or its new size (not while a transaction is over it).
        `newest` is the youngest one's number (a new ring: -1, so that the first update makes number
        0; lower numbers read as empty)."""
        if size < 1:
            raise ValueError(f"ring {name} of {size} sub-windows")
        old = self._rings.get(name)
        if old is not None and self._used(name):
            raise ValueError(f"ring {name} can't be resized: transactions are reading it")
        at = newest if newest is not None else old.newest if old else -1
        self._rings[name] = _Ring(size, at, old.version if old else 0)

    def drop(self, name: str) -> None:
        """The ring is gone; no transaction may read it."""
        if self._used(name):
            raise ValueError(f"ring {name} can't be dropped: transactions are reading it")
        self._rings.pop(name, None)

    def write(self, ring: str, inserts: Iterable[Insert] = (), by: int = 1) -> tuple[int, ...]:
        """A window update: number newest + 1 replaces the oldest sub-window.

        inserts  (number, payload): rows for sub-windows that stay, in rings of results that expire
                 in another order than they came; number newest + 1 is the new one itself
        by       move by so many at once (empty ones between), or 0: only insert
        Answers the transactions aborted; they start again by themselves.  Serial, while a
        transaction is running: the update waits for its end (see `waiting`), and no transaction is
        ever aborted.
        """
        rows = tuple(inserts)
        self._check(ring, rows, by)
        if self.kind == "serial" and self._last is not None:
            self._waiting.append((ring, rows, by))
            return ()
        return self._update(ring, rows, by)

    def begin(self, reads: Mapping[str, int], priority: int = 0) -> int:
        """A read transaction over the youngest n sub-windows of each ring; its id."""
        if not reads:
            raise ValueError("a transaction reads at least one ring")
        for name, n in reads.items():
            size = self._ring(name).size
            if not 1 <= n <= size:
                raise ValueError(f"{n} sub-windows of ring {name}, which has {size}")
        self.counters.begun += 1
        id = self.counters.begun
        self._running[id] = _Transaction(id, dict(reads))
        self._queue(self._running[id], (True, -priority, id))
        return id

    def next(self) -> Read | None:
        """The sub-window to read now, until `read` says that it has been read (or its transaction
        is gone): it counts as read, as of its version, from now on.  None: there is nothing to
        read."""
        if self._handed is None:
            chosen = self._choose()
            if chosen is None:
                return None
            self._set_aside(chosen)
            if not chosen.scans:
                self._start(chosen)
            self._handed = self._hand_out(chosen)
        return self._handed

    def read(self, read: Read) -> bool:
        """It has been read.  True: it was the last one, the transaction has committed; then take
        `late` a last time.  False too for a read whose transaction has been aborted or given up
        meanwhile: forget what it gave."""
        reader = self._running.get(read.transaction)
        if reader is None or reader.aborts != read.attempt:
            return False
        if read != self._handed:
            raise ValueError(f"{read} is not what next() handed out")
        self._handed = None
        if reader.left:
            return False
        self.counters.committed += 1
        if reader.late:
            self._late[reader.id] = reader.late
        self._leave(reader)
        return True

    def give_up(self, id: int) -> None:
        """The transaction was cancelled (nothing happens if it is not there any more)."""
        self._late.pop(id, None)
        reader = self._running.get(id)
        if reader is not None:
            self.counters.cancelled += 1
            self._leave(reader)

    def late(self, id: int) -> list[Late]:
        """Insertions for sub-windows that this transaction has read already, in order; each is
        given once.  After an abort there are none: all is read again.  After the commit they stay
        until taken."""
        reader = self._running.get(id)
        if reader is None:
            return self._late.pop(id, [])
        given, reader.late = reader.late, []
        return given

    def running(self) -> tuple[int, ...]:
        """Transactions that have begun and not ended, the oldest first."""
        return tuple(self._running)

    def aborts(self, id: int) -> int:
        """How often this running transaction has been aborted so far."""
        return self._running[id].aborts

    def newest(self, ring: str) -> int:
        """The ring's youngest sub-window, as a transaction that starts now sees it."""
        return self._ring(ring).newest

    def size(self, ring: str) -> int:
        """How many sub-windows the ring has."""
        return self._ring(ring).size

    def state(self, id: int) -> dict[str, int]:
        """The youngest sub-window of each ring in the state which this running transaction would
        answer for now."""
        reader = self._running[id]
        return {
            n: reader.scans[n].newest if reader.scans else self._rings[n].newest
            for n in reader.reads
        }

    def waiting(self, ring: str) -> int:
        """Serial: by how many sub-windows this ring will move when the running transaction ends."""
        return sum(by for name, _, by in self._waiting if name == ring)

    def pinned(self, ring: str) -> tuple[int, ...]:
        """Sub-windows that have left the ring, and that a transaction still has to read."""
        at = self._ring(ring)
        limit = at.newest - at.size + 1
        kept = {self._handed.number} if self._handed and self._handed.ring == ring else set()
        for reader in at.readers.values():
            scan = reader.scans[ring]
            if isinstance(scan, SnapshotOrder):
                kept.update(scan.unread_below(limit))
        return tuple(sorted(number for number in kept if number < limit))

    # -- inside

    def _ring(self, name: str) -> _Ring:
        if name not in self._rings:
            raise ValueError(f"no ring {name!r}; there are {', '.join(self._rings) or 'none'}")
        return self._rings[name]

    def _used(self, name: str) -> bool:
        return any(name in t.reads for t in self._running.values()) or any(
            name == w[0] for w in self._waiting
        )

    def _check(self, ring: str, rows: tuple[Insert, ...], by: int) -> None:
        at = self._ring(ring)
        newest = at.newest + self.waiting(ring) + by
        if by < 0:
            raise ValueError(f"ring {ring} moved by {by}")
        for number, _ in rows:
            if not newest - at.size < number <= newest:
                raise ValueError(
                    f"insertion into sub-window {number} of ring {ring}, which ends at {newest}"
                )

    def _update(self, ring: str, rows: tuple[Insert, ...], by: int) -> tuple[int, ...]:
        at = self._rings[ring]
        at.newest += by
        at.version += 1
        self.counters.writes += 1
        aborted = [t for t in at.readers.values() if t.scans[ring].move(at.newest, at.version)]
        for reader in aborted:
            self._restart(reader)
        if rows:
            for reader in at.readers.values():
                scan = reader.scans[ring]
                reader.late += [
                    Late(ring, n % at.size, n, payload) for n, payload in rows if scan.missed(n)
                ]
        return tuple(t.id for t in aborted)

    def _restart(self, reader: _Transaction) -> None:
        self.counters.aborted += 1
        self._stop_reading(reader)
        reader.aborts += 1
        reader.late = []
        if reader.aborts == self.patience:
            self._queue(reader, (False, *reader.turn[1:]))

    def _queue(self, reader: _Transaction, turn: tuple[bool, int, int]) -> None:
        reader.turn = turn
        heapq.heappush(self._turns, turn)

    def _stop_reading(self, reader: _Transaction) -> None:
        for name in reader.scans:
            self._rings[name].readers.pop(reader.id, None)
        reader.scans = {}
        if self._last is reader:
            self._last = None
        if self._handed and self._handed.transaction == reader.id:
            self._handed = None

    def _choose(self) -> _Transaction | None:
        if self.kind == "serial" and self._last is not None:
            return self._last
        while self._turns:
            reader = self._running.get(self._turns[0][2])
            if reader is not None:
                return reader
            heapq.heappop(self._turns)
        return None

    def _set_aside(self, chosen: _Transaction) -> None:
        if self._last is not None and self._last is not chosen:
            self.counters.suspended += 1
        self._last = chosen

    def _start(self, reader: _Transaction) -> None:
        order = YoungestFirst if reader.urgent else ORDERS[self.kind]
        reader.left = sum(reader.reads.values())
        for name, n in reader.reads.items():
            at = self._rings[name]
            reader.scans[name] = order(n, at.size, at.newest, at.version)
            at.readers[reader.id] = reader

    def _hand_out(self, reader: _Transaction) -> Read:
        name, scan = reader.next_scan()
        number = scan.take()
        reader.left -= 1
        slot = number % scan.size
        return Read(reader.id, name, slot, number, scan.newest, scan.version, reader.aborts)

    def _leave(self, reader: _Transaction) -> None:
        self._stop_reading(reader)
        del self._running[reader.id]
        if self._last is None:
            waiting, self._waiting = self._waiting, []
            for ring, rows, by in waiting:
                self._update(ring, rows, by)
