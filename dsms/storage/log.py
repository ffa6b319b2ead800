"""A log: one file of records that only grows, each with its length and a checksum.

    magic u32 | length u32 | crc32 of what follows u32 | lsn u64 | kind u8 | payload          (little endian)

A crash may leave an unfinished record, or zeros, at the end: that is no damage, the record was never acknowledged.  A
bad record with good ones behind it is.
(The checksum is zlib's crc32, about 1 GB/s or better on one core and always there.)
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dsms.errors import DsmsError
from dsms.storage.files import Appender, Files

MAGIC = 0x4C4D5344
HEAD = struct.Struct("<III")
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

    def __init__(self, files: Files, path: str) -> None:
        self.path = path
        self._file: Appender = files.append(path)
        self.position = self.synced = self._file.size

    def append(self, lsn: int, kind: int, buffers: Sequence[Any]) -> int:
        """Write a record; the position behind it.  If that fails nothing of it stays, and DS55x is raised."""
        body = BODY.pack(lsn, kind)
        crc, length = zlib.crc32(body), len(body)
        for buffer in buffers:
            crc = zlib.crc32(buffer, crc)
            length += memoryview(buffer).nbytes
        try:
            self._file.write([HEAD.pack(MAGIC, length, crc), body, *buffers])
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
        self._file.close()


def read_log(files: Files, path: str) -> LogScan:
    """All good records of a log.  Raises DS55x only if the file can't be read at all."""
    data = memoryview(files.map(path))
    scan = LogScan()
    while scan.end < len(data):
        found = _record(data, scan.end)
        if found is None:
            if _good_behind(data, scan.end):
                scan.damaged = f"the record at byte {scan.end} is not what was written"
            else:
                scan.torn = True
            break
        record, scan.end = found
        scan.records.append(record)
    return scan


def _record(data: memoryview, at: int) -> tuple[Record, int] | None:
    if at + HEAD.size + BODY.size > len(data):
        return None
    magic, length, crc = HEAD.unpack_from(data, at)
    start, end = at + HEAD.size, at + HEAD.size + length
    if magic != MAGIC or not BODY.size <= length <= MOST or end > len(data) or zlib.crc32(data[start:end]) != crc:
        return None
    lsn, kind = BODY.unpack_from(data, start)
    return Record(lsn, kind, data[start + BODY.size : end]), end


def _good_behind(data: memoryview, at: int) -> bool:
    """Whether some good record begins behind that place."""
    rest, mark, place = bytes(data[at + 1 :]), struct.pack("<I", MAGIC), -1
    while (place := rest.find(mark, place + 1)) >= 0:
        if _record(data, at + 1 + place) is not None:
            return True
    return False
