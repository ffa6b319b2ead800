"""A world for the transaction scheduler: rings with contents, readers that collect what they read,
and a history.

Slots are overwritten for real: what a reader is given to read must still be there, in its slot or
among the pinned.  Every commit is compared with the state of the windows that the reader's
isolation level promises, kept here in full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dsms.schedulers.transactions import Read, TransactionScheduler
from tests.histories import History

Rows = dict[int, list[tuple[int, str]]]  # sub-window -> (version, row) in order of insertion


@dataclass
class World:
    """Rings of those sizes, filled, under one scheduler."""

    kind: str
    sizes: dict[str, int]
    patience: int = 8
    rows: dict[str, Rows] = field(default_factory=dict)
    slots: dict[str, dict[int, int]] = field(default_factory=dict)
    kept: dict[str, set[int]] = field(default_factory=dict)
    version: dict[str, int] = field(default_factory=dict)
    wanted: dict[str, dict[str, int]] = field(default_factory=dict)
    priority: dict[int, int] = field(default_factory=dict)
    # newest, version
    started: dict[int, tuple[dict[str, int], dict[str, int]]] = field(default_factory=dict)
    got: dict[int, set[tuple[str, int, str]]] = field(default_factory=dict)
    queue: list[tuple[str, list[tuple[int, str]], int]] = field(default_factory=list)
    handed: Read | None = None
    answers: dict[int, set[tuple[str, int, str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.scheduler = TransactionScheduler(self.kind, self.patience)
        self.history = History(dict(self.sizes), {r: n - 1 for r, n in self.sizes.items()})
        for ring, size in self.sizes.items():
            self.scheduler.ring(ring, size, newest=size - 1)
            self.rows[ring] = {n: [(0, f"first {n}")] for n in range(size)}
            self.slots[ring] = {n: n for n in range(size)}
            self.kept[ring], self.version[ring] = set(), 0

    # -- what happens

    def write(self, ring: str, by: int = 1, into: Sequence[int] = ()) -> None:
        """A window update with rows for the sub-windows so many places behind the newest."""
        behind = self.scheduler.newest(ring) + self.scheduler.waiting(ring) + by
        label = sum(len(rows) for rows in self.rows[ring].values()) + len(self.queue)
        inserts = [(behind - k % self.sizes[ring], f"row {label}.{i}") for i, k in enumerate(into)]
        before = self.scheduler.newest(ring)
        aborted = self.scheduler.write(ring, inserts, by)
        if self.kind == "serial" and self.scheduler.newest(ring) == before and self.started:
            self.queue.append((ring, inserts, by))
            assert aborted == () and self.scheduler.waiting(ring) == sum(
                w[2] for w in self.queue if w[0] == ring
            )
            return
        self._applied(ring, inserts, by)
        for id in aborted:
            self.history.abort(f"Q{id}.{self.scheduler.aborts(id) - 1}")
            self._forget(id)

    def begin(self, reads: Mapping[str, int], priority: int = 0) -> int:
        """A read transaction."""
        id = self.scheduler.begin(reads, priority)
        self.wanted[f"Q{id}"], self.priority[id] = dict(reads), priority
        return id

    def hand(self) -> Read | None:
        """Take the next read and look into the sub-window; not confirmed yet."""
        if self.handed is not None and self.handed.transaction in self.started:
            assert self.scheduler.next() == self.handed
            return self.handed
        self.confirm()  # what was begun for someone who is gone
        read = self.scheduler.next()
        if read is None:
            assert not self.scheduler.running()
            return None
        self._is_the_one(read)
        if read.transaction not in self.started:
            newest = {r: self.scheduler.newest(r) for r in self.sizes}
            self.started[read.transaction] = newest, dict(self.version)
        self._look(read)
        self.handed = read
        return read

    def confirm(self) -> bool:
        """The read is done; whether that was a commit."""
        read, self.handed = self.handed, None
        if read is None:
            return False
        id = read.transaction
        if id not in self.started:
            assert not self.scheduler.read(read), "aborted or given up meanwhile"
            return False
        expected = self._state(id)
        states = self.scheduler.state(id)
        if not self.scheduler.read(read):
            return False
        self.history.commit(f"Q{id}.{read.attempt}")
        self._take_late(id)
        assert self.got[id] == expected, f"{self.kind} Q{id}: {self.history}"
        assert states == {r: max(n for q, n, _ in expected if q == r) for r in states}
        self.answers[id] = self.got[id]
        self._left(id)
        return True

    def step(self) -> bool:
        """One whole read."""
        return self.hand() is not None and self.confirm()

    def give_up(self, id: int) -> None:
        """Cancel it."""
        self.scheduler.give_up(id)
        self._left(id)

    def drain(self) -> None:
        """Read until nothing is left to read."""
        while self.hand() is not None:
            self.confirm()

    # -- what it means

    def _applied(self, ring: str, inserts: Sequence[tuple[int, str]], by: int) -> None:
        newest = self.scheduler.newest(ring) - sum(w[2] for w in self.queue if w[0] == ring)
        self.version[ring] += 1
        for number in range(newest - by + 1, newest + 1):
            self.rows[ring][number] = [(self.version[ring], f"first {number}")]
            self.slots[ring][number % self.sizes[ring]] = number
            self.history.write(ring, number)
        for number, row in inserts:
            self.rows[ring][number].append((self.version[ring], row))
        pinned = set(self.scheduler.pinned(ring))
        assert pinned <= self.kept[ring] | set(
            range(newest - by - self.sizes[ring] + 1, newest + 1)
        )
        assert not pinned or self.kind == "ws"
        self.kept[ring] = pinned

    def _is_the_one(self, read: Read) -> None:
        if self.kind == "serial" and self.started:
            assert read.transaction in self.started
            return
        order = {
            id: (self.scheduler.aborts(id) < self.patience, -self.priority[id], id)
            for id in self.scheduler.running()
        }
        assert read.transaction == min(order, key=order.__getitem__)

    def _look(self, read: Read) -> None:
        there = (
            self.slots[read.ring][read.slot] == read.number or read.number in self.kept[read.ring]
        )
        assert there, f"sub-window {read.number} of {read.ring} is gone"
        self.history.read(f"Q{read.transaction}.{read.attempt}", read.ring, read.number)
        seen = self.got.setdefault(read.transaction, set())
        for version, row in self.rows[read.ring][read.number]:
            if version <= read.version:
                assert (read.ring, read.number, row) not in seen, "read twice"
                seen.add((read.ring, read.number, row))

    def _take_late(self, id: int) -> None:
        for late in self.scheduler.late(id):
            row = (late.ring, late.number, late.payload)
            assert row not in self.got[id], "passed twice"
            assert late.slot == late.number % self.sizes[late.ring]
            self.got[id].add(row)

    def _state(self, id: int) -> set[tuple[str, int, str]]:
        newest, version = self.started[id]
        if self.kind != "ws":
            newest, version = {r: self.scheduler.newest(r) for r in self.sizes}, self.version
        return {
            (ring, number, row)
            for ring, n in self.wanted[f"Q{id}"].items()
            for number in range(newest[ring] - n + 1, newest[ring] + 1)
            for at, row in self.rows[ring][number]
            if at <= version[ring]
        }

    def _forget(self, id: int) -> None:
        self.started.pop(id, None)
        self.got.pop(id, None)

    def _left(self, id: int) -> None:
        self._forget(id)
        if not self.started:
            while self.queue:
                self._applied(*self.queue.pop(0))
