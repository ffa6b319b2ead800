"""New rows of which some have keys that are there already: INSERT ... ON CONFLICT, and rows that
are sent to a table.

A row that takes the place of another is a deletion and an insertion at one instant, as UPDATE
makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import pyarrow as pa

from dsms.sql.types import ALWAYS
from dsms.state.columns import all_joined
from dsms.tables.changes import Change
from dsms.tables.keys import DEAD, TAKEN, KeyCodes
from dsms.tables.versioned import VersionedTable

MET = 1 << 15  # rows that are looked at in one go
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


def meeting_in_pieces(
    table: VersionedTable, columns: Columns, known: KeyCodes | None = None, last: bool = False
) -> Generator[None, None, Meeting]:
    """`meeting`, piece by piece; valid as long as the table does not change."""
    assert table.keys is not None
    codes = known
    if codes is None:
        codes = yield from table.keys.coding(columns)
    repeated = yield from table.keys.repeating(codes.codes, last)
    met: list[Meeting] = []
    for start in range(0, max(len(codes.codes), 1), MET):
        part = slice(start, start + MET)
        piece = KeyCodes(codes.codes[part], codes.gone, codes.purged)
        found = standing(table, tuple(c.slice(start, MET) for c in columns), piece)
        met.append(replace(found, repeated=repeated[part]))
        yield
    return Meeting(*(np.concatenate([getattr(m, f.name) for m in met]) for f in fields(Meeting)))


def meeting(
    table: VersionedTable, columns: Columns, known: KeyCodes | None = None, last: bool = False
) -> Meeting:
    """How new rows (all columns) of a table with a primary key meet what is there.

    known  what `coding` gave, if it was asked
    last   of new rows with one key the last one stands, else the first"""
    assert table.keys is not None
    found = standing(table, columns, known)
    return replace(found, repeated=table.keys.repeats(found.codes, last))


def standing(table: VersionedTable, columns: Columns, known: KeyCodes | None = None) -> Meeting:
    """How each of the rows meets what is there; nothing is said of one another."""
    assert table.keys is not None
    codes, state, versions = table.keys.standing(columns, known)
    taken = state == TAKEN
    if (versions[taken] < 0).any():  # a state of earlier versions does not say
        current = table.state()
        known_codes, *_ = table.keys.standing(current.cols)
        table.keys.version.view[known_codes] = current.ids[0]
        versions = table.keys.version.view[codes]
    return Meeting(codes, versions, taken, state == DEAD, np.zeros(len(codes), np.bool_))


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


def merged_in_pieces(
    table: VersionedTable, columns: Columns, met: Meeting, which: np.ndarray, merge: Merge
) -> Generator[None, None, list[Merged]]:
    """`merged` of MET rows after the other, which meet nothing in common."""
    out: list[Merged] = []
    for start in range(0, max(len(which), 1), MET):
        part = slice(start, start + MET)
        some = Meeting(*(getattr(met, f.name)[part] for f in fields(Meeting)))
        cols = tuple(c.slice(start, MET) for c in columns)
        out.append(merged(table, cols, some, which[part], ALWAYS, merge))
        yield
    return out


def joined(parts: Sequence[Merged]) -> Merged:
    """All of them as one: versions that end in their order."""
    changes = [p.change for p in parts]
    deleted = np.concatenate([c.deleted for c in changes])
    order = np.argsort(deleted, kind="stable")
    made = all_joined([c.inserted for c in changes])
    rows = sum(c.rows for c in changes)
    change = Change(changes[0].at, deleted[order], made, changes[0].first_version, rows)
    come = np.concatenate([p.codes.codes for p in parts])
    gone = np.concatenate([p.codes.gone for p in parts])[order]
    codes = KeyCodes(come, gone, parts[0].codes.purged)
    return Merged(change, codes, sum(p.inserted for p in parts), sum(p.updated for p in parts))


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
