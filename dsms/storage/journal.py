"""The journal: every input of an engine, written down before it is applied, one log of checksummed
records per stream.

Records of all streams are numbered by one counter (lsn), so several logs read together give back
the order in which the engine took them; those of one stream are a chain (`dsms.storage.chains`).
Logs begin anew with every checkpoint; those that no checkpoint needs any more are removed.

A stream's `durability` says when its writer may take a record as kept: `sync` when it is on the
disk, `interval` when the operating system has it (a killed process loses nothing; `commit`, called
now and then, bounds what a power failure can take), `none` at once and nothing is written.
"""

from __future__ import annotations

import heapq
import re
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

from dsms.errors import DsmsError, UsageError
from dsms.storage.chains import Chain, Damage
from dsms.storage.files import Files
from dsms.storage.log import LogWriter, read_log
from dsms.storage.open_logs import OpenLogs
from dsms.storage.synced import BEGUN, CATALOG, Synced

STREAMS, SPARE = "streams", "spare"
LOG = re.compile(r"\d{20}\.log")
WORTH = 1 << 20  # bytes from which a log is worth keeping to be written over
SPARES = 8
ENGINE = ""  # whose records belong to no stream
NOBODY = "%"  # ... and their folder, which is no stream's


def stream_of(folder: str) -> str:
    """The stream whose files are in a folder of that name."""
    return ENGINE if folder == NOBODY else unquote(folder)


def _takes_none(stream: str) -> str:
    return (
        f"stream {stream} takes no rows"
        if stream != ENGINE
        else "the system time can't be written down"
    )


@dataclass(frozen=True, slots=True)
class Entry:
    """A record as it is read back."""

    lsn: int
    stream: str
    kind: int
    payload: Any
    before: int = 0


