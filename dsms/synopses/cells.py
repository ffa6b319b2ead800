"""What a synopsis is: cells of an algebra (`dsms.aggregates.parts.cells`), kept by sub-window and
put together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from dsms.aggregates.parts.cells import State
from dsms.aggregates.parts.fold import Folds

SynopsisKind = Literal[
    "basic", "interval", "landmark", "running", "basicintervaljoin", "intervaljoin", "runningjoin"
]

PART = 1 << 14  # groups that are put together, or answered, in one go


class Synopsis(Protocol):
    """Pre-aggregated intervals of a stream: cells of G groups per sub-window, sub-windows numbered
    from 0 upwards.

    Groups are numbered densely; their number may grow between calls (`grow`).  Sub-windows come in
    order, any number at once; they stay until `trim`.  So many boundaries, passed in one go, can be
    answered in one probe.
    """

    algebra: Folds
    kind: ClassVar[SynopsisKind]  # what SHOW WINDOWS and the rules of sharing call it
    groups: int
    first: int  # the oldest sub-window held
    next: int  # the number that the next sub-window will get

    def grow(self, groups: int) -> None:
        """There are `groups` groups from now on; the new ones were empty in all sub-windows so
        far."""
        ...

    def append(self, state: State, count: int) -> None:
        """The next `count` sub-windows: count * groups cells, sub-window by sub-window."""
        ...

    def trim(self, first: int) -> None:
        """Sub-windows before `first` are not asked for any more."""
        ...

    def probe(self, low: np.ndarray, high: np.ndarray) -> State:
        """For each span i the union of sub-windows low[i] <= k < high[i] (clipped to what is held;
        empty spans are allowed): len(low) * groups cells, span by span."""
        ...

    def probe_some(self, low: np.ndarray, high: np.ndarray, group: np.ndarray) -> State:
        """`probe`, of these groups alone: len(low) * len(group) cells."""
        ...

    def cells_of(self, number: int) -> tuple[np.ndarray, State]:
        """The groups that occur in a sub-window that is held, perhaps more, and their cells."""
        ...

    def cost(self, width: int) -> float:
        """Cells combined to answer one span of `width` sub-windows."""
        ...

    @property
    def nbytes(self) -> int: ...


@runtime_checkable
class InParts(Protocol):
    """A synopsis that can be asked for some of its groups at the cost of these."""

    def probe_part(self, low: np.ndarray, high: np.ndarray, first: int, stop: int) -> State:
        """`probe`, of the groups from `first` up to `stop`: len(low) * (stop - first) cells."""
        ...


@runtime_checkable
class InPieces(Protocol):
    """A synopsis to which a sub-window may come in pieces."""

    def appending(self, state: State, count: int) -> Iterator[None]:
        """`append`, a piece at a time; nobody may see it before the last."""
        ...


def appending(synopsis: Synopsis, state: State, count: int) -> Iterator[None]:
    """`append`, in pieces if it can."""
    if isinstance(synopsis, InPieces):
        yield from synopsis.appending(state, count)
    else:
        synopsis.append(state, count)


def some_cells(synopsis: Synopsis, low: np.ndarray, high: np.ndarray, group: np.ndarray) -> State:
    """`probe_some` of a synopsis that has nothing better."""
    at = np.arange(len(low))[:, None] * synopsis.groups + group
    return synopsis.algebra.take(synopsis.probe(low, high), at.ravel())


def all_cells(synopsis: Synopsis, number: int) -> tuple[np.ndarray, State]:
    """`cells_of` of such a one."""
    one = np.array([number])
    return np.arange(synopsis.groups), synopsis.probe(one, one + 1)
