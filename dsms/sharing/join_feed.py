"""The buffer before join synopses: a join's results, grouped one way, pre-aggregated by the
sub-window they are born in and the interval they expire in (`dsms.synopses.joins`).

Where the windows upstream have different lengths b1 and b2, a result expires in min(k1 + b1, k2 +
b2): so one side's sub-windows are counted with a shift, as if both windows were max(b1, b2) long.
Such a synopsis answers all (n1 s, n2 s)-joins with n1 - n2 = b1 - b2; it has no flagged values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from dsms.aggregates.parts.cells import Algebra, State
from dsms.operators.expressions import ErrorCounter
from dsms.sharing.column import FeedColumn
from dsms.sharing.columns import ROWS
from dsms.sharing.feed import RowFeed
from dsms.sharing.key_space import KeySpace
from dsms.sql.expr import AggCall, Expr
from dsms.state.batch import Batch
from dsms.state.columns import numpy_values
from dsms.synopses.bij import BasicIntervalJoin
from dsms.synopses.ij import IntervalJoin
from dsms.synopses.joins import JoinSynopsis, regrouped, spread
from dsms.synopses.rj import RunningJoin

KINDS: dict[str, type[BasicIntervalJoin] | type[IntervalJoin] | type[RunningJoin]] = {
    "basic": BasicIntervalJoin,
    "interval": IntervalJoin,
    "running": RunningJoin,
}

NAMES = {"basic": "BIJ", "interval": "IJ", "running": "RJ"}


@dataclass(frozen=True, slots=True)
class JoinShape:
    """Windows upstream of b1 and b2 sub-windows of `span` µs, which begin at `phase` + k * `span`;
    flags for g."""

    span: int
    phase: int
    b1: int
    b2: int
    g: int = 0

    @property
    def b(self) -> int:
        """Intervals."""
        return max(self.b1, self.b2)

    @property
    def lengths(self) -> tuple[int, int]:
        """Of the windows, µs."""
        return self.b1 * self.span, self.b2 * self.span

    def counted(self, lengths: tuple[int, int]) -> tuple[int, int]:
        """Windows of those lengths in sub-windows, as if the windows upstream were equal."""
        return lengths[0] // self.span + self.b - self.b1, lengths[
            1
        ] // self.span + self.b - self.b2

    def answers(self, lengths: tuple[int, int]) -> bool:
        """Whether joins of windows of those lengths can be answered (SS3)."""
        n1, n2 = self.counted(lengths)
        aligned = all(length % self.span == 0 for length in lengths)
        return aligned and max(n1, n2) <= self.b and (n1 == n2 or min(n1, n2) >= self.b - self.g)

    @property
    def cells(self) -> int:
        """Of one group."""
        return self.b * (1 + 2 * self.g)


def new_synopsis(
    algebra: Algebra, shape: JoinShape, pairs: int, asked: str
) -> tuple[JoinSynopsis, str]:
    """A synopsis for queries over so many different pairs of windows, and why this kind.

    Each update touches all intervals of any kind (§8.3.2), and the basic one is then read in one
    pass for all queries together: it is cheapest unless it is asked for by name."""
    if asked in KINDS:
        return KINDS[asked](algebra, shape.b, shape.g), f"{_named(asked, shape)}: asked for"
    made: dict[str, JoinSynopsis] = {
        name: kind(algebra, shape.b, shape.g) for name, kind in KINDS.items()
    }
    best = min(made, key=lambda name: made[name].cost(pairs))
    return made[
        best
    ], f"{_named(best, shape)}: it touches the fewest intervals in an update and {pairs} probes"


def _named(kind: str, shape: JoinShape) -> str:
    flags = f", g = {shape.g}" if shape.g else ""
    return f"a {NAMES[kind]} synopsis of the join (b = {shape.b}{flags})"


@dataclass(slots=True)
class JoinColumn(FeedColumn[JoinSynopsis]):
    """One aggregate over results.  `open`: the buffer of the open sub-window."""

    filled: bool = False  # the buffer holds rows
    # what all queries that are due together ask, and the cells
    scan: tuple[np.ndarray, State] | None = None

    def __post_init__(self) -> None:
        FeedColumn.__post_init__(self)
        self.open = self.algebra.empty(self.synopsis.buffer)

    def grow(self, groups: int) -> None:
        had = self.synopsis.groups
        if groups > had:
            index = np.arange(groups)
            self.open = regrouped(self.algebra, self.open, np.where(index < had, index, -1), had)
            self.synopsis.grow(groups)

    def take(self, rows: Batch, cell: np.ndarray, errors: ErrorCounter) -> None:
        """Results of the open sub-window, and their cells."""
        self.open = self.algebra.combine(
            self.open, self.lift(rows, rows.ts, cell, self.synopsis.buffer, errors)
        )
        self.filled = True

    def close(self, number: int) -> None:
        """The open sub-window, and those before `number`, in which nothing was born, are over."""
        if self.filled:
            self.synopsis.update(self.open)
            self.open, self.filled = self.algebra.empty(self.synopsis.buffer), False
        self.synopsis.move(number)

    def prepare(self, at: np.ndarray, n1: np.ndarray, n2: np.ndarray) -> None:
        """All of this will be asked, maybe in parts: answer it together, each pair of windows once
        (CS4, CS5)."""
        known, first = np.unique(self._coded(at, n1, n2), return_index=True)
        self.scan = known, self.synopsis.probe(at[first], n1[first], n2[first])

    def _coded(self, at: np.ndarray, n1: np.ndarray, n2: np.ndarray) -> np.ndarray:
        most = self.synopsis.b + 1
        return ((at - self.synopsis.next) * most + n1) * most + n2

    def probe(self, *asked: np.ndarray) -> State:
        """Joins as of boundaries (numbers of sub-windows), by the lengths of their windows."""
        if self.scan is None:
            return self.synopsis.probe(*asked)
        known, state = self.scan
        return self.algebra.take(
            state, spread(np.searchsorted(known, self._coded(*asked)), self.synopsis.groups)
        )

    def counts(self) -> np.ndarray:
        """int64[groups]: of a COUNT(*), over all that is held."""
        held, how = self.synopsis, self.algebra
        all_of = np.array([held.b])
        whole = np.asarray(how.lower(held.probe(np.array([held.next]), all_of, all_of)))
        waiting: np.ndarray = np.asarray(how.lower(self.open)).reshape(-1, held.groups).sum(axis=0)
        return whole + waiting


@dataclass(slots=True)
class JoinFeed(RowFeed[JoinColumn]):
    """`times`: the columns of the results that hold their parts' timestamps; `mapped`: an
    expression over both streams' columns as one over the results'; `asked`: the kind of synopsis
    that is asked for."""

    shape: JoinShape = field(kw_only=True)
    times: tuple[int, int] = field(kw_only=True)
    mapped: Callable[[Expr], Expr] = field(kw_only=True)
    asked: str = "auto"

    def column(self, call: AggCall, algebra: Algebra, pairs: int) -> None:
        """Another aggregate; only before the first row."""
        synopsis, why = new_synopsis(algebra, self.shape, pairs, self.asked)
        here = replace(
            call,
            args=tuple(map(self.mapped, call.args)),
            filter=None if call.filter is None else self.mapped(call.filter),
        )
        column = JoinColumn(here, algebra, synopsis, why=why)
        column.grow(self.space.groups)
        self.columns[call] = column

    def lifting(self) -> Iterator[None]:
        if not self.pending:
            return
        rows = self._taken()
        code, born = self.space.codes(rows, self.errors), self.numbers(rows.ts)
        shape = self.shape
        k1, k2 = (self.numbers(numpy_values(rows.cols[t])) for t in self.times)
        k1, k2 = k1 + shape.b1 - shape.b, k2 + shape.b2 - shape.b
        for column in self.columns.values():
            column.grow(self.space.groups)
        cuts = np.flatnonzero(np.diff(born)) + 1
        for start, stop in zip([0, *cuts.tolist()], [*cuts.tolist(), len(rows)], strict=True):
            if self.open is None:
                self._begin(int(born[start]))
            yield from self._going_to(int(born[start]))
            some = slice(start, stop)
            self._lift(rows.slice(start, stop), k1[some], k2[some], code[some])

    def _lift(self, rows: Batch, k1: np.ndarray, k2: np.ndarray, code: np.ndarray) -> None:
        columns = list(self.columns.values())
        if not columns:
            return
        cell = columns[0].synopsis.cell(k1, k2, code)
        kept = np.flatnonzero(cell >= 0)
        if len(kept) < len(rows):
            rows, cell = rows.take(kept), cell[kept]
        if len(rows):
            for column in columns:
                column.take(rows, cell, self.errors)

    def _begin(self, number: int) -> None:
        self.open = self.began = number
        for column in self.columns.values():
            column.synopsis.begin(number)

    def _going_to(self, number: int) -> Iterator[None]:
        assert self.open is not None
        if number > self.open:
            for column in self.columns.values():
                column.close(number)
            self.updates += 1
            self.open = number
            yield

    def jump(self, number: int) -> None:
        """Sub-windows without results cost nothing."""
        self.close(number)

    def trim(self, number: int) -> None:
        """What has expired goes with the next update."""

    def present(self) -> np.ndarray:
        column = self.columns[ROWS]
        column.grow(self.space.groups)
        return column.counts() > 0


def new_feed(
    shape: JoinShape,
    keys: tuple[Expr, ...],
    times: tuple[int, int],
    mapped: Callable[[Expr], Expr],
    stream: str,
    asked: str,
) -> JoinFeed:
    """A feed without columns.  `keys` over both streams' columns."""
    space = KeySpace(stream, tuple(map(mapped, keys)))
    return JoinFeed(
        stream,
        space,
        shape.span,
        shape.phase,
        False,
        shape=shape,
        times=times,
        mapped=mapped,
        asked=asked,
    )
