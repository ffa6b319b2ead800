"""A log: one file of records that only grows, each with its length and a checksum.

    magic u32 | length u32 | checksum of what follows u64 | lsn u64 | kind u8 | payload          (little endian)

A crash may leave an unfinished record, or zeros, at the end: that is no damage, the record was never acknowledged.  A
bad record with good ones behind it is.  A log may be written over an older one; records numbered below the log's first
number are left from that one, and end it.
(The checksum is XXH3: an order faster than a CRC, so that it does not show beside the copy to the system.)
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import xxhash

from dsms.errors import DsmsError
from dsms.storage.files import Appender, Files

MAGIC = 0x4C4D5344
HEAD = struct.Struct("<IIQ")
BODY = struct.Struct("<QB")
MOST = 1 << 31  # bytes of a record


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it is read back; `payload` is part of the file's bytes."""

    lsn: int
    kind: int
    payload: memoryview


@dataclass(slots=True)
class LogScan:
    """records  the good ones, up to the first bad one
    end      bytes up to behind the last good one
    torn     whether an unfinished record stands there
    damaged  what is wrong there, if it is not that
    """

    records: list[Record] = field(default_factory=list)
    end: int = 0
    torn: bool = False
    damaged: str | None = None

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)


class LogWriter:
    """An open log.  `position`: bytes written; `synced`: bytes known to be on the disk."""

    def __init__(self, files: Files, path: str, over: str | None = None) -> None:
        """`over`: a log that nobody needs any more, whose place this one takes."""
        self.path = path
        self._file: Appender = files.append(path) if over is None else files.recycle(over, path)
        self.position = self.synced = self._file.size
        self.closed = False

    def append(self, lsn: int, kind: int, buffers: Sequence[Any]) -> int:
        """Write a record; the position behind it.  If that fails nothing of it stays, and DS55x is raised."""
        body = BODY.pack(lsn, kind)
        check, length = xxhash.xxh3_64(body), len(body)
        for buffer in buffers:
            check.update(buffer)
            length += memoryview(buffer).nbytes
        try:
            self._file.write([HEAD.pack(MAGIC, length, check.intdigest()), body, *buffers])
        except DsmsError:
            self._file.truncate(self.position)
            raise
        self.position = self._file.size
        return self.position

    def sync(self) -> None:
        """Bring what was written to the disk."""
        upto = self.position
        self._file.sync()
        self.synced = max(self.synced, upto)

    def close(self) -> None:
        self.closed = True
        self._file.close()


def read_log(files: Files, path: str, first: int = 0) -> LogScan:
    """All good records of a log whose numbers begin at `first`.  Raises DS55x only if the file can't be read at all."""
    data = memoryview(files.map(path))
    scan = LogScan()
    while scan.end < len(data):
        found = _record(data, scan.end, first)
        if found is None:
            if _good_behind(data, scan.end, first):
                scan.damaged = f"the record at byte {scan.end} is not what was written"
            else:
                scan.torn = True
            break
        record, scan.end = found
        scan.records.append(record)
        first = record.lsn + 1
    return scan


def _record(data: memoryview, at: int, first: int) -> tuple[Record, int] | None:
    if at + HEAD.size + BODY.size > len(data):
        return None
    magic, length, check = HEAD.unpack_from(data, at)
    start, end = at + HEAD.size, at + HEAD.size + length
    if magic != MAGIC or not BODY.size <= length <= MOST or end > len(data):
        return None
    lsn, kind = BODY.unpack_from(data, start)
    if lsn < first or xxhash.xxh3_64_intdigest(data[start:end]) != check:
        return None
    return Record(lsn, kind, data[start + BODY.size : end]), end


def _good_behind(data: memoryview, at: int, first: int) -> bool:
    """Whether some good record of this log begins behind that place."""
    rest, mark, place = bytes(data[at + 1 :]), struct.pack("<I", MAGIC), -1
    while (place := rest.find(mark, place + 1)) >= 0:
        if _record(data, at + 1 + place, first) is not None:
            return True
    return False
