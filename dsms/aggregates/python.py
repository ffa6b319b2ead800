"""Aggregates in Python: states are columns that a class of the user lifts from rows, combines, and
lowers to answers, in the process that runs functions.

Algebra  what the class has: subtractable if it has `subtract`, which is then exact by contract.
State    of each cell how many rows are in it (no row: no state), and plain columns.
Cost     a message to that process for each verb, with all cells in it; Python works on batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.aggregates.counts import CountCells
from dsms.aggregates.parts.additive import Numbers
from dsms.aggregates.parts.base import NO_BOOLS, Answers, Arg, GroupEvents, Leaving
from dsms.aggregates.parts.blocks import Blocks
from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.parts.fold import Folds
from dsms.aggregates.parts.listed import Listed, chains
from dsms.aggregates.parts.texts import OwnTexts
from dsms.aggregates.parts.words import NONE, Coding, coding
from dsms.errors import QueryError
from dsms.operators.expressions.python import seen, taken
from dsms.python_functions import host
from dsms.python_functions.stacking import Unlike, stacked
from dsms.sql.expr import AggCall
from dsms.sql.types import Type
from dsms.sql.types import named as type_named


@dataclass(frozen=True, slots=True)
class PythonState:
    """counts   int64[n]  rows in each cell
    columns  of the states, n long; what stands in them where there are no rows says nothing.  None:
             no cell has rows yet"""

    counts: np.ndarray
    columns: pa.RecordBatch | None


@dataclass(slots=True)
class PythonAggregate(Folds):
    """The class at `place` over arguments of these types."""

    place: str
    types: tuple[Type, ...]
    type: Type
    subtractable: bool = False
    duplicate_insensitive: bool = False

    def empty(self, cells: int) -> PythonState:
        return PythonState(np.zeros(cells, np.int64), None)

    def lift(self, rows: CellRows, cells: int) -> PythonState:
        valid = np.ones(len(rows.cell), np.bool_)
        for column in rows.args:
            if column.null_count:
                valid &= pc.is_valid(column).to_numpy(zero_copy_only=False)
        order = np.flatnonzero(valid)
        order = order[np.argsort(rows.cell[order], kind="stable")]
        cell = rows.cell[order]
        counts = np.bincount(cell, minlength=cells).astype(np.int64)
        if not len(order):
            return self.empty(cells)
        args = [
            a.take(pa.array(order)).cast(seen(t))
            for a, t in zip(rows.args, self.types, strict=True)
        ]
        names = [*map(str, range(len(args))), "cell"]
        batch = pa.RecordBatch.from_arrays([*args, pa.array(cell)], names)
        return _spread(counts, host.states("lift", self.place, batch))

    def combine(self, older: PythonState, newer: PythonState) -> PythonState:
        return self._paired("combine", older, newer, older.counts + newer.counts)

    def subtract(self, whole: PythonState, part: PythonState) -> PythonState:
        return self._paired("subtract", whole, part, whole.counts - part.counts)

    def _paired(
        self, verb: str, left: PythonState, right: PythonState, counts: np.ndarray
    ) -> PythonState:
        """Cells that both have are made of the two; others are those of the one that has them."""
        if left.columns is None or right.columns is None:
            return PythonState(counts, right.columns if left.columns is None else left.columns)
        n = len(counts)
        both = np.flatnonzero((left.counts > 0) & (right.counts > 0) & (counts > 0))
        all_ = self._stacked([left.columns, right.columns])
        chosen = np.where(left.counts > 0, np.arange(n), n + np.arange(n))
        if len(both):
            sides = [*all_.take(pa.array(both)).columns]
            sides += all_.take(pa.array(n + both)).columns
            names = all_.schema.names
            pairs = pa.RecordBatch.from_arrays(sides, names * 2)
            made = host.states(verb, self.place, pairs)
            all_ = self._stacked([all_, made])
            chosen[both] = 2 * n + np.arange(len(both))
        return PythonState(counts, all_.take(pa.array(chosen)))

    def _stacked(self, parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        try:
            return stacked(parts)
        except Unlike as problem:
            raise host.unusable(self.place, str(problem)) from None

    def close(self, state: PythonState) -> PythonState:
        return state

    def lower(self, state: PythonState) -> pa.Array:
        full = np.flatnonzero(state.counts > 0)
        if state.columns is None or not len(full):
            return pa.nulls(len(state.counts), self.type.arrow)
        columns = state.columns.take(pa.array(full))
        made = host.lowered(self.place, columns, seen(self.type))
        made = taken(self.place, made, self.type)
        place = np.zeros(len(state.counts), np.int64)
        place[full] = np.arange(len(full))
        return made.take(pa.array(place, mask=state.counts <= 0))

    def present(self, state: PythonState) -> np.ndarray:
        there: np.ndarray = state.counts > 0
        return there

    def size(self, state: PythonState) -> int:
        return len(state.counts)

    def take(self, state: PythonState, index: np.ndarray) -> PythonState:
        found = np.where(index >= 0, index, 0)
        if not len(state.counts):
            return self.empty(len(index))
        counts = np.where(index >= 0, state.counts[found], 0)
        columns = None if state.columns is None else state.columns.take(pa.array(found))
        return PythonState(counts, columns)

    def concat(self, states: Sequence[PythonState]) -> PythonState:
        if not states:
            return self.empty(0)
        counts = np.concatenate([s.counts for s in states])
        like = next((s.columns for s in states if s.columns is not None), None)
        if like is None:
            return PythonState(counts, None)
        return PythonState(counts, self._stacked([_filled(s, like.schema) for s in states]))

    def nbytes(self, state: PythonState) -> int:
        return state.counts.nbytes + (0 if state.columns is None else state.columns.nbytes)


# ---------------------------------------------------------------- single rows


@dataclass(slots=True)
class _Answering(OwnTexts):
    """What the states have in common: they lift rows of arguments, and write answers down."""

    how: PythonAggregate
    texts: Coding = field(init=False)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.texts = coding(self.how.type, wide=True, ordered=False)

    def _lifted(
        self, args: tuple[Arg, ...], slots: np.ndarray, cell: np.ndarray, cells: int
    ) -> PythonState:
        """The rows of these slots in their cells, which are in order."""
        valid = np.ones(len(slots), np.bool_)
        order = np.arange(len(slots))
        columns = tuple(
            a.coding.decode(a.words[slots], a.high[slots] if len(a.high) else NONE, valid, order)
            for a in args
        )
        return self.how.lift(CellRows(cell, order, order, columns), cells)

    def _write(self, out: Answers, touch: np.ndarray, made: pa.Array) -> None:
        words, high = self.texts.encode(made)
        out.words[touch] = words
        if len(high):
            out.high[touch] = high
        out.valid[touch] = np.asarray(pc.is_valid(made))


@dataclass(slots=True)
class PythonRows(_Answering):
    """Rows come in the order of their ages."""

    blocks: Blocks

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        def lift(slots: np.ndarray) -> PythonState:
            return self._lifted(args, slots, np.arange(len(slots)), len(slots))

        cells, at = self.blocks.after(feed, _counting(args), lift)
        touch = np.flatnonzero(at >= 0)
        index, back = np.unique(at[touch], return_inverse=True)
        if len(index):
            made = self.how.lower(self.how.take(cells, index))
            self._write(out, touch, made.take(pa.array(back)))

    def moved(self, where: np.ndarray) -> None:
        self.blocks.moved(where)

    def held(self) -> tuple[np.ndarray, ...]:
        return ()

    @property
    def nbytes(self) -> int:
        return self.blocks.nbytes + self.texts.nbytes


@dataclass(slots=True)
class PythonAged(_Answering, Listed):
    """They don't: a touch lifts all rows of its group anew, in the order of their ages."""

    n: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    roots: list[np.ndarray] = field(default_factory=chains)
    links: list[np.ndarray] = field(default_factory=chains)

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        slots = np.arange(len(args[0].words))
        for found, ends, touch in self._listed(feed, slots, _counting(args)):
            cell = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
            self._write(out, touch, self.how.lower(self._lifted(args, found, cell, len(ends))))

    @property
    def nbytes(self) -> int:
        arrays = (self.n, *self.roots, *self.links)
        return int(sum(a.nbytes for a in arrays)) + self.texts.nbytes


