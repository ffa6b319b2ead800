"""STRING_AGG: the texts of a group in order of age, as one.

list     the slots of a group, linked in order of age; a row that comes late walks to its place from
         the young end.   O(1) an event in order, 16 bytes a slot
kept     rows never leave: their words are kept here, linked in the same way
Cost     an answer is as long as its group, and is written anew whenever the group changes.
Cells    lists of texts; a union copies them.  Nothing is subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from dsms.aggregates.parts.base import NO_AGES, NO_BOOLS, Answers, Arg, GroupEvents, Leaving
from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.parts.counters import dealt
from dsms.aggregates.parts.fold import Folds
from dsms.aggregates.parts.heap import NO_WORDS
from dsms.aggregates.parts.in_order import Ages, Key, in_order, keys_of, struct_type, structs
from dsms.aggregates.parts.items import places, starts_of
from dsms.aggregates.parts.links import NIL
from dsms.aggregates.parts.listed import ALL, Listed, chains
from dsms.aggregates.parts.texts import OwnTexts, joined
from dsms.aggregates.parts.words import NONE, Codes, validity
from dsms.errors import InternalError
from dsms.sql.expr import AggCall
from dsms.sql.types import STRING, Type
from dsms.state.lengthening import grown


@njit(cache=True, nogil=True)
def _mark(head, after, groups, out):
    """The slots in the lists of these groups."""
    for g in groups:
        at = head[g]
        while at >= 0:
            out[at] = True
            at = after[at]


def ready() -> None:
    """Have the kernel that no row meets compiled or loaded now."""
    none = np.empty(0, np.int64)
    _mark(none, none, none, np.empty(0, np.bool_))


@dataclass(slots=True)
class StringRows(Listed, OwnTexts):
    """Rows leave."""

    separator: str
    texts: Codes = field(default_factory=lambda: Codes(STRING, ordered=False))  # what answers mean
    by: Ages | None = None  # ORDER BY
    n: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    roots: list[np.ndarray] = field(default_factory=chains)
    links: list[np.ndarray] = field(default_factory=chains)

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        a, *keys = args
        feed = feed if self.by is None else self.by.of(feed, keys)
        for found, ends, touch in self._listed(feed, a.words, a.valid, self.limit):
            out.words[touch] = self._written(found, ends, a)
            out.valid[touch] = True

    @property
    def limit(self) -> int:
        """Texts of an answer."""
        return ALL

    def _written(self, found: np.ndarray, ends: np.ndarray, a: Arg) -> np.ndarray:
        """Codes of the answers' texts."""
        rows = np.arange(ends[-1])
        column = a.coding.decode(found, NONE, np.ones(len(rows), np.bool_), rows)
        lists = joined(column, np.concatenate([[0], ends]), self.separator)
        return self.texts.encode(lists)[0]

    def moved(self, where: np.ndarray) -> None:
        Listed.moved(self, where)
        if self.by is not None:
            self.by.moved(where)

    @property
    def nbytes(self) -> int:
        arrays = (self.n, *self.roots, *self.links)
        own = 0 if self.by is None else self.by.nbytes
        return int(sum(a.nbytes for a in arrays)) + self.texts.nbytes + own


@dataclass(slots=True)
class StringKept(StringRows):
    """Rows never leave: `words` are theirs, as they came, the first `used` of the array."""

    words: np.ndarray = field(default_factory=lambda: NO_WORDS)
    used: int = 0
    keys: list[np.ndarray] = field(default_factory=list)  # words of ORDER BY, in the same way
    some: list[np.ndarray] = field(default_factory=list)  # and whether there are any

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        a, *keys = args
        come = feed.sign > 0
        if len(a.valid):
            come &= a.valid[feed.slot]
        count = int(np.count_nonzero(come))
        slots, first = feed.slot[come], self.used
        self.words = self._with(self.words, a.words[slots])
        if keys and not self.keys:
            self.keys = [NO_WORDS for _ in keys]
            self.some = [NO_BOOLS for _ in keys]
        own = []
        for k, key in enumerate(keys):
            there = key.valid[slots] if len(key.valid) else np.ones(count, np.bool_)
            self.keys[k] = self._with(self.keys[k], key.words[slots])
            self.some[k] = self._with(self.some[k], there)
            own.append(Arg(self.keys[k], NONE, self.some[k], key.coding))
        slot = first + np.maximum(np.cumsum(come) - 1, 0)
        sign = come.astype(feed.sign.dtype)
        self.used += count
        mine = replace(feed, slot=slot, sign=sign, ages=NO_AGES)
        mine_args = (Arg(self.words, NONE, NO_BOOLS, a.coding), *own)
        StringRows.run(self, mine, mine_args, out)

    def _with(self, kept: np.ndarray, new: np.ndarray) -> np.ndarray:
        """What is kept, and behind it what is new."""
        kept = grown(kept, self.used + len(new))
        kept[self.used : self.used + len(new)] = new
        return kept

    def let_go(self, closed: np.ndarray) -> None:
        gone = np.zeros(self.used, np.bool_)
        shut = np.flatnonzero(closed[: len(self.n)])
        _mark(self.roots[0], self.links[1], shut, gone)
        kept = np.flatnonzero(~gone)
        where = np.full(self.used, NIL, np.int64)
        where[kept] = np.arange(len(kept))
        StringRows.moved(self, where)
        self.n[shut] = 0
        for ends in self.roots:
            ends[shut] = NIL
        self.words, self.used = self.words[kept], len(kept)
        self.keys, self.some = ([a[kept] for a in arrays] for arrays in (self.keys, self.some))

    def moved(self, where: np.ndarray) -> None:
        return

    def held(self) -> tuple[np.ndarray, ...]:
        return tuple(words[: self.used] for words in (self.words, *self.keys))

    @property
    def nbytes(self) -> int:
        own = sum(int(a.nbytes) for a in (self.words, *self.keys, *self.some))
        return own + StringRows.nbytes.fget(self)  # type: ignore[attr-defined, no-any-return]


