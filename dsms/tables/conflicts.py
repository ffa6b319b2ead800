"""New rows of which some have keys that are there already: INSERT ... ON CONFLICT, and rows that
are sent to a table.

A row that takes the place of another is a deletion and an insertion at one instant, as UPDATE
makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dsms.state.columns import all_joined
from dsms.tables.changes import Change
from dsms.tables.keys import DEAD, TAKEN, KeyCodes
from dsms.tables.versioned import VersionedTable

Columns = tuple[pa.Array, ...]
# rows that are there and new ones of their keys -> what becomes of them, and which are to (a mask)
Merge = Callable[[Columns, Columns], tuple[Columns, np.ndarray]]


@dataclass(frozen=True, slots=True)
class Meeting:
    """New rows beside what is there: of each its code, the version that has its key, and masks.

    taken     some row has its key
    dead      its key may not come again
    repeated  another of the new rows has its key, and stands for both"""

    codes: np.ndarray
    versions: np.ndarray
    taken: np.ndarray
    dead: np.ndarray
    repeated: np.ndarray


@dataclass(frozen=True, slots=True)
class Merged:
    """The change, the codes of its keys, and of the new rows how many were inserted and how many
    took the place of others."""

    change: Change
    codes: KeyCodes
    inserted: int
    updated: int


def meeting(
    table: VersionedTable, columns: Columns, known: KeyCodes | None = None, last: bool = False
) -> Meeting:
    """How new rows (all columns) of a table with a primary key meet what is there.

    known  what `coding` gave, if it was asked
    last   of new rows with one key the last one stands, else the first"""
    assert table.keys is not None
    codes, state, versions = table.keys.standing(columns, known)
    taken = state == TAKEN
    if (versions[taken] < 0).any():  # a state of earlier versions does not say
        current = table.state()
        known_codes, *_ = table.keys.standing(current.cols)
        table.keys.version.view[known_codes] = current.ids[0]
        versions = table.keys.version.view[codes]
    return Meeting(codes, versions, taken, state == DEAD, table.keys.repeats(codes, last))


def merged(
    table: VersionedTable, columns: Columns, met: Meeting, which: np.ndarray, at: int, merge: Merge
) -> Merged:
    """The change in which the new rows `which` (a mask; of one key at most one) are inserted, or
    become what `merge` says of them and the rows whose keys they have.  Raises DS520."""
    new, old = np.flatnonzero(which & ~met.taken), np.flatnonzero(which & met.taken)
    before = table.gather(met.versions[old])
    after, wanted = merge(before, _taken(columns, old))
    if not wanted.all():
        old, after = old[wanted], tuple(c.filter(pa.array(wanted)) for c in after)
    made = all_joined([_taken(columns, new), after])
    order = np.argsort(np.concatenate([new, old]), kind="stable")
    made, places = _taken(made, order), np.sort(np.concatenate([new, old]))
    table.check_nulls(made)
    gone = np.argsort(met.versions[old], kind="stable")
    assert table.keys is not None
    change = Change(at, met.versions[old][gone], made, table.next_version, len(places))
    codes = KeyCodes(met.codes[places], met.codes[old][gone], table.keys.purged)
    return Merged(change, codes, len(new), len(old))


def replacing(before: Columns, after: Columns) -> tuple[Columns, np.ndarray]:
    """The new rows take the places of the others as they are."""
    return after, np.ones(len(after[0]), np.bool_)


def keeping(before: Columns, after: Columns) -> tuple[Columns, np.ndarray]:
    """What is there stays."""
    return after, np.zeros(len(after[0]), np.bool_)


def _taken(columns: Sequence[pa.Array], places: np.ndarray) -> Columns:
    if len(places) == len(columns[0]) and (places == np.arange(len(places))).all():
        return tuple(columns)
    index = pa.array(places)
    return tuple(c.take(index) for c in columns)
