"""Changes of a table, found at once."""

from __future__ import annotations

from collections.abc import Mapping

from dsms.operators.pieces import finished
from dsms.tables.changes import Change
from dsms.tables.matching import Evaluator, matching
from dsms.tables.versioned import VersionedTable


def updating(
    table: VersionedTable, new: Mapping[int, Evaluator], predicate: Evaluator | None, at: int
) -> Change:
    """UPDATE of the rows for which the predicate is true (None: all)."""
    return table.updating(finished(matching(table, predicate, new)), at)


def deleting(table: VersionedTable, predicate: Evaluator | None, at: int) -> Change:
    """DELETE of them."""
    return table.deleting(finished(matching(table, predicate, None)), at)
