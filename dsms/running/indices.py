"""Indices over what rings hold, and how one-time queries read by them.

Those that streams declare (INDEX BY) follow their rings as rows come.  One over another column is
made once one-time queries have asked for it often, and goes again if it takes too much.  None of
them is stored: after a restart, or when a ring is cut anew, they catch up sub-window by sub-window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import pyarrow as pa

from dsms.oneshot.pushdown import Condition, conditions, used_columns
from dsms.settings import Settings
from dsms.sql import logical as lp
from dsms.sql.catalog import Catalog, StreamDef
from dsms.sql.types import Kind
from dsms.state.batch import Batch, gathered
from dsms.state.counts import WindowCounts
from dsms.state.index import Found, WindowIndex
from dsms.state.ring import Ring, SubWindow, between

OFTEN = 3  # one-time queries that ask for a column, before there is an index over it
SHARE = 10  # such an index takes a tenth of the ring's bytes at most
CATCH_UP = 1 << 17  # rows that are taken in at a time
COUNT_UP = 1 << 16  # rows that are counted at a time
MOST = 8  # where more than an eighth of a sub-window's rows matter, it is read
TURNS = 2  # of a ring, after which counts that nobody has asked for go
FEW = 1 << 15  # rows that are read at once
KINDS = (Kind.INT, Kind.STRING, Kind.BYTES, Kind.DECIMAL, Kind.TIMESTAMP, Kind.INTERVAL)


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


@dataclass(slots=True)
class Indices:
    """By the key of the stream."""

    settings: Settings
    streams: dict[str, StreamIndices] = field(default_factory=dict)
    # one-time queries by text and user, as `dsms.commands.points` knows them
    known: dict[tuple[str, str | None], object] = field(default_factory=dict)

    @classmethod
    def over(cls, settings: Settings, streams: Iterable[StreamDef]) -> Indices:
        """Those that the streams declare, with nothing in them yet."""
        made = cls(settings)
        for definition in streams:
            made.declare(definition)
        return made

    def declare(self, definition: StreamDef) -> None:
        """What INDEX BY of a stream says."""
        if definition.index_by and self.settings.window_index:
            found = {column: WindowIndex(column) for column in definition.index_by}
            key = Catalog.key(definition.name)
            self.streams[key] = StreamIndices(frozenset(found), found)

    def forget(self, stream: str) -> None:
        """The stream was dropped."""
        self.streams.pop(stream, None)

    def follow(self, stream: str, ring: Ring) -> None:
        """The ring has taken in rows, or let go of some."""
        held = self.streams.get(stream)
        if held is not None:
            for column in list(held.by_column):
                held.by_column[column].follow(ring, CATCH_UP)
                if column not in held.declared:
                    _drop_large(held, column, ring)
            for column, counts in list(held.counts.items()):
                counts.follow(ring, COUNT_UP)
                if counts.unasked > TURNS * (len(ring.closed) + 1):
                    held.counts.pop(column)

    def of(self, stream: str) -> Iterator[tuple[WindowIndex, bool]]:
        """Those of a stream, and whether they were declared."""
        held = self.streams.get(stream)
        if held is not None:
            for column, index in held.by_column.items():
                yield index, column in held.declared

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
            held.counted[column] += 1
            if not ring.closed or (column not in held.declared and held.counted[column] < OFTEN):
                return None
            counts = held.counts[column] = WindowCounts(column)
        counts.unasked = 0
        return counts if counts.follow(ring, COUNT_UP) else None

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
            pick = self.pick(stream, rings, _values_of(scan, met), used, asked)
            if pick is not None:
                found[leaf] = pick
        return found

    def pick(
        self,
        stream: str,
        rings: Mapping[str, Ring],
        values: Mapping[int, pa.Array],
        used: frozenset[int],
        asked: bool = True,
    ) -> Pick | None:
        """How rows of a stream are read that have one of the values in each of those columns; None:
        by no index.  What is `asked` for is counted."""
        if asked:
            self.ask(stream, rings[stream], values)
        indices = [i for i, _ in self.of(stream) if i.column in values]
        tries = [(index, values[index.column]) for index in indices]
        return Pick(rings, stream, tries, used) if tries else None

    def ask(self, stream: str, ring: Ring, columns: Iterable[int]) -> None:
        """A query asks for those columns; what is asked for often gets an index."""
        held = self.streams.setdefault(stream, StreamIndices(frozenset()))
        for column in columns:
            if column not in held.by_column:
                held.asked[column] += 1
                if held.asked[column] >= OFTEN and ring.closed:
                    held.by_column[column] = WindowIndex(column)


def _drop_large(held: StreamIndices, column: int, ring: Ring) -> None:
    """An index that nobody declared goes, for long, where it takes more than its share."""
    index = held.by_column[column]
    indexed = sum(s.nbytes() for s, _ in zip(ring.closed, index.parts, strict=False))
    if index.parts and index.nbytes * SHARE > indexed:
        del held.by_column[column]
        held.asked[column] = -(1 << 30)


def values_asked(plan: lp.Node, scan: lp.StreamScan) -> dict[int, pa.Array]:
    """The values that a plan asks for of a leaf, by column that can be indexed."""
    return _values_of(scan, conditions(plan).get(scan.leaf, ()))


def _values_of(scan: lp.Node, met: Iterable[Condition]) -> dict[int, pa.Array]:
    return {c.column: _values(scan, c) for c in met if _indexed(scan, c)}


def _indexed(scan: lp.Node, condition: Condition) -> bool:
    return condition.op in ("eq", "in") and scan.schema[condition.column].type.kind in KINDS


def _values(scan: lp.Node, condition: Condition) -> pa.Array:
    type_ = scan.schema[condition.column].type.arrow
    return pa.array(list(dict.fromkeys(condition.values)), type_)


@dataclass(slots=True)
class Pick:
    """How the rows of a stream leaf are read by an index: those alone that have one of the values.

    tries  indices that serve, with the values that are asked for; the one that finds least is used
    used   columns that are looked at; where few rows are read at once, the others are not read
    reduced  the rows of sub-windows that the index does not know are looked through then, too
    """

    rings: Mapping[str, Ring]
    stream: str
    tries: list[tuple[WindowIndex, pa.Array]]
    used: frozenset[int]
    reduced: bool = False
    _found: Found | None = None

    def few(self, most: int | None = None) -> bool:
        """Whether the index knows all closed sub-windows, and finds so few rows (at most `most`)
        that they are read at once."""
        return self._follow() and self._look().count <= (FEW if most is None else most)

    def rows(self, sub: SubWindow) -> Batch | None:
        """The rows of a sub-window that matter, or all of them where the index does not know it, or
        would not help; None: there are none."""
        self._follow()
        found = self._look()
        if not found.index.covers(sub):
            return sub.rows
        if sub.number not in found.places:
            return None
        places = found.rows(sub)
        if MOST * len(places) > len(sub.rows):
            return sub.rows
        return sub.rows.take(places) if len(places) else None

    def together(self, subs: Sequence[SubWindow], since: int, upto: int) -> list[Batch]:
        """The rows of all those sub-windows that matter, with ts in (since, upto]."""
        self._follow()
        found = self._look()
        out = list[Batch]()
        for covered, some in groupby(subs, found.index.covers):
            if covered:
                parts = found.among(list(some))
            elif self.reduced:
                parts = [(sub.rows, found.matching(sub.rows)) for sub in some]
            else:
                out += [sub.rows for sub in some]
                continue
            if parts:
                out.append(gathered(parts, self.used))
        return [between(rows, since, upto) for rows in out]

    def counted(self, subs: Sequence[SubWindow], since: int, upto: int) -> tuple[int, int, int]:
        """The column of the index; how many of those sub-windows have rows with ts in (since, upto]
        that matter, and how many rows."""
        self._follow()
        found = self._look()
        rows = [len(self._among(found, sub, since, upto)) for sub in subs]
        return found.index.column, sum(n > 0 for n in rows), sum(rows)

    def _among(self, found: Found, sub: SubWindow, since: int, upto: int) -> Batch:
        known = found.index.covers(sub)
        places = found.rows(sub) if known else found.matching(sub.rows)
        return between(sub.rows.take(places), since, upto)

    def _follow(self) -> bool:
        ring = self.rings.get(self.stream)
        if ring is None:
            return False
        done = [index.follow(ring, CATCH_UP) for index, _ in self.tries]
        return all(done)

    def _look(self) -> Found:
        held = self._found
        if held is None or held.version != held.index.version:
            found = [index.find(values) for index, values in self.tries]
            held = self._found = min(found, key=lambda f: f.count)
        return held
