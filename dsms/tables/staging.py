"""A change of many rows, made ready in pieces and seen at one instant.

What comes is put behind what a table shows: values of columns, lives, chains of indices, beyond its
last slot; versions that are born at FOREVER are found by no probe.  What keys become is put into
copies.  Between two pieces all read the table as it was.  `VersionedTable.apply` then shows all of
it in a step that moves no values.

Whatever else changes the table takes what is ready back (`VersionedTable.unstage`): nothing of it
was ever there.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from dsms.sql.catalog import TableDef
from dsms.sql.types import FOREVER
from dsms.state.columns import Column
from dsms.state.vec import Vec
from dsms.tables.index import AsOfIndex
from dsms.tables.keys import KeyCodes, Keys, KeyStage

STAGED = 1 << 15  # rows that are made ready in one go


@dataclass(slots=True, eq=False)
class Staged:
    """What is ready of a change.

    gone, new  slots of what it deletes, and the versions that it inserts
    keys       what becomes of these; None: there are none, or their codes are not known"""

    gone: np.ndarray
    new: np.ndarray
    keys: KeyStage | None = None


class Overtaken(Exception):
    """What was ready was taken back."""


class Staging(Protocol):
    """The table, as far as changes are made ready in it (`VersionedTable`)."""

    definition: TableDef
    next_version: int
    staged: Staged | None
    _columns: list[Column]
    _version: Vec
    _born: Vec
    _ended: Vec
    _indices: dict[tuple[int, ...], AsOfIndex]
    _keys: Keys | None

    def _slots(self, versions: np.ndarray) -> np.ndarray: ...

    def unstage(self) -> None: ...


def staging(
    table: Staging, deleted: np.ndarray, inserted: Sequence[pa.Array], codes: KeyCodes | None
) -> Generator[None, None, Staged]:
    """Make a change of these versions and rows ready.  Raises Overtaken where something else has
    changed the table between two pieces."""
    table.unstage()
    count = len(inserted[0]) if inserted else 0
    new = np.arange(table.next_version, table.next_version + count, dtype=np.int64)
    staged = table.staged = Staged(table._slots(deleted), new)
    for _ in _pieces(table, staged, inserted, codes):
        yield
        if table.staged is not staged:
            raise Overtaken
    return staged


def _pieces(
    table: Staging, staged: Staged, inserted: Sequence[pa.Array], codes: KeyCodes | None
) -> Generator[None, None, None]:
    count, first = len(staged.new), table._version.n
    for vec in (table._version, table._born, table._ended):
        vec.reserve(count)
        yield
    for start in range(0, count, STAGED):
        rows = slice(start, min(count, start + STAGED))
        places = slice(first + rows.start, first + rows.stop)
        table._version.data[places] = staged.new[rows]
        table._born.data[places] = table._ended.data[places] = FOREVER
        cols = [c.slice(start, STAGED) for c in inserted]
        for store, col in zip(table._columns, cols, strict=True):
            store.append(col)
        yield
    for key, index in list(table._indices.items()):
        for start in range(0, count, STAGED):
            if index.link.n != first + start:
                break  # it is behind: the next probe sees to it
            cols = [inserted[i].slice(start, STAGED) for i in key]
            index.extend(cols, min(STAGED, count - start))
            yield
    if table._keys is None or codes is None:
        return

    def leaving(start: int, stop: int) -> Sequence[pa.Array]:
        return [table._columns[i].gather(staged.gone[start:stop]) for i in table.definition.key]

    staged.keys = yield from table._keys.staging(codes, staged.new, leaving)