# ---------------------------------------------------------------- cells


@dataclass(frozen=True, slots=True)
class Texts:
    """n cells: those of cell i are from starts[i] to starts[i + 1], the older first.

    starts int64[n + 1];  values string[m], without NULLs"""

    starts: np.ndarray
    values: pa.Array


@dataclass(slots=True)
class StringCells(Folds):
    """STRING_AGG in cells."""

    separator: str

    @property
    def kind(self) -> pa.DataType:
        """Of the values."""
        return pa.string()

    def empty(self, cells: int) -> Texts:
        return Texts(np.zeros(cells + 1, np.int64), pa.array([], self.kind))

    def lift(self, rows: CellRows, cells: int) -> Texts:
        (column,) = rows.args
        valid, cell = validity(column), rows.cell
        if valid is not None:
            cell, column = cell[valid], column.filter(pa.array(valid))
        if not len(cell):
            return self.empty(cells)
        order = np.argsort(cell, kind="stable")
        return self._cut(Texts(starts_of(cell[order], cells), column.take(pa.array(order))))

    def combine(self, older: Texts, newer: Texts) -> Texts:
        n = self.size(older)
        index = np.arange(2 * n).reshape(2, n).T.ravel()
        found = self.take(self.concat([older, newer]), index)
        return self._cut(Texts(found.starts[::2].copy(), found.values))

    def subtract(self, whole: Texts, part: Texts) -> Texts:
        raise InternalError("DS905", "lists of texts can't be subtracted; please report this")

    def size(self, state: Texts) -> int:
        return len(state.starts) - 1

    def take(self, state: Texts, index: np.ndarray) -> Texts:
        place, starts = places(state.starts, index)
        return Texts(starts, state.values.take(pa.array(place)))

    def concat(self, states: Sequence[Texts]) -> Texts:
        if not states:
            return self.empty(0)
        sizes = np.concatenate([np.diff(s.starts) for s in states])
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return Texts(starts, pa.concat_arrays([s.values for s in states]))

    def present(self, state: Texts) -> np.ndarray:
        return np.diff(state.starts) > 0

    def merge(
        self,
        state: Texts,
        group: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        base: np.ndarray,
        cells: int,
    ) -> Texts:
        index, starts = dealt(group, low, high, base, cells)
        found = self.take(state, index)
        return self._cut(Texts(found.starts[starts], found.values))

    def _cut(self, state: Texts) -> Texts:
        """What is kept of the values of each cell: all."""
        return state

    def lower(self, state: Texts) -> pa.Array:
        there = pa.array(self.present(state))
        text = joined(state.values, state.starts, self.separator)
        return pc.if_else(there, text, pa.scalar(None, pa.string()))

    def nbytes(self, state: Texts) -> int:
        return int(state.starts.nbytes + state.values.nbytes)


@dataclass(slots=True)
class SortedTexts(StringCells):
    """With ORDER BY: values stand with their keys, in order.

    types  of the keys"""

    item: Type = STRING
    types: tuple[Type, ...] = ()
    keys: tuple[Key, ...] = ()

    @property
    def kind(self) -> pa.DataType:
        return struct_type(self.item, self.types)

    def lift(self, rows: CellRows, cells: int) -> Texts:
        value, *keys = rows.args
        made = structs(value, keys, self.types)
        valid, cell = validity(value), rows.cell
        if valid is not None:
            cell, made = cell[valid], made.filter(pa.array(valid))
        if not len(cell):
            return self.empty(cells)
        order = np.argsort(cell, kind="stable")
        return self._cut(Texts(starts_of(cell[order], cells), made.take(pa.array(order))))

    def _cut(self, state: Texts) -> Texts:
        return replace(state, values=in_order(state.starts, state.values, self.keys))

    def lower(self, state: Texts) -> pa.Array:
        plain = Texts(state.starts, state.values.field("value"))
        return StringCells.lower(self, plain)


def ordering(call: AggCall) -> Ages | None:
    """Of a state that follows single rows."""
    return Ages(keys_of(call)) if len(call.args) > 1 else None


def follow(call: AggCall, leaving: Leaving) -> StringRows:
    """The state that follows single rows."""
    kind = StringKept if leaving == "never" else StringRows
    return kind(str(call.params[0]), by=ordering(call))


def algebra(call: AggCall) -> StringCells:
    """The algebra of such a call."""
    separator = str(call.params[0])
    if len(call.args) == 1:
        return StringCells(separator)
    types = tuple(a.type for a in call.args[1:])
    return SortedTexts(separator, types=types, keys=keys_of(call))
