"""Nothing acknowledged is lost: what an engine writes down as it works, and how it goes on after a crash.

Every input (rows, heartbeats, ends, moves of idle streams, statements, changes of tables) is written to the journal
before it is applied; now and then the whole state is written as a checkpoint.  Recovery reads the newest checkpoint and
applies the records behind it again.  What the engine does is a function of its inputs in their order, so it ends in the
state that it was in, and result rows have the numbers that they had.  A restart costs the state (window contents, not
history) and the records since the checkpoint, of which there are no more than about as many bytes.

(The thesis leaves recovery open, §9.2; write-ahead journal and checkpoints are as in any database.)
"""

from __future__ import annotations

import heapq
import json
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from dsms.archiving.opening import reopen as reopen_archives
from dsms.commands import change
from dsms.errors import DsmsError, UsageError
from dsms.intake.convert import Converted
from dsms.running.runtime import Runtime
from dsms.running.transactions import Transactions
from dsms.running.writers import Part, Writers
from dsms.sql import ast
from dsms.sql.catalog import Catalog
from dsms.sql.parser import parse_one
from dsms.sql.types import ALWAYS
from dsms.storage import records
from dsms.storage.catalog import CatalogStore, unpacked
from dsms.storage.chains import Damage
from dsms.storage.checkpoints import KEPT, MANIFEST, Checkpoint, path_of
from dsms.storage.durable import Durable
from dsms.storage.files import Files, RealFiles
from dsms.storage.frozen import freeze, thaw
from dsms.storage.journal import ENGINE, STREAMS, Entry
from dsms.storage.restore import restore
from dsms.storage.synced import CATALOG
from dsms.storage.working import AtWork

LOG = logging.getLogger(__name__)
NEWEST = "newest"  # setting of the catalog: the number of its last change
STATEMENTS = 2000  # of which a checkpoint saves the repetition


@dataclass(slots=True)
class Recovered:
    """How an engine came back.

    checkpoint  the record that it started from (0: none)
    records     applied again behind it, of which `rows` rows of streams
    notes       what is missing or was mended, in sentences
    """

    checkpoint: int = 0
    records: int = 0
    rows: int = 0
    notes: list[str] = field(default_factory=list)


class Recovering(Protocol):
    """The engine, as far as it is written down and brought back (`dsms.engine.Engine`)."""

    runtime: Runtime
    now: int | None
    writers: Writers
    saver: Saver | None

    def take(self, key: str, rows: Converted, now: int | None = None, part: Part | None = None) -> object: ...

    def take_late(self, key: str, columns: Any, now: int | None) -> None: ...

    def heartbeat_of(self, key: str, ts: int) -> None: ...

    def end_of(self, key: str) -> None: ...

    def advance(self, now: int) -> None: ...

    def declare(self, statement: ast.Statement, sql: str) -> object:
        """One statement, and its text."""
        ...


