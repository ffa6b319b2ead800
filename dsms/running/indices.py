"""Indices over what rings hold, and how one-time queries read by them.

Those that streams declare (INDEX BY) follow their rings as rows come.  One over another column is
made once one-time queries have asked for it often, and goes again if it takes too much.  None of
them is stored: after a restart, or when a ring is cut anew, they catch up sub-window by sub-window.
Answers are the same without them, so a fault in one ends that one alone, until a restart.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from dsms.oneshot.pushdown import Condition, conditions, used_columns
from dsms.oneshot.top import Top, top_of
from dsms.running.picks import CATCH_UP, FEW, AnyIndex, ByRange, ByTop, ByValues, Pick, Try
from dsms.settings import Settings
from dsms.sql import logical as lp
from dsms.sql.catalog import StreamDef
from dsms.sql.types import WHOLE, Kind
from dsms.state.counts import WindowCounts
from dsms.state.index import WindowIndex
from dsms.state.ranges import COMPARE, Range, SortedColumn
from dsms.state.ring import Ring

NEVER = -(1 << 30)
OFTEN = 3  # one-time queries that ask for a column, before there is an index over it
SHARE = 10  # such an index takes a tenth of the ring's bytes at most
COUNT_UP = 1 << 16  # rows that are counted at a time
TURNS = 2  # of a ring, after which counts and sorted lists that nobody has asked for go
KINDS = (*WHOLE, Kind.STRING, Kind.UUID, Kind.BYTES, Kind.DECIMAL)
RANGED = (*KINDS, Kind.FLOAT)
LOG = logging.getLogger("dsms")
NAMES = {"index": "index", "counts": "counts of values", "sorted": "sorted list"}


@dataclass(slots=True)
class StreamIndices:
    """Of one stream: the indices by column, those of them that were declared, and how often
    one-time queries have asked for other columns."""

    declared: frozenset[int]
    by_column: dict[int, WindowIndex] = field(default_factory=dict)
    asked: Counter[int] = field(default_factory=Counter)
    # of columns whose values are asked for, and how often one-time queries have
    counts: dict[int, WindowCounts] = field(default_factory=dict)
    counted: Counter[int] = field(default_factory=Counter)
    # of columns of which ranges are asked for, and how often one-time queries have
    sorted: dict[int, SortedColumn] = field(default_factory=dict)
    ranged: Counter[int] = field(default_factory=Counter)
    # those that met a bug of ours, and which, by kind and column; they are not made again
    given_up: dict[tuple[str, int], str] = field(default_factory=dict)

    def drop(self, index: AnyIndex, fault: Exception) -> bool:
        """That one is not followed or asked any more; False if it had gone before."""
        kind = kind_of(index)
        those: dict[str, dict[int, Any]]
        those = {"index": self.by_column, "counts": self.counts, "sorted": self.sorted}
        if those[kind].get(index.column) is index:
            del those[kind][index.column]
        first = (kind, index.column) not in self.given_up
        self.given_up.setdefault((kind, index.column), repr(fault))
        return first


@dataclass(frozen=True, slots=True)
class Wanted:
    """The values that are asked for, and the ranges, by column that can be indexed."""

    values: Mapping[int, pa.Array]
    ranges: Mapping[int, Range]

    @property
    def columns(self) -> frozenset[int]:
        return frozenset(self.values.keys() | self.ranges.keys())


@dataclass(slots=True)
class Indices:
    """By the key of the stream."""

    settings: Settings
    definitions: Mapping[str, StreamDef]  # of streams
    streams: dict[str, StreamIndices] = field(default_factory=dict)
    # one-time queries by text and user, as `dsms.commands.points` knows them
    known: dict[tuple[str, str | None], object] = field(default_factory=dict)

    @classmethod
    def over(cls, settings: Settings, streams: Mapping[str, StreamDef]) -> Indices:
        """Those that the streams declare, with nothing in them yet."""
        made = cls(settings, streams)
        for definition in streams.values():
            made.declare(definition)
        return made

    def declare(self, definition: StreamDef) -> None:
        """What INDEX BY of a stream says."""
        if definition.index_by and self.settings.window_index:
            kinds = {column: definition.schema[column].type.kind for column in definition.index_by}
            found = {column: WindowIndex(column) for column, kind in kinds.items() if kind in KINDS}
            self.streams[definition.home] = StreamIndices(frozenset(kinds), found)

    def forget(self, stream: str) -> None:
        """The stream was dropped."""
        self.streams.pop(stream, None)

    def follow(self, stream: str, ring: Ring) -> None:
        """The ring has taken in rows, or let go of some."""
        held = self.streams.get(stream)
        if held is not None:
            there = (held.by_column, held.counts, held.sorted)
            for index in [index for kind in there for index in kind.values()]:
                try:
                    _follow(held, index, ring)
                except Exception as fault:
                    self.give_up(stream, index, fault)

    def give_up(self, stream: str, index: AnyIndex, fault: Exception) -> None:
        """A bug of ours in an index; go on without it."""
        held = self.streams.get(stream)
        if held is not None and held.drop(index, fault):
            LOG.error(
                "the %s over column %s of stream %s has met a bug of ours and is not used any "
                "more before a restart; please report this",
                NAMES[kind_of(index)],
                self.definitions[stream].schema[index.column].name,
                self.definitions[stream].name,
                exc_info=fault,
            )

    def given_up(self, stream: str) -> Mapping[tuple[str, int], str]:
        """Those of a stream that met a bug of ours, by kind and column."""
        held = self.streams.get(stream)
        return {} if held is None else held.given_up

    def of(self, stream: str) -> Iterator[tuple[WindowIndex, bool]]:
        """Those of a stream, and whether they were declared."""
        held = self.streams.get(stream)
        if held is not None:
            for column, index in held.by_column.items():
                yield index, column in held.declared

    def sorted_of(self, stream: str) -> Mapping[int, SortedColumn]:
        """By column the sorted lists of a stream."""
        held = self.streams.get(stream)
        return {} if held is None else held.sorted

    def counts_of(self, stream: str) -> Mapping[int, WindowCounts]:
        """By column the counts of values of a stream."""
        held = self.streams.get(stream)
        return {} if held is None else held.counts

    def count(self, stream: str, ring: Ring, column: int) -> WindowCounts | None:
        """A query asks which values a column has, or how often.  None: they are not counted (yet).

        They are once that has been asked for often, or at once where INDEX BY names the column."""
        held = self.streams.setdefault(stream, StreamIndices(frozenset()))
        counts = held.counts.get(column)
        if counts is None:
            if ("counts", column) in held.given_up:
                return None
            held.counted[column] += 1
            if not ring.closed or (column not in held.declared and held.counted[column] < OFTEN):
                return None
            counts = held.counts[column] = WindowCounts(column)
        counts.unasked = 0
        try:
            return counts if counts.follow(ring, COUNT_UP) else None
        except Exception as fault:
            self.give_up(stream, counts, fault)
            return None

    def picks(
        self,
        plan: lp.Node,
        streams: Mapping[int, str],
        rings: Mapping[str, Ring],
        asked: bool = True,
    ) -> dict[int, Pick]:
        """By leaf number how a plan's leaves are read by an index, where that can be.  What is
        `asked` for is counted."""
        if not self.settings.window_index:
            return {}
        found = {}
        for leaf, met in conditions(plan).items():
            stream = streams.get(leaf)
            if stream is None or stream not in rings:
                continue
            scan = next(s for s in lp.leaves_of(plan) if s.leaf == leaf)
            used = used_columns(plan).get(leaf, frozenset()) | {c.column for c in met}
            wanted = Wanted(_values_of(scan, met), _ranges_of(scan, met))
            pick = self.pick(stream, rings, wanted, used, asked)
            if pick is not None:
                found[leaf] = pick
        top = top_of(plan)
        if top is not None and (pick := self._first(plan, top, streams, rings, asked)) is not None:
            found[top.leaf] = pick
        return found

    def _first(
        self,
        plan: lp.Node,
        top: Top,
        streams: Mapping[int, str],
        rings: Mapping[str, Ring],
        asked: bool,
    ) -> Pick | None:
        """How a leaf is read of which the first rows by a column are wanted."""
        stream, (scan,) = streams.get(top.leaf, ""), lp.leaves_of(plan)
        ring = rings.get(stream)
        if ring is None or not _ranged(scan, top.column) or top.rows > FEW:
            return None
        if asked:
            self.ask(stream, ring, Wanted({}, {top.column: Range(())}))
        index = self._sorted(stream, ring, top.column)
        used = used_columns(plan)[top.leaf]
        if index is None:
            return None
        return Pick(rings, stream, (ByTop(index, top),), used, self.giver(stream), True)

    def giver(self, stream: str) -> Callable[[AnyIndex, Exception], None]:
        """`give_up` of that stream."""
        return partial(self.give_up, stream)

    def pick(
        self,
        stream: str,
        rings: Mapping[str, Ring],
        wanted: Wanted,
        used: frozenset[int],
        asked: bool = True,
    ) -> Pick | None:
        """How rows of a stream are read that have what is wanted of each of those columns; None: by
        no index.  What is `asked` for is counted."""
        ring = rings[stream]
        if asked:
            self.ask(stream, ring, wanted)
        tries: list[Try] = [
            ByValues(index, wanted.values[index.column])
            for index, _ in self.of(stream)
            if index.column in wanted.values
        ]
        if not tries:
            tries += self._by_ranges(stream, ring, wanted.ranges)
        return Pick(rings, stream, tries, used, self.giver(stream)) if tries else None

    def _by_ranges(self, stream: str, ring: Ring, ranges: Mapping[int, Range]) -> Iterator[ByRange]:
        """Those of the ranges that hold few rows of columns that are sorted, or are from now on
        (declared ones at once, others once they have been asked for often)."""
        for column, wanted in ranges.items():
            found = self._sorted(stream, ring, column)
            if found is not None:
                by = ByRange(found, wanted)
                try:
                    worth = by.worth(ring)
                except Exception as fault:
                    self.give_up(stream, found, fault)
                    continue
                if worth:
                    yield by

    def _sorted(self, stream: str, ring: Ring, column: int) -> SortedColumn | None:
        """The sorted lists of a column, if there are to be some."""
        held = self.streams.setdefault(stream, StreamIndices(frozenset()))
        found = held.sorted.get(column)
        often = column in held.declared or held.ranged[column] >= OFTEN
        often = often and ("sorted", column) not in held.given_up
        if found is None and ring.closed and often:
            found = held.sorted[column] = SortedColumn(column, asked=ring.updates)
        return found

    def ask(self, stream: str, ring: Ring, wanted: Wanted) -> None:
        """A query asks for that; what is asked for often gets an index."""
        held = self.streams.setdefault(stream, StreamIndices(frozenset()))
        for column in wanted.ranges:
            held.ranged[column] += 1
            if column in held.sorted:
                held.sorted[column].asked = ring.updates
        for column in wanted.values:
            if column not in held.by_column and ("index", column) not in held.given_up:
                held.asked[column] += 1
                if held.asked[column] >= OFTEN and ring.closed:
                    held.by_column[column] = WindowIndex(column)


def kind_of(index: AnyIndex) -> str:
    """As SHOW WINDOWS calls it."""
    match index:
        case WindowIndex():
            return "index"
        case WindowCounts():
            return "counts"
        case SortedColumn():
            return "sorted"


def _follow(held: StreamIndices, index: AnyIndex, ring: Ring) -> None:
    """The ring has changed; one that nobody has asked for long, or that takes too much, goes."""
    column = index.column
    match index:
        case WindowIndex():
            index.follow(ring, CATCH_UP)
            if column not in held.declared and _too_large(index, ring):
                del held.by_column[column]
                held.asked[column] = NEVER
        case WindowCounts():
            index.follow(ring, COUNT_UP)
            if index.unasked > TURNS * (len(ring.closed) + 1):
                held.counts.pop(column)
        case SortedColumn():
            if ring.updates != index.seen:
                index.follow(ring, 0)
                _drop_sorted(held, column, ring)


def _too_large(index: WindowIndex | SortedColumn, ring: Ring) -> bool:
    """Whether what nobody declared takes more than its share of what it is over."""
    indexed = sum(s.nbytes() for s in ring.closed if index.covers(s))
    return bool(index.parts) and index.nbytes * SHARE > indexed


def _drop_sorted(held: StreamIndices, column: int, ring: Ring) -> None:
    """A list that nobody asks for any more goes, or one that nobody declared and that takes too
    much."""
    found = held.sorted[column]
    if ring.updates - found.asked > TURNS * (len(ring.closed) + 1):
        del held.sorted[column]
    elif column not in held.declared and _too_large(found, ring):
        del held.sorted[column]
        held.ranged[column] = NEVER


def wanted(plan: lp.Node, scan: lp.StreamScan) -> Wanted:
    """What a plan asks for of a leaf."""
    met = conditions(plan).get(scan.leaf, ())
    return Wanted(_values_of(scan, met), _ranges_of(scan, met))


def _values_of(scan: lp.Node, met: Iterable[Condition]) -> dict[int, pa.Array]:
    return {c.column: _values(scan, c) for c in met if _indexed(scan, c)}


def _indexed(scan: lp.Node, condition: Condition) -> bool:
    return condition.op in ("eq", "in") and scan.schema[condition.column].type.kind in KINDS


def _values(scan: lp.Node, condition: Condition) -> pa.Array:
    type_ = scan.schema[condition.column].type.arrow
    return pa.array(list(dict.fromkeys(condition.values)), type_)


def _ranged(scan: lp.Node, column: int) -> bool:
    return scan.schema[column].type.kind in RANGED


def _ranges_of(scan: lp.Node, met: Iterable[Condition]) -> dict[int, Range]:
    """By column what is asked for by comparison (of FLOAT by = as well)."""
    found: dict[int, tuple[tuple[str, pa.Array], ...]] = {}
    for c in met:
        looked_up = c.op == "eq" and scan.schema[c.column].type.kind in KINDS
        if c.op in COMPARE and _ranged(scan, c.column) and not looked_up:
            found[c.column] = (*found.get(c.column, ()), (c.op, _values(scan, c)))
    return {column: Range(conditions) for column, conditions in found.items()}
