"""A retroactive table as an input of a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dsms.sql.types import ALWAYS
from dsms.state.batch import Batch
from dsms.tables.versioned import VersionedTable


@dataclass(slots=True)
class TableSource:
    """Its rows as of registration at ALWAYS, then its changes."""

    table: VersionedTable
    since: int
    cursor: int | None = None

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        if self.cursor is None:
            self.cursor = self.table.cursor(self.since)
            return self.table.state(self.since)
        batch, self.cursor = self.table.changes(self.cursor, upto)
        return batch

    def live(self) -> int:
        return len(self.table)

    def nbytes(self) -> int:
        return 0

    def next_due(self) -> int:
        return ALWAYS if self.cursor is None else self.table.next_change(self.cursor)