@dataclass(slots=True)
class Saver:
    """The engine's hand on its data folder."""

    engine: Recovering
    durable: Durable
    catalog: CatalogStore
    recovered: Recovered = field(default_factory=Recovered)
    statements: int = 0
    changed: int = 0  # the number of the catalog's last change
    older: str | None = None  # why an older state was the start
    unsaved: DsmsError | None = None  # why the state could not be written down in the end
    size: int = 0  # bytes of the last checkpoint
    trouble: DsmsError | None = None  # why the last checkpoint could not be made
    failures: int = 0  # in a row
    made: int = 0  # checkpoints
    at_work: AtWork | None = None  # where files are real
    saving: Future[int] | None = None  # a checkpoint that is being written: its bytes

    # -- what happens, written down -----------------------------------------------------------------------------------

    def rows(self, stream: str, rows: Converted, now: int | None, part: Part | None) -> None:
        """Rows that are about to be applied.  Raises, with nothing done, DS55x."""
        journal = self.durable.journal
        if journal.muted or journal.policies.get(stream) == "none":
            return
        client, seq, done, last = (part.client, part.seq, part.done, part.last) if part else (None, None, 0, True)
        record = records.Rows(rows.columns, now, rows.kept, client, seq, done, last, tuple(rows.refusals))
        journal.append(stream, records.ROWS, records.encode(record))
        self._begun(journal.lsn)
        self._commit(stream)

    def late(self, source: str, stream: str, columns: Any, now: int | None) -> None:
        """Late rows of `source` that go to another stream: written down unless they come back with `source`'s own."""
        if self.durable.journal.policies.get(source) == "none":
            self._append(stream, records.LATE, records.Late(tuple(columns), now))

    def heartbeat(self, stream: str, ts: int) -> None:
        self._append(stream, records.HEARTBEAT, records.Heartbeat(ts))

    def ended(self, stream: str) -> None:
        self._append(stream, records.ENDED, records.Ended())

    def moved(self, stream: str, upto: int) -> bool:
        """An idle stream moves on with the others, which depends on the time of the day.  One that takes no records
        stays where it is: that is its own trouble, not that of who made it move."""
        return self._could_append(stream, records.MOVED, records.Moved(upto))

    def advanced(self, now: int) -> bool:
        """The system time, where a stream is stamped by it or may go idle: what it brought about stays so.  Where it
        can't be written down it stands still, which `SHOW STREAMS` tells, and rows come all the same."""
        inputs = self.engine.runtime.inputs.values()
        matters = any(s.by_system_time for s in inputs)
        return not matters or self._could_append(ENGINE, records.ADVANCE, records.Advance(now))

    def store(self, write: Callable[[CatalogStore], None], kind: str, body: bytes) -> None:
        """A declaration or a change of a table, in one transaction with its place among the rows."""
        if self.durable.journal.muted:
            return
        if kind == "statement" and (reached := _reached(self.engine.runtime)):
            kind, body = "reached", json.dumps([reached, body.decode()]).encode()
        with self.catalog.transaction():
            write(self.catalog)
            self.catalog.note(self.durable.journal.lsn + 1, kind, body)
            self.catalog.set(NEWEST, self.durable.journal.lsn + 1)
        self.changed = self.durable.journal.number()
        self.statements += 1

    def _append(self, stream: str, kind: int, record: Any) -> None:
        self.durable.journal.append(stream, kind, records.encode(record))
        self._begun(self.durable.journal.lsn)
        self._commit(stream)

    def _begun(self, lsn: int) -> None:
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

    # -- checkpoints --------------------------------------------------------------------------------------------------

    def settled(self) -> None:
        """Between two inputs: make a checkpoint if it is time."""
        if self.at_work is not None and not self.durable.journal.muted:
            self.at_work.done()
        if self.saving is not None:
            if self.saving.done():
                self._finished()
        elif self.engine.runtime.settings.checkpoint_bytes and self.due():
            self.checkpoint(wait=False)

    def due(self) -> bool:
        """Whether a restart would repeat more than it would read."""
        journal, least = self.durable.journal, self.engine.runtime.settings.checkpoint_bytes
        patience = 1 << min(self.failures, 4)  # after a failure it is tried again when there is more to save
        much = journal.written >= patience * max(least, self.size) or self.statements >= patience * STATEMENTS
        return much and not journal.muted

    def checkpoint(self, wait: bool = True) -> bool:
        """Write the whole state down; False, and why in `trouble`, if that can't be done (all stays as it is).

        Unless it should `wait`, the files are written in the background, if there is one, and `settled` sees to the
        rest."""
        if self.saving is not None:
            self._finished()
        durable = self.durable
        try:
            journal = durable.journal
            lsn, state = journal.lsn, self._state()
            self.statements, segments = 0, tuple(sorted(durable.referred))
            made = Checkpoint(path_of(lsn), lsn, segments, dict(journal.tails), dict(journal.damaged),
                              self.changed)  # fmt: skip
            journal.rotate()
        except DsmsError as error:
            return self._failed(error)

        def save() -> int:
            durable.sync_segments(segments)
            durable.checkpoints.save(made, state)
            return sum(len(b) for b in state)

        if durable.background is not None and not wait:
            self.saving = durable.background.submit(save)
            return True
        self.saving = Future()
        try:
            self.saving.set_result(save())
        except DsmsError as error:
            self.saving.set_exception(error)
        return self._finished()

    def _finished(self) -> bool:
        """The checkpoint is written, or was not: forget what is not needed any more."""
        assert self.saving is not None
        saving, self.saving = self.saving, None
        try:
            self.size = saving.result()
            self.catalog.set("checkpointed", True)
            self.catalog.trim(self.durable.checkpoints.oldest)
            self.durable.sweep(_segments(self.engine.runtime))
        except DsmsError as error:
            return self._failed(error)
        self.trouble, self.failures = None, 0
        self.made += 1
        return True

    def _failed(self, error: DsmsError) -> bool:
        self.trouble = error
        self.failures += 1
        if self.failures == 1:
            LOG.warning("no checkpoint could be made, the journal grows until one can: %s", error.message)
        return False

    def figures(self) -> dict[str, int]:
        """Counters for metrics."""
        return {"journal_bytes": self.durable.journal.written, "journal_records": self.durable.journal.lsn,
                "checkpoints": self.made, "checkpoint_bytes": self.size, "checkpoint_failures": self.failures,
                "streams_refusing": len(self.durable.journal.failures)}  # fmt: skip

    def _state(self) -> list[Any]:
        engine = self.engine
        settle(engine.runtime)
        self.durable.referred.clear()
        with _alone(engine.runtime):
            state = {"world": engine.runtime, "now": engine.now, "writers": engine.writers}
            return freeze(state, self._outside(), self.durable.refer)

    def _outside(self) -> dict[str, Any]:
        runtime = self.engine.runtime
        outside = {"settings": runtime.settings, "adhoc": runtime.adhoc, "adhocs": runtime.adhocs, "saver": self,
                   "engine": runtime.handle,
                   "durable": self.durable}  # fmt: skip
        return outside if runtime.settings.timer is None else outside | {"timer": runtime.settings.timer}

    def close(self) -> None:
        """The engine stops: the next start has nothing to repeat."""
        if self.saving is not None:
            self._finished()
        wanted = self.durable.journal.written or self.statements or "none" in self.durable.journal.policies.values()
        if wanted and not self.durable.lost and not self.checkpoint():
            self.unsaved = self.trouble  # (after it a sealed sub-window that is lost could not be put back any more)
        self.durable.close()
        self.catalog.close()
        if self.at_work is not None:
            self.at_work.close()

    # -- coming back --------------------------------------------------------------------------------------------------

    def recover(self) -> None:
        """Read the newest checkpoint that can be read, and apply what came after it."""
        journal = self.durable.journal
        journal.muted = True
        checkpoint = self._start()
        self._check_catalog(checkpoint)
        start = checkpoint.lsn
        self.engine.runtime.clocks.still = True
        noted = [Entry(lsn, ENGINE, -1, (kind, body)) for lsn, kind, body in self.catalog.noted(start)]
        journal.lsn, gaps = start, list[str]()
        written = journal.entries(start, checkpoint.tails, checkpoint.damaged)
        self._lose()
        for entry in heapq.merge(written, noted, key=lambda e: e.lsn):
            if entry.lsn > journal.lsn + 1:
                gaps.append(_gap(journal.lsn, entry.lsn))
            journal.lsn = max(journal.lsn, entry.lsn)
            journal.written += len(entry.payload) if entry.kind >= 0 else 0
            self.statements += entry.kind < 0
            if (entry.kind < 0 or journal.follows(entry)) and not self._is_set_aside(entry):
                self._begun(entry.lsn)
                self._again(entry)
        if self.at_work is not None:
            self.at_work.done()
            self.recovered.notes += [f"set aside: the server died twice over {w}" for w in self.at_work.twice]
        journal.settle()
        journal.muted = False
        self.recovered.checkpoint = start
        accepted = self._accept()
        told = [
            *self._fallen_back(),
            *journal.notes,
            *(f"stream {s} takes no rows: {e.message}" for s, e in journal.failures.items()),
        ]
        self.recovered.notes += told or ([] if journal.gone else gaps)
        self.engine.runtime.clocks.moved, self.engine.runtime.clocks.still = self.moved, False
        self.durable.clean()
        if accepted or (not self.durable.checkpoints.kept and self.engine.runtime.catalog.names()):
            self.checkpoint()
        elif self.durable.checkpoints.kept:
            self.durable.sweep(_segments(self.engine.runtime))

    def _is_set_aside(self, entry: Entry) -> bool:
        """A record over which the engine has died twice is left out; what it holds is kept in a file."""
        if self.at_work is None or not self.at_work.records or entry.lsn not in self.at_work.records:
            return False
        folder = Path(self.at_work.folder) / "set-aside"
        folder.mkdir(mode=0o700, exist_ok=True)
        kind, payload = entry.kind, entry.payload
        if kind < 0:
            kind, payload = payload
        path = folder / f"record-{entry.lsn}.bin"
        path.write_bytes(bytes(payload))
        self.recovered.notes.append(f"record {entry.lsn} (of {entry.stream}, kind {kind}) is kept in {path}")
        LOG.error("record %d is left out, the server died over it twice; it is kept in %s", entry.lsn, path)
        return True

    def _check_catalog(self, checkpoint: Checkpoint) -> None:
        """The catalog has all changes that are known of."""
        newest = self.catalog.setting(NEWEST, 0)
        assert isinstance(newest, int)
        known = max(checkpoint.catalog, self.durable.journal.synced.read(CATALOG).get(ENGINE, 0))
        if newest < known:
            what = f"{self.catalog.path} lacks declarations or changes of tables, up to number {known}"
            why = "it is an older copy, or the file beside it with -wal in its name is missing or cut short"
            raise UsageError("DS545", f"{what}: {why}", hint="restore both from a backup")
        self.changed = newest

    def _lose(self) -> None:
        """Sealed sub-windows of the checkpoint could not be read: their streams take no rows."""
        for stream, error in self.durable.lost:
            self.durable.journal.damage(stream, Damage(error.code, error.message))

    def _accept(self) -> bool:
        """Streams that are to go on without what they have lost do; whether any had."""
        journal, durable = self.durable.journal, self.durable
        asked = [Catalog.key(s) for s in self.engine.runtime.settings.accept_loss]
        for stream in asked:
            if stream in journal.damaged:
                journal.notes.append(f"stream {stream} goes on, as was asked, without what it has lost: "
                                     f"{journal.damaged[stream].message}")  # fmt: skip
            elif stream not in self.engine.runtime.inputs and stream not in self.engine.runtime.archivings:
                journal.notes.append(f"there is no stream {stream} whose loss could be accepted")
        durable.lost = [(s, e) for s, e in durable.lost if s not in asked]
        done = [s for s in asked if journal.accept(s)]
        return bool(done)

    def _start(self) -> Checkpoint:
        """Put the newest state that can be read in place."""
        checkpoints = self.durable.checkpoints
        checkpoints.load()
        trouble: DsmsError | None = None
        for checkpoint, data in checkpoints.states():
            try:
                self._restore(checkpoint, data)
            except DsmsError as error:
                trouble = trouble or error
                continue
            if trouble is not None:
                self.older = f"the newest checkpoint could not be read, the one before it was: {trouble.message}"
            return checkpoint
        if trouble is not None:
            if trouble.code == "DS546" or len(checkpoints.kept) >= KEPT or self.catalog.setting("restored"):
                raise _no_state(trouble)
            self.durable.lost.clear()
            self.older = f"the only checkpoint could not be read, all is done again: {trouble.message}"
        elif self.catalog.setting("checkpointed"):
            raise UsageError("DS545", f"{self.durable.folder}/manifest.json is missing, and with it the state",
                             hint="restore the data directory from a backup, or start with an empty one")  # fmt: skip
        if not self.catalog.noted(0):
            older = bool(self.catalog.objects())
            restore(self.catalog, self.engine.runtime, self.engine.declare)
            if older:
                self.catalog.set("restored", True)
        return Checkpoint("", 0)

    def _fallen_back(self) -> Iterator[str]:
        """That an older state was the start, and what that means."""
        if self.older is None:
            return
        yield self.older
        lost = sorted(s for s, policy in self.durable.journal.policies.items() if policy == "none")
        if lost:
            yield f"later rows of streams of durability none are lost: {', '.join(lost)}"

    def _restore(self, checkpoint: Checkpoint, data: Any) -> None:
        if isinstance(data, DsmsError):
            raise data
        engine, durable = self.engine, self.durable
        durable.lost.clear()
        path = f"{durable.folder}/{checkpoint.path}"
        state = thaw(data, self._outside(), durable.resolve, path)
        runtime, runtime_before = state["world"], engine.runtime
        runtime.handle = runtime_before.handle
        runtime.handle.runtime = runtime
        engine.runtime, engine.now, engine.writers = runtime, state["now"], state["writers"]
        runtime.transactions = Transactions(runtime.rings, runtime.settings)
        reopen_archives(runtime)
        for key, definition in runtime.catalog.streams.items():
            durable.declare(key, definition.schema, definition.durability)
        self.size = len(data)
        self._without_lost(runtime)

    def _without_lost(self, runtime: Runtime) -> None:
        for stream, _ in self.durable.lost:
            ring = runtime.rings[stream]
            while None in ring.closed:  # and what is older: a window has no holes
                gone = ring.closed.popleft()
                ring.count -= 0 if gone is None else len(gone.rows)
            first = ring.oldest
            ring.reach = max(ring.reach, min(first - 1, ring.newest))
            ring.count = sum(len(s.rows) for s in ring.closed) + sum(map(len, ring.buffer))

    def _again(self, entry: Entry) -> None:
        """Apply a record.  What failed then fails now, and is told to nobody."""
        engine = self.engine
        self.recovered.records += 1
        if engine.runtime.settings.recovering is not None:
            engine.runtime.settings.recovering(self.recovered.records)
        try:
            if entry.kind < 0:
                self._statement(*entry.payload)
                return
            match records.decode(entry.kind, entry.payload):
                case records.Rows() as r:
                    self.recovered.rows += len(r.columns[0])
                    part = None if r.client is None or r.seq is None else Part(r.client, r.seq, r.done, r.last)
                    engine.take(entry.stream, Converted(r.columns, len(r.columns[0]), r.kept, r.refusals), r.now, part)
                case records.Late() as r:
                    engine.take_late(entry.stream, r.columns, r.now)
                case records.Heartbeat(ts):
                    engine.heartbeat_of(entry.stream, ts)
                case records.Moved(upto):
                    engine.runtime.inputs[entry.stream].move(upto)
                    engine.runtime.pump_all()
                case records.Ended():
                    engine.end_of(entry.stream)
                case records.Advance(now):
                    engine.advance(now)
        except Exception as error:  # also a fault of ours: it must not keep all else from coming back
            what = error.message if isinstance(error, DsmsError) else repr(error)
            self.recovered.notes.append(f"record {entry.lsn} of the journal failed again: {what}")

    def _statement(self, kind: str, body: bytes) -> None:
        match kind:
            case "statement":
                self._declare(body.decode())
            case "reached":
                reached, sql = json.loads(body)
                for key, upto in reached.items():
                    self.engine.runtime.rings[key].let_go(upto)
                self._declare(sql)
            case _:
                key, made = unpacked(body)
                change.apply(self.engine.runtime, key, made)

    def _declare(self, sql: str) -> None:
        self.engine.declare(parse_one(sql), sql)


