"""ROWS n SLIDE m: time is the number of rows.

Where all windows of a query count rows of its one stream, a row's arrival number stands for its
instant: [ROWS n] is then [RANGE n], boundaries are every m, and everything that works for time
works here.  What is reported outside is the timestamp of the row that completed a boundary.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from typing import assert_never

import numpy as np

from dsms.plan.windows import by_clock
from dsms.running.sources import StreamSource
from dsms.sql import logical as lp
from dsms.sql.window import (
    First,
    Landmark,
    Lasting,
    Latest,
    Now,
    Partitioned,
    Rows,
    Session,
    Throttled,
    Time,
    Unbounded,
    When,
    WindowSpec,
)
from dsms.state.batch import Batch


def is_counted(output: lp.Output) -> bool:
    """Whether the SLIDE counts rows."""
    return output.slide is not None and output.slide.by_rows


def fits(node: lp.Node) -> bool:
    """Whether arrival numbers can stand for instants everywhere: one stream, no tables, no windows
    in time."""
    found = list(lp.nodes_of(node))
    streams = {n.stream.home for n in found if isinstance(n, lp.StreamScan)}
    clocks = any(by_clock(n.spec) for n in found if isinstance(n, lp.Window))
    tables = any(isinstance(n, lp.TableScan | lp.JoinNRR) for n in found)
    return len(streams) == 1 and not tables and not clocks


def over_numbers(output: lp.Output) -> lp.Output:
    """The plan with arrival numbers for instants."""
    return replace(output, child=_numbered(output.child))


def _numbered(node: lp.Node) -> lp.Node:
    node = lp.with_children(node, tuple(map(_numbered, lp.children(node))))
    if isinstance(node, lp.Window) and isinstance(node.child, lp.StreamScan):
        return replace(node, spec=_over_numbers(node.spec))
    return node


def _over_numbers(spec: WindowSpec) -> WindowSpec:
    match spec:
        case Rows():
            slide = None if spec.slide is None else replace(spec.slide, by_rows=False)
            return Time(
                spec.count, spec.until, internal=spec.internal, slide=slide, archive=spec.archive
            )
        case Time() | Now() | Partitioned() | Unbounded() | Landmark() | Latest():
            return spec
        case Session() | When() | Lasting() | Throttled() | First():
            return spec
        case _:
            assert_never(spec)


@dataclass(slots=True)
class Numbers:
    """Which row has which timestamp, as far as it may be asked again."""

    first: int  # arrival number of the next row that is not known here
    starts: list[int] = field(default_factory=list)
    known: list[np.ndarray] = field(default_factory=list)

    def see(self, rows: Batch) -> None:
        """Rows that the stream has handed on, in order."""
        number = int(rows.ids[0][0])
        if number + len(rows) > self.first:
            self.starts.append(number)
            self.known.append(rows.ts)
            self.first = number + len(rows)

    def ts(self, number: int) -> int:
        """The timestamp of a row."""
        k = bisect_right(self.starts, number) - 1
        return int(self.known[k][number - self.starts[k]])

    def between(self, first: int, end: int) -> np.ndarray:
        """The timestamps of the rows numbered from `first` to before `end`."""
        parts = [
            ts[max(0, first - start) : max(0, end - start)]
            for start, ts in zip(self.starts, self.known, strict=True)
            if start < end and first < start + len(ts)
        ]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def upto(self, instant: int) -> int:
        """The number of the last row known with a timestamp <= `instant`."""
        for start, ts in zip(reversed(self.starts), reversed(self.known), strict=True):
            if ts[0] <= instant:
                return start + int(np.searchsorted(ts, instant, side="right")) - 1
        return (self.starts[0] if self.starts else self.first) - 1

    def forget(self, number: int) -> None:
        """Rows before `number` will not be asked for."""
        k = bisect_right(self.starts, number) - 1
        if k > 0:
            del self.starts[:k], self.known[:k]


@dataclass(slots=True)
class CountedSource:
    """Rows of the stream, stamped with their numbers."""

    source: StreamSource
    numbers: Numbers

    def push(self, rows: Batch) -> None:
        if len(rows):
            self.numbers.see(rows)
            self.source.push(Batch(rows.ids[0], rows.exp, rows.sign, rows.ids, rows.cols))
