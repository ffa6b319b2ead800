"""The current answer of a query, kept up from its changes in columns.

Two forms, told apart by what comes:

bag      rows that enter and leave: each distinct row with how often it is there.  Changes are
         gathered, and taken in when they are as many as the rows of the answer, or when it is asked
         for: rows and changes are grouped by their values (hashed by Arrow), signs summed up, and
         what sums up to 0 is gone.  Cost: O(1) a change, amortized, and O(answer) each time that it
         is asked for.
answer   rows of a periodic query (sign 0): those of the newest boundary stand for all before.

Equal are values as in GROUP BY: NULL is like NULL, NaN like NaN, -0.0 like 0.0.  A query that only
adds (ISTREAM, one without windows) has ever more rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dsms.forms.bags import summed
from dsms.tabular.names import unique
from dsms.tabular.tables import Tabular, to_edge
from dsms_client.changes import Changes
from dsms_client.columns import rows_to_batch
from dsms_client.results import Row

FEW = 4096  # changes that are gathered, however small the answer is


class View(Tabular):
    """The answer as of `at` (µs; None: before any clock), from the changes that were added."""

    def __init__(self, columns: tuple[str, ...], types: tuple[str, ...]) -> None:
        self.columns, self.types = columns, types
        self.at: int | None = None
        none = to_edge(rows_to_batch([], list(unique(columns)), types), types)
        self._rows, self._counts = none, np.empty(0, np.int64)
        self._new: list[tuple[pa.Table, np.ndarray]] = []  # rows, and by how much they are more
        self._gathered = 0
        self._more = False  # of a snapshot is still to come

    def add(self, changes: Changes) -> None:
        """Take changes in, in their order."""
        if changes.kind == "progress":
            self._replace(self._rows.slice(0, 0))
        elif changes.kind == "snapshot":
            self._answer(changes.data.table(), self._more)
        elif len(changes) and not changes.sign[-1]:
            first = _first_of_last(changes.ats)
            self._answer(changes.data.table().slice(first), not first and changes.at == self.at)
        elif len(changes):
            self._gather(changes.data.table(), changes.sign.astype(np.int64))
        self.at = changes.at if changes.at is not None else self.at
        self._more = changes.more

    def table(self) -> pa.Table:
        """The rows of the answer; in its order if the query is periodic, else in any."""
        self._take_in()
        if (self._counts == 1).all():
            return self._rows
        return self._rows.take(np.repeat(np.arange(len(self._counts)), self._counts))

    arrow = table

    @property
    def rows(self) -> list[Row]:
        """As tuples of wire values (`dsms_client.results`)."""
        return self.head(None)

    def head(self, count: int | None) -> list[Row]:
        """The first `count` of `rows`."""
        from dsms_client.columns import batch_to_rows

        return batch_to_rows(self.table().slice(0, count))

    def __len__(self) -> int:
        self._take_in()
        return int(self._counts.sum())

    # -- whole answers -----------------------------------------------------------------------------

    def _answer(self, rows: pa.Table, goes_on: bool) -> None:
        """Rows of one answer replace the one before, or go on with it."""
        self._replace(pa.concat_tables([self.table(), rows]) if goes_on else rows)

    def _replace(self, rows: pa.Table) -> None:
        self._rows, self._counts = rows, np.ones(rows.num_rows, np.int64)
        self._new, self._gathered = [], 0

    # -- bags --------------------------------------------------------------------------------------

    def _gather(self, rows: pa.Table, counts: np.ndarray) -> None:
        self._new.append((rows, counts))
        self._gathered += len(counts)
        if self._gathered > max(FEW, len(self._counts)):
            self._take_in()

    def _take_in(self) -> None:
        if not self._new:
            return
        rows = pa.concat_tables([self._rows, *(r for r, _ in self._new)]).combine_chunks()
        counts = np.concatenate([self._counts, *(c for _, c in self._new)])
        first, sums = summed(rows.columns, counts)
        left = sums > 0
        self._rows, self._counts = rows.take(first[left]), sums[left]
        self._new, self._gathered = [], 0


def _first_of_last(ats: pa.Array) -> int:
    """Where the rows of the last instant begin."""
    at = ats.fill_null(np.iinfo(np.int64).min).to_numpy()
    return int(np.searchsorted(at, at[-1], "left"))
