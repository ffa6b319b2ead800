"""How the rows of a stream leaf are read by indices over its ring: by the values that are asked
for, or by the range in which they lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Protocol, TypeVar

import pyarrow as pa

from dsms.errors import DsmsError
from dsms.oneshot.top import Top
from dsms.state.batch import Batch, gathered
from dsms.state.counts import WindowCounts
from dsms.state.index import Found, WindowIndex
from dsms.state.ranges import MOST, FoundRange, Range, SortedColumn, Words
from dsms.state.ring import Ring, SubWindow, between

CATCH_UP = 1 << 17  # rows that are taken in, or sorted, at a time
FEW = 1 << 15  # rows that are read at once
AnyIndex = WindowIndex | WindowCounts | SortedColumn
T = TypeVar("T")


class Try(Protocol):
    """An index, and what is asked of it."""

    @property
    def index(self) -> WindowIndex | SortedColumn: ...

    def follow(self, ring: Ring) -> bool:
        """Have the index know more of the ring; True: it knows all closed sub-windows."""
        ...

    def find(self, ring: Ring) -> Found | FoundRange:
        """What the index finds."""
        ...


@dataclass(frozen=True, slots=True)
class ByValues:
    """Rows that have one of some values."""

    index: WindowIndex
    values: pa.Array

    def follow(self, ring: Ring) -> bool:
        return self.index.follow(ring, CATCH_UP)

    def find(self, ring: Ring) -> Found:
        return self.index.find(self.values)


@dataclass(slots=True)
class _BySorting:
    """What has not been sorted when it was first asked is read: so a query pays for so many rows,
    once."""

    index: SortedColumn
    _done: bool | None = field(default=None, kw_only=True)

    def follow(self, ring: Ring) -> bool:
        if self._done is None:
            self._done = self.index.follow(ring, CATCH_UP)
        return self._done


@dataclass(slots=True)
class ByRange(_BySorting):
    """Rows whose value lies in a range."""

    wanted: Range
    _found: FoundRange | None = field(default=None, kw_only=True)

    def find(self, ring: Ring) -> FoundRange:
        if self._found is None or self._found.version != self.index.version:
            self._found = self.index.find(ring, self.wanted)
        return self._found

    def worth(self, ring: Ring) -> bool:
        """Whether few rows of the sub-windows that are sorted (the youngest at least) lie in it."""
        self.index.follow(ring, 1 if ring.updates != self.index.seen else 0)
        count = self.find(ring).count
        return bool(self.index.parts) and MOST * count <= self.index.rows


@dataclass(slots=True)
class ByTop(_BySorting):
    """The first rows by a column, which depend on the window: what is not `within` one is read."""

    top: Top

    def find(self, ring: Ring) -> FoundRange:
        return FoundRange(self.index, self.index.version, Words(), {}, self.top.rows)

    def within(self, ring: Ring, subs: Sequence[SubWindow], since: int, upto: int) -> FoundRange:
        """Those of rows with ts in (since, upto]."""
        top = self.top
        words = self.index.top(subs, since, upto, top.rows, top.descending)
        nulls = words.nulls and (top.nulls_first or words == Words())
        return self.index.find(ring, replace(words, nulls=nulls))


@dataclass(slots=True)
class Pick:
    """How the rows of a stream leaf are read by an index: those alone that have what is asked for.

    tries  indices that serve, with what is asked for; the one that finds least is used
    used   columns that are looked at; where few rows are read at once, the others are not read
    give_up  told of a bug of ours in an index: from then on nothing is tried, and all is read
    reduced  the rows of sub-windows that the index does not know are looked through then, too
    """

    rings: Mapping[str, Ring]
    stream: str
    tries: Sequence[Try]
    used: frozenset[int]
    give_up: Callable[[AnyIndex, Exception], None]
    reduced: bool = False
    _found: Found | FoundRange | None = None
    _ring: Ring = field(default_factory=Ring)  # as it was last
    _asked: AnyIndex | None = None  # the index that is at work

    def _tried(self, read: Callable[[], T], otherwise: Callable[[], T]) -> T:
        """What is read by the indices, or where they have met a bug of ours, without them."""
        if self.tries:
            try:
                return read()
            except DsmsError:
                raise
            except Exception as fault:
                broken = self._asked or self.tries[0].index
                self.tries, self._found = (), None
                self.give_up(broken, fault)
        return otherwise()

    def few(self, most: int | None = None) -> bool:
        """Whether the index knows all closed sub-windows, and finds so few rows (at most `most`)
        that they are read at once."""
        limit = FEW if most is None else most
        return self._tried(lambda: self._follow() and self._look().count <= limit, lambda: False)

    def rows(self, sub: SubWindow) -> Batch | None:
        """The rows of a sub-window that matter, or all of them where the index does not know it, or
        would not help; None: there are none."""
        return self._tried(lambda: self._rows(sub), lambda: sub.rows)

    def _rows(self, sub: SubWindow) -> Batch | None:
        self._follow()
        found = self._look()
        if not found.covers(sub):
            return sub.rows
        places = found.rows(sub)
        if MOST * len(places) > len(sub.rows):
            return sub.rows
        return sub.rows.take(places) if len(places) else None

    def together(self, subs: Sequence[SubWindow], since: int, upto: int) -> list[Batch]:
        """The rows of all those sub-windows that matter, with ts in (since, upto]."""
        found = self._tried(
            lambda: self._together(subs, since, upto), lambda: [sub.rows for sub in subs]
        )
        return [between(rows, since, upto) for rows in found]

    def _together(self, subs: Sequence[SubWindow], since: int, upto: int) -> list[Batch]:
        self._follow()
        found = self._within(subs, since, upto)
        out = list[Batch]()
        for covered, some in groupby(subs, found.covers):
            if covered:
                here = list(some)
                rows = found.taken(here, self.used) if isinstance(found, Found) else None
                if rows is not None:
                    out.append(rows)
                    continue
                parts = found.among(here)
            elif self.reduced:
                parts = [(sub.rows, found.matching(sub.rows)) for sub in some]
            else:
                out += [sub.rows for sub in some]
                continue
            if parts:
                out.append(gathered(parts, self.used))
        return out

    @property
    def by_range(self) -> bool:
        """Whether they are found by the range in which they lie."""
        return bool(self.tries) and isinstance(self._look(), FoundRange)

    def counted(
        self, subs: Sequence[SubWindow], since: int, upto: int
    ) -> tuple[int, int, int] | None:
        """The column of the index; how many of those sub-windows have rows with ts in (since, upto]
        that matter, and how many rows; None: there is no index any more."""
        return self._tried(lambda: self._counted(subs, since, upto), lambda: None)

    def _counted(self, subs: Sequence[SubWindow], since: int, upto: int) -> tuple[int, int, int]:
        self._follow()
        found = self._within(subs, since, upto)
        rows = [len(self._among(found, sub, since, upto)) for sub in subs]
        return found.index.column, sum(n > 0 for n in rows), sum(rows)

    def _among(self, found: Found | FoundRange, sub: SubWindow, since: int, upto: int) -> Batch:
        places = found.rows(sub) if found.covers(sub) else found.matching(sub.rows)
        return between(sub.rows.take(places), since, upto)

    def _follow(self) -> bool:
        ring = self.rings.get(self.stream)
        if ring is None:
            return False
        self._ring = ring
        known = 0
        for one in self.tries:
            self._asked = one.index
            known += one.follow(ring)
        return known == len(self.tries)

    def _within(self, subs: Sequence[SubWindow], since: int, upto: int) -> Found | FoundRange:
        (one, *_) = self.tries
        if isinstance(one, ByTop):
            self._asked = one.index
            return one.within(self._ring, subs, since, upto)
        return self._look()

    def _look(self) -> Found | FoundRange:
        held = self._found
        if held is None or held.version != held.index.version:
            found = list[Found | FoundRange]()
            for one in self.tries:
                self._asked = one.index
                found.append(one.find(self._ring))
            held = self._found = min(found, key=lambda f: f.count)
        self._asked = held.index
        return held
