"""A feed: one stream's rows, filtered and grouped one way, pre-aggregated sub-window by sub-window.

Rows gather until there are enough of them or their sub-window ends; then they are lifted into cells (a cell per group
and sub-window), column by column: a column is one aggregate with its synopsis.  Sub-windows are numbered k where they
begin at phase + k * span; where time is counted in rows, row numbers stand for instants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa

from dsms.aggregates.parts.cells import Algebra, Rows, State
from dsms.operators.basic import filter_batch
from dsms.operators.expressions import ErrorCounter, compile_expr, compile_predicate
from dsms.operators.group_keys import GroupKeys
from dsms.sharing.columns import ROWS
from dsms.sharing.covers import Terms, terms
from dsms.sql.expr import AggCall, Expr, conjunction
from dsms.sql.types import ALWAYS
from dsms.state.batch import Batch, concat
from dsms.state.columns import numpy_true
from dsms.synopses.cells import Synopsis

ENOUGH = 1 << 14  # rows that are lifted together, at least (or a quarter of the groups)
CELLS = 1 << 22  # cells that are made at once, at most

Exprs = Sequence[Callable[..., pa.Array]]


@dataclass(slots=True)
class KeySpace:
    """Codes of the groups of one stream by the same keys; feeds with different conditions share it."""

    stream: str
    exprs: tuple[Expr, ...]
    keys: GroupKeys = field(init=False)
    compiled: Exprs = field(init=False)
    feeds: list[Feed] = field(default_factory=list)
    rank: np.ndarray | None = None  # codes in the order of their keys, while no key is new

    def __post_init__(self) -> None:
        self.keys = GroupKeys(tuple(e.type for e in self.exprs))
        self.compiled = [compile_expr(e) for e in self.exprs]

    @property
    def groups(self) -> int:
        """Codes are below this."""
        return max(1, self.keys.capacity)

    def codes(self, rows: Batch, errors: ErrorCounter) -> np.ndarray:
        """int64[n]: groups of the rows."""
        n = len(rows)
        if not self.exprs:
            return np.zeros(n, np.int64)
        before = self.keys.rows
        codes = self.keys.codes([e(rows.cols, n, errors) for e in self.compiled], n)
        if self.keys.rows != before:
            self.rank = None
        return codes

    def in_order(self) -> np.ndarray:
        """int64[g]: the codes in use, by their keys left to right, NULLs last."""
        from dsms.operators.sort import by_columns

        if self.rank is None or len(self.rank) > self.keys.rows:
            used = np.flatnonzero(self.keys.place.view[: self.keys.capacity] >= 0)
            self.rank = used[by_columns(self.keys.gather(used), len(used))]
        return self.rank

    def forget(self) -> None:
        """Let go of groups that no sub-window holds."""
        if not self.exprs or self.keys.rows < 4096:
            return
        live = np.zeros(self.keys.capacity, np.bool_)
        for feed in self.feeds:
            feed.flush()
            live |= feed.present()[: self.keys.capacity]
        if self.keys.wants_purge(int(np.count_nonzero(live))):
            self.keys.purge(live)
            self.rank = None


@dataclass(slots=True)
class Column:
    """One aggregate of a feed.  `base`: the sub-window that its synopsis calls 0."""

    call: AggCall
    algebra: Algebra
    synopsis: Synopsis
    base: int
    open: State = None
    whole_from: int = ALWAYS  # sub-windows before this one miss rows
    why: str = ""  # this synopsis was chosen
    chosen_for: tuple[int, int] = (0, 0)  # so many queries that read it, and the longest reach of their windows
    widths: dict[tuple[int, int], int] = field(default_factory=dict)  # (width, reach) of windows: how many read them
    readers: dict[AggCall, Algebra] = field(default_factory=dict)  # of other aggregates that need the same data
    args: Exprs = field(init=False)
    passes: Callable[..., pa.BooleanArray] | None = field(init=False)

    def __post_init__(self) -> None:
        self.args = [compile_expr(a) for a in self.call.args]
        self.passes = None if self.call.filter is None else compile_predicate(self.call.filter)
        self.open = self.algebra.empty(self.synopsis.groups)

    def lift(self, rows: Batch, ts: np.ndarray, cell: np.ndarray, cells: int, errors: ErrorCounter) -> State:
        """Cells of the rows."""
        n = len(rows)
        if self.passes is not None:
            kept = np.flatnonzero(numpy_true(self.passes(rows.cols, n, errors)))
            if len(kept) < n:
                rows, ts, cell, n = rows.take(kept), ts[kept], cell[kept], len(kept)
        arguments = tuple(a(rows.cols, n, errors) for a in self.args)
        return self.algebra.lift(Rows(cell, ts, rows.ids[0], arguments), cells)

    def grow(self, groups: int) -> None:
        """There are more groups now."""
        if groups > self.synopsis.groups:
            more = self.algebra.empty(groups - self.synopsis.groups)
            self.open = self.algebra.concat([self.open, more])
            self.synopsis.grow(groups)

    def add(self, state: State, count: int) -> None:
        """Cells of the open sub-window and of `count` - 1 after it, of which the last stays open."""
        groups = self.synopsis.groups
        if count == 1:
            self.open = self.algebra.combine(self.open, state)
            return
        first = self.algebra.combine(self.open, self.algebra.take(state, np.arange(groups)))
        middle = self.algebra.take(state, np.arange(groups, (count - 1) * groups))
        over = self.algebra.concat([first, middle]) if count > 2 else first
        self.synopsis.append(self.algebra.close(over), count - 1)
        self.open = self.algebra.take(state, np.arange((count - 1) * groups, count * groups))

    def skip(self, count: int) -> None:
        """The open sub-window and `count` - 1 empty ones are over."""
        groups = self.synopsis.groups
        empty = self.algebra.empty(groups * (count - 1)) if count > 1 else None
        self.synopsis.append(
            self.algebra.close(self.open if empty is None else self.algebra.concat([self.open, empty])), count
        )
        self.open = self.algebra.empty(groups)

    def probe(self, low: np.ndarray, high: np.ndarray) -> State:
        """Unions of sub-windows low <= k < high (stream numbering)."""
        return self.synopsis.probe(low - self.base, high - self.base)

    @property
    def reach(self) -> int:
        """The first sub-window that is held and misses no row; ALWAYS: all that ever were."""
        held = self.synopsis.first
        return max(self.whole_from, self.base + held if held > 0 else ALWAYS)

    def lower(self, call: AggCall, state: State) -> pa.Array:
        """The answers of an aggregate that these cells hold the data of."""
        return (self.algebra if call == self.call else self.reader(call)).lower(state)

    def reader(self, call: AggCall) -> Algebra:
        """The algebra of the call, which understands these cells."""
        from dsms.aggregates.registry import algebra

        if call == self.call:
            return self.algebra
        if call not in self.readers:
            self.readers[call] = how = algebra(call)
            if hasattr(how, "words") and hasattr(self.algebra, "words"):
                how.words = self.algebra.words  # one dictionary
        return self.readers[call]

    @property
    def nbytes(self) -> int:
        return self.synopsis.nbytes + self.algebra.nbytes(self.open)


class GroupFeed(Protocol):
    """What a group answers from: a `Feed`, the results of a join (`join_feed`), or several feeds that move together
    (`feed_set`).  Sub-windows have numbers."""

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
    def columns(self) -> dict[AggCall, Column]:
        """Its own; a set of feeds has none."""
        ...

    @property
    def feeds(self) -> Sequence[Feed]:
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

    def flush(self) -> None:
        """Lift what waits."""
        ...

    def close(self, number: int) -> None:
        """All sub-windows before `number` are complete."""
        ...

    def jump(self, number: int) -> None:
        """Nothing is left in any window, and nothing will come before `number`: forget all and go there."""
        ...

    def trim(self, number: int) -> None:
        """No sub-window before `number` will be asked for."""
        ...


@dataclass(slots=True)
class Feed:
    """`open`: number of the sub-window that fills now; None before the first row or boundary."""

    stream: str
    where: tuple[Expr, ...]
    space: KeySpace
    span: int
    phase: int
    counted: bool
    columns: dict[AggCall, Column] = field(default_factory=dict)
    open: int | None = None
    pending: list[Batch] = field(default_factory=list)
    rows: int = 0  # pending
    began: int = 0  # the first sub-window
    newest: int = 0  # the last sub-window that has rows
    errors: ErrorCounter = field(default_factory=ErrorCounter)
    updates: int = 0
    predicate: Callable[..., pa.BooleanArray] | None = field(init=False)
    terms: Terms | None = field(init=False, default=None)  # of its condition, if it is a disjunction of atoms

    def __post_init__(self) -> None:
        whole = conjunction(list(self.where))
        self.predicate = None if whole is None else compile_predicate(whole)
        self.terms = terms(self.where)
        self.space.feeds.append(self)

    def number(self, instant: int) -> int:
        """The sub-window in which an instant lies."""
        return (instant - self.phase) // self.span

    def numbers(self, instants: np.ndarray) -> np.ndarray:
        """`number` of each."""
        return (instants - self.phase) // self.span

    # -- rows ---------------------------------------------------------------------------------------------------------

    def push(self, rows: Batch) -> None:
        """Rows of the stream, later than all before."""
        if self.predicate is not None and len(rows):
            rows = filter_batch(rows, self.predicate(rows.cols, len(rows), self.errors))
        if not len(rows):
            return
        self.pending.append(rows)
        self.rows += len(rows)
        if self.rows >= max(ENOUGH, self.space.groups // 4):
            self.flush()

    def flush(self) -> None:
        """Lift what waits."""
        if not self.pending:
            return
        rows, self.pending, self.rows = concat(self.pending), [], 0
        ts = rows.ids[0] if self.counted else rows.ts
        code, sub = self.space.codes(rows, self.errors), self.numbers(ts)
        if self.open is None:
            self._begin(int(sub[0]))
        groups = self.space.groups
        for column in self.columns.values():
            column.grow(groups)
        start, most = 0, max(1, CELLS // groups)
        while start < len(rows):
            first = int(sub[start])
            self._go_to(first)
            stop = int(np.searchsorted(sub, first + most, side="left"))
            count = int(sub[stop - 1]) - first + 1
            cell = (sub[start:stop] - first) * groups + code[start:stop]
            piece = rows if stop - start == len(rows) else rows.slice(start, stop)
            for column in self.columns.values():
                state = column.lift(piece, ts[start:stop], cell, count * groups, self.errors)
                column.add(state, count)
            self.updates += count - 1
            self.newest = first + count - 1
            self.open, start = first + count - 1, stop

    def _begin(self, number: int) -> None:
        self.open = self.began = number
        for column in self.columns.values():
            column.base = number

    def _go_to(self, number: int) -> None:
        """The sub-windows before `number` are over."""
        assert self.open is not None
        count = number - self.open
        if count > 0:
            most = max(1, CELLS // self.space.groups)
            while count > 0:
                some = min(count, most)
                for column in self.columns.values():
                    column.skip(some)
                self.open += some
                count -= some
                self.updates += some

    def close(self, number: int) -> None:
        """All sub-windows before `number` are complete."""
        self.flush()
        if self.open is None:
            self._begin(number)
        for column in self.columns.values():
            column.grow(self.space.groups)
        self._go_to(number)

    def jump(self, number: int) -> None:
        """Nothing is left in any window, and nothing will come before `number`: forget all and go there."""
        self.flush()
        self.open = number
        for column in self.columns.values():
            column.synopsis.trim(column.synopsis.next)
            column.base = number - column.synopsis.next
            column.open = column.algebra.empty(column.synopsis.groups)

    def trim(self, number: int) -> None:
        """No sub-window before `number` will be asked for."""
        for column in self.columns.values():
            column.synopsis.trim(number - column.base)

    # -- what is there ------------------------------------------------------------------------------------------------

    @property
    def feeds(self) -> Sequence[Feed]:
        """The feeds that it is made of."""
        return (self,)

    def present(self) -> np.ndarray:
        """bool[groups]: which groups have rows in any sub-window held."""
        column = self.columns[ROWS]
        column.grow(self.space.groups)
        held = column.synopsis
        one = np.array([held.first]), np.array([held.next])
        counts = column.algebra.lower(column.algebra.combine(held.probe(*one), column.open))
        return np.asarray(counts) > 0

    @property
    def nbytes(self) -> int:
        return sum(c.nbytes for c in self.columns.values()) + sum(b.ts.nbytes for b in self.pending)
