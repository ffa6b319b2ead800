"""ARRAY_AGG(x, n): the first n values of a group in order of age, as a list.

As STRING_AGG (`strings`), but an answer has n values at most, and so has a cell: what stands behind
the first n of a set stands behind the first n of every set that holds it.
State    of rows that leave, 16 bytes a slot, as there: the value that comes next may be any.
Not subtracted: a part may have been among the first n.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms import lists
from dsms.aggregates.parts.base import Arg, Leaving
from dsms.aggregates.parts.in_order import keys_of
from dsms.aggregates.parts.words import NONE
from dsms.aggregates.strings import (
    SortedTexts,
    StringCells,
    StringKept,
    StringRows,
    Texts,
    ordering,
)
from dsms.sql.expr import AggCall
from dsms.sql.types import INT, Type


class _Firsts:
    """What the two states have in common: `item` is the type of the values, `most` how many."""

    __slots__ = ()
    item: Type
    most: int

    @property
    def limit(self) -> int:
        return self.most

    def _written(self, found: np.ndarray, ends: np.ndarray, a: Arg) -> np.ndarray:
        """Codes of the answers' texts."""
        rows = np.arange(ends[-1])
        column = a.coding.decode(found, NONE, np.ones(len(rows), np.bool_), rows)
        made = lists.made(np.concatenate([[0], ends]), column, str(self.item))
        return self.texts.encode(made)[0]  # type: ignore[attr-defined, no-any-return]


@dataclass(slots=True)
class ArrayRows(_Firsts, StringRows):
    """Rows leave."""

    item: Type = INT
    most: int = 0


@dataclass(slots=True)
class ArrayKept(_Firsts, StringKept):
    """Rows never leave."""

    item: Type = INT
    most: int = 0


def firsts(state: Texts, most: int) -> Texts:
    """Without what stands behind the first values of each cell."""
    sizes = np.diff(state.starts)
    if not len(sizes) or sizes.max() <= most:
        return state
    place = np.arange(state.starts[-1]) - np.repeat(state.starts[:-1], sizes)
    starts = np.concatenate([[0], np.cumsum(np.minimum(sizes, most))])
    return Texts(starts, state.values.filter(pa.array(place < most)))


@dataclass(slots=True)
class ArrayCells(StringCells):
    """ARRAY_AGG in cells: the first `most` values of each."""

    item: Type = INT
    most: int = 0

    @property
    def kind(self) -> pa.DataType:
        return self.item.arrow

    def _cut(self, state: Texts) -> Texts:
        return firsts(state, self.most)

    def lower(self, state: Texts) -> pa.Array:
        there = pa.array(self.present(state))
        made = lists.made(state.starts, state.values, str(self.item))
        return pc.if_else(there, made, pa.scalar(None, pa.string()))


@dataclass(slots=True)
class SortedArrays(SortedTexts):
    """With ORDER BY, which says which values are the first ones."""

    most: int = 0

    def _cut(self, state: Texts) -> Texts:
        return firsts(SortedTexts._cut(self, state), self.most)

    def lower(self, state: Texts) -> pa.Array:
        there = pa.array(self.present(state))
        made = lists.made(state.starts, state.values.field("value"), str(self.item))
        return pc.if_else(there, made, pa.scalar(None, pa.string()))


def _shape(call: AggCall) -> tuple[str, Type, int]:
    most = call.params[0]
    assert isinstance(most, int)
    return "", call.args[0].type, most


def follow(call: AggCall, leaving: Leaving) -> ArrayRows | ArrayKept:
    """The state that follows single rows."""
    separator, item, most = _shape(call)
    if leaving == "never":
        return ArrayKept(separator, by=ordering(call), item=item, most=most)
    return ArrayRows(separator, by=ordering(call), item=item, most=most)


def algebra(call: AggCall) -> ArrayCells | SortedArrays:
    """The algebra of such a call."""
    separator, item, most = _shape(call)
    if len(call.args) == 1:
        return ArrayCells(separator, item, most)
    types = tuple(a.type for a in call.args[1:])
    return SortedArrays(separator, item, types, keys_of(call), most)
