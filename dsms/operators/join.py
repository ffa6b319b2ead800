"""Window join, inner: symmetric, hash or nested loop (one bucket for all), two inputs of any
pattern.

Input    Each side keeps its live rows.  A new row probes the other side and then joins its own.
Lifetime A result is born at the later ts of its parts and dies at the earlier exp; it exists only
if ts < exp
         (Golab 2006, §2.3.2).  Without deletions on the inputs the output needs none, and expiry is lazy: expired rows
         are skipped by their exp and dropped at leisure.  A deletion probes like an insertion and takes results back.
State    Rows by side, chained per key hash, youngest first.  Over a FIFO side a probe stops at the
         first expired row.
Cost     O(1 + matches) a row.
Output   In pieces of about PART results.  More than `most` at one instant are refused (DS631): an
         instant can't be cut.
Twin     tests/oracle (nested loops over the windows' contents).
A retroactive table (⋈R) is a side whose rows are inserted and deleted by table changes and never
expire.
"""  # noqa: E501

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dsms.operators.base import Builds
from dsms.operators.basic import filter_batch
from dsms.operators.join_kernels import along, chain, in_halves, join_fifo, join_signed
from dsms.operators.keyed_rows import KeyedRows, codes_nbytes, key_columns, shared_codes
from dsms.operators.not_coming import NotComing, Places, having, keyed, may_go, told
from dsms.operators.pieces import (
    LOADED,
    InPieces,
    Look,
    Piece,
    ResultPart,
    by_instants,
    go_on,
    portions,
    too_many,
)
from dsms.plan.identity import width
from dsms.plan.physical import Phys
from dsms.sql.expr import Expr
from dsms.sql.types import FOREVER
from dsms.state.batch import Batch, empty_batch
from dsms.state.vec import Vec, Vec2

PART = 1 << 18  # results handed on at once
HALVES_FROM = 16_384  # new rows from which two threads pay
# results of a half from which they do not: it is too late to hand them on in parts
HALVES_UNTIL = 1 << 20
SPARE_CORE = (os.cpu_count() or 1) > 1


@dataclass(slots=True)
class Side(KeyedRows):
    """One input of a join of two: chains per key hash beside its rows."""

    def __post_init__(self) -> None:
        KeyedRows.__post_init__(self)
        self.rows.store.extra.update(node=Vec2(), ok=Vec(np.bool_))

    def arrive(self, batch: Batch, look: Look) -> tuple[int, np.ndarray]:
        """Store a batch's insertions with their keys: (first new slot, slot that each row speaks
        of)."""
        first = len(self.rows.store)
        slots, spoken = self.rows.arrive(batch)
        born = batch if batch.sign is None else batch.take(np.flatnonzero(batch.sign > 0))
        extra = self.rows.store.extra
        words, ok = self.words(born.cols, len(slots), look)
        extra["node"].extend(words)
        extra["ok"].extend(ok)
        return first, spoken

    def rechain(self, head: np.ndarray, side: int, stop: int, look: Look = go_on) -> None:
        """Chain the live rows below slot `stop` anew, in the column of this side."""
        head[:, side] = -1
        extra = self.rows.store.extra
        live = np.flatnonzero(self.rows.store.alive.view[:stop])
        for start in range(0, len(live), LOADED):
            look()
            some = live[start : start + LOADED]
            chain(head, side, extra["node"].data, extra["ok"].data, some)


