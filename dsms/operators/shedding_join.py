"""Window joins, of two inputs or of many, that hold no more than they may: rows of their windows of
which the fewest results are to be expected are let go first.

Golab 2006, section 2.4.3 (semantic load shedding); Das, Gehrke and Riedewald 2003 (PROB, LIFE).

Worth    Of a row: how often its key has come on the other side lately (of many: on each of the
         others, multiplied), times what remains of its life.  Keys are counted as they come, kept
         or not, so what was let go comes back once it is worth more.
When     Behind the first instant at which the rows that are alive take more than `most` bytes; so
         many go that nine tenths of that are left.  Counted is what the rows are in themselves,
         not the room that their structures have: when which rows go depends on the input alone,
         neither on how it was cut, nor on a clock, nor on a restart.  Of rows of equal worth the
         older goes, of rows of one instant that of the input more to the left.
Exact    Results that were told die with the first of their parts, which they know from the
         beginning; so inputs announce no deletions (windows in time, not strategy `nt`).  What has
         been let go finds no partner any more: results are a part of those of `JoinOp` and
         `MultiJoinOp`, each with its true lifetime.
State    That of these, a hash and a size a row, two rows of counters an input.
Cost     O(log n) a row: n rows are sorted whenever a tenth of them has come anew.
Twin     JoinOp, MultiJoinOp; tests/shedding_model.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.errors import InternalError
from dsms.operators.base import Builds
from dsms.operators.expressions.hashes import hashed
from dsms.operators.join import JoinOp, Side, inner_join
from dsms.operators.keyed_rows import KeyedRows
from dsms.operators.multi_join import MultiJoinOp, multi_join_op
from dsms.operators.pieces import InPieces, Look, Piece, parted, stretches
from dsms.operators.shedding_kernels import NEVER, ONE, PLACES, count, first_over, worth
from dsms.plan.physical import Phys
from dsms.sql import logical as lp
from dsms.sql.types import FOREVER
from dsms.state.batch import Batch
from dsms.state.columns import numpy_values
from dsms.state.vec import Vec

ROW = 64  # bytes of a row besides its values and the numbers of its parts
STRETCH = 4096  # rows looked at together
KEPT = 9, 10  # of what may be held, behind a look at which it was more
FADES = 3  # the counters lose an eighth then: they tell of the last rows that filled the windows
LATELY = 4  # times as many rows as there are count at most, however long all could be held
SPANS = 32  # of a life, by which is remembered until when rows that were let go would be there


@dataclass(slots=True)
class SheddingSide(Side):
    """An input of two: beside its rows the hash of each key (of values: codes are handed out as
    batches come), and what the row takes."""

    def __post_init__(self) -> None:
        Side.__post_init__(self)
        self.rows.store.extra.update(key=Vec(), size=Vec())

    def words(self, cols: Sequence[pa.Array], n: int, look: Look) -> tuple[np.ndarray, np.ndarray]:
        self.rows.store.extra["size"].extend(sizes(cols, n, self.width))
        return Side.words(self, cols, n, look)

    def coded(
        self, values: Sequence[pa.Array], n: int, look: Look
    ) -> tuple[np.ndarray, np.ndarray]:
        self.rows.store.extra["key"].extend(hashed(values, n))
        return Side.coded(self, values, n, look)


@dataclass(slots=True)
class SheddingInput(KeyedRows):
    """An input of many: beside its rows the hash of each key, whether none of its columns is NULL,
    and what the row takes."""

    def __post_init__(self) -> None:
        KeyedRows.__post_init__(self)
        self.rows.store.extra.update(key=Vec(), ok=Vec(np.bool_), size=Vec())

    def words(self, cols: Sequence[pa.Array], n: int, look: Look) -> tuple[np.ndarray, np.ndarray]:
        self.rows.store.extra["size"].extend(sizes(cols, n, self.width))
        return KeyedRows.words(self, cols, n, look)

    def coded(
        self, values: Sequence[pa.Array], n: int, look: Look
    ) -> tuple[np.ndarray, np.ndarray]:
        words, ok = KeyedRows.coded(self, values, n, look)
        extra = self.rows.store.extra
        extra["key"].extend(hashed(values, n))
        extra["ok"].extend(ok)
        return words, ok


@dataclass(slots=True)
class LetGo:
    """What is remembered of rows that were let go.

    rows   how many there were
    kept   how many others were left behind the last look
    until  rows by the instant (FOREVER too) at which they would have left, rounded up to steps; of
           those that would have left long ago the last one
    step   µs, so that the longest life is no more than SPANS of them
    """

    rows: int = 0
    kept: int = 0
    until: dict[int, int] = field(default_factory=dict)
    step: int = 1

    def add(self, exp: np.ndarray, now: int, kept: int) -> None:
        """Rows that would have left at `exp` (at least one) were let go; so many are kept."""
        self.rows, self.kept = self.rows + len(exp), kept
        mortal = exp[exp != FOREVER]
        longest = int(mortal.max()) - now if len(mortal) else 0
        while self.step * SPANS < longest:
            self.step *= 2
        ends, counts = np.unique(exp, return_counts=True)
        more = zip(ends.tolist(), counts.tolist(), strict=True)
        self._sorted([*self.until.items(), *more], now - SPANS * self.step)

    def _sorted(self, found: Sequence[tuple[int, int]], past: int) -> None:
        self.until = {}
        ends = [(_up(end, self.step), rows) for end, rows in found]
        old = max((end for end, _ in ends if end < past), default=past)
        for end, rows in sorted(ends):
            end = max(end, old)
            self.until[end] = self.until.get(end, 0) + rows

    def share(self, at: int) -> float | None:
        """Of the rows that would be in the windows at an instant, about, the share that was kept;
        None: all were."""
        missing = sum(rows for until, rows in self.until.items() if until > at)
        return None if not missing else self.kept / (self.kept + missing)


def _up(end: int, step: int) -> int:
    return end if end == FOREVER else -(-end // step) * step


@dataclass(slots=True)
class SheddingJoinOp(InPieces):
    """Inner join of two inputs, or of many.

    most      bytes that the rows of all windows may take
    counters  see `shedding_kernels.count`
    held      bytes of the rows that are there: not less than those of rows that are alive
    """

    inner: JoinOp | MultiJoinOp
    most: int
    counters: np.ndarray = field(init=False)
    held: int = 0
    gone: LetGo = field(default_factory=LetGo)

    def __post_init__(self) -> None:
        self.counters = np.zeros((len(self.sides), 2, PLACES), np.int64)

    @property
    def sides(self) -> Sequence[KeyedRows]:
        if isinstance(self.inner, MultiJoinOp):
            return self.inner.inputs
        return self.inner.left, self.inner.right

    def pieces(self, inputs: Sequence[Batch], upto: int, look: Look) -> Iterator[Piece]:
        for given, until in stretches(inputs, upto, STRETCH):
            yield from self._stretch(given, until, look)

    def _stretch(self, inputs: Sequence[Batch], upto: int, look: Look) -> Iterator[Piece]:
        while (cut := self._over(inputs)) < upto:
            now, inputs = parted(inputs, cut)
            yield from self._joined(now, cut, look)
            self._let_go(cut)
        yield from self._joined(inputs, upto, look)
        if cut == upto:
            self._let_go(upto)

    def _joined(self, inputs: Sequence[Batch], upto: int, look: Look) -> Iterator[Piece]:
        first = [len(side.rows.store) for side in self.sides]
        counted = False
        for piece in self.inner.pieces(inputs, upto, look):
            if not counted:  # the rows are stored, and none has been moved
                self._count(first)
                counted = True
            yield piece

    def _count(self, first: Sequence[int]) -> None:
        for k, side in enumerate(self.sides):
            extra = side.rows.store.extra
            count(self.counters, k, extra["key"].view[first[k] :], extra["ok"].view[first[k] :])

    def _over(self, inputs: Sequence[Batch]) -> int:
        """The first instant behind which more is alive than may be, once these rows are there;
        NEVER if there is none."""
        size = np.concatenate([sizes(rows.cols, len(rows), len(rows.ids)) for rows in inputs])
        if self.held + int(size.sum()) <= self.most:
            self.held += int(size.sum())
            return NEVER
        ts = np.concatenate([rows.ts for rows in inputs])
        order = np.argsort(ts, kind="stable")
        exp, exp_size = [rows.exps() for rows in inputs], [size]
        there = 0
        for side in self.sides:
            store, slots = side.rows.store, _alive(side)
            exp.append(store.exp.view[slots])
            exp_size.append(store.extra["size"].view[slots])
            there += int(exp_size[-1].sum())
        ends, taken = np.concatenate(exp), np.concatenate(exp_size)
        by_end = np.argsort(ends, kind="stable")
        cut, held = first_over(
            there, ts[order], size[order], ends[by_end], taken[by_end], self.most
        )
        self.held = int(held)
        return int(cut)

    def _let_go(self, now: int) -> None:
        """Let go of so many rows, those of least worth first, that there is room for others."""
        for side in self.sides:
            side.expire(now)
        slots = [_alive(side) for side in self.sides]
        judged = [self._judged(k, some, now) for k, some in enumerate(slots)]
        value, ts, size, exp = (np.concatenate(parts) for parts in zip(*judged, strict=True))
        order = np.lexsort((ts, value))
        left = int(size.sum()) - np.cumsum(size[order])
        least = self.most * KEPT[0] // KEPT[1]
        gone = np.sort(order[: 1 + int(np.count_nonzero(left > least))])
        self.held = int(size.sum() - size[gone].sum())
        self.gone.add(exp[gone], now, len(size) - len(gone))
        self._fade(len(size))
        first = np.append(0, np.cumsum([len(some) for some in slots]))
        stops = np.searchsorted(gone, first)
        for k, some in enumerate(slots):
            self._forget(k, some[gone[stops[k] : stops[k + 1]] - first[k]])

    def _forget(self, k: int, slots: np.ndarray) -> None:
        """Rows of one input are gone, and in no chain."""
        side = self.sides[k]
        where = side.rows.let_go(slots)
        if isinstance(self.inner, MultiJoinOp):
            self.inner.arena.renumber(k, where)
        else:
            assert isinstance(side, Side)
            side.rechain(self.inner.head, k, len(side.rows.store))

    def _fade(self, rows: int) -> None:
        counted = int(self.counters[:, 0].sum())
        while counted > LATELY * rows * ONE:
            self.counters >>= 1
            counted >>= 1
        self.counters -= self.counters >> FADES

    def _judged(self, k: int, slots: np.ndarray, now: int) -> tuple[np.ndarray, ...]:
        """Of the rows of one side: their worth, instants, sizes, ends."""
        store = self.sides[k].rows.store
        exp, extra = store.exp.view[slots], store.extra
        key, ok = extra["key"].view[slots], extra["ok"].view[slots]
        value = worth(self.counters, k, key, ok, exp, now)
        return value, store.ts.view[slots], extra["size"].view[slots], exp

    def live(self) -> int:
        return self.inner.live()

    def nbytes(self) -> int:
        return self.inner.nbytes() + int(self.counters.nbytes)

    def next_due(self) -> int:
        return self.inner.next_due()


def _alive(side: KeyedRows) -> np.ndarray:
    """The slots of rows that have not left, as far as that was looked at."""
    return np.flatnonzero(side.rows.store.alive.view)


def sizes(cols: Sequence[pa.Array], n: int, width: int) -> np.ndarray:
    """int64[n]: bytes that each row of so many parts counts for."""
    out = np.full(n, ROW + 8 * width, np.int64)
    for col in cols:
        try:
            out += max(1, col.type.bit_width // 8)
        except ValueError:  # its values differ in length
            out += 4 + numpy_values(pc.fill_null(pc.binary_length(col), 0).cast(pa.int64()))
    return out


def shedding_join(
    builder: Builds, phys: Phys, node: lp.Join | lp.MultiJoin, most: int
) -> SheddingJoinOp:
    """The join of a node's inputs, which may hold `most` bytes of their rows."""
    if any(child.strict for child in phys.children):
        what = "a join whose inputs announce deletions can't let go of rows"
        raise InternalError("DS901", f"{what}; please report this")
    if isinstance(node, lp.MultiJoin):
        return SheddingJoinOp(multi_join_op(builder, phys, node, SheddingInput), most)
    inner = inner_join(builder, phys, node.keys, node.residual, SheddingSide)
    return SheddingJoinOp(inner, most)
