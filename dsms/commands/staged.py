"""A change of many rows of a table: checked and made ready in pieces, written into a file of its
own, and shown at one instant, when a small record that names the file is written down.

Before that record there is no change: what fails, is cancelled or dies leaves nothing but a file
that nobody names, which is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from dsms.api import Cancel
from dsms.commands.slices import Apart, Pieces
from dsms.commands.store import Store
from dsms.running.first_answers import arriving
from dsms.running.runtime import Runtime
from dsms.storage.blobs import KIND, Blob, record_of
from dsms.storage.durable import Durable
from dsms.tables.changes import Change
from dsms.tables.keys import KeyCodes
from dsms.tables.staging import Overtaken, Staged, staging
from dsms.tables.versioned import VersionedTable

MANY = 1 << 15  # rows that come or go from which a change is made ready in pieces,
BYTES = 4 << 20  # ... or bytes of those that come


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a statement does to a table, checked: versions that end, and rows that come.

    rows   that it speaks of;  told: in words
    codes  of the keys of both, if there are any"""

    deleted: np.ndarray
    inserted: tuple[pa.Array, ...]
    rows: int
    told: str
    codes: KeyCodes | None = None


def are_many(columns: Sequence[pa.Array], gone: int = 0) -> bool:
    """Whether that many rows, of which `gone` take the place of others, are a big change."""
    come = len(columns[0]) if columns else 0
    return max(come, gone) > MANY or sum(c.nbytes for c in columns) > BYTES


@dataclass(slots=True)
class Commit:
    """A change on its way into the table of that key.

    unchanged  whether what it stands on is as it was
    instant    when it happens; raises DS523
    cancel     the last time it is asked is when all is ready"""

    runtime: Runtime
    store: Store
    key: str
    prepared: Prepared
    unchanged: Callable[[], bool]
    instant: Callable[[], int]
    cancel: Cancel | None
    blob: Blob | None = None
    made: Change = field(init=False)
    staged: Staged | None = None

    def pieces(self) -> Pieces[bool]:
        """Do it all, up to where queries react; False, and nothing is done, if it was overtaken."""
        if not self.unchanged():
            return False  # not even the table need be there
        durable, table = self.runtime.durable, self.runtime.tables[self.key]
        name = None if durable is None else durable.blobs.reserve(durable.journal.lsn)
        done = False
        try:
            if durable is not None and name is not None:
                writing = Apart(partial(self._written, durable, name))
                yield writing
                self.blob = writing.result()
            done = yield from self._shown(table)
            return done
        finally:
            if self.staged is not None and table.staged is self.staged:
                table.unstage()
            if durable is not None and name is not None:
                durable.blobs.fresh.discard(name) if done else durable.blobs.discard(name)

    def _written(self, durable: Durable, name: str) -> Blob:
        return durable.blobs.write(name, self.prepared.deleted, self.prepared.inserted)

    def _shown(self, table: VersionedTable) -> Pieces[bool]:
        change = self.prepared
        try:
            pieces = staging(table, change.deleted, change.inserted, change.codes)
            for _ in pieces:
                yield None
        except Overtaken:
            return False
        self.staged = table.staged
        yield from self._begun()
        if not self.unchanged():
            return False
        at = self.instant()
        self.made = Change(at, change.deleted, change.inserted, table.next_version, change.rows)
        if self.cancel is not None:
            self.cancel.check()  # the last time: what is stored is applied
        self._keep()
        table.apply(self.made, change.codes, self.staged)
        return True

    def _begun(self) -> Iterator[None]:
        """Queries on the way to their first answers read the table as it was."""
        queries = self.runtime.queries
        names = [n for n in self.runtime.beginnings if self.key in queries[n].tables]
        yield from arriving(self.runtime, names)

    def _keep(self) -> None:
        if self.blob is None:
            return
        self.store(lambda s: None, KIND, record_of(self.key, self.made, self.blob))
        assert self.runtime.durable is not None
        self.runtime.durable.journal.written += self.blob.bytes
