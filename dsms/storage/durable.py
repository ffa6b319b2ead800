"""What an engine keeps on the disk, in one folder: journal, checkpoints and the sealed sub-windows
of its rings.

    FOLDER/manifest.json                 the checkpoints that count
    FOLDER/checkpoint-LSN.state          the whole state as of a record of the journal
    FOLDER/synced-LSN-NUMBER.log         which records are known to be on the disk
    FOLDER/streams/NAME/LSN.log          the stream's records from that number on
    FOLDER/streams/NAME/LSN-NUMBER.arrow a sealed sub-window
    FOLDER/changes/LSN-NUMBER.rows       a big change of a table (`dsms.storage.blobs`)

A closed sub-window of some size is written once, as an Arrow IPC file, and from then on mapped, not
held: a ring may be larger than memory.  Checkpoints refer to it instead of repeating it.  One that
will have left its ring by the next checkpoint, as things look, stays in memory: the journal has its
rows.  What looked so and has not left is sealed before the checkpoint is made.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from dsms.errors import DsmsError
from dsms.sql.types import Schema
from dsms.state.batch import Batch
from dsms.state.ring import Ring, SubWindow, batch_bytes
from dsms.storage.blobs import CHANGES, Blobs
from dsms.storage.checkpoints import Checkpoints
from dsms.storage.files import Files
from dsms.storage.journal import Journal, stream_of
from dsms.storage.packed import Packing
from dsms.storage.segments import load, seal

# bytes from which a sub-window gets a file of its own; smaller ones are part of checkpoints
SEALED = 1 << 16


@dataclass(slots=True)
class Durable:
    """schemas  of the streams, by key
    lost     sealed sub-windows that could not be read, and why, by stream
    packing  what waits to be written of a checkpoint
    room     bytes of the journal between two checkpoints; 0: nobody knows when there will be one
    """

    files: Files
    folder: str
    journal: Journal = field(init=False)
    checkpoints: Checkpoints = field(init=False)
    blobs: Blobs = field(init=False)
    schemas: dict[str, Schema] = field(default_factory=dict)
    least: int = SEALED
    room: int = 0
    lost: list[tuple[str, DsmsError]] = field(default_factory=list)
    packing: Packing = field(default_factory=Packing)
    # segments that the checkpoint being written refers to
    referred: set[str] = field(default_factory=set)
    background: Executor | None = None  # what seals; None: the thread that closes a sub-window
    # by the background, to be put in
    _sealed: deque[tuple[str, SubWindow, SubWindow]] = field(default_factory=deque)
    # segments that are being made, or wait to be put in
    _fresh: set[str] = field(default_factory=set)
    _removing: set[str] = field(default_factory=set)  # paths that the background is about to remove
    _unsynced: set[str] = field(default_factory=set)  # segments that may not be on the disk yet
    # what the background has to seal, by identity
    _waiting: dict[int, SubWindow] = field(default_factory=dict)
    # what is sealed before the next checkpoint, in the background; None: it has not begun
    _last: list[Future[None]] | None = None

    def __post_init__(self) -> None:
        self.files.make_folder(self.folder)
        self.journal = Journal(self.files, self.folder)
        self.checkpoints = Checkpoints(self.files, self.folder)
        self.blobs = Blobs(self.files, f"{self.folder}/{CHANGES}")

    def declare(self, stream: str, schema: Schema, policy: str) -> None:
        """A stream, and how durable it is."""
        self.schemas[stream] = schema
        self.journal.policies[stream] = policy

    def forget(self, stream: str) -> None:
        """The stream was dropped."""
        self.schemas.pop(stream, None)
        self.journal.forget(stream)

    def sealer(self, stream: str) -> Sealer:
        """`seal` for one stream's ring."""
        return Sealer(self, stream)

    # -- sub-windows -------------------------------------------------------------------------------

    def seal(self, stream: str, number: int, rows: Batch, stays: int) -> SubWindow:
        """The sub-window; mapped from a file of its own if it is large enough, its stream durable,
        and it won't have left before the next checkpoint: `stays` rows come before it does.  A disk
        that refuses leaves them in memory."""
        plain = SubWindow(number, rows)
        if not self._worth(stream, rows) or self._leaves(rows, stays):
            return plain
        if self.background is None:
            return self._seal(stream, plain)
        self._seal_later(stream, plain)
        return plain

    def _worth(self, stream: str, rows: Batch) -> bool:
        durable = self.journal.policies.get(stream) != "none"
        return durable and batch_bytes(rows) >= self.least and rows.exp is None

    def _leaves(self, rows: Batch, stays: int) -> bool:
        """Whether these rows leave before the next checkpoint, if rows come as they did."""
        if self.journal.muted:
            return False
        size = sum(col.nbytes for col in rows.cols) / len(rows)
        return self.journal.written + stays * size < self.room

    def _seal_later(self, stream: str, plain: SubWindow) -> Future[None]:
        assert self.background is not None
        self._waiting[id(plain)] = plain
        return self.background.submit(
            lambda: self._sealed.append((stream, plain, self._seal(stream, plain)))
        )

    def ready(self, rings: Mapping[str, Ring]) -> bool:
        """A checkpoint is to be made: have the background seal what was left in memory; whether it
        has, so that the checkpoint may begin."""
        if self.background is None:
            self.seal_all(rings)
            return True
        if self._last is None:
            self._last = [self._seal_later(*one) for one in self._left(rings)]
        return all(one.done() for one in self._last)

    def begun(self) -> None:
        """A checkpoint begins: what is sealed from now on is for the next one."""
        self._last = None

    def seal_all(self, rings: Mapping[str, Ring]) -> None:
        """Seal what was left in memory, now."""
        for stream, plain in self._left(rings):
            sealed = self._seal(stream, plain)
            rings[stream].replace(plain, sealed)
            self._fresh.discard(sealed.segment or "")

    def _left(self, rings: Mapping[str, Ring]) -> Iterator[tuple[str, SubWindow]]:
        """Large sub-windows in memory, youngest first: those stay longest."""
        for stream, ring in rings.items():
            for sub in [s for s in reversed(ring.closed) if s.segment is None]:
                if id(sub) not in self._waiting and self._worth(stream, sub.rows):
                    yield stream, sub

    def adopt(self, rings: Mapping[str, Ring]) -> None:
        """Put sub-windows that were sealed meanwhile in place of those in memory, where these still
        are."""
        while self._sealed:
            stream, plain, sealed = self._sealed.popleft()
            self._waiting.pop(id(plain), None)
            ring = rings.get(stream)
            if ring is not None and sealed.segment is not None:
                ring.replace(plain, sealed)
            self._fresh.discard(sealed.segment or "")

    def _seal(self, stream: str, plain: SubWindow) -> SubWindow:
        number, rows = plain.number, plain.rows
        folder = self.journal.place(stream)
        path, k = f"{folder}/{self.journal.lsn:020d}-{number}.arrow", 0
        while self.files.exists(path):
            k += 1
            path = f"{folder}/{self.journal.lsn:020d}-{number}-{k}.arrow"
        segment = path[len(self.folder) + 1 :]
        try:
            if self.background is not None:
                self._fresh.add(segment)
            self.files.make_folder(folder)
            seal(self.files, path, rows)
            self._unsynced.add(segment)
            return SubWindow(number, load(self.files, path, self.schemas[stream]), segment)
        except (DsmsError, KeyError):  # the disk refuses, or the stream is gone
            self._fresh.discard(segment)
            return plain

    def refer(self, obj: Any) -> Any:
        """What stands for an object in a checkpoint (see `dsms.storage.frozen`)."""
        if type(obj) is not SubWindow or obj.segment is None:
            return None
        self.referred.add(obj.segment)
        return ("segment", obj.segment, obj.number, self.schemas[_stream_of(obj.segment)])

    def resolve(self, reference: Any) -> SubWindow | None:
        """The sub-window that a checkpoint refers to; None, and a note in `lost`, if its file can't
        be read."""
        _, path, number, schema = reference
        try:
            return SubWindow(number, load(self.files, f"{self.folder}/{path}", schema, True), path)
        except DsmsError as error:
            self.lost.append((_stream_of(path), error))
            return None

    def commit(self, policy: str | None = None) -> None:
        """Bring logs (of streams of that durability) to the disk.  Any thread may call it."""
        self.journal.commit(policy)

    def sync_segments(self, needed: Collection[str]) -> None:
        """Bring these sealed sub-windows to the disk, before a checkpoint may refer to them: until
        then the logs have their rows."""
        todo = [
            s for s in needed if s in self._unsynced and self.files.exists(f"{self.folder}/{s}")
        ]
        for segment in todo:
            self.files.sync_contents(f"{self.folder}/{segment}")
        for folder in sorted({s.rpartition("/")[0] for s in todo}):
            self.files.sync_folder(f"{self.folder}/{folder}")
        self._unsynced.difference_update(todo)

    # -- files that are not needed -----------------------------------------------------------------

    def clean(self) -> None:
        """Remove what writes that did not finish have left; before anything is written."""
        found = [(self.folder, self.files.list(self.folder))]
        found += [(self.journal.place(s), self.journal.names(s)) for s in self.journal.streams()]
        for folder, names in found:
            for name in names:
                if name.endswith(".part"):
                    with suppress(DsmsError):  # it is no file
                        self.files.remove(f"{folder}/{name}")

    def sweep(self, live: Iterable[str]) -> None:
        """Remove what no checkpoint and no ring needs; many files take a while, so the background
        does, if there is one."""
        needed = self.checkpoints.segments() | set(live) | set(self._fresh)
        self.checkpoints.sweep()
        gone = []
        for stream in self.journal.streams():
            folder = self.journal.place(stream)
            paths = [f"{folder}/{n}" for n in self.journal.names(stream) if n.endswith(".arrow")]
            gone += [
                p
                for p in paths
                if p[len(self.folder) + 1 :] not in needed and p not in self._removing
            ]
        self._removing.update(gone)
        if self.background is not None and gone:
            self.background.submit(self._remove, gone)
        else:
            self._remove(gone)
        self.journal.trim(self.checkpoints.oldest, self.checkpoints.damaged())

    def _remove(self, paths: list[str]) -> None:
        for path in paths:
            with suppress(DsmsError):  # the next sweep finds it again
                self.files.remove(path)
                self._unsynced.discard(path[len(self.folder) + 1 :])
            self._removing.discard(path)

    def close(self) -> None:
        """Everything is on the disk; files are let go."""
        self.journal.close()


def _stream_of(segment: str) -> str:
    return stream_of(segment.split("/")[1])


@dataclass(frozen=True, slots=True)
class Sealer:
    """`Durable.seal` for one stream."""

    durable: Durable
    stream: str

    def __call__(self, number: int, rows: Batch, stays: int) -> SubWindow:
        return self.durable.seal(self.stream, number, rows, stays)
