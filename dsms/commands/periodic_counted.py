"""SLIDE that counts rows: whose rows, and which of them have come already."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dsms.running.runtime import Runtime
from dsms.sql import logical as lp
from dsms.sql.types import ALWAYS
from dsms.sql.window import Slide, WindowSpec
from dsms.state.batch import Batch

NO_LEAF = 1 << 30


def governing(plan: lp.Node, bound: lp.Output) -> int:
    """The stream leaf whose rows the SLIDE counts: that of the first window that says it."""
    first = next(w.spec for w in _as_bound(bound) if w.spec.slide is not None)
    return _leaf_of(plan, type(first), first.slide)


def _as_bound(node: lp.Node) -> Iterator[lp.Window]:
    """Its windows, in the order in which they were bound."""
    for child in lp.children(node):
        yield from _as_bound(child)
    if isinstance(node, lp.Window):
        yield node


def _leaf_of(node: lp.Node, kind: type[WindowSpec], slide: Slide | None) -> int:
    """The first leaf below a window of that kind with that SLIDE."""
    if isinstance(node, lp.Window) and type(node.spec) is kind and node.spec.slide == slide:
        return min(n.leaf for n in lp.leaves_of(node) if isinstance(n, lp.StreamScan))
    return min((_leaf_of(c, kind, slide) for c in lp.children(node)), default=NO_LEAF)


@dataclass(frozen=True, slots=True)
class Come:
    """Rows of a stream that its ring still has, before and after the clock of a query that begins.

    next  the arrival number of the first row after it;  earlier: int64[k], timestamps of those
          before"""

    next: int
    earlier: np.ndarray
    later: list[Batch]


def come(runtime: Runtime, stream: str, clock: int) -> Come:
    """What there is of the stream for a query that begins at that clock."""
    ring = runtime.rings.get(stream)
    earlier: list[np.ndarray] = [np.empty(0, np.int64)]
    later: list[Batch] = []
    for rows in () if ring is None else ring.rows(ALWAYS):
        stop = int(np.searchsorted(rows.ts, clock, side="right"))
        earlier.append(rows.ts[:stop])
        if stop < len(rows):
            later.append(rows.slice(stop, len(rows)))
    first = int(later[0].ids[0][0]) if later else runtime.inputs[stream].next_complete
    return Come(first, np.concatenate(earlier), later)
