"""ASOF JOIN: each left row with the newest right row of its key, as of its own timestamp.

Input    Left: any; a result lives as long as its left row, so the left update pattern passes
         through.  Right: MON.
State    The newest right row of each key.  Those that WITHIN no longer lets be found are let go
         of, a few times in such a span.
Output   In the order of the left rows.  All right rows of an instant have come before its left
         rows look.
Cost     O(1) a row: both sides are merged in order of time.
Over a strict left input the results of live rows are kept, as by ⋈NRR.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.operators.nrr import StoredJoinNRROp
from dsms.operators.pieces import STRETCH, InStretches, Look, Piece, go_on, stretches
from dsms.plan.identity import order, width
from dsms.sql import logical as lp
from dsms.sql.expr import Expr
from dsms.sql.types import ALWAYS, FOREVER, Schema
from dsms.state.batch import Batch
from dsms.state.columns import numpy_valid
from dsms.state.intern import Intern
from dsms.state.rows import RowStore
from dsms.state.vec import Vec

Keys = Sequence[Callable[[Sequence[pa.Array], int], pa.Array]]
NONE = -1
LOOKS = 4  # times in a span that old rows are let go of


class Evaluates(Protocol):
    """What makes evaluators of keys (`build.Builder`)."""

    def expr(self, expr: Expr) -> Callable[..., pa.Array]: ...


@njit(cache=True, nogil=True)
def merged(begin, ts, code, right_ts, right_code, first, newest, known_ts, strict, span, out, dead):
    """The slot of the right row that each left row finds, or -1, into `out`.

    Right rows have slots `first`, `first` + 1, ...; those before row `begin` have come already.
    newest[c] is the slot of the newest right row of key c, known_ts[slot] its timestamp; a code of
    -1 is a NULL or unknown key.  `strict`: the right row must be earlier.  `span` < 0: however
    old.  Answers (the right row to go on with, how many slots in `dead` have been replaced)."""
    j, gone = begin, 0
    for i in range(len(ts)):
        now = ts[i]
        while j < len(right_ts) and (right_ts[j] < now or (right_ts[j] == now and not strict)):
            c = right_code[j]
            if c >= 0:
                if newest[c] >= 0:
                    dead[gone] = newest[c]
                    gone += 1
                newest[c] = first + j
            j += 1
        found = -1
        c = code[i]
        if c >= 0:
            found = newest[c]
            if found >= 0 and span >= 0 and now - known_ts[found] >= span:
                found = -1
        out[i] = found
    return j, gone


NOTHING = np.empty(0, np.int64)


@dataclass(slots=True)
class AsofProbe:
    """What left rows find.  For each step: `come` with the right rows, `results` for left rows in
    order, `leave`.

    keys    a callable per key column, of the left side and of the right one
    order   id columns by which right rows of one instant are sorted; (): they come so
    strict  the right row must be earlier;  span: µs after which it is not found, -1: it is"""

    keys: tuple[Keys, Keys]
    kind: str
    schema: Schema  # of the right side
    width: int
    order: tuple[int, ...]
    strict: bool
    span: int
    intern: Intern | None = field(init=False)
    store: RowStore = field(init=False)
    newest: Vec = field(default_factory=Vec)  # by code
    looked: int = ALWAYS  # when old rows were let go of

    # of the step that goes on
    first: int = 0  # slot of the first right row
    at: int = 0  # the right row to go on with
    right_ts: np.ndarray = field(default_factory=lambda: NOTHING)
    right_code: np.ndarray = field(default_factory=lambda: NOTHING)

    def __post_init__(self) -> None:
        self.intern = Intern(len(self.keys[0])) if self.keys[0] else None
        self.store = RowStore(self.schema, self.width)
        self.store.extra["code"] = Vec()

    def come(self, rows: Batch, look: Look) -> None:
        """The right rows of a step."""
        rows = self._sorted(rows)
        code = self._codes(self.keys[1], rows, look, True)
        keyed = np.flatnonzero(code >= 0)
        if len(keyed) < len(rows):
            rows, code = rows.take(keyed), code[keyed]
        slots = self.store.append(rows)
        self.store.extra["code"].extend(code)
        self.newest.extend_fill(self._capacity() - self.newest.n, NONE)
        self.first = int(slots[0]) if len(slots) else 0
        self.at, self.right_ts, self.right_code = 0, rows.ts, code

    def _capacity(self) -> int:
        return 1 if self.intern is None else self.intern.capacity

    def _sorted(self, rows: Batch) -> Batch:
        if not self.order or len(rows) < 2:
            return rows
        return rows.take(np.lexsort((*(rows.ids[k] for k in reversed(self.order)), rows.ts)))

    def _codes(self, keys: Keys, rows: Batch, look: Look, new: bool) -> np.ndarray:
        """Codes of the rows' keys, -1 where one is NULL, or (not `new`) unknown."""
        n = len(rows)
        if self.intern is None:
            return np.zeros(n, np.int64)
        values = [k(rows.cols, n) for k in keys]
        code = self.intern.codes(values, n, look) if new else self.intern.lookup(values, n)
        for v in values:
            if (valid := numpy_valid(v)) is not None:
                code[~valid] = NONE
        return code

    def room(self, rows: int) -> int:
        """So many rows: none finds more than one."""
        return rows

    def results(self, rows: Batch) -> Batch:
        """Join results of left rows, which come later than those before, in their order; each with
        the first number of the right row as last id."""
        found = self._merge(rows.ts, self._codes(self.keys[0], rows, go_on, False))
        if self.kind == "inner":
            some = np.flatnonzero(found >= 0)
            if len(some) < len(found):
                rows, found = rows.take(some), found[some]
            number, cols = self.store.ids[0].view[found], self.store.columns(found)
        else:
            number, cols = self._padded(found)
        return Batch(rows.ts, rows.exp, None, (*rows.ids, number), (*rows.cols, *cols), rows.life)

    def _merge(self, ts: np.ndarray, code: np.ndarray) -> np.ndarray:
        found = np.empty(len(ts), np.int64)
        dead = np.empty(len(self.right_ts) - self.at, np.int64)
        known = self.store.ts.view
        right = self.right_ts, self.right_code, self.first
        self.at, gone = merged(
            self.at, ts, code, *right, self.newest.view, known, self.strict, self.span, found, dead
        )
        self.store.bury(dead[:gone])
        return found

    def _padded(self, found: np.ndarray) -> tuple[np.ndarray, tuple[pa.Array, ...]]:
        some = found >= 0
        if some.all():
            return self.store.ids[0].view[found], self.store.columns(found)
        number = np.full(len(found), NONE, np.int64)
        number[some] = self.store.ids[0].view[found[some]]
        place = np.cumsum(some) - 1
        cols = self.store.columns(found[some])
        index = pa.array(np.maximum(place, 0), mask=~some)
        return number, tuple(
            c.take(index) if len(c) else pa.nulls(len(found), c.type) for c in cols
        )

    def leave(self, upto: int) -> None:
        """The step is over: the right rows that no left row has waited for come, and old ones
        go."""
        self._merge(np.array([FOREVER], np.int64), np.array([NONE], np.int64))
        self.right_ts = self.right_code = NOTHING
        self.at = 0
        if self.span >= 0 and upto - self.looked >= self.span // LOOKS:
            self._let_go(upto)
        where = self.store.compact()
        if where is not None:
            self.newest.view[self.newest.view >= 0] = where[self.newest.view[self.newest.view >= 0]]
        if self.intern is not None and self.intern.wants_purge(self.store.live):
            self._purge()

    def _let_go(self, upto: int) -> None:
        """Of rows that no later left row finds."""
        self.looked = upto
        store = self.store
        old = np.flatnonzero(store.alive.view & (store.ts.view <= upto + 1 - self.span))
        self.newest.view[store.extra["code"].view[old]] = NONE
        store.bury(old)

    def _purge(self) -> None:
        """Forget keys that no row has."""
        assert self.intern is not None
        self.intern.purge(self.newest.view >= 0)

    def live(self) -> int:
        """Rows that may be found."""
        return self.store.live

    @property
    def nbytes(self) -> int:
        own = self.store.nbytes + self.newest.nbytes
        return own if self.intern is None else own + self.intern.nbytes