@dataclass(slots=True)
class JoinOp(InPieces):
    """Inner join of two inputs.  `residual(cols, n)` answers which candidate pairs match (None:
    all).

    most  results at one instant, and candidate pairs of one row, at most
    by    by side the columns that are its keys; empty if they are not columns"""

    left: Side
    right: Side
    residual: Callable[[Sequence[pa.Array], int], pa.BooleanArray] | None
    most: int = 1 << 22
    # youngest slot, by side
    head: np.ndarray = field(default_factory=lambda: np.full((1024, 2), -1, np.int64))
    crowded: int = 0  # steps for which halves are not tried
    gone: int = 0  # rows that went as nothing comes that could meet them
    away: NotComing = field(default_factory=NotComing)
    by: tuple[tuple[int, ...], ...] = ((), ())
    nothing: Batch = field(init=False)

    def __post_init__(self) -> None:
        self.nothing = empty_batch(
            (*self.left.schema, *self.right.schema), self.left.width + self.right.width
        )

    def pieces(self, inputs: Sequence[Batch], upto: int, look: Look) -> Iterator[Piece]:
        a, b = inputs
        first_a, slot_a = self.left.arrive(a, look)
        first_b, slot_b = self.right.arrive(b, look)
        self._make_room(first_a, first_b)
        if self.left.fifo and self.right.fifo and not (self.left.strict or self.right.strict):
            parts = self._arrivals(first_a, first_b, upto, look)
        else:
            parts = self._signed(a, slot_a, b, slot_b, upto, look)
        yield from by_instants(parts, self.most)
        if self.away.sets:
            for k, (side, first) in enumerate(zip(self.sides, (first_a, first_b), strict=True)):
                new = np.arange(first, len(side.rows.store))
                self._forget(k, self.away.dead(k, 2, side, new))
        for k, side in enumerate(self.sides):
            self._moved(k, side.settle(upto))
        if self.away.sets:
            self._sweep(look=look)
        self._purge()

    def load(self, inputs: Sequence[Batch], look: Look) -> None:
        """Keep the insertions that these are, into empty windows, without looking for results."""
        for side, rows in zip((self.left, self.right), inputs, strict=True):
            for some in portions(rows, look):
                side.arrive(some, look)
        self._enlarge()
        self._rechain(len(self.left.rows.store), len(self.right.rows.store), look)

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.left, self.right

    def none_come(self, child: int, places: Places, values: Sequence[pa.Array]) -> None:
        """See `not_coming.Meets`."""
        self.go_by(child, places, values, closes=True)

    def go_by(
        self, child: int, places: Places, values: Sequence[pa.Array], *, closes: bool
    ) -> None:
        """`none_come`.  `closes`: nothing else has to go by this promise."""
        self.away.add(child, places, values)
        rows = {k: self._chained(k, at, values) for k, at in places.items() if k != child}
        promise = told(places, values)
        for k, slots in rows.items():
            if slots is not None:
                self._forget(k, self.away.dead(k, 2, self.sides[k], slots))
        if any(slots is None for slots in rows.values()):
            self.away.sweep.promised(promise if closes else told(places, []), len(values[0]))
        elif closes:
            self.away.found(promise)
        self._sweep(len(values[0]))
        for k, side in enumerate(self.sides):
            self._moved(k, side.rows.settle(), shrinks=True)
        self._purge()

    def _chained(
        self, k: int, columns: Sequence[int], values: Sequence[pa.Array]
    ) -> np.ndarray | None:
        """Slots of the rows of a side that have these values, found by their chains; None: these do
        not lead to them."""
        side = self.sides[k]
        if not may_go(side):
            return np.empty(0, np.int64)
        at = keyed(self.by[k], columns)
        if at is None or any(values[i].null_count for i in at):
            return None
        keys = side.known_words([values[i] for i in at], len(values[0]))
        slots = along(self.head, k, side.rows.store.extra["node"].view, np.unique(keys))
        return having(side, slots, columns, values)

    def _sweep(self, many: int = 0, look: Look = go_on) -> None:
        for k, dead in self.away.swept(self.sides, many, look):
            self._forget(k, dead)
        self.away.close(2)

    def _moved(self, k: int, where: np.ndarray | None, *, shrinks: bool = False) -> None:
        """Rows of a side are at other slots now, if so."""
        if where is not None:
            if shrinks:
                self._shrink()
            self.sides[k].rechain(self.head, k, len(self.sides[k].rows.store))

    def _shrink(self) -> None:
        """Let the chains be fewer if there are few rows."""
        rows = max(len(self.left.rows.store), len(self.right.rows.store), 512)
        if 8 * rows < len(self.head):
            self.head = np.full((1 << (2 * rows - 1).bit_length(), 2), -1, np.int64)
            self._rechain(len(self.left.rows.store), len(self.right.rows.store))

    def _forget(self, k: int, dead: np.ndarray) -> None:
        self.gone += len(dead)
        self.sides[k].rows.store.bury(dead)

    def _make_room(self, first_a: int, first_b: int) -> None:
        if self._enlarge():
            self._rechain(first_a, first_b)

    def _enlarge(self) -> bool:
        """Whether there are longer chains by now, which have to be made anew."""
        rows = max(len(self.left.rows.store), len(self.right.rows.store))
        if rows <= len(self.head):
            return False
        size = len(self.head)
        while size < 2 * rows:
            size *= 2
        self.head = np.full((size, 2), -1, np.int64)
        return True

    def _rechain(self, first_a: int, first_b: int, look: Look = go_on) -> None:
        self.left.rechain(self.head, 0, first_a, look)
        self.right.rechain(self.head, 1, first_b, look)

    def _purge(self) -> None:
        intern = self.left.intern
        if intern is None or not intern.wants_purge(self.live()):
            return
        used = np.zeros(intern.capacity, np.bool_)
        for side in (self.left, self.right):
            store = side.rows.store
            used[store.extra["node"].view[store.alive.view, 0]] = True
        intern.purge(used)

    def _arrivals(self, first_a: int, first_b: int, upto: int, look: Look) -> Iterator[ResultPart]:
        args: list[np.ndarray] = []
        for side in (self.left, self.right):
            store = side.rows.store
            args += [
                store.extra["node"].view,
                store.extra["ok"].view,
                store.ts.view,
                store.exp.view,
            ]
        times = (self.left.rows.store.ts.view, self.right.rows.store.ts.view)
        begin = (first_a, first_b, self.left.oldest, self.right.oldest, 0, 0)
        pairs = self._in_halves(begin, args)
        if pairs is not None:
            yield self._born(*pairs), upto, True
            return
        at = np.array(begin, np.int64)
        yield from self._parts(
            lambda: self._born(*join_fifo(self.head, 0, 1, at, PART, self.most, *args)[:2]),
            at,
            times,
            upto,
            look,
        )

    def _in_halves(
        self, begin: tuple[int, ...], args: list[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """All results at once, by two threads; None if too few rows have come or too many
        results."""
        new = len(args[0]) - begin[0] + len(args[4]) - begin[1]
        self.crowded = max(0, self.crowded - 1)
        if new < HALVES_FROM or self.crowded or not SPARE_CORE:
            return None
        pairs = in_halves(self.head, np.array(begin, np.int64), min(HALVES_UNTIL, self.most), args)
        if pairs is None:  # begin anew
            self.crowded = 32
            self._rechain(begin[0], begin[1])
        return pairs

    def _signed(
        self, a: Batch, slot_a: np.ndarray, b: Batch, slot_b: np.ndarray, upto: int, look: Look
    ) -> Iterator[ResultPart]:
        args: list[np.ndarray] = []
        for side, rows, slots in ((self.left, a, slot_a), (self.right, b, slot_b)):
            store, signs = side.rows.store, rows.signs()
            args += [
                rows.ts,
                signs,
                slots,
                store.extra["node"].view,
                store.extra["ok"].view,
                store.exp.view,
                store.alive.view,
            ]
            store.dead += int(np.count_nonzero((signs < 0) & (slots >= 0)))
        at, strict = np.zeros(6, np.int64), self.left.strict or self.right.strict

        def run() -> Batch:
            i, j, ts, sign = join_signed(self.head, at, PART, self.most, *args)
            return self._results(i, j, ts, sign.astype(np.int8) if strict else None)

        yield from self._parts(run, at, (a.ts, b.ts), upto, look)

    def _parts(
        self,
        run: Callable[[], Batch],
        at: np.ndarray,
        times: tuple[np.ndarray, np.ndarray],
        upto: int,
        look: Look,
    ) -> Iterator[ResultPart]:
        """The results of one `run` after the other.  `times` of the rows that `at` counts."""
        while True:
            look()
            out = run()
            places = [(ts, int(k)) for ts, k in zip(times, at, strict=False)]
            if not at[5] and all(k == len(ts) for ts, k in places):
                yield out, upto, True
                return
            last = max(int(ts[k - 1]) for ts, k in places if k)
            yield out, last, not at[5] and all(k == len(ts) or ts[k] > last for ts, k in places)
            if at[5]:
                raise too_many(self.most)

    def _born(self, a: np.ndarray, b: np.ndarray) -> Batch:
        """Results of arrivals alone: each is born with the later of its parts."""
        return self._results(
            a,
            b,
            np.maximum(self.left.rows.store.ts.view[a], self.right.rows.store.ts.view[b]),
            None,
        )

    def _results(
        self, a: np.ndarray, b: np.ndarray, ts: np.ndarray, sign: np.ndarray | None
    ) -> Batch:
        if not len(a):
            return self.nothing
        left, right = self.left.rows.store, self.right.rows.store
        exp = np.minimum(left.exp.view[a], right.exp.view[b])
        ids = (*(v.view[a] for v in left.ids), *(v.view[b] for v in right.ids))
        life = None
        if left.life is not None or right.life is not None:
            life = np.minimum((left.life or left.exp).view[a], (right.life or right.exp).view[b])
        out = Batch(ts, exp, sign, ids, (*left.columns(a), *right.columns(b)), life)
        return (
            out if self.residual is None else filter_batch(out, self.residual(out.cols, len(out)))
        )

    def live(self) -> int:
        return self.left.rows.store.live + self.right.rows.store.live

    def nbytes(self) -> int:
        rows = self.left.rows.nbytes + self.right.rows.nbytes
        codes = codes_nbytes([self.left.intern]) + self.away.nbytes
        return rows + int(self.head.nbytes) + codes

    def next_due(self) -> int:
        return FOREVER


def inner_join(
    builder: Builds,
    phys: Phys,
    keys: tuple[tuple[Expr, Expr], ...],
    residual: Expr | None,
    kind: type[Side] = Side,
) -> JoinOp:
    """The symmetric join of a node's two inputs on equality keys and a residual condition.  `kind`:
    what keeps an input."""
    shared = shared_codes([left.type.arrow for left, _ in keys])
    sides = [
        kind(
            child.node.schema,
            width(child.node),
            phys.state(k),
            child.strict,
            [builder.expr(pair[k]) for pair in keys],
            shared,
        )
        for k, child in enumerate(phys.children)
    ]
    matches = None if residual is None else builder.predicate(residual)
    by = tuple(key_columns([pair[k] for pair in keys]) for k in range(2))
    return JoinOp(sides[0], sides[1], matches, builder.step_rows, by=by)
