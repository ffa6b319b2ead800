"""Which records are known to be on the disk: noted each time a log has been synced, beside the
logs; and which logs there are: noted when they are begun.

A log can't tell that its own end is missing, nor a lost file that it was there.  These notes can:
they are written after the sync that they tell of, so whatever they name was on the disk.  They are
not synced themselves; what a power failure takes of them is only knowledge.

    FOLDER/synced-LSN-N.log      a log of notes: the number, u64, and the stream's name; those of
                                 records up to LSN are in the files before it
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise

from dsms.errors import DsmsError
from dsms.storage.files import Files
from dsms.storage.log import LogWriter, read_log

START, END = "synced-", ".log"
SYNCED, BEGUN, CATALOG = range(3)  # kinds of notes
MOST = 4096  # notes of a file; then the newest ones are written again, into a new one


@dataclass(slots=True)
class Synced:
    """The notes of one journal.  One thread at a time."""

    files: Files
    folder: str
    since: int = 0
    _log: LogWriter | None = None
    _known: dict[tuple[str, int], int] = field(default_factory=dict)

    def note(self, stream: str, number: int, kind: int = SYNCED) -> None:
        """The stream's records are on the disk up to that number (BEGUN: a log of it begins with
        that number; CATALOG, of no stream: the catalog has the change of that number).  If the disk
        refuses, later readers know less."""
        self._known[stream, kind] = number
        with suppress(DsmsError):
            if self._log is not None and self._log.last >= max(MOST, 2 * len(self._known)):
                self._renew(self._log)
                return
            self._write(stream, number, kind)

    def _write(self, stream: str, number: int, kind: int) -> None:
        if self._log is None:
            self._log = LogWriter(self.files, self._free())
        self._log.append(self._log.last + 1, kind, [number.to_bytes(8, "little"), stream.encode()])

    def _renew(self, old: LogWriter) -> None:
        """A file that holds the newest notes only takes the place of a long one."""
        old.close()
        self._log = LogWriter(self.files, self._free())
        for (stream, kind), number in self._known.items():
            self._write(stream, number, kind)
        self.files.remove(old.path)

    def _free(self) -> str:
        """The path of the next file."""
        start, k = f"{self.folder}/{START}{self.since:020d}", 0
        while self.files.exists(f"{start}-{k:06d}{END}"):
            k += 1
        return f"{start}-{k:06d}{END}"

    def rotate(self, lsn: int) -> None:
        """What was noted is of records up to that number: what comes begins a new file."""
        self.since = lsn
        self._known.clear()
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def read(self, kind: int = SYNCED) -> dict[str, int]:
        """The newest number of that kind, by stream."""
        out: dict[str, int] = {}
        for name in self._names():
            with suppress(DsmsError):
                for record in read_log(self.files, f"{self.folder}/{name}"):
                    if record.kind != kind:
                        continue
                    number, stream = (
                        int.from_bytes(record.payload[:8], "little"),
                        bytes(record.payload[8:]).decode(),
                    )
                    out[stream] = max(out.get(stream, 0), number)
        return out

    def trim(self, before: int) -> None:
        """Remove the files that only tell of records numbered up to `before`."""
        names = self._names()
        for name, following in pairwise(names):
            if int(following[len(START) :].split("-")[0]) <= before:
                self.files.remove(f"{self.folder}/{name}")

    def exist(self) -> bool:
        """Whether there are any."""
        return bool(self._names())

    def _names(self) -> list[str]:
        return sorted(
            n for n in self.files.list(self.folder) if n.startswith(START) and n.endswith(END)
        )
