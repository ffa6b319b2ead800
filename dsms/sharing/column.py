"""A column: one aggregate of a feed, lifted into cells of groups and kept in a synopsis."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from dsms.aggregates.parts.additive import Additive
from dsms.aggregates.parts.cells import Algebra, CellRows, State
from dsms.operators.expressions import ErrorCounter, compile_expr, compile_predicate
from dsms.sharing.key_space import Exprs
from dsms.sharing.search import Peaks, Search
from dsms.sharing.window_sums import WindowSums
from dsms.sql.expr import AggCall
from dsms.sql.types import ALWAYS
from dsms.state.batch import Batch
from dsms.state.columns import numpy_true
from dsms.synopses.cells import InParts, Synopsis, SynopsisKind, appending


class Held(Protocol):
    """What synopses of streams and of joins have in common."""

    kind: ClassVar[SynopsisKind]
    groups: int
    first: int
    next: int

    @property
    def nbytes(self) -> int: ...


S = TypeVar("S", bound=Held)


@dataclass(slots=True)
class FeedColumn(ABC, Generic[S]):
    """Of any feed.  `open`: cells of the sub-window that fills now."""

    call: AggCall
    algebra: Algebra
    synopsis: S
    open: State = None
    why: str = ""  # this synopsis was chosen
    # of other aggregates that need the same data
    readers: dict[AggCall, Algebra] = field(default_factory=dict)
    args: Exprs = field(init=False)
    passes: Callable[..., pa.BooleanArray] | None = field(init=False)

    def __post_init__(self) -> None:
        self.args = [compile_expr(a) for a in self.call.args]
        self.passes = None if self.call.filter is None else compile_predicate(self.call.filter)

    def lift(
        self, rows: Batch, ts: np.ndarray, cell: np.ndarray, cells: int, errors: ErrorCounter
    ) -> State:
        """Cells of the rows."""
        n = len(rows)
        if self.passes is not None:
            kept = np.flatnonzero(numpy_true(self.passes(rows.cols, n, errors)))
            if len(kept) < n:
                rows, ts, cell, n = rows.take(kept), ts[kept], cell[kept], len(kept)
        arguments = tuple(a(rows.cols, n, errors) for a in self.args)
        return self.algebra.lift(CellRows(cell, ts, rows.ids[0], arguments), cells)

    @abstractmethod
    def grow(self, groups: int) -> None:
        """There are more groups now."""

    @abstractmethod
    def probe(self, *asked: np.ndarray) -> State:
        """Cells of what is asked for, as `Group.asks` says it."""

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


@dataclass(slots=True)
class AggregateColumn(FeedColumn[Synopsis]):
    """Of a stream's feed.  `base`: the sub-window that its synopsis calls 0."""

    base: int = 0
    whole_from: int = ALWAYS  # sub-windows before this one miss rows
    # so many queries that read it, and the longest reach of their windows
    chosen_for: tuple[int, int] = (0, 0)
    # (width, reach) of windows: how many read them
    widths: dict[tuple[int, int], int] = field(default_factory=dict)
    # collective indices, by the aggregates that they are over
    searches: dict[AggCall, Search] = field(default_factory=dict)
    peaks: Peaks | None = None
    sums: WindowSums = field(default_factory=WindowSums)

    def __post_init__(self) -> None:
        FeedColumn.__post_init__(self)
        self.open = self.algebra.empty(self.synopsis.groups)

    def __getstate__(self) -> dict[str, Any]:
        """Without what is made anew of the synopsis."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "sums"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Folders of earlier versions lack what has been added since."""
        for f in fields(self):
            if f.name in state:
                setattr(self, f.name, state[f.name])
            elif f.default_factory is not MISSING:
                setattr(self, f.name, f.default_factory())
            elif f.default is not MISSING:
                setattr(self, f.name, f.default)

    def grow(self, groups: int) -> None:
        if groups > self.synopsis.groups:
            more = self.algebra.empty(groups - self.synopsis.groups)
            self.open = self.algebra.concat([self.open, more])
            self.synopsis.grow(groups)

    def adding(self, state: State, count: int) -> Iterator[None]:
        """Cells of the open sub-window and of `count` - 1 after it, of which the last stays open;
        a piece at a time."""
        groups = self.synopsis.groups
        if count == 1:
            self.open = self.algebra.combine(self.open, state)
            return
        first = self.algebra.combine(self.open, self.algebra.take(state, np.arange(groups)))
        middle = self.algebra.take(state, np.arange(groups, (count - 1) * groups))
        over = self.algebra.concat([first, middle]) if count > 2 else first
        yield from appending(self.synopsis, self.algebra.close(over), count - 1)
        self.open = self.algebra.take(state, np.arange((count - 1) * groups, count * groups))

    def skipping(self, count: int) -> Iterator[None]:
        """The open sub-window and `count` - 1 empty ones are over; a piece at a time."""
        groups = self.synopsis.groups
        empty = self.algebra.empty(groups * (count - 1)) if count > 1 else None
        over = self.open if empty is None else self.algebra.concat([self.open, empty])
        yield from appending(self.synopsis, self.algebra.close(over), count)
        self.open = self.algebra.empty(groups)

    @property
    def in_parts(self) -> bool:
        """Whether some groups can be probed at the cost of these."""
        return isinstance(self.synopsis, InParts)

    def probe_part(self, low: np.ndarray, high: np.ndarray, first: int, stop: int) -> State:
        """`probe`, of the groups from `first` up to `stop`, where it is `in_parts`."""
        assert isinstance(self.synopsis, InParts)
        return self.synopsis.probe_part(low - self.base, high - self.base, first, stop)

    def probe(self, *asked: np.ndarray) -> State:
        """Unions of sub-windows low <= k < high (stream numbering)."""
        low, high = asked
        return self.synopsis.probe(low - self.base, high - self.base)

    def probe_some(self, low: np.ndarray, high: np.ndarray, group: np.ndarray) -> State:
        """`probe`, of these groups alone."""
        return self.synopsis.probe_some(low - self.base, high - self.base, group)

    def fits(self, low: int, high: int) -> bool:
        """Whether no sum over these sub-windows can overflow."""
        if not isinstance(self.algebra, Additive):
            return False
        if self.peaks is None:
            self.peaks = Peaks()
        self.peaks.bring(self, high)
        return self.peaks.fit(low)

    @property
    def nbytes(self) -> int:
        own = self.synopsis.nbytes + self.algebra.nbytes(self.open)
        return own + self.sums.nbytes + sum(s.nbytes for s in self.searches.values())

    @property
    def first_held(self) -> int:
        """The first sub-window that is held."""
        return self.base + self.synopsis.first

    @property
    def first_complete(self) -> int:
        """The first sub-window that is held and misses no row; ALWAYS: all that ever were."""
        held = self.synopsis.first
        return max(self.whole_from, self.base + held if held > 0 else ALWAYS)