def probe_of(node: lp.AsofJoin, make: Evaluates) -> AsofProbe:
    """What finds right rows for this node."""
    left, right = ([make.expr(pair[k]) for pair in node.keys] for k in (0, 1))
    wide = width(node.right)
    by = order(node.right) if wide > 1 else ()
    span = NONE if node.span is None else node.span
    schema = node.right.schema
    return AsofProbe((left, right), node.kind, schema, wide, by, node.after is not None, span)


@dataclass(slots=True)
class AsofJoinOp(InStretches):
    """Over a left input without deletions."""

    probe: AsofProbe

    def stretch(self, inputs: Sequence[Batch], upto: int, look: Look) -> Batch:
        self.probe.come(inputs[1], look)
        out = self.probe.results(inputs[0])
        self.probe.leave(upto)
        return out

    def live(self) -> int:
        return self.probe.live()

    def nbytes(self) -> int:
        return self.probe.nbytes

    def next_due(self) -> int:
        return FOREVER  # rows that are too old go when others come


@dataclass(slots=True)
class StoredAsofJoinOp(StoredJoinNRROp):
    """Over a strict left input: the results of each live row are kept until it goes."""

    probe: AsofProbe

    def pieces(self, inputs: Sequence[Batch], upto: int, look: Look) -> Iterator[Piece]:
        for (left, right), until in stretches(inputs, upto, STRETCH):
            look()
            self.probe.come(right, look)
            out = self._stretch(left, until, look)
            self.probe.leave(until)
            yield out, until

    def live(self) -> int:
        return self.probe.live() + self.rows.store.live + self.out.live

    def nbytes(self) -> int:
        return self.probe.nbytes + self.rows.nbytes + self.out.nbytes