@dataclass(slots=True)
class Journal:
    """lsn       the number of the last record
    written   bytes since the last checkpoint
    muted     nothing is written: what is applied comes from the journal itself
    tails     the number of each stream's last record
    failures  streams whose files are damaged or can't be written reliably: they refuse rows, and
              why
    damaged   those of them that are damaged, until the files come back or the operator accepts the
              loss
    refused   streams whose last record could not be written, and why; the next one may be
    notes     what was found missing on reading, without any damage
    gone      whether records of streams that are dropped are missing
    chains    what is found of each stream while the journal is read
    open      which logs are open
    """

    files: Files
    folder: str
    lsn: int = 0
    written: int = 0
    muted: bool = False
    retired: int = 0
    policies: dict[str, str] = field(default_factory=dict)
    tails: dict[str, int] = field(default_factory=dict)
    failures: dict[str, DsmsError] = field(default_factory=dict)
    damaged: dict[str, Damage] = field(default_factory=dict)
    refused: dict[str, DsmsError] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    gone: bool = False
    chains: dict[str, Chain] = field(default_factory=dict)
    synced: Synced = field(init=False)
    open: OpenLogs = field(default_factory=OpenLogs)
    # the number of each stream's last record on the disk
    _known: dict[str, int] = field(default_factory=dict)
    _logs: dict[str, LogWriter] = field(default_factory=dict)
    # of before the last checkpoint
    _left: list[tuple[str, LogWriter]] = field(default_factory=list)
    # streams whose newest records could not be brought to the disk, and why
    unsynced: dict[str, DsmsError] = field(default_factory=dict)
    # `commit` may come from another thread
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.synced = Synced(self.files, self.folder)

    # -- writing -----------------------------------------------------------------------------------

    def append(self, stream: str, kind: int, buffers: Sequence[Any]) -> None:
        """Write a record down, unless the stream's durability is `none`.  Raises, with nothing
        written, DS55x."""
        if self.muted or self.policies.get(stream) == "none":
            return
        self.check(stream)
        try:
            self._append(stream, kind, buffers)
        except DsmsError as error:
            self.refused[stream] = error
            raise
        self.refused.pop(stream, None)

    def _append(self, stream: str, kind: int, buffers: Sequence[Any]) -> None:
        log = self._log(stream)
        before = log.position
        log.append(
            self.lsn + 1, kind, buffers, self.tails.get(stream, 0), self._known.get(stream, 0)
        )
        self.lsn += 1
        self.tails[stream] = self.lsn
        if not before:
            self._tell(stream, BEGUN)
        self.written += log.position - before

    def trouble(self, stream: str) -> str | None:
        """Why the stream takes no rows, or did not take the last ones."""
        if stream in self.failures:
            return f"takes no rows: {self.failures[stream].message}"
        return (
            f"refused the last rows: {self.refused[stream].message}"
            if stream in self.refused
            else None
        )

    def number(self) -> int:
        """A number of this order for a record that is kept in the catalog, on the disk."""
        self.lsn += 1
        self._tell(ENGINE, CATALOG)
        return self.lsn

    def _tell(self, stream: str, kind: int) -> None:
        with self._lock:
            self.synced.note(stream, self.lsn, kind)

    def check(self, stream: str) -> None:
        """Raise why the stream refuses rows, if it does."""
        trouble = self.failures.get(stream)
        if trouble is not None:
            raise UsageError(
                trouble.code,
                f"{_takes_none(stream)}: {trouble.message}",
                hint=trouble.hint or "mend the file and start again, or drop the stream",
            )

    def untold(self, query: str, streams: Iterable[str]) -> DsmsError | None:
        """Why results that come from these may not be told: of a `sync` stream they would come
        before its rows are on the disk."""
        for stream in streams:
            trouble = self.unsynced.get(stream)
            if trouble is not None and self.policies.get(stream) == "sync":
                return UsageError(
                    trouble.code,
                    f"results of {query} come from rows of {stream} that may not be on the disk: "
                    f"{trouble.message}",
                    hint="mend the disk and start again, then subscribe `from` where this ends",
                )
        return None

    def forget(self, stream: str) -> None:
        """The stream was dropped."""
        for noted in (
            self.policies,
            self.failures,
            self.unsynced,
            self.refused,
            self.damaged,
            self.tails,
            self._known,
        ):
            noted.pop(stream, None)
        self._end(stream)
        if stream in self.chains:
            self.chains[stream].dropped(self.lsn)

    def _end(self, stream: str) -> None:
        """Close the logs of a stream that is gone.  On the disk they must be all the same: late
        rows of it that went to another stream come back with them."""
        with self._lock:
            mine = [log for name, log in self._left if name == stream]
            self._left = [(name, log) for name, log in self._left if name != stream]
            if stream in self._logs:
                mine.append(self._logs.pop(stream))
            for log in mine:
                with suppress(DsmsError):
                    log.sync()
                log.close()
                self.open.gone(log)

    def damage(self, stream: str, damage: Damage) -> None:
        """The stream refuses rows from now on."""
        self.damaged[stream] = damage
        self.failures[stream] = damage.error(stream)

    def accept(self, stream: str) -> bool:
        """The stream goes on without what it has lost; False if it has lost nothing."""
        self.failures.pop(stream, None)
        return self.damaged.pop(stream, None) is not None

    def pending(self, policy: str | None = None) -> bool:
        """Whether something (of streams of that durability) is not on the disk yet.  Any thread may
        ask."""
        return any(not log.is_synced for _, log in self._of_policy(policy))

    def commit(self, policy: str | None = None) -> None:
        """Bring what was written (for streams of that durability) to the disk.  Any thread may call
        it.

        A log that can't be synced is not written any more: it is unknown what of it is kept."""
        for stream, log in self._of_policy(policy):
            with self._lock:
                if not log.is_synced and not log.closed:
                    self._sync(stream, log)
        with self._lock:
            self._let_go()

    def _of_policy(self, policy: str | None) -> list[tuple[str, LogWriter]]:
        logs = [*self._left, *list(self._logs.items())]
        return [(s, w) for s, w in logs if policy is None or self.policies.get(s) == policy]

    def _let_go(self, needless: Collection[str] = ()) -> None:
        """Close the logs of before the last checkpoint that are on the disk, or need not be.  With
        the lock held."""
        for stream, log in list(self._left):
            if log.is_synced or stream in self.failures or log.path in needless:
                log.close()
                self._left.remove((stream, log))

    def _sync(self, stream: str, log: LogWriter) -> None:
        try:
            number = log.sync()
        except DsmsError as error:
            self.failures[stream] = self.unsynced[stream] = error
        else:
            self._is_synced(stream, number)

    def _is_synced(self, stream: str, number: int) -> None:
        """The stream's records up to that number are on the disk."""
        if number and stream not in self.failures:
            self._known[stream] = number
            self.synced.note(stream, number)

    def _log(self, stream: str) -> LogWriter:
        log = self._logs.get(stream)
        if log is None or not log.is_open:
            with self._lock:
                self.open.make_room(self._sync)
        if log is None:
            folder = self.place(stream)
            path = f"{folder}/{self.lsn + 1:020d}.log"
            self.files.make_folder(folder)
            # a crash left it with no record: there is none of that number
            if self.files.exists(path):
                self.files.remove(path)
            log = self._logs[stream] = LogWriter(self.files, path, self._spare(), self.lsn + 1)
            self.files.sync_folder(folder)
        self.open.used(stream, log)
        return log

    def _spare(self) -> str | None:
        """A log that is not needed any more, if there is one."""
        folder = f"{self.folder}/{SPARE}"
        names = self.files.list(folder) if self.files.exists(folder) else []
        return f"{folder}/{names[0]}" if names else None

    def _retire(self, path: str) -> None:
        """The log is not needed any more: a large one is kept to be written over."""
        folder = f"{self.folder}/{SPARE}"
        self.files.make_folder(folder)
        kept = self.files.list(folder)
        if self.files.size(path) < WORTH or len(kept) >= SPARES:
            self.files.remove(path)
            return
        self.retired += 1
        self.files.rename(path, f"{folder}/{self.lsn:020d}-{self.retired}")

    def place(self, stream: str) -> str:
        """The folder of a stream's files."""
        name = quote(stream, safe="") or NOBODY
        return (
            f"{self.folder}/{STREAMS}/{name.replace('.', '%2E') if not name.strip('.') else name}"
        )

    def rotate(self) -> int:
        """Begin new logs; the lsn of the last record of the old ones, which `commit` will bring to
        the disk."""
        with self._lock:
            self._left += self._logs.items()
            self._logs.clear()
            self.synced.rotate(self.lsn)
        self.written = 0
        return self.lsn

    def close(self) -> None:
        """Bring everything to the disk and let go of the files."""
        self.rotate()
        self.commit()
        self.synced.close()

    # -- reading -----------------------------------------------------------------------------------

    def entries(
        self, after: int, tails: Mapping[str, int], damaged: Mapping[str, Damage]
    ) -> Iterator[Entry]:
        """All good records numbered above `after`, where every stream has its tail, in order;
        `follows` says which of them to apply, and `settle` what to think of the others.

        Of streams that are `damaged` those behind their tail: the missing ones may have come
        back."""
        known, begun = self.synced.read(), self.synced.read(BEGUN)
        if tails and not self.synced.exist():
            self.notes.append(
                f"{self.folder}: the notes of what has reached the disk (synced-*) are missing, "
                "so logs that were cut short or removed can't be told from whole ones"
            )
        self.tails, self.damaged = dict(tails), dict(damaged)
        for stream in {*self.streams(), *tails, *damaged, *known, *begun}:
            start = tails.get(stream, 0) if stream in damaged else after
            was = damaged[stream].known or 0 if stream in damaged else 0
            least = max(known.get(stream, 0), was)
            self.chains[stream] = Chain(
                start, tails.get(stream, 0), start, least, least, begun.get(stream, 0)
            )
        return heapq.merge(*(self._of(s) for s in self.streams()), key=lambda e: e.lsn)

    def follows(self, entry: Entry) -> bool:
        """Whether the record is to be applied: the one before it was."""
        if not self.chains[entry.stream].follows(entry.lsn, entry.before):
            return False
        self.tails[entry.stream] = entry.lsn
        return True

    def settle(self) -> None:
        """The journal has been read: which streams are damaged, and what else is missing.  New
        records get numbers that none had; those that were read are brought to the disk, as it is
        unknown whether they are."""
        for stream, chain in self.chains.items():
            self.lsn = max(self.lsn, chain.highest)
            damage = self.damaged.pop(stream, None)
            if stream != ENGINE and stream not in self.policies:
                self.gone |= chain.known > chain.start or bool(chain.lost)
                continue
            found = (
                damage
                if damage is not None and damage.known is None
                else chain.damage(self.place(stream))
            )
            if found is not None:
                self._judge(stream, found)
            elif (note := chain.note(stream)) is not None:
                self.notes.append(note)
        self.synced.since = self.lsn
        for stream, chain in self.chains.items():
            if stream not in self.failures and self.policies.get(stream) != "none":
                self._secure(stream, chain)
        self.chains = {}

    def _judge(self, stream: str, found: Damage) -> None:
        if stream == ENGINE:
            self.notes.append(f"{found.message}: how the system time went on is lost")
        else:
            self.damage(stream, found)

    def _secure(self, stream: str, chain: Chain) -> None:
        try:
            for path in chain.paths:
                self.files.sync(path)
        except DsmsError as error:
            self.failures[stream] = error
        else:
            self._is_synced(stream, chain.tail)

    def streams(self) -> list[str]:
        """The streams that have files (and whatever else lies there)."""
        root = f"{self.folder}/{STREAMS}"
        names = self.files.list(root) if self.files.exists(root) else []
        return [stream_of(n) for n in sorted(names)]

    def names(self, stream: str) -> list[str]:
        """The files of a stream; none if its folder can't be read."""
        try:
            return self.files.list(self.place(stream))
        except DsmsError:
            return []

    def logs(self, stream: str) -> list[tuple[int, str]]:
        """A stream's logs: the number from which each begins, and its path."""
        folder = self.place(stream)
        return [
            (int(n[:20]), f"{folder}/{n}") for n in sorted(self.names(stream)) if LOG.fullmatch(n)
        ]

    def _of(self, stream: str) -> Iterator[Entry]:
        found, chain = self.logs(stream), self.chains[stream]
        try:
            self.files.list(self.place(stream))
        except DsmsError as error:
            chain.fault(error.message, unreadable=True)
        for k, (first, path) in enumerate(found):
            if k + 1 < len(found) and found[k + 1][0] <= chain.start + 1:
                continue
            try:
                scan = read_log(self.files, path, first)
            except DsmsError as error:
                chain.fault(error.message, unreadable=True)
                continue
            for r in chain.scanned(path, scan):
                yield Entry(r.lsn, stream, r.kind, r.payload, r.before)

    def trim(self, before: int, damaged: Collection[str] = ()) -> None:
        """Remove the logs that hold only records numbered up to `before`; not those of streams that
        are damaged, or were in some state that may be read: records behind what is missing are not
        part of it."""
        kept = {*self.damaged, *damaged}
        with self._lock:
            self.synced.trim(before)
            self._let_go(
                {
                    log.path
                    for stream, log in self._left
                    if log.last <= before and stream not in kept
                }
            )
        for stream in self.streams():
            if stream in kept:
                continue
            open_now = {log.path for _, log in self._of_policy(None)}
            for start, path in self.logs(stream):
                if start <= before and path not in open_now:
                    self._retire(path)
            with suppress(DsmsError):  # it is no folder, or one that can't be read
                if not self.files.list(self.place(stream)) and stream not in self._logs:
                    self.files.remove_folder(self.place(stream))
