"""A feed: one stream's rows, filtered and grouped one way, pre-aggregated sub-window by sub-window.

Rows gather until there are enough of them or their sub-window ends; then they are lifted into cells
(a cell per group and sub-window), column by column: a column is one aggregate with its synopsis.
Sub-windows are numbered k where they begin at phase + k * span; where time is counted in rows, row
numbers stand for instants.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from dsms.aggregates.parts.fold import folds
from dsms.operators.basic import filter_batch
from dsms.operators.expressions import ErrorCounter, compile_predicate
from dsms.sharing.column import AggregateColumn, FeedColumn
from dsms.sharing.columns import ROWS
from dsms.sharing.covers import Terms, terms
from dsms.sharing.key_space import KeySpace
from dsms.sql.expr import AggCall, Expr, conjunction
from dsms.state.batch import Batch, concat

ENOUGH = 1 << 14  # rows that are lifted together, at least (or a quarter of the groups)
CELLS = 1 << 16  # cells (or numbers in them) that are made at once, about


class GroupFeed(Protocol):
    """What a group answers from: a `Feed`, the results of a join (`join_feed`), or several feeds
    that move together (`feed_set`).  Sub-windows have numbers."""

    @property
    def stream(self) -> str: ...

    @property
    def space(self) -> KeySpace: ...

    @property
    def span(self) -> int: ...

    @property
    def phase(self) -> int: ...

    @property
    def counted(self) -> bool:
        """Whether row numbers stand for instants."""
        ...

    @property
    def columns(self) -> Mapping[AggCall, FeedColumn]:
        """Its own; a set of feeds has none."""
        ...

    @property
    def feeds(self) -> Sequence[SingleFeed]:
        """The feeds that it is made of."""
        ...

    @property
    def open(self) -> int | None:
        """The sub-window that fills now; None before the first row or boundary."""
        ...

    @property
    def began(self) -> int:
        """The first sub-window."""
        ...

    @property
    def nbytes(self) -> int: ...

    def number(self, instant: int) -> int:
        """The sub-window in which an instant lies."""
        ...

    def numbers(self, instants: np.ndarray) -> np.ndarray:
        """`number` of each."""
        ...

    def push(self, rows: Batch) -> None:
        """Rows of the stream, later than all before."""
        ...

    def pushing(self, rows: Batch) -> Iterator[None]:
        """`push`, a piece at a time; nobody may see it before the last."""
        ...

    def flush(self) -> None:
        """Lift what waits."""
        ...

    def close(self, number: int) -> None:
        """All sub-windows before `number` are complete."""
        ...

    def closing(self, number: int) -> Iterator[None]:
        """`close`, a piece at a time; nobody may see it before the last."""
        ...

    def jump(self, number: int) -> None:
        """Nothing is left in any window, and nothing will come before `number`: forget all and go
        there."""
        ...

    def trim(self, number: int) -> None:
        """No sub-window before `number` will be asked for."""
        ...


def numbers_of(feed: GroupFeed) -> int:
    """What the cells of all groups hold in the broadest column: as much work as so many cells."""
    columns = feed.columns.values()
    return feed.space.groups * max((folds(c.algebra).breadth for c in columns), default=1)


class SingleFeed(GroupFeed, Protocol):
    """What is no set of others."""

    errors: ErrorCounter
    updates: int


C = TypeVar("C", bound=FeedColumn)


@dataclass(slots=True)
class RowFeed(ABC, Generic[C]):
    """What feeds of streams and of joins have in common.

    open   number of the sub-window that fills now; None before the first row or boundary"""

    stream: str
    space: KeySpace
    span: int
    phase: int
    counted: bool
    columns: dict[AggCall, C] = field(default_factory=dict)
    open: int | None = None
    pending: list[Batch] = field(default_factory=list)
    rows: int = 0  # pending
    began: int = 0  # the first sub-window
    errors: ErrorCounter = field(default_factory=ErrorCounter)
    updates: int = 0

    def __post_init__(self) -> None:
        self.space.feeds.append(self)

    @property
    def feeds(self) -> Sequence[SingleFeed]:
        """The feeds that it is made of."""
        return (self,)

    def number(self, instant: int) -> int:
        """The sub-window in which an instant lies."""
        return (instant - self.phase) // self.span

    def numbers(self, instants: np.ndarray) -> np.ndarray:
        """`number` of each."""
        return (instants - self.phase) // self.span

    def push(self, rows: Batch) -> None:
        """Rows of the stream, later than all before."""
        if self._gathered(rows):
            self.flush()

    def _gathered(self, rows: Batch) -> bool:
        """Put them to those that wait; whether these are enough to be lifted."""
        if len(rows):
            self.pending.append(rows)
            self.rows += len(rows)
        return self.rows >= max(ENOUGH, self.space.groups // 4)

    def pushing(self, rows: Batch) -> Iterator[None]:
        self.push(rows)
        return iter(())

    def _taken(self) -> Batch:
        """The rows that wait, which do so no more."""
        rows, self.pending, self.rows = concat(self.pending), [], 0
        return rows

    def close(self, number: int) -> None:
        """All sub-windows before `number` are complete."""
        for _ in self.closing(number):
            pass

    def closing(self, number: int) -> Iterator[None]:
        """`close`, a piece at a time."""
        yield from self.lifting()
        if self.open is None:
            self._begin(number)
        for column in self.columns.values():
            column.grow(self.space.groups)
        yield from self._going_to(number)

    def flush(self) -> None:
        """Lift what waits."""
        for _ in self.lifting():
            pass

    @abstractmethod
    def lifting(self) -> Iterator[None]:
        """`flush`, a piece at a time."""

    @abstractmethod
    def _begin(self, number: int) -> None:
        """The first sub-window."""

    @abstractmethod
    def _going_to(self, number: int) -> Iterator[None]:
        """The sub-windows before `number` are over, a few at a time."""

    @abstractmethod
    def jump(self, number: int) -> None:
        """Nothing is left in any window, and nothing will come before `number`: forget all and go
        there."""

    @abstractmethod
    def trim(self, number: int) -> None:
        """No sub-window before `number` will be asked for."""

    @abstractmethod
    def present(self) -> np.ndarray:
        """bool[groups]: which groups have rows in any sub-window held."""

    @property
    def nbytes(self) -> int:
        return sum(c.nbytes for c in self.columns.values()) + sum(b.ts.nbytes for b in self.pending)


@dataclass(slots=True)
class Feed(RowFeed[AggregateColumn]):
    """Of the rows of a stream that fulfil all of `where`."""

    where: tuple[Expr, ...] = ()
    predicate: Callable[..., pa.BooleanArray] | None = field(init=False)
    # of its condition, if it is a disjunction of atoms
    terms: Terms | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        condition = conjunction(list(self.where))
        self.predicate = None if condition is None else compile_predicate(condition)
        self.terms = terms(self.where)
        RowFeed.__post_init__(self)

    def push(self, rows: Batch) -> None:
        for _ in self.pushing(rows):
            pass

    def pushing(self, rows: Batch) -> Iterator[None]:
        if self.predicate is not None and len(rows):
            rows = filter_batch(rows, self.predicate(rows.cols, len(rows), self.errors))
        if self._gathered(rows):
            yield from self.lifting()

    def lifting(self) -> Iterator[None]:
        """`flush`, about CELLS at a time."""
        if not self.pending:
            return
        rows = self._taken()
        ts = rows.ids[0] if self.counted else rows.ts
        code, sub = self.space.codes(rows, self.errors), self.numbers(ts)
        if self.open is None:
            self._begin(int(sub[0]))
        groups = self.space.groups
        for column in self.columns.values():
            column.grow(groups)
        at_once = numbers_of(self)
        start, most = 0, max(1, CELLS // at_once)
        while start < len(rows):
            first = int(sub[start])
            yield from self._going_to(first)
            stop = int(np.searchsorted(sub, first + most, side="left"))
            count = int(sub[stop - 1]) - first + 1
            cell = (sub[start:stop] - first) * groups + code[start:stop]
            piece = rows if stop - start == len(rows) else rows.slice(start, stop)
            much = at_once > CELLS // 4 or len(piece) > ENOUGH
            for column in self.columns.values():
                state = column.lift(piece, ts[start:stop], cell, count * groups, self.errors)
                if much:
                    yield
                yield from column.adding(state, count)
                if much:
                    yield
            self.updates += count - 1
            self.open, start = first + count - 1, stop
            yield

    def _begin(self, number: int) -> None:
        self.open = self.began = number
        for column in self.columns.values():
            column.base = number

    def _going_to(self, number: int) -> Iterator[None]:
        assert self.open is not None
        at_once = numbers_of(self)
        most = max(1, CELLS // at_once)
        while (some := min(number - self.open, most)) > 0:
            for column in self.columns.values():
                yield from column.skipping(some)
                if some * at_once > CELLS // 4:
                    yield
            self.open += some
            self.updates += some

    def jump(self, number: int) -> None:
        self.flush()
        self.open = number
        for column in self.columns.values():
            column.synopsis.trim(column.synopsis.next)
            column.base = number - column.synopsis.next
            column.open = column.algebra.empty(column.synopsis.groups)

    def trim(self, number: int) -> None:
        for column in self.columns.values():
            column.synopsis.trim(number - column.base)

    def present(self) -> np.ndarray:
        column = self.columns[ROWS]
        column.grow(self.space.groups)
        held = column.synopsis
        one = np.array([held.first]), np.array([held.next])
        counts = column.algebra.lower(column.algebra.combine(held.probe(*one), column.open))
        return np.asarray(counts) > 0