def _counting(args: tuple[Arg, ...]) -> np.ndarray:
    """bool by slot: rows without NULL; empty: all."""
    some = [a.valid for a in args if len(a.valid)]
    return np.logical_and.reduce(some) if some else NO_BOOLS


def _filled(state: PythonState, schema: pa.Schema) -> pa.RecordBatch:
    if state.columns is not None:
        return state.columns
    nulls = [pa.nulls(len(state.counts), f.type) for f in schema]
    return pa.RecordBatch.from_arrays(nulls, schema.names)


def _spread(counts: np.ndarray, lifted: pa.RecordBatch) -> PythonState:
    """States of the cells that have rows, in their order, each at its cell."""
    place = np.zeros(len(counts), np.int64)
    place[counts > 0] = np.arange(lifted.num_rows)
    return PythonState(counts, lifted.take(pa.array(place)))


def follow(call: AggCall, leaving: Leaving) -> PythonRows | PythonAged:
    """The state that follows single rows."""
    how = algebra(call)
    if leaving == "out of age":
        return PythonAged(how)
    return PythonRows(how, Blocks(how, leaving != "never"))


def algebra(call: AggCall) -> PythonAggregate:
    """The algebra of a call."""
    place, result = map(str, call.params)
    type_ = type_named(result)
    assert type_ is not None
    try:
        _, subtracts = host.check(place, aggregate=True)
    except QueryError:  # the first rows say why
        subtracts = False
    return PythonAggregate(place, tuple(a.type for a in call.args), type_, subtracts)


def ready() -> None:
    """Compile the kernels, which no query meets without functions in Python."""
    how, code = CountCells(), np.zeros(3, np.int64)

    def lift(slots: np.ndarray) -> Numbers:
        n = np.arange(len(slots))
        return how.lift(CellRows(n, n, n), len(n))

    for leaving in (False, True):
        blocks, sign = Blocks(how, leaving), np.ones(3, np.int8)
        for slot in (np.arange(3), np.arange(3, 6)):
            blocks.after(
                GroupEvents(code, sign, slot, slot % 3, code, touches=3, groups=1), NO_BOOLS, lift
            )
