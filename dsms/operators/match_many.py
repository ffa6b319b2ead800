"""Steps of a MATCH that take many rows: all rows of such a step are kept for as long as a match may
reach back, linked key by key, and aggregated when a match is complete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.registry import algebra
from dsms.operators.match_conditions import Earlier, Rest
from dsms.operators.match_kernels import END, chained, counted, followed
from dsms.operators.pieces import Look
from dsms.plan.exprs import remap
from dsms.sql.expr import AggCall, Expr, columns
from dsms.sql.types import Schema
from dsms.state.batch import Batch
from dsms.state.columns import numpy_true
from dsms.state.rows import RowStore
from dsms.state.vec import Vec

PAIRS = 1 << 20  # of a match and one of its rows, that are looked at in one go


class Evaluates(Protocol):
    """What makes evaluators (`build.Builder`)."""

    def expr(self, expr: Expr) -> Callable[..., pa.Array]: ...


@dataclass(frozen=True, slots=True)
class Call:
    """An aggregate.  `args` and `where` are evaluated over the columns `reads`."""

    call: AggCall
    reads: tuple[int, ...]
    args: tuple[Any, ...]
    where: Any | None


def call_of(call: AggCall, make: Evaluates) -> Call:
    """What evaluates an aggregate over the rows of its step."""
    exprs = (*call.args, *(() if call.filter is None else (call.filter,)))
    used = sorted({c for e in exprs for c in columns(e)})
    to = {c: i for i, c in enumerate(used)}
    args = tuple(make.expr(remap(a, to)) for a in call.args)
    where = None if call.filter is None else make.expr(remap(call.filter, to))
    return Call(call, tuple(used), args, where)


@dataclass(slots=True)
class Many:
    """The rows of one step.

    step   its number;  calls: aggregates over its rows;  whole: its condition on earlier steps
    first  the slot of the first row of the stretch
    tail   by code the newest row; each row is linked to the next one of its key, -1: there is none
    """

    step: int
    schema: Schema
    width: int
    calls: tuple[Call, ...]
    whole: Rest | None
    store: RowStore = field(init=False)
    tail: Vec = field(default_factory=Vec)
    first: int = 0

    def __post_init__(self) -> None:
        self.store = RowStore(self.schema, self.width)
        self.store.extra["next"] = Vec()

    def come(self, rows: Batch, code: np.ndarray, capacity: int) -> None:
        """Rows of a stretch, by (timestamp, arrival)."""
        self.tail.extend_fill(max(0, capacity - self.tail.n), END)
        slots, link = self.store.append(rows), self.store.extra["next"]
        link.extend_fill(len(rows), END)
        self.first = int(slots[0]) if len(slots) else len(self.store)
        chained(self.tail.view, link.view, code, self.first)

    def aggregates(
        self,
        calls: Sequence[Call],
        first: np.ndarray,
        before: np.ndarray,
        earlier: Callable[[np.ndarray], Earlier],
        look: Look,
    ) -> list[pa.Array]:
        """These aggregates of matches whose rows of this step begin at the slots `first` and are
        older than `before`; `earlier`: columns of earlier rows of some of them.  `look` is called
        between stretches of work."""
        count = np.empty(len(first), np.int64)
        counted(first, before, self.store.extra["next"].view, self.store.ts.view, count)
        ends, start, parts = np.cumsum(count), 0, []
        if not len(first):
            return [self._aggregate(call, first, first, 0) for call in calls]
        while start < len(first):
            look()
            most = PAIRS + (ends[start - 1] if start else 0)
            stop = max(start + 1, int(np.searchsorted(ends, most, "right")))
            parts.append(self._some(calls, first[start:stop], count[start:stop], start, earlier))
            start = stop
        return [pa.concat_arrays(list(p)) for p in zip(*parts, strict=True)]

    def _some(
        self,
        calls: Sequence[Call],
        first: np.ndarray,
        count: np.ndarray,
        start: int,
        earlier: Callable[[np.ndarray], Earlier],
    ) -> list[pa.Array]:
        """Of matches from place `start` on."""
        match, slot = np.empty((2, int(count.sum())), np.int64)
        followed(first, count, self.store.extra["next"].view, match, slot)
        if self.whole is not None:
            cols = self._columns(slot, [c for s, c in self.whole.reads if s == self.step])
            good = self.whole.met(self.step, cols, earlier(start + match), len(slot))
            match, slot = match[good], slot[good]
        return [self._aggregate(call, match, slot, len(first)) for call in calls]

    def _columns(self, slots: np.ndarray, some: Sequence[int]) -> dict[int, pa.Array]:
        return {c: self.store.cols[c].gather(slots) for c in some}

    def _aggregate(self, call: Call, match: np.ndarray, slot: np.ndarray, n: int) -> pa.Array:
        cols = list(self._columns(slot, call.reads).values())
        if call.where is not None:
            good = np.flatnonzero(numpy_true(call.where(cols, len(slot))))
            match, index = match[good], pa.array(good)
            cols = [c.take(index) for c in cols]
        age = np.arange(len(match))
        args = tuple(a(cols, len(match)) for a in call.args)
        how = algebra(call.call)
        return how.lower(how.lift(CellRows(match, age, age, args), n))

    def sweep(self, upto: int) -> np.ndarray | None:
        """Forget rows with timestamps up to `upto`: new slots of the others, or None."""
        store = self.store
        store.bury(np.flatnonzero(store.alive.view & (store.ts.view <= upto)))
        if not store.dead:
            return None
        where = store.close()
        for vec in (self.tail, store.extra["next"]):
            some = np.flatnonzero(vec.view >= 0)
            vec.view[some] = where[vec.view[some]]
        return where

    @property
    def nbytes(self) -> int:
        return self.store.nbytes + self.tail.nbytes
