"""An index over the predicates of many queries: which rows of a batch does each one want?

Golab 2006, §2.4.4: data and queries are duals.  For equality the constants are hashed and the rows
look them up; for ranges the rows of a batch are sorted and the bounds of all queries are looked up
among them at once.  Either costs one pass over an indexed column, and a query whose rows are not
there costs no Python at all.

An index may give a query more rows than it wants, never fewer: its selection still looks at them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.operators.expressions import can_fail
from dsms.sql.expr import Call, Col, Expr, Lit, conjuncts
from dsms.sql.types import WHOLE, Kind, Type
from dsms.state.batch import Batch
from dsms.state.columns import numpy_valid, numpy_values
from dsms.state.intern import Intern

FEW = 8  # ranges that are compared one by one rather than among sorted rows
LEAST, MOST = -(1 << 63), (1 << 63) - 1
FLIPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
SLACK = 1e-9  # by which bounds of decimals are widened, relatively: rows are rounded to doubles


@dataclass(frozen=True, slots=True)
class Points:
    """The column has one of these values; or, if `null`, none."""

    column: int
    type: Type
    values: tuple[Any, ...]
    null: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """The column lies between two bounds, which belong to it; None: without end.  With `null`, rows
    without a value are wanted, too."""

    column: int
    type: Type
    low: Any
    high: Any
    null: bool = False


Atom = Points | Span


def atom_of(predicate: Expr) -> Atom | None:
    """What of a selection can be looked up; None if nothing can.

    Its terms are looked at in their order (what stands behind one that is false is not evaluated,
    and so fails for no row), so nothing before what is looked up may fail.  Of NULL an AND goes on
    to the terms behind: where they may fail they see these rows, too."""
    terms = conjuncts(predicate)
    found: Atom | None
    looked = [_points(t) for t in terms]
    if not any(looked) and _span(terms) is None:
        return None  # without compiling anything, which takes long where terms are long
    failing = (k for k, t in enumerate(terms) if looked[k] is None and can_fail(t))
    sure = next(failing, len(terms))
    points = [p for p in looked[:sure] if p is not None]
    found = points[0] if points else _span(terms[:sure])
    if found is None or sure == len(terms):
        return found
    if isinstance(found, Points):
        return Points(found.column, found.type, found.values, null=True)
    return Span(found.column, found.type, found.low, found.high, null=True)


def _points(term: Expr) -> Points | None:
    """A term that is true of some values of one column alone."""
    if not isinstance(term, Call):
        return None
    if term.fn == "or":
        parts = [_points(a) for a in term.args]
        first = parts[0]
        if first is None or any(p is None or p.column != first.column for p in parts):
            return None
        values = tuple(v for p in parts if p is not None for v in p.values)
        return Points(first.column, first.type, values, any(p.null for p in parts if p is not None))
    column = term.args[0] if term.args else None
    if term.fn == "is_null" and isinstance(column, Col):
        return Points(column.index, column.type, (), null=True)
    if term.fn == "eq" and isinstance(column, Lit):
        term = Call("eq", term.args[::-1], term.type)
        column = term.args[0]
    if term.fn not in ("eq", "in") or not isinstance(column, Col):
        return None
    values = tuple(a.value for a in term.args[1:] if isinstance(a, Lit))
    same = all(a.type.arrow == column.type.arrow for a in term.args[1:])
    if not same or len(values) < len(term.args) - 1 or any(v is None for v in values):
        return None
    return Points(column.index, column.type, values)


def _span(terms: Sequence[Expr]) -> Span | None:
    """The ranges of all terms over one column: of the first that has both ends, else the first."""
    found: dict[int, Span] = {}
    for column, op, value in filter(None, map(_bound, terms)):
        low, high = _ends(column.type, op, value)
        span = found.setdefault(column.index, Span(column.index, column.type, None, None))
        found[column.index] = Span(
            column.index,
            column.type,
            low if span.low is None else span.low if low is None else max(low, span.low),
            high if span.high is None else span.high if high is None else min(high, span.high),
        )
    closed = (s for s in found.values() if s.low is not None and s.high is not None)
    return next(closed, next(iter(found.values()), None))


def _bound(term: Expr) -> tuple[Col, str, Any] | None:
    if not (isinstance(term, Call) and term.fn in FLIPPED):
        return None
    (a, b), op = term.args, term.fn
    if isinstance(a, Lit):
        a, b, op = b, a, FLIPPED[op]
    if not (isinstance(a, Col) and isinstance(b, Lit)) or b.value is None or b.value != b.value:
        return None
    kinds = (*WHOLE, Kind.FLOAT, Kind.DECIMAL)
    return (a, op, b.value) if a.type.kind in kinds and b.type.kind == a.type.kind else None


def _ends(type_: Type, op: str, value: Any) -> tuple[Any, Any]:
    """Both ends of `op value`, in the words of the sorted rows (`_ordered`)."""
    above = op in ("gt", "ge")
    if type_.kind in WHOLE:
        whole = int(value)
        if op in ("gt", "lt"):
            whole = min(max(whole + (1 if above else -1), LEAST), MOST)
        return (whole, None) if above else (None, whole)
    double = float(value)
    if isinstance(value, Decimal):
        double += (-1 if above else 1) * (abs(double) + 1) * SLACK
    return (double, None) if above else (None, double)


def _ordered(column: pa.Array) -> np.ndarray:
    """The values as int64 or float64; arbitrary where NULL."""
    if pa.types.is_decimal(column.type):
        column = pc.cast(column, pa.float64())
    return numpy_values(column)


def _nulls(column: pa.Array) -> np.ndarray:
    """Rows without a value."""
    valid = numpy_valid(column)
    return np.empty(0, np.int64) if valid is None else np.flatnonzero(~valid)


@dataclass(slots=True)
class _PointColumn:
    """Constants of one column, each with the queries that ask for it."""

    type: Type
    codes: Intern = field(default_factory=lambda: Intern(1))
    askers: list[list[int]] = field(default_factory=list)  # slots by code

    def add(self, slot: int, values: Sequence[Any]) -> None:
        if not values:
            return
        found = self.codes.codes([pa.array(values, self.type.arrow)], len(values))
        self.askers.extend([] for _ in range(self.codes.capacity - len(self.askers)))
        for code in np.unique(found):
            self.askers[code].append(slot)

    def match(self, column: pa.Array) -> Iterator[tuple[list[int], np.ndarray]]:
        """Slots and the rows that they want."""
        found = self.codes.lookup([column], len(column))
        rows = np.flatnonzero(found >= 0)
        if not len(rows):
            return
        found = found[rows]
        if self.codes.capacity < 1 << 15:
            found = found.astype(np.int16)  # which are sorted in one pass
        order = np.argsort(found, kind="stable")
        rows, found = rows[order], found[order]
        starts = np.flatnonzero(np.diff(found, prepend=-1))
        for code, own in zip(found[starts].tolist(), np.split(rows, starts[1:]), strict=True):
            yield self.askers[code], own


@dataclass(slots=True)
class _SpanColumn:
    """Ranges over one column, each of one query."""

    slots: list[int] = field(default_factory=list)
    lows: list[Any] = field(default_factory=list)
    highs: list[Any] = field(default_factory=list)
    bounds: tuple[np.ndarray, np.ndarray] | None = None

    def add(self, slot: int, low: Any, high: Any) -> None:
        self.slots.append(slot)
        self.lows.append(low)
        self.highs.append(high)
        self.bounds = None

    def match(self, column: pa.Array) -> Iterator[tuple[list[int], np.ndarray]]:
        """Slots and the rows that they want."""
        values, valid = _ordered(column), numpy_valid(column)
        lows, highs = self._bounds(values.dtype)
        if len(lows) <= FEW:
            for k, slot in enumerate(self.slots):
                # not of "outside", as NaN is greater than all
                wanted = ~(values < lows[k])
                if self.highs[k] is not None:
                    wanted &= values <= highs[k]
                own = np.flatnonzero(wanted if valid is None else wanted & valid)
                if len(own):
                    yield [slot], own
            return
        rows = None if valid is None else np.flatnonzero(valid)
        if rows is not None:
            values = values[rows]
        order = np.argsort(values, kind="stable")
        values = values[order]
        rows = order if rows is None else rows[order]
        starts = np.searchsorted(values, lows, side="left")
        stops = np.searchsorted(values, highs, side="right")
        for k in np.flatnonzero(stops > starts).tolist():
            yield [self.slots[k]], np.sort(rows[starts[k] : stops[k]])

    def _bounds(self, kind: np.dtype[Any]) -> tuple[np.ndarray, np.ndarray]:
        if self.bounds is None:
            whole = kind == np.int64
            # NaN is sorted behind all numbers, where it is greatest
            least, most = (LEAST, MOST) if whole else (-np.inf, np.nan)
            self.bounds = (
                np.array([least if v is None else v for v in self.lows], kind),
                np.array([most if v is None else v for v in self.highs], kind),
            )
        return self.bounds


@dataclass(slots=True)
class PredicateIndex:
    """Atoms of queries, which are known by slots: small numbers.  One is forgotten with all of the
    index alone; who matches looks which slots still count."""

    points: dict[int, _PointColumn] = field(default_factory=dict)
    spans: dict[int, _SpanColumn] = field(default_factory=dict)
    nulls: dict[int, list[int]] = field(default_factory=dict)

    def add(self, slot: int, atom: Atom) -> None:
        """A query's atom."""
        column = atom.column
        if atom.null:
            self.nulls.setdefault(column, []).append(slot)
        if isinstance(atom, Points):
            self.points.setdefault(column, _PointColumn(atom.type)).add(slot, atom.values)
        else:
            self.spans.setdefault(column, _SpanColumn()).add(slot, atom.low, atom.high)

    def match(self, rows: Batch) -> dict[int, Batch]:
        """The rows of each slot that wants some, in their order."""
        found: dict[int, list[np.ndarray]] = {}
        made: dict[int, Batch] = {}
        shared: list[tuple[list[int], np.ndarray]] = []
        for column, askers in self.nulls.items():
            if len(own := _nulls(rows.cols[column])):
                shared.append((askers, own))
        for column, points in self.points.items():
            shared.extend(points.match(rows.cols[column]))
        for column, spans in self.spans.items():
            shared.extend(spans.match(rows.cols[column]))
        for askers, own in shared:
            for slot in askers:
                found.setdefault(slot, []).append(own)
        taken: dict[int, Batch] = {}  # by identity: queries that want the same rows share them
        for slot, parts in found.items():
            own = parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))
            batch = taken.get(id(own))
            if batch is None:
                batch = rows if len(own) == len(rows) else rows.take(own)
                if len(parts) == 1:
                    taken[id(own)] = batch
            made[slot] = batch
        return made
