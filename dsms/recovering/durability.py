"""What an engine writes down as it works: each of its inputs before it is applied, and each change
of the catalog."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dsms.errors import DsmsError
from dsms.intake.convert import Converted
from dsms.intake.shedding import Shed
from dsms.recovering.checkpointing import Checkpointer
from dsms.recovering.face import Recovered, Recovering
from dsms.running.runtime import Runtime
from dsms.running.writers import FramePart
from dsms.sql.types import ALWAYS
from dsms.storage import records
from dsms.storage.catalog import CatalogStore
from dsms.storage.durable import Durable
from dsms.storage.journal import ENGINE
from dsms.storage.working import AtWork

NEWEST = "newest"  # setting of the catalog: the number of its last change


@dataclass(slots=True)
class Durability:
    """The engine's hand on its data folder.

    unsaved  why the state could not be written down in the end
    at_work  where files are real
    """

    engine: Recovering
    durable: Durable
    catalog: CatalogStore
    checkpointer: Checkpointer = field(init=False)
    recovered: Recovered = field(default_factory=Recovered)
    unsaved: DsmsError | None = None
    at_work: AtWork | None = None

    def __post_init__(self) -> None:
        self.checkpointer = Checkpointer(self.engine, self.durable, self.catalog, self)

    def rows(
        self,
        stream: str,
        rows: Converted,
        now: int | None,
        part: FramePart | None,
        shed: Shed | None = None,
    ) -> None:
        """Rows that are about to be applied.  Raises, with nothing done, DS55x."""
        journal = self.durable.journal
        if journal.muted or journal.policies.get(stream) == "none":
            return
        client, seq, done, last = (
            (part.client, part.seq, part.done, part.last) if part else (None, None, 0, True)
        )
        position = part.position if part else None
        refusals = tuple(rows.refusals)
        record = records.StreamRows(
            rows.columns, now, rows.kept, client, seq, done, last, refusals, shed, position
        )
        journal.append(stream, records.ROWS, records.encode(record))
        self.begun(journal.lsn)
        self._commit(stream)

    def group(
        self, stream: str, rows: Converted, now: int | None, parts: Sequence[FramePart]
    ) -> None:
        """Rows of several whole frames, in one record: all come back or none.  As `rows`."""
        journal = self.durable.journal
        if journal.muted or journal.policies.get(stream) == "none":
            return
        known = tuple((p.client, p.seq, p.done) for p in parts)
        self._append(stream, records.GROUP, records.StreamGroup(rows.columns, now, known))

    def late(self, source: str, stream: str, columns: Any, now: int | None) -> None:
        """Late rows of `source` that go to another stream: written down unless they come back with
        `source`'s own."""
        if self.durable.journal.policies.get(source) == "none":
            self._append(stream, records.LATE, records.Late(tuple(columns), now))

    def heartbeat(self, stream: str, ts: int) -> None:
        self._append(stream, records.HEARTBEAT, records.Heartbeat(ts))

    def punctuation(
        self, stream: str, columns: tuple[int, ...], values: tuple[Any, ...], upto: int
    ) -> None:
        self._append(stream, records.PUNCTUATION, records.Punctuation(columns, values, upto))

    def ended(self, stream: str) -> None:
        self._append(stream, records.ENDED, records.Ended())

    def moved(self, stream: str, upto: int) -> bool:
        """An idle stream moves on with the others, which depends on the time of the day.  One that
        takes no records stays where it is: the error belongs to that stream, not to the statement
        that moved it."""
        return self._could_append(stream, records.MOVED, records.Moved(upto))

    def advanced(self, now: int) -> bool:
        """The system time, where a stream is stamped by it or may go idle: what it brought about
        stays so.  Where it can't be written down it stands still, which `SHOW STREAMS` tells, and
        rows come all the same."""
        inputs = self.engine.runtime.inputs.values()
        matters = any(s.by_system_time for s in inputs)
        return not matters or self._could_append(ENGINE, records.ADVANCE, records.Advance(now))

    def store(self, write: Callable[[CatalogStore], None], kind: str, body: bytes) -> None:
        """A declaration or a change of a table, in one transaction with its place among the
        rows."""
        if self.durable.journal.muted:
            return
        if kind in ("statement", "of_user") and (reached := _reached(self.engine.runtime)):
            user, sql = json.loads(body) if kind == "of_user" else (None, body.decode())
            whose = [] if user is None else [user]
            kind, body = "reached", json.dumps([reached, sql, *whose]).encode()
        with self.catalog.transaction():
            write(self.catalog)
            self.catalog.note(self.durable.journal.lsn + 1, kind, body)
            self.catalog.set(NEWEST, self.durable.journal.lsn + 1)
        self.checkpointer.changed = self.durable.journal.number()
        self.checkpointer.statements += 1

    def _append(self, stream: str, kind: int, record: Any) -> None:
        self.durable.journal.append(stream, kind, records.encode(record))
        self.begun(self.durable.journal.lsn)
        self._commit(stream)

    def begun(self, lsn: int) -> None:
        """A record is written down and about to be applied."""
        if self.at_work is not None:
            self.at_work.record(lsn)

    def _could_append(self, stream: str, kind: int, record: Any) -> bool:
        try:
            self._append(stream, kind, record)
        except DsmsError:
            return False
        return True

    def _commit(self, stream: str) -> None:
        journal = self.durable.journal
        if journal.policies.get(stream) == "sync" and not self.engine.runtime.settings.group_commit:
            journal.commit("sync")
            journal.check(stream)

    def settled(self) -> None:
        """Between two inputs: nothing is under way, and it may be time for a checkpoint."""
        if self.at_work is not None and not self.durable.journal.muted:
            self.at_work.done()
        self.checkpointer.settled()

    def checkpoint(self) -> bool:
        """See `Checkpointer.make`."""
        return self.checkpointer.make()

    def figures(self) -> dict[str, int]:
        """Counters for metrics."""
        journal, checkpoints = self.durable.journal, self.checkpointer
        return {
            "journal_bytes": journal.written,
            "journal_records": journal.lsn,
            "checkpoints": checkpoints.made,
            "checkpoint_bytes": checkpoints.size,
            "checkpoint_failures": checkpoints.failures,
            "streams_refusing": len(journal.failures),
        }

    def close(self) -> None:
        """The engine stops: the next start has nothing to repeat."""
        if self.checkpointer.saving is not None:
            self.checkpointer.finished()
        journal = self.durable.journal
        wanted = (
            journal.written
            or self.checkpointer.statements
            or "none" in journal.policies.values()
            or self.engine.runtime.recents.changed
        )
        if wanted and not self.durable.lost and not self.checkpoint():
            # (after it a sealed sub-window that is lost could not be put back any more)
            self.unsaved = self.checkpointer.trouble
        self.durable.close()
        self.catalog.close()
        if self.at_work is not None:
            self.at_work.close()


def _reached(runtime: Runtime) -> dict[str, int]:
    """What has left the rings.  When rows of archived streams land, or elastic queries have read
    them, is no function of the inputs, and what a ring still has is what a query begins with: so
    that is written down with the statement.  A ring that the statement itself has made is among
    them; done again it begins at the same instant, and is passed over before."""
    return {key: ring.reach for key, ring in runtime.rings.items() if ring.reach > ALWAYS}
