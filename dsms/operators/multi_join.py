"""Join of three windows or more on equal keys, inner, inputs of any pattern; nothing but their rows
is kept.

Input    Each keeps its live rows.  A new row looks into all others, in the order that the planner
         has chosen, and then joins its own.
Lifetime That of a tree of joins of two: born with the youngest part, dead with the first.
Eager    Algorithm 2 of Golab 2006, §5.2.1, where all deaths are announced; else Algorithm 3: rows
         that have expired are passed over, and dropped at leisure.  A deletion looks like an
         insertion, and takes results back.
Lazy     Rows of one input that come at one instant with one key look once.  Below a SLIDE without
         restore the rows of a whole period do (`LazyOp` puts them there): that is Algorithm 4,
         where rows that are dead by then never come here; with restore, where each row has its own
         instant, results are those of Algorithm 5 with max ts < min exp over all parts (as printed
         it loses results, and has others that never were).
Levels   All inputs are equal in the key, so the matches in one window do not depend on those in
         another: each window is searched once for a row, not once for each partial result, and the
         results are the product of what was found.
State    Rows by input, their keys chained per hash, youngest first, in one arena.
Cost     O(windows + matches) a row.
Output   In pieces of about PART results; the product of one row may be cut.  More than `most` at
         one instant are refused (DS631).
Twin     the tree of joins (WITH (joins = tree)); tests/oracle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dsms.operators.base import Builds
from dsms.operators.basic import filter_batch
from dsms.operators.join import PART
from dsms.operators.keyed_rows import KeyedRows, codes_nbytes, key_columns, shared_codes
from dsms.operators.multi_join_kernels import (
    END,
    GONE,
    KEY,
    along_rows,
    chain_rows,
    merged,
    multi_join,
)
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
)
from dsms.plan.identity import width
from dsms.plan.join_order import probing
from dsms.plan.physical import JoinOrder, Phys
from dsms.sql import logical as lp
from dsms.sql.types import FOREVER
from dsms.state.batch import Batch, empty_batch
from dsms.state.live import Events

LEAST = 64  # places of an input in the arena


@dataclass(slots=True)
class Arena:
    """Keys, links and ends of life of the rows of n inputs, each input in a stretch of its own, and
    the chains (`multi_join_kernels`).

    offset  int64[n + 1]: where the stretches begin;  used: places in use
    old     int64[n]: slots before which no row of a FIFO input is alive"""

    n: int
    rows: np.ndarray = field(init=False)
    offset: np.ndarray = field(init=False)
    used: np.ndarray = field(init=False)
    old: np.ndarray = field(init=False)
    head: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.offset = np.arange(self.n + 1, dtype=np.int64) * LEAST
        self.rows = np.empty((self.n * LEAST, 3), np.int64)
        self.used, self.old = np.zeros(self.n, np.int64), np.zeros(self.n, np.int64)
        self.head = np.full((LEAST, self.n), -1, np.int64)

    def of(self, i: int) -> np.ndarray:
        """The rows of an input, int64[used, 3]; not a copy."""
        return self.rows[self.offset[i] : self.offset[i] + self.used[i]]

    def reserve(self, more: Sequence[int]) -> None:
        """Make room for so many more rows of each input.  All that are there must be chained."""
        need = self.used + np.array(more, np.int64)
        room = np.diff(self.offset)
        if (need > room).any():  # of all that will be short of room soon, or each moves all others
            self._move(np.where(4 * need > 3 * room, 2 * need, room))
        if need.max() > len(self.head):
            size = len(self.head)
            while size < 2 * need.max():
                size *= 2
            self.head = np.full((size, self.n), -1, np.int64)
            for i in range(self.n):
                self.chain(i)

    def _move(self, room: np.ndarray) -> None:
        """Give each input a stretch of that length."""
        offset = np.append(0, np.cumsum(room)).astype(np.int64)
        rows = np.empty((offset[-1], 3), np.int64)
        for i in range(self.n):
            rows[offset[i] : offset[i] + self.used[i]] = self.of(i)
        self.rows, self.offset = rows, offset

    def add(self, i: int, words: np.ndarray, ok: np.ndarray, exp: np.ndarray) -> None:
        """Rows of an input, not chained yet."""
        self.used[i] += len(words)
        new = self.of(i)[self.used[i] - len(words) :]
        new[:, KEY] = words
        new[:, END] = np.where(ok, exp, GONE)

    def renumber(self, i: int, where: np.ndarray) -> None:
        """Its slots are others now: the new one of each old one, or -1."""
        kept = np.flatnonzero(where >= 0)
        rows = self.of(i)[kept]
        self.used[i], self.old[i] = len(kept), 0
        self.of(i)[:] = rows
        self.head[:, i] = -1
        self.chain(i)
        if 8 * self.used.sum() < len(self.rows) - 8 * self.n * LEAST:
            self._move(np.maximum(LEAST, 2 * self.used))

    def shrink(self) -> None:
        """Let the chains be fewer if there are few rows."""
        need = max(int(self.used.max()), LEAST)
        if 8 * need < len(self.head):
            self.head = np.full((1 << (2 * need - 1).bit_length(), self.n), -1, np.int64)
            for i in range(self.n):
                self.chain(i)

    def chain(self, i: int, look: Look = go_on) -> None:
        """Chain all rows of an input, none of which is chained."""
        for start in range(0, int(self.used[i]), LOADED):
            look()
            some = np.arange(start, min(start + LOADED, int(self.used[i])))
            chain_rows(self.head, self.rows, self.offset, i, some)

    @property
    def nbytes(self) -> int:
        return int(self.rows.nbytes + self.head.nbytes)


@dataclass(slots=True)
class MultiJoinOp(InPieces):
    """Inner join of many inputs.  `residual(cols, n)` answers which candidates match (None: all).

    order  int64[n, n - 1]: the inputs that a row of each input looks into, one after the other
    most   results at one instant, at most
    by     by input the columns that are its keys; empty if they are not known"""

    inputs: list[KeyedRows]
    order: np.ndarray
    residual: Callable[[Sequence[pa.Array], int], pa.BooleanArray] | None
    most: int = 1 << 22
    away: NotComing = field(default_factory=NotComing)
    by: tuple[tuple[int, ...], ...] = ()
    arena: Arena = field(init=False)
    nothing: Batch = field(init=False)

    def __post_init__(self) -> None:
        self.arena = Arena(len(self.inputs))
        schema = tuple(f for side in self.inputs for f in side.schema)
        self.nothing = empty_batch(schema, sum(side.width for side in self.inputs))

    def pieces(self, inputs: Sequence[Batch], upto: int, look: Look) -> Iterator[Piece]:
        if any(len(rows) for rows in inputs):
            self.arena.reserve([len(rows) for rows in inputs])
            first, fresh = self.arena.used.copy(), self.arena.used.copy()
            told = [self._arrive(i, rows, look) for i, rows in enumerate(inputs)]
            parts = self._parts(*self._events(inputs, told), fresh, upto, look)
            yield from by_instants(parts, self.most)
            for side, rows, spoken in zip(self.inputs, inputs, told, strict=True):
                if rows.sign is not None:
                    side.rows.store.bury(spoken[(rows.sign < 0) & (spoken >= 0)])
            for i in range(len(self.inputs)) if self.away.sets else ():
                self._forget(i, np.arange(first[i], self.arena.used[i]))
        else:
            yield self.nothing, upto
        for i, side in enumerate(self.inputs):
            self._moved(i, side.settle(upto))
        if self.away.sets:
            self._sweep(look=look)
        self._purge()

    def none_come(self, child: int, places: Places, values: Sequence[pa.Array]) -> None:
        """See `not_coming.Meets`."""
        self.away.add(child, places, values)
        rows = {i: self._chained(i, at, values) for i, at in places.items() if i != child}
        for i, slots in rows.items():
            if slots is not None:
                self._forget(i, slots)
        if any(slots is None for slots in rows.values()):
            self.away.sweep.promised(told(places, values), len(values[0]))
        else:
            self.away.found(told(places, values))
        self._sweep(len(values[0]))
        for i, side in enumerate(self.inputs):
            self._moved(i, side.rows.settle())
        self.arena.shrink()
        self._purge()

    def _chained(
        self, i: int, columns: Sequence[int], values: Sequence[pa.Array]
    ) -> np.ndarray | None:
        """Slots of the rows of an input that have these values, found by their chains; None: these
        do not lead to them."""
        side, arena = self.inputs[i], self.arena
        if not may_go(side):
            return np.empty(0, np.int64)
        at = keyed(self.by[i], columns) if self.by else None
        if at is None or any(values[k].null_count for k in at):
            return None
        keys = side.known_words([values[k] for k in at], len(values[0]))
        slots = along_rows(arena.head, arena.rows, arena.offset, i, np.unique(keys))
        return having(side, slots, columns, values)

    def _sweep(self, many: int = 0, look: Look = go_on) -> None:
        for i, dead in self.away.swept(self.inputs, many, look):
            self._let_go(i, dead)
        self.away.close(len(self.inputs))

    def _moved(self, i: int, where: np.ndarray | None) -> None:
        """Rows of an input are at other slots now, if so."""
        if where is not None:
            self.arena.renumber(i, where)

    def _forget(self, i: int, slots: np.ndarray) -> None:
        """Let go of those of these rows that are in no result to come."""
        self._let_go(i, self.away.dead(i, len(self.inputs), self.inputs[i], slots))

    def _let_go(self, i: int, dead: np.ndarray) -> None:
        self.inputs[i].rows.store.bury(dead)
        self.arena.of(i)[dead, END] = GONE

    def load(self, inputs: Sequence[Batch], look: Look) -> None:
        """Keep the insertions that these are, into empty windows, without looking for results."""
        self.arena.reserve([len(rows) for rows in inputs])
        for i, rows in enumerate(inputs):
            for some in portions(rows, look):
                self._arrive(i, some, look)
            self.arena.chain(i, look)

    def _arrive(self, i: int, rows: Batch, look: Look) -> np.ndarray:
        """Store an input's insertions; the slot that each of its rows speaks of (-1: unknown)."""
        side = self.inputs[i]
        slots, spoken = side.rows.arrive(rows)
        born = rows if rows.sign is None else rows.take(np.flatnonzero(rows.sign > 0))
        self.arena.add(i, *side.words(born.cols, len(slots), look), born.exps())
        return spoken

    def _events(
        self, inputs: Sequence[Batch], told: Sequence[np.ndarray]
    ) -> tuple[Events, np.ndarray]:
        """What happens, in order, and to which input.  Where many rows come to one input at one
        instant they stand by key, so that they look together."""
        first = np.append(0, np.cumsum([len(rows) for rows in inputs])).astype(np.int64)
        times = np.concatenate([rows.ts for rows in inputs])
        signs = np.concatenate([rows.signs() for rows in inputs])
        when, sign, side, slot, runs = merged(times, signs, np.concatenate(told), first)
        if 8 * runs < 7 * len(when):  # else it does not pay
            changed = (np.diff(when) != 0) | (np.diff(sign) != 0) | (np.diff(side) != 0)
            keys = self.arena.rows[self.arena.offset[side] + slot, KEY]
            slot = slot[np.lexsort((keys, np.append(0, np.cumsum(changed))))]
        return Events(when, sign, slot), side

    def _parts(
        self, events: Events, side: np.ndarray, fresh: np.ndarray, upto: int, look: Look
    ) -> Iterator[ResultPart]:
        """The results, about PART at a time."""
        arena, at = self.arena, np.zeros(2, np.int64)
        fifo = np.array([s.fifo and not s.strict for s in self.inputs])
        while True:
            look()
            found, signs = multi_join(
                *(arena.head, arena.rows, arena.offset, arena.old, fresh, fifo, self.order, at),
                PART,
                *(events.at, events.sign, side, events.slot),
            )
            out = self._results(found, signs)
            done, within = int(at[0]), at[1] > 0
            if done == len(events):
                yield out, upto, True
                return
            last = int(events.at[done if within else done - 1])
            yield out, last, not within and int(events.at[done]) > last

    def _results(self, found: np.ndarray, signs: np.ndarray) -> Batch:
        """Those results: int64[n + 2, results] of slots of their parts, ends of life, instants."""
        if not len(signs):
            return self.nothing
        *slots, exp, ts = found
        parts = [(side.rows.store, at) for side, at in zip(self.inputs, slots, strict=True)]
        life = None
        if any(store.life is not None for store, _ in parts):
            life = np.minimum.reduce([(store.life or store.exp).view[at] for store, at in parts])
        out = Batch(
            ts,
            exp,
            signs if any(side.strict for side in self.inputs) else None,
            tuple(v.view[at] for store, at in parts for v in store.ids),
            tuple(column for store, at in parts for column in store.columns(at)),
            life,
        )
        return (
            out if self.residual is None else filter_batch(out, self.residual(out.cols, len(out)))
        )

    def _purge(self) -> None:
        intern = self.inputs[0].intern
        if intern is None or not intern.wants_purge(self.live()):
            return
        used = np.zeros(intern.capacity, np.bool_)
        for i, side in enumerate(self.inputs):
            used[self.arena.of(i)[side.rows.store.alive.view, KEY]] = True
        intern.purge(used)

    def live(self) -> int:
        return sum(side.rows.store.live for side in self.inputs)

    def nbytes(self) -> int:
        rows = sum(side.rows.nbytes for side in self.inputs)
        codes = codes_nbytes([self.inputs[0].intern]) + self.away.nbytes
        return rows + self.arena.nbytes + codes

    def next_due(self) -> int:
        return FOREVER


def multi_join_op(
    builder: Builds, phys: Phys, node: lp.MultiJoin, kind: type[KeyedRows] = KeyedRows
) -> MultiJoinOp:
    """The join of a node's inputs, in the order of its plan.  `kind`: what keeps an input."""
    assert isinstance(phys.order, JoinOrder)
    keys = [[e for e in same if e is not None] for same in node.keys]
    codes = shared_codes([same[0].type.arrow for same in keys])
    inputs = [
        kind(
            child.node.schema,
            width(child.node),
            phys.state(k),
            child.strict,
            [builder.expr(same[k]) for same in keys],
            codes,
        )
        for k, child in enumerate(phys.children)
    ]
    order = [probing(phys.order.order, k) for k in range(len(inputs))]
    matches = None if node.residual is None else builder.predicate(node.residual)
    by = tuple(key_columns([same[k] for same in keys]) for k in range(len(inputs)))
    return MultiJoinOp(inputs, np.array(order, np.int64), matches, builder.step_rows, by=by)
