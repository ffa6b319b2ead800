"""Which records are known to be on the disk: noted each time a log has been synced, beside the logs.

A log can't tell that its own end is missing, nor a lost file that it was there.  These notes can: they are written
after the sync that they tell of, so whatever they name was on the disk.  They are not synced themselves; what a power
failure takes of them is only knowledge.

    FOLDER/synced-LSN-N.log      a log of notes: the number, u64, and the stream's name; those of records up to LSN are
                                 in the files before it
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from dsms.errors import DsmsError
from dsms.storage.files import Files
from dsms.storage.log import LogWriter, read_log

START, END = "synced-", ".log"


@dataclass(slots=True)
class Synced:
    """The notes of one journal.  One thread at a time."""

    files: Files
    folder: str
    since: int = 0
    _log: LogWriter | None = None
    _count: int = 0

    def note(self, stream: str, number: int) -> None:
        """The stream's records are on the disk up to that number.  If the disk refuses, later readers know less."""
        with suppress(DsmsError):
            if self._log is None:
                self._log = LogWriter(self.files, self._free())
            self._count += 1
            self._log.append(self._count, 0, [number.to_bytes(8, "little"), stream.encode()])

    def _free(self) -> str:
        """The path of the next file."""
        start, k = f"{self.folder}/{START}{self.since:020d}", 0
        while self.files.exists(f"{start}-{k:06d}{END}"):
            k += 1
        return f"{start}-{k:06d}{END}"

    def rotate(self, lsn: int) -> None:
        """What was noted is of records up to that number: what comes begins a new file."""
        self.since = lsn
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def read(self) -> dict[str, int]:
        """The newest record known to be on the disk, by stream."""
        out: dict[str, int] = {}
        for name in self._names():
            with suppress(DsmsError):
                for record in read_log(self.files, f"{self.folder}/{name}"):
                    number, stream = int.from_bytes(record.payload[:8], "little"), bytes(record.payload[8:]).decode()
                    out[stream] = max(out.get(stream, 0), number)
        return out

    def trim(self, before: int) -> None:
        """Remove the files that only tell of records numbered up to `before`."""
        names = self._names()
        for name, following in pairwise(names):
            if int(following[len(START) :].split("-")[0]) <= before:
                self.files.remove(f"{self.folder}/{name}")

    def _names(self) -> list[str]:
        return sorted(n for n in self.files.list(self.folder) if n.startswith(START) and n.endswith(END))
