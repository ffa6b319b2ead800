"""Leaves of one-time queries that are given by values and counts of a column
(`dsms.oneshot.tally`), from counts of sub-windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dsms.oneshot.reads import Read
from dsms.oneshot.tally import Tally
from dsms.plan import windows
from dsms.state.batch import Batch
from dsms.state.counts import WindowCounts, counted_anew
from dsms.state.ring import SubWindow, between


@dataclass(frozen=True, slots=True)
class TallyRead:
    """How such a leaf is read.

    give_up  told of a bug of ours in the counts: then all rows are counted"""

    tally: Tally
    counts: WindowCounts
    give_up: Callable[[WindowCounts, Exception], None]

    def rows(self, read: Read, subs: Sequence[SubWindow], at: int) -> Batch:
        """A row for each value in the leaf's window as of `at`."""
        bounds = _bounds(read, at)
        try:
            values, counts = self.counts.counted(subs, *bounds)
        except Exception as fault:
            self.give_up(self.counts, fault)
            values, counts = counted_anew(self.counts.column, subs, *bounds)
        ids = np.arange(len(counts), dtype=np.int64)
        cols = [
            self._column(what, values, counts, field.type.arrow)
            for what, field in zip(self.tally.shown, self.tally.schema, strict=True)
        ]
        return Batch(np.full(len(counts), at, np.int64), None, None, (ids,), tuple(cols))

    def _column(
        self, what: str, values: pa.Array, counts: np.ndarray, type_: pa.DataType
    ) -> pa.Array:
        match what:
            case "value":
                return values if values.type == type_ else pa.array([], type_)
            case "count":
                return pa.array(counts)
            case "count of not NULL":
                return pa.array(np.where(np.asarray(values.is_null()), 0, counts))
            case _:
                return pa.nulls(len(counts), type_)

    def merged(self, read: Read, subs: Sequence[SubWindow], at: int) -> tuple[int, int]:
        """How many of those sub-windows are merged, and how many rows of others are read."""
        since, upto = _bounds(read, at)
        try:
            whole = [self.counts.whole(sub, since, upto) for sub in subs]
        except Exception as fault:
            self.give_up(self.counts, fault)
            whole = [False] * len(subs)
        rest = (s for s, w in zip(subs, whole, strict=True) if not w)
        return sum(whole), sum(len(between(s.rows, since, upto)) for s in rest)


Tallies = Mapping[int, TallyRead]


def _bounds(read: Read, at: int) -> tuple[int, int]:
    return read.since(at), windows.ends(read.spec, read.upto(at))
