"""Checkpoints: when the whole state of an engine is written down, what of it, and what is not
needed any more then."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from dsms.errors import DsmsError
from dsms.recovering.face import Recovering
from dsms.running.runtime import Runtime
from dsms.running.stretches import Rest, Stretches
from dsms.storage.blobs import KIND, Blob, blob_of
from dsms.storage.catalog import CatalogStore
from dsms.storage.checkpoints import Checkpoint, path_of
from dsms.storage.durable import Durable
from dsms.storage.frozen import COPIED, copy
from dsms.storage.packed import Packing

LOG = logging.getLogger(__name__)
STATEMENTS = 2000  # of which a checkpoint saves the repetition


@dataclass(slots=True)
class Checkpointer:
    """The checkpoints of an engine.

    saver       who moves idle streams, of which the state knows as that
    statements  since the last one
    changed     the number of the catalog's last change
    size        bytes of the last one
    trouble     why the last one could not be made; `failures` of them in a row
    made        how many
    copying     one for which the state is being copied: meanwhile that does not change
    saving      one that is being written: its bytes
    """

    engine: Recovering
    durable: Durable
    catalog: CatalogStore
    saver: object
    statements: int = 0
    changed: int = 0
    size: int = 0
    trouble: DsmsError | None = None
    failures: int = 0
    made: int = 0
    copying: Stretches[Packing] | None = None
    saving: Future[int] | None = None

    def settled(self) -> None:
        """Between two inputs: make a checkpoint if it is time."""
        if self.copying is not None:
            return
        if self.saving is not None:
            if self.saving.done():
                self.finished()
        elif self.engine.runtime.beginnings or self.engine.runtime.holds.held:
            pass  # soon
        elif self.due() and self.durable.ready(self.engine.runtime.rings):
            self.make(wait=False)

    def due(self) -> bool:
        """Whether a restart would repeat more than it would read, if that is to be looked at."""
        journal, least = self.durable.journal, self.engine.runtime.settings.checkpoint_bytes
        # after a failure it is tried again when there is more to save
        patience = 1 << min(self.failures, 4)
        much = (
            journal.written >= patience * max(least, self.size)
            or self.statements >= patience * STATEMENTS
        )
        return bool(least) and much and not journal.muted

    def make(self, wait: bool = True) -> bool:
        """Write the whole state down; False, and why in `trouble`, if that can't be done (all stays
        as it is).

        Unless it should `wait`, the state is copied in stretches (`copy_on`), where calls of the
        engine may be left midway, and the files are written in the background, if there is one;
        `settled` sees to the rest.  What is kept of streams by default is written down only where
        it should wait: at the end, and when somebody asks for it."""
        self.whole()
        if self.saving is not None:
            self.finished()
        later = self.durable.background is not None and not wait
        if wait:
            self.durable.seal_all(self.engine.runtime.rings)
        self.durable.begun()
        over = self.engine.runtime.settings.pause
        if later and over is not None:
            settle(self.engine.runtime)
            most = self._room()
            self.copying = Stretches(lambda rest: self.copy(most, rest), over)
            self.copy_on()
            return True
        try:
            packing = self.copy(self._room() if later else 0, recents=wait)
        except DsmsError as error:
            return self._failed(error)
        return self._save(packing, later)

    def _room(self) -> int:
        """Bytes of state that may be there twice while a checkpoint is written."""
        memory = self.engine.runtime.settings.memory
        return COPIED if memory is None else memory.bound(COPIED)

    def copy_on(self) -> bool:
        """Copy on for a stretch; False if there is nothing to be copied any more."""
        if self.copying is None:
            return False
        if not self.copying.step():
            return True
        copying, self.copying = self.copying, None
        try:
            packing = copying.result()
        except DsmsError as error:
            self._failed(error)
        else:
            self._save(packing, later=True)
        return False

    def whole(self) -> None:
        """The state is about to change: what is left is copied now."""
        if self.copying is not None:
            with suppress(DsmsError):  # `copy_on` tells it
                self.copying.result()
            self.copy_on()

    def _save(self, packing: Packing, later: bool) -> bool:
        """Write what was copied.  Nothing has happened since."""
        durable, journal = self.durable, self.durable.journal
        try:
            self.statements, segments = 0, tuple(sorted(durable.referred))
            tails, damaged, lsn = dict(journal.tails), dict(journal.damaged), journal.lsn
            made = Checkpoint(path_of(lsn), lsn, segments, tails, damaged, self.changed)
            journal.rotate()
        except DsmsError as error:
            return self._failed(error)

        def save() -> int:
            durable.sync_segments(segments)
            return durable.checkpoints.save(made, packing())

        if later and durable.background is not None:
            self.saving = durable.background.submit(save)
            return True
        self.saving = Future()
        try:
            self.saving.set_result(save())
        except DsmsError as error:
            self.saving.set_exception(error)
        return self.finished()

    def finished(self) -> bool:
        """The checkpoint is written, or was not: forget what is not needed any more."""
        assert self.saving is not None
        saving, self.saving, self.durable.packing = self.saving, None, Packing()
        try:
            self.size = saving.result()
            self.catalog.set("checkpointed", True)
            self.catalog.trim(self.durable.checkpoints.oldest)
            self.sweep()
        except DsmsError as error:
            return self._failed(error)
        self.trouble, self.failures = None, 0
        self.made += 1
        return True

    def _failed(self, error: DsmsError) -> bool:
        self.durable.packing = Packing()
        self.trouble = error
        self.failures += 1
        if self.failures == 1:
            LOG.warning(
                "no checkpoint could be made, the journal grows until one can: %s", error.message
            )
        return False

    def sweep(self) -> None:
        """Remove the files that neither a checkpoint nor a ring needs."""
        rings = self.engine.runtime.rings.values()
        self.durable.sweep(
            {s.segment for ring in rings for s in ring.closed if s.segment is not None}
        )
        self.sweep_blobs()

    def sweep_blobs(self) -> None:
        """Remove the files of changes of tables that no record names, or names any more."""
        self.durable.blobs.sweep({blob.name for blob in self.named_blobs()})

    def named_blobs(self) -> list[Blob]:
        """Those files that some record names."""
        return [blob_of(body) for body in self.catalog.bodies(KIND)]

    def copy(self, most: int = 0, rest: Rest = lambda: None, recents: bool = False) -> Packing:
        """The state as it is now, `most` bytes of it to be compressed later; `rest` is called
        between two stretches."""
        engine = self.engine
        settle(engine.runtime)
        self.durable.referred.clear()
        with _unread(engine.runtime):
            state: dict[str, Any] = {
                "world": engine.runtime,
                "now": engine.now,
                "writers": engine.writers,
                "recents": engine.runtime.recents.streams if recents else {},
            }
            packing = self.durable.packing = Packing()
            copy(state, self.outside(), self.durable.refer, most, rest, packing)
        engine.runtime.recents.changed &= not recents
        return packing

    def outside(self) -> dict[str, Any]:
        """What the state stands on, by the names that it is called by there."""
        runtime = self.engine.runtime
        outside = {
            "saver": self.saver,
            "settings": runtime.settings,
            "adhoc": runtime.adhoc,
            "adhocs": runtime.adhocs,
            "transactions": runtime.transactions,
            "dispatch": runtime.dispatch,
            "parts": runtime.parts,
            "answers": runtime.answers,
            "indices": runtime.indices,
            "feeding": runtime.feeding,
            "recents": runtime.recents,
            "holds": runtime.holds,
            "promising": runtime.promising,
            "engine": runtime.handle,
            "durable": self.durable,
        }
        return (
            outside
            if runtime.settings.timer is None
            else outside | {"timer": runtime.settings.timer}
        )


def settle(runtime: Runtime) -> None:
    """Finish what is under way, so that state holds no half-done step."""
    for table in runtime.tables.values():
        table.unstage()
    runtime.begin_all()
    runtime.run(None)
    runtime.follow()
    runtime.dispatch.all_told()
    while runtime.backlog.going is not None:
        runtime.backlog.work()


@contextmanager
def _unread(runtime: Runtime) -> Iterator[None]:
    """The runtime without those who read results."""
    readers = {key: query.readers for key, query in runtime.queries.items()}
    try:
        for query in runtime.queries.values():
            query.readers = []
        yield
    finally:
        for key, found in readers.items():
            runtime.queries[key].readers = found