def open_data(engine: Recovering, data: str, files: Files | None = None) -> Saver:
    """Open a data folder, or make it, for an engine that has nothing yet, and bring back what is in it.

    Raises DS54x (the catalog or the state can't be read, or is in use), DS55x (files)."""
    Path(data).mkdir(mode=0o700, parents=True, exist_ok=True)
    path, files = Path(data) / "catalog.sqlite", files or RealFiles()
    if not path.exists() and _used(files, f"{data}/journal"):
        raise UsageError("DS545", f"{path} is missing, and with it the declarations",
                         hint="restore the data directory from a backup, or start with an empty one")  # fmt: skip
    catalog = CatalogStore(path)
    try:
        durable = Durable(files, f"{data}/journal")
        engine.runtime.durable = durable
        saver = engine.saver = Saver(engine, durable, catalog)
        if files is None or isinstance(files, RealFiles):
            saver.at_work = engine.runtime.settings.at_work = AtWork(data)
            saver.at_work.open()
        saver.recover()
    except BaseException:
        engine.saver = None
        catalog.close()
        raise
    return saver


def _used(files: Files, folder: str) -> bool:
    """Whether some engine has written there."""
    return any(files.exists(f"{folder}/{name}") for name in (MANIFEST, STREAMS))


def _reached(runtime: Runtime) -> dict[str, int]:
    """What has left the rings.  When rows of archived streams land, or elastic queries have read them, is no function
    of the inputs, and what a ring still has is what a query begins with: so that is written down with the statement."""
    return {key: ring.reach for key, ring in runtime.rings.items() if ring.reach > ALWAYS}


