"""The journal: every input of an engine, written down before it is applied, one log of checksummed records per stream.

Records of all streams are numbered by one counter (lsn), so several logs read together give back the order in which
the engine took them.  Logs begin anew with every checkpoint; those that no checkpoint needs any more are removed.

A stream's `durability` says when its writer may take a record as kept: `sync` when it is on the disk, `interval` when
the operating system has it (a killed process loses nothing; `commit`, called now and then, bounds what a power failure
can take), `none` at once and nothing is written.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

from dsms.errors import DsmsError, UsageError
from dsms.storage.files import Files
from dsms.storage.log import LogWriter, read_log

STREAMS, SPARE = "streams", "spare"
WORTH = 1 << 20  # bytes from which a log is worth keeping to be written over
SPARES = 8
ENGINE = ""  # whose records belong to no stream
NOBODY = "%"  # ... and their folder, which is no stream's


def stream_of(folder: str) -> str:
    """The stream whose files are in a folder of that name."""
    return ENGINE if folder == NOBODY else unquote(folder)


@dataclass(frozen=True, slots=True)
class Entry:
    """A record as it is read back."""

    lsn: int
    stream: str
    kind: int
    payload: Any


@dataclass(slots=True)
class Journal:
    """lsn       the number of the last record
    written   bytes since the last checkpoint
    muted     nothing is written: what is applied comes from the journal itself
    failures  streams whose log is damaged or can't be written reliably: they refuse rows, and why
    notes     what was found missing on reading, without any damage
    """

    files: Files
    folder: str
    lsn: int = 0
    written: int = 0
    muted: bool = False
    retired: int = 0
    policies: dict[str, str] = field(default_factory=dict)
    failures: dict[str, DsmsError] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    _logs: dict[str, LogWriter] = field(default_factory=dict)
    _left: list[tuple[str, LogWriter]] = field(default_factory=list)  # of before the last checkpoint
    _lock: threading.Lock = field(default_factory=threading.Lock)  # `commit` may come from another thread

    # -- writing ------------------------------------------------------------------------------------------------------

    def append(self, stream: str, kind: int, buffers: Sequence[Any]) -> None:
        """Write a record down, unless the stream's durability is `none`.  Raises, with nothing written, DS55x."""
        if self.muted or self.policies.get(stream) == "none":
            return
        self.check(stream)
        log = self._log(stream)
        before = log.position
        log.append(self.lsn + 1, kind, buffers)
        self.lsn += 1
        self.written += log.position - before

    def number(self) -> int:
        """A number of this order for a record that is kept elsewhere."""
        self.lsn += 1
        return self.lsn

    def check(self, stream: str) -> None:
        """Raise why the stream refuses rows, if it does."""
        trouble = self.failures.get(stream)
        if trouble is not None:
            raise UsageError(trouble.code, f"stream {stream} takes no rows: {trouble.message}",
                             hint=trouble.hint or "mend the file and start again, or drop the stream")  # fmt: skip

    def forget(self, stream: str) -> None:
        """The stream was dropped."""
        self.policies.pop(stream, None)
        self.failures.pop(stream, None)

    def pending(self, policy: str | None = None) -> bool:
        """Whether something (of streams of that durability) is not on the disk yet.  Any thread may ask."""
        return any(log.position > log.synced for _, log in self._of_policy(policy))

    def commit(self, policy: str | None = None) -> None:
        """Bring what was written (for streams of that durability) to the disk.  Any thread may call it.

        A log that can't be synced is not written any more: nobody knows what of it is kept."""
        for stream, log in self._of_policy(policy):
            with self._lock:
                if log.position > log.synced and not log.closed:
                    self._sync(stream, log)
        self._let_go()

    def _of_policy(self, policy: str | None) -> list[tuple[str, LogWriter]]:
        logs = [*self._left, *list(self._logs.items())]
        return [(s, w) for s, w in logs if policy is None or self.policies.get(s) == policy]

    def _let_go(self) -> None:
        """Close the logs of before the last checkpoint that are on the disk."""
        with self._lock:
            for stream, log in list(self._left):
                if log.position == log.synced or stream in self.failures:
                    log.close()
                    self._left.remove((stream, log))

    def _sync(self, stream: str, log: LogWriter) -> None:
        try:
            log.sync()
        except DsmsError as error:
            self.failures[stream] = error

    def _log(self, stream: str) -> LogWriter:
        log = self._logs.get(stream)
        if log is None:
            folder = self.place(stream)
            path = f"{folder}/{self.lsn + 1:020d}.log"
            self.files.make_folder(folder)
            if self.files.exists(path):  # a crash left it with no record: there is none of that number
                self.files.remove(path)
            log = self._logs[stream] = LogWriter(self.files, path, self._spare(), self.lsn + 1)
            self.files.sync_folder(folder)
        return log

    def _spare(self) -> str | None:
        """A log that nobody needs any more, if there is one."""
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
        return f"{self.folder}/{STREAMS}/{name.replace('.', '%2E') if not name.strip('.') else name}"

    def rotate(self) -> int:
        """Begin new logs; the lsn of the last record of the old ones, which `commit` will bring to the disk."""
        with self._lock:
            self._left += self._logs.items()
            self._logs.clear()
        self.written = 0
        return self.lsn

    def close(self) -> None:
        """Bring everything to the disk and let go of the files."""
        self.rotate()
        self.commit()

    # -- reading ------------------------------------------------------------------------------------------------------

    def entries(self, after: int) -> Iterator[Entry]:
        """The records numbered above `after`, in order.  Logs that are damaged are read up to there, and noted in
        `failures`; an unfinished last record is cut off."""
        return heapq.merge(*(self._of(s, after) for s in self.streams()), key=lambda e: e.lsn)

    def streams(self) -> list[str]:
        """The streams that have files."""
        root = f"{self.folder}/{STREAMS}"
        names = self.files.list(root) if self.files.exists(root) else []
        return [stream_of(n) for n in sorted(names)]

    def logs(self, stream: str) -> list[tuple[int, str]]:
        """A stream's logs: the number from which each begins, and its path."""
        folder = self.place(stream)
        names = sorted(n for n in self.files.list(folder) if n.endswith(".log"))
        return [(int(n.split(".")[0]), f"{folder}/{n}") for n in names]

    def _of(self, stream: str, after: int) -> Iterator[Entry]:
        found = self.logs(stream)
        for k, (start, path) in enumerate(found):
            if k + 1 < len(found) and found[k + 1][0] <= after + 1:
                continue
            scan = read_log(self.files, path, start)
            for record in scan.records:
                if record.lsn > after:
                    yield Entry(record.lsn, stream, record.kind, record.payload)
            if scan.beyond:
                why = "one before them was not yet on the disk when the power failed"
                self.notes.append(f"{path}: {scan.beyond} records behind byte {scan.end} are lost: {why}")
            if scan.damaged is not None:
                self.failures[stream] = UsageError("DS555", f"{path} is damaged: {scan.damaged}",
                    hint="rows behind the damage are lost unless the file is restored from a backup")  # fmt: skip
                return

    def trim(self, before: int) -> None:
        """Remove the logs that hold only records numbered up to `before`."""
        for stream in self.streams():
            folder = self.place(stream)
            open_now = {log.path for _, log in self._of_policy(None)}
            for start, path in self.logs(stream):
                if start <= before and path not in open_now:
                    self._retire(path)
            if not self.files.list(folder) and stream not in self._logs:
                self.files.remove_folder(folder)
