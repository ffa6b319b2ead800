"""Approximate aggregates as algebras over Apache DataSketches: APPROX_COUNT_DISTINCT,
APPROX_QUANTILE, APPROX_TOPK.

A state is an object per cell (None: no values yet); merging makes a new one and leaves its parts as
they are, so states may share sketches.  Python works per cell and per distinct value of a cell.

Error    count_distinct  CPC of 2^lg_k rows: standard error 0.6931 / sqrt(2^lg_k)
         quantile        KLL: the rank is off by 2.296 / size^0.9723 of all values at most, with
                         confidence 99 %
         topk            frequent items with m = 2^i >= 64 k counters: counts are off by 3.5 / m of
                         all values at most; exact up to 3/4 m different values
Seeds    CPC and frequent items hash with fixed seeds: the answer of CPC depends on the set of
         values alone, that of frequent items on how rows were cut into pieces.  KLL flips coins
         that the library gives no way to seed: the answers of two runs may differ within the bound.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.parts.items import Counts, counted, no_values, starts_of, texts
from dsms.errors import InternalError
from dsms.sql.expr import AggCall
from dsms.sql.types import Kind, Type
from dsms.state.columns import numpy_valid, numpy_values

Cells = np.ndarray  # object[n]


@cache
def _library() -> Any:
    """Apache DataSketches, imported when the first sketch is made."""
    import datasketches

    return datasketches


class Sketches(ABC):
    """What the algebras share: columns of objects."""

    subtractable: bool
    duplicate_insensitive: bool

    def empty(self, cells: int) -> Cells:
        return np.full(cells, None, object)

    def close(self, state: Cells) -> Cells:
        return state

    def combine(self, older: Cells, newer: Cells) -> Cells:
        out = np.where(_full(older), older, newer)
        for i in np.flatnonzero(_full(older) & _full(newer)).tolist():
            out[i] = self._merged(older[i], newer[i])
        return out

    def subtract(self, whole: Cells, part: Cells) -> Cells:
        raise InternalError("DS905", "sketches can't be subtracted; please report this")

    def size(self, state: Cells) -> int:
        return len(state)

    def take(self, state: Cells, index: np.ndarray) -> Cells:
        out = self.empty(len(index))
        out[index >= 0] = state[index[index >= 0]]
        return out

    def concat(self, states: Sequence[Cells]) -> Cells:
        return np.concatenate(states) if states else self.empty(0)

    def nbytes(self, state: Cells) -> int:
        return int(state.nbytes) + sum(map(self._bytes, state[_full(state)].tolist()))

    @abstractmethod
    def _merged(self, *parts: Any) -> Any:
        """A new sketch of all."""

    @abstractmethod
    def _bytes(self, sketch: Any) -> int:
        """Bytes, about."""


def _full(state: Cells) -> np.ndarray:
    return np.fromiter((s is not None for s in state), np.bool_, len(state))


# ---------------------------------------------------------------- different values


@dataclass(slots=True)
class CountDistinct(Sketches):
    """CPC sketches (Lang 2017) of 2^lg_k rows over values of `type`.  Sets may overlap."""

    lg_k: int
    type: Type
    subtractable: bool = False
    duplicate_insensitive: bool = True

    def lift(self, rows: CellRows, cells: int) -> Cells:
        found, out = counted(rows.cell, rows.args[0], self.type), self.empty(cells)
        for i, items, _ in _by_cell(found, cells, self.type):
            sketch = _library().cpc_sketch(self.lg_k)
            for item in items:
                sketch.update(item)
            # the estimate of a merged sketch depends on nothing but the set of values
            out[i] = self._merged(sketch)
        return out

    def _merged(self, *parts: Any) -> Any:
        union = _library().cpc_union(self.lg_k)
        for part in parts:
            union.update(part)
        return union.get_result()

    def lower(self, state: Cells) -> pa.Array:
        return pa.array(
            [0 if s is None else round(s.get_estimate()) for s in state.tolist()], pa.int64()
        )

    def _bytes(self, sketch: Any) -> int:
        return 200 + min(8 * int(sketch.get_estimate()), 3 << self.lg_k - 1)


def _by_cell(found: Counts, cells: int, type_: Type) -> Iterable[tuple[int, list[Any], list[int]]]:
    """Per cell that has some: the values (as int or str: what sketches hash) and their counts, by
    value ascending."""
    items = np.empty(len(found.values), object)
    items[:] = _hashable(found.values, type_)
    starts = starts_of(found.cell, cells)
    for i in np.flatnonzero(np.diff(starts)).tolist():
        part = slice(starts[i], starts[i + 1])
        yield i, items[found.code[part]].tolist(), found.count[part].tolist()


def _hashable(values: pa.Array, type_: Type) -> list[Any]:
    """Plain values as int or str, different ones for different values."""
    match type_.kind:
        case Kind.BOOL:
            return [int(v) for v in values.to_pylist()]
        case Kind.BYTES:
            return [v.hex() for v in values.to_pylist()]
        case Kind.DECIMAL:
            return [str(v) for v in values.to_pylist()]
    return values.to_pylist()


# ---------------------------------------------------------------- frequent values


@dataclass(slots=True)
class TopK(Sketches):
    """The `k` most frequent values of `type`, from frequent-items sketches (Anderson et al. 2017),
    2^lg_m counters."""

    k: int
    type: Type
    subtractable: bool = False
    duplicate_insensitive: bool = False

    @property
    def lg_m(self) -> int:
        return max((64 * self.k - 1).bit_length(), 8)

    def lift(self, rows: CellRows, cells: int) -> Cells:
        found, out = counted(rows.cell, rows.args[0], self.type), self.empty(cells)
        for i, items, counts in _by_cell(found, cells, self.type):
            sketch = out[i] = _library().frequent_strings_sketch(self.lg_m)
            for item, count in zip(items, counts, strict=True):
                sketch.update(str(item), count)
        return out

    def _merged(self, *parts: Any) -> Any:
        sketch = _library().frequent_strings_sketch(self.lg_m)
        for part in parts:
            sketch.merge(part)
        return sketch

    def lower(self, state: Cells) -> pa.Array:
        return pa.array([None if s is None else self._text(s) for s in state.tolist()], pa.string())

    def _text(self, sketch: Any) -> str:
        values, _ = self.ranking(sketch)
        return f"[{', '.join(texts(values, self.type).to_pylist())}]"

    def ranking(self, sketch: Any) -> tuple[pa.Array, list[int]]:
        """The most frequent values (plain) and their counts, which may be too high by the error."""
        found = sketch.get_frequent_items(_library().frequent_items_error_type.NO_FALSE_NEGATIVES)
        pairs = [(-count, self._value(item)) for item, count, *_ in found]
        best = sorted(pairs)[: self.k]
        return pa.array([v for _, v in best], no_values(self.type).type), [-n for n, _ in best]

    def _value(self, item: str) -> Any:
        """The plain value that an item stands for."""
        match self.type.kind:
            case Kind.STRING | Kind.UUID:
                return item
            case Kind.BOOL:
                return item == "1"
            case Kind.BYTES:
                return bytes.fromhex(item)
            case Kind.DECIMAL:
                return Decimal(item)
        return int(item)

    def _bytes(self, sketch: Any) -> int:
        return 200 + 80 * sketch.num_active_items


# ---------------------------------------------------------------- values by rank

_SMALLEST = 0x0010_0000_0000_0000  # the bits of the smallest normal double
_LIMIT = 0x7FEF_FFFF_FFFF_FFFF - _SMALLEST


def as_doubles(values: np.ndarray) -> np.ndarray:
    """int64 -> finite doubles in the same order, one to one: the sketch compares, and never
    computes.

    The 2^54 numbers nearest to either end of int64 are not distinguished (they are within 0.05 % of
    each other)."""
    size = np.abs(np.clip(values, -_LIMIT, _LIMIT)) + _SMALLEST
    return np.where(values < 0, -size.view(np.float64), size.view(np.float64))


def as_integers(values: np.ndarray) -> np.ndarray:
    """The way back."""
    size = np.abs(values).view(np.int64) - _SMALLEST
    return np.where(values < 0, -size, size)


@dataclass(frozen=True, slots=True)
class Ranks:
    """A KLL sketch of the numbers of a cell, and how many NaNs stand above them."""

    sketch: Any
    nans: int = 0


@dataclass(slots=True)
class Quantile(Sketches):
    """The value at share `phi`, from KLL sketches (Karnin, Lang, Liberty 2016) of parameter
    `width`, of INT, FLOAT, TIMESTAMP or INTERVAL."""

    phi: float
    width: int
    type: Type
    subtractable: bool = False
    duplicate_insensitive: bool = False

    def lift(self, rows: CellRows, cells: int) -> Cells:
        (column,), cell = rows.args, rows.cell
        valid = numpy_valid(column)
        values = numpy_values(column) if valid is None else numpy_values(column)[valid]
        cell = cell if valid is None else cell[valid]
        order = np.argsort(cell, kind="stable")
        values, starts = values[order], starts_of(cell[order], cells)
        out = self.empty(cells)
        for i in np.flatnonzero(np.diff(starts)).tolist():
            out[i] = self._ranks(values[starts[i] : starts[i + 1]])
        return out

    def _ranks(self, values: np.ndarray) -> Ranks:
        sketch, nans = _library().kll_doubles_sketch(self.width), 0
        if self.type.kind is Kind.FLOAT:
            numbers = values[~np.isnan(values)] + 0.0
            nans = len(values) - len(numbers)
        else:
            numbers = as_doubles(values)
        sketch.update(numbers)
        return Ranks(sketch, nans)

    def _merged(self, *parts: Ranks) -> Ranks:
        sketch = _library().kll_doubles_sketch(self.width)
        for part in parts:
            sketch.merge(part.sketch)
        return Ranks(sketch, sum(part.nans for part in parts))

    def lower(self, state: Cells) -> pa.Array:
        found = np.array([0.0 if s is None else self._at(s) for s in state.tolist()], np.float64)
        values = found if self.type.kind is Kind.FLOAT else as_integers(found)
        return pa.array(values, self.type.arrow, mask=~_full(state))

    def _at(self, ranks: Ranks) -> float:
        numbers = ranks.sketch.n
        place = self.phi * (numbers + ranks.nans)
        if numbers == 0 or place > numbers:
            return float("nan")
        return float(ranks.sketch.get_quantile(min(1.0, place / numbers), True))

    def _bytes(self, sketch: Ranks) -> int:
        return 300 + 8 * int(sketch.sketch.num_retained)


def algebra(call: AggCall) -> CountDistinct | Quantile | TopK:
    """The algebra of an APPROX_* call."""
    type_ = call.args[0].type
    match call.fn, call.params:
        case "approx_count_distinct", (int(lg_k),):
            return CountDistinct(lg_k, type_)
        case "approx_quantile", (float(phi), int(width)):
            return Quantile(phi, width, type_)
        case "approx_topk", (int(k),):
            return TopK(k, type_)
    raise InternalError("DS905", f"no sketch answers {call.fn}{call.params}; please report this")