def settle(runtime: Runtime) -> None:
    """Finish what is under way, so that state holds no half-done step."""
    runtime.run(None)
    while runtime.backlog.going is not None:
        runtime.backlog.work()


def _no_state(trouble: DsmsError) -> DsmsError:
    """Why no state can be read."""
    if trouble.code in ("DS545", "DS546"):
        return trouble
    return UsageError("DS545", f"no checkpoint can be read: {trouble.message}",
                      hint="restore the data directory from a backup")  # fmt: skip


def _gap(last: int, found: int) -> str:
    count = found - last - 1
    what = "1 record is" if count == 1 else f"{count} records are"
    why = "not yet on the disk when the power failed, or in a file that is lost"
    return f"{what} missing before number {found}: {why}"


def _segments(runtime: Runtime) -> set[str]:
    return {s.segment for ring in runtime.rings.values() for s in ring.closed if s.segment is not None}


@contextmanager
def _alone(runtime: Runtime) -> Iterator[None]:
    """The runtime without those who look at it: readers of results, one-time queries."""
    readers = {key: query.readers for key, query in runtime.queries.items()}
    transactions = runtime.transactions
    try:
        runtime.transactions = None  # type: ignore[assignment]
        for query in runtime.queries.values():
            query.readers = []
        yield
    finally:
        runtime.transactions = transactions
        for key, found in readers.items():
            runtime.queries[key].readers = found
