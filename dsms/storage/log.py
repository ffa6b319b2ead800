"""A log: one file of records that only grows, each with its length and a checksum.

    magic u32 | length u32 | checksum of what follows u64
    lsn u64 | before u64 | known u64 | kind u8 | payload                                             (little endian)

A crash may leave an unfinished record, or zeros, at the end: that is no damage, the record was
never acknowledged.  A power failure may also take pages out of the middle of what was not synced.
So each record says which one of its owner came `before` it (0: none), and which was the newest
`known` to be on the disk when it was written: with these a reader tells what is missing, and
whether it may be (`dsms.storage.chains`).

A log may be written over an older one.  Its checksums are seeded with the number that it starts
with, so that what is left of the older one is not taken for its own, nor the log for the older one
where a rename is undone.  (The checksum is XXH3: an order faster than a CRC, so that it does not
show beside the copy to the system.)
"""  # noqa: E501

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import xxhash

from dsms.errors import DsmsError, UsageError
from dsms.storage.files import Appender, Files

MAGIC = b"dsL3"
HEAD = struct.Struct("<4sIQ")
BODY = struct.Struct("<QQQB")
MOST = 1 << 31  # bytes of a record
RESTORE = "stop the server and restore the data directory from a backup"


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it is read back; `payload` is part of the file's bytes.  `before` and `known`:
    see above."""

    lsn: int
    kind: int
    payload: memoryview
    before: int = 0
    known: int = 0


@dataclass(slots=True)
class LogScan:
    """records  the good ones, also those behind bad ones
    end      bytes up to the first place that holds no good record
    torn     whether there is something in that place
    foreign  whether the file is no log of this version
    """

    records: list[Record] = field(default_factory=list)
    end: int = 0
    torn: bool = False
    foreign: bool = False

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)


class LogWriter:
    """An open log.  `position`: bytes written; `synced`: bytes known to be on the disk; `last`: the
    number of the last record."""

    def __init__(self, files: Files, path: str, over: str | None = None, first: int = 0) -> None:
        """`over`: a log that is not needed any more, whose place this one takes.  `first`: the
        number from which this log's records are numbered."""
        self.path, self.first, self.last = path, first, 0
        self._files = files
        self._file: Appender | None = (
            files.append(path) if over is None else files.recycle(over, path)
        )
        self.position = self.synced = self._file.size
        self.closed = False

    @property
    def is_open(self) -> bool:
        """Whether it takes a descriptor."""
        return self._file is not None

    @property
    def is_synced(self) -> bool:
        """Whether all that was written is on the disk."""
        return self.position == self.synced

    def append(
        self, lsn: int, kind: int, buffers: Sequence[Any], before: int = 0, known: int = 0
    ) -> int:
        """Write a record; the position behind it.  If that fails nothing of it stays, and DS55x is
        raised."""
        body = BODY.pack(lsn, before, known, kind)
        check, length = xxhash.xxh3_64(body, seed=self.first), len(body)
        for buffer in buffers:
            check.update(buffer)
            length += memoryview(buffer).nbytes
        file = self._opened()
        try:
            file.write([HEAD.pack(MAGIC, length, check.intdigest()), body, *buffers])
        except Exception:
            with suppress(DsmsError):  # the next record is written over what stays then
                file.truncate(self.position)
            raise
        self.position = file.size
        self.last = lsn  # after the write: another thread that syncs takes it for written
        return self.position

    def sync(self) -> int:
        """Bring what was written to the disk; the number of the last record of which that is
        sure."""
        last, upto = self.last, self.position
        if self._file is not None:
            self._file.sync()
        self.synced = max(self.synced, upto)
        return last

    def rest(self) -> None:
        """Let go of the file, all of which is on the disk, until the next record."""
        if self._file is not None:
            file, self._file = self._file, None
            file.close()

    def _opened(self) -> Appender:
        """The file, opened again if it was let go of.  Raises DS55x, also if it is not as it
        was."""
        if self._file is None:
            file = self._files.append(self.path)
            if file.size < self.position:
                file.close()
                raise UsageError(
                    "DS553", f"{self.path}: it was cut short, or removed", hint=RESTORE
                )
            file.size = self.position  # behind it may stand what is left of an older log
            self._file = file
        return self._file

    def close(self) -> None:
        """No more records come."""
        self.closed = True
        self.rest()


def read_log(files: Files, path: str, first: int = 0) -> LogScan:
    """All good records of a log whose numbers begin at `first`.  Raises DS55x only if the file
    can't be read at all."""
    data = memoryview(files.map(path)).cast("B")
    scan, least = LogScan(), first
    if not _ours(bytes(data[: len(MAGIC)])):
        scan.foreign = True
        return scan
    while scan.end < len(data):
        found = _record(data, scan.end, first, least)
        if found is None:
            scan.torn = True
            scan.records += _behind(data, scan.end, first, least)
            break
        record, scan.end = found
        scan.records.append(record)
        least = record.lsn + 1
    return scan


def _ours(start: bytes) -> bool:
    """Whether a log can begin with that: its first bytes may be missing, or not be on the disk."""
    written = start.rstrip(b"\0")
    return MAGIC.startswith(written)


def _record(data: memoryview, at: int, first: int, least: int) -> tuple[Record, int] | None:
    """The record there and the place behind it, if it is a good one, numbered `least` or higher."""
    if at + HEAD.size + BODY.size > len(data):
        return None
    magic, length, check = HEAD.unpack_from(data, at)
    start, end = at + HEAD.size, at + HEAD.size + length
    if magic != MAGIC or not BODY.size <= length <= MOST or end > len(data):
        return None
    lsn, before, known, kind = BODY.unpack_from(data, start)
    if lsn < least or xxhash.xxh3_64_intdigest(data[start:end], seed=first) != check:
        return None
    return Record(lsn, kind, data[start + BODY.size : end], before, known), end


def _behind(data: memoryview, at: int, first: int, least: int) -> Iterator[Record]:
    """The good records of this log behind that place."""
    rest, place = bytes(data[at:]), 0
    while (place := rest.find(MAGIC, place + 1)) >= 0:
        found = _record(data, at + place, first, least)
        if found is not None:
            record, end = found
            yield record
            least, place = record.lsn + 1, end - at - 1
