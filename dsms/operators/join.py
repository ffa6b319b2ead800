"""Window join, inner: symmetric, hash or nested loop (one bucket for all), two inputs of any pattern.

Input    Each side keeps its live rows.  A new row probes the other side and then joins its own.
Lifetime A result is born at the later ts of its parts and dies at the earlier exp; it exists only if ts < exp
         (Golab 2006, §2.3.2).  Without deletions on the inputs the output needs none, and expiry is lazy: expired rows
         are skipped by their exp and dropped at leisure.  A deletion probes like an insertion and takes results back.
State    Rows by side, chained per key hash, youngest first.  Over a FIFO side a probe stops at the first expired row.
Cost     O(1 + matches) a row.
Twin     tests/oracle (nested loops over the windows' contents).
A retroactive table (⋈R) is a side whose rows are inserted and deleted by table changes and never expire.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dsms.operators.basic import filter_batch
from dsms.operators.join_kernels import chain, in_halves, join_fifo, join_signed
from dsms.plan.physical import State
from dsms.sql.types import FOREVER, Schema
from dsms.state.batch import Batch
from dsms.state.columns import numpy_valid
from dsms.state.expiry import Fifo
from dsms.state.intern import Intern, word
from dsms.state.live import LiveInput
from dsms.state.vec import Vec, Vec2

Keys = Callable[[Sequence[pa.Array], int], pa.Array]
HALVES_FROM = 16_384  # new rows from which two threads pay
SPARE_CORE = (os.cpu_count() or 1) > 1


@dataclass(slots=True)
class Side:
    """One input of a join: live rows, their key words, chains per key hash.

    `keys`: a callable per key column; a key is its own 8 bytes where it fits, else an interned code (`intern` is shared
    by both sides so that codes agree)."""

    schema: Schema
    width: int
    state: State
    strict: bool
    keys: Sequence[Keys]
    intern: Intern | None
    rows: LiveInput = field(init=False)
    purged: int = -(2**62)

    def __post_init__(self) -> None:
        self.rows = LiveInput(self.schema, self.width, self.state, self.strict)
        self.rows.store.extra.update(node=Vec2(), ok=Vec(np.bool_))

    @property
    def fifo(self) -> bool:
        return isinstance(self.rows.expiry, Fifo)

    @property
    def oldest(self) -> int:
        """The first slot that may be alive (FIFO sides only)."""
        return self.rows.expiry.head if isinstance(self.rows.expiry, Fifo) else 0

    def arrive(self, batch: Batch) -> tuple[int, np.ndarray]:
        """Store a batch's insertions with their keys: (first new slot, slot that each row speaks of)."""
        first = len(self.rows.store)
        slots, spoken = self.rows.arrive(batch)
        born = batch if batch.sign is None else batch.take(np.flatnonzero(batch.sign > 0))
        extra, n = self.rows.store.extra, len(slots)
        words, ok = self._words(born.cols, n)
        extra["node"].extend(words)
        extra["ok"].extend(ok)
        return first, spoken

    def _words(self, cols: Sequence[pa.Array], n: int) -> tuple[np.ndarray, np.ndarray]:
        if not self.keys:
            return np.zeros(n, np.int64), np.ones(n, np.bool_)
        values = [k(cols, n) for k in self.keys]
        ok = np.ones(n, np.bool_)
        for v in values:
            valid = numpy_valid(v)
            if valid is not None:
                ok &= valid
        if self.intern is not None:
            return self.intern.codes(values, n), ok
        words = word(values[0])
        assert words is not None
        return words, ok

    def rechain(self, head: np.ndarray, side: int, stop: int) -> None:
        """Chain the live rows below slot `stop` anew, in the column of this side."""
        head[:, side] = -1
        extra = self.rows.store.extra
        live = np.flatnonzero(self.rows.store.alive.view[:stop])
        chain(head, side, extra["node"].data, extra["ok"].data, live)

    def settle(self, upto: int) -> bool:
        """Drop what has expired, but not more often than every twentieth of a lifetime (lazy expiry, §3.6.1).

        True if slots were renumbered: the chains must be made anew."""
        store = self.rows.store
        span = int(store.exp.view[0] - max(store.ts.view[0], 0)) if len(store) and store.exp.view[0] != FOREVER else 0
        if upto - self.purged < span // 20:
            return False
        self.purged = upto
        due = self.rows.expiry.due(np.array([upto], np.int64))
        if len(due):
            store.bury(due)
            if self.rows.index is not None:
                self.rows.index.remove([v.view for v in store.ids], due)
        return self.rows.settle() is not None


@dataclass(slots=True)
class JoinOp:
    """Inner join of two inputs.  `residual(cols, n)` answers which candidate pairs match (None: all)."""

    left: Side
    right: Side
    residual: Callable[[Sequence[pa.Array], int], pa.BooleanArray] | None
    head: np.ndarray = field(default_factory=lambda: np.full((1024, 2), -1, np.int64))  # youngest slot, by side

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        a, b = inputs
        first_a, slot_a = self.left.arrive(a)
        first_b, slot_b = self.right.arrive(b)
        self._make_room(first_a, first_b)
        if self.left.fifo and self.right.fifo and not (self.left.strict or self.right.strict):
            out = self._arrivals(first_a, first_b)
        else:
            out = self._signed(a, slot_a, b, slot_b)
        for k, side in enumerate((self.left, self.right)):
            if side.settle(upto):
                side.rechain(self.head, k, len(side.rows.store))
        self._purge()
        return out

    def _make_room(self, first_a: int, first_b: int) -> None:
        rows = max(len(self.left.rows.store), len(self.right.rows.store))
        if rows > len(self.head):
            size = len(self.head)
            while size < 2 * rows:
                size *= 2
            self.head = np.full((size, 2), -1, np.int64)
            self.left.rechain(self.head, 0, first_a)
            self.right.rechain(self.head, 1, first_b)

    def _purge(self) -> None:
        intern = self.left.intern
        if intern is None or not intern.wants_purge(self.live()):
            return
        used = np.zeros(intern.capacity, np.bool_)
        for side in (self.left, self.right):
            store = side.rows.store
            used[store.extra["node"].view[store.alive.view, 0]] = True
        intern.purge(used)

    def _arrivals(self, first_a: int, first_b: int) -> Batch:
        args: list[object] = []
        for side, first in ((self.left, first_a), (self.right, first_b)):
            store = side.rows.store
            args += [store.extra["node"].view, store.extra["ok"].view, store.ts.view, store.exp.view]
            args += [first, side.oldest]
        new = len(self.left.rows.store) - first_a + len(self.right.rows.store) - first_b
        if new >= HALVES_FROM and SPARE_CORE:
            a, b = in_halves(self.head, args)
        else:
            a, b, _ = join_fifo(self.head, 0, 1, *args)
        ts = np.maximum(self.left.rows.store.ts.view[a], self.right.rows.store.ts.view[b])
        return self._results(a, b, ts, None)

    def _signed(self, a: Batch, slot_a: np.ndarray, b: Batch, slot_b: np.ndarray) -> Batch:
        args: list[object] = []
        for side, rows, slots in ((self.left, a, slot_a), (self.right, b, slot_b)):
            store = side.rows.store
            args += [rows.ts, rows.signs(), slots, store.extra["node"].view, store.extra["ok"].view, store.exp.view,
                     store.alive.view]  # fmt: skip
        i, j, ts, sign = join_signed(self.head, *args)
        for side, rows, slots in ((self.left, a, slot_a), (self.right, b, slot_b)):
            side.rows.store.dead += int(np.count_nonzero((rows.signs() < 0) & (slots >= 0)))
        strict = self.left.strict or self.right.strict
        return self._results(i, j, ts, sign.astype(np.int8) if strict else None)

    def _results(self, a: np.ndarray, b: np.ndarray, ts: np.ndarray, sign: np.ndarray | None) -> Batch:
        left, right = self.left.rows.store, self.right.rows.store
        exp = np.minimum(left.exp.view[a], right.exp.view[b])
        ids = (*(v.view[a] for v in left.ids), *(v.view[b] for v in right.ids))
        life = None
        if left.life is not None or right.life is not None:
            life = np.minimum((left.life or left.exp).view[a], (right.life or right.exp).view[b])
        out = Batch(ts, exp, sign, ids, (*left.columns(a), *right.columns(b)), life)
        return out if self.residual is None else filter_batch(out, self.residual(out.cols, len(out)))

    def live(self) -> int:
        return self.left.rows.store.live + self.right.rows.store.live

    def nbytes(self) -> int:
        return self.left.rows.nbytes + self.right.rows.nbytes + int(self.head.nbytes)

    def next_due(self) -> int:
        return FOREVER
