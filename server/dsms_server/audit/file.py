"""The file of the audit log: whole lines at its end, and rotation by size.

`logging.handlers` has rotating files, too, but they write a record at a time, hide what goes wrong,
leave half a line behind on a full disk and can't tell which lines are on the disk.
"""

from __future__ import annotations

import fcntl
import logging
import os
import stat
from collections.abc import Iterable
from contextlib import suppress

from dsms.errors import UsageError

log = logging.getLogger("dsms.server")
MODE = 0o600  # of new files
LEAST_BYTES = 4096


class AuditFile:
    """`path` is the file written to; `path`.1 is the one before it, and so on up to `keep`.

    most  bytes of a file; 0: any, somebody else rotates
    One thread at a time.  `written` counts bytes."""

    def __init__(self, path: str, most: int = 0, keep: int = 10) -> None:
        self.path, self.most, self.keep = os.fspath(path), most, keep
        self.written = 0
        self._fd = -1
        self._size = 0
        self._fresh = False  # its name may not be on the disk yet
        self._stuck = False  # it could not be rotated, and that has been said

    def begin(self) -> None:
        """Open it for the first time.  Raises UsageError DS640."""
        try:
            self.open()
        except OSError as problem:
            raise UsageError(
                "DS640",
                f"the audit log {self.path} can't be written: {problem.strerror}",
                hint="--audit-log names a file, in a folder that is there",
            ) from None

    def open(self) -> None:
        """Begin to write at its end.  Raises UsageError DS640, and OSError."""
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(os.stat(self.path).st_mode):
                raise UsageError("DS640", f"the audit log {self.path} is no file")
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        fd = os.open(self.path, flags, MODE)
        if self._fd >= 0 and os.path.sameopenfile(fd, self._fd):
            os.close(fd)
            return
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise UsageError("DS640", f"another server writes the audit log {self.path}") from None
        self.close()
        self._fd, self._size = fd, os.fstat(fd).st_size
        self._fresh = not self._size
        self._end_line()

    def _end_line(self) -> None:
        """What was cut short, as by a crash, is a line of its own."""
        if self._size and os.pread(self._fd, 1, self._size - 1) != b"\n":
            self._size += os.write(self._fd, b"\n")

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def write(self, lines: Iterable[bytes]) -> int:
        """Write whole lines; returns how many.  Raises OSError only if it is none: what stands
        behind them is to be given again."""
        self._look()
        count, size, turns = 0, self._size, bool(self.most)
        batch: list[bytes] = []
        for line in lines:
            if turns and size and size + len(line) > self.most:
                if not self._put(batch, count == 0):
                    return count
                count += len(batch)
                turns = self._rotate()
                batch, size = [], self._size
            batch.append(line)
            size += len(line)
        done = self._put(batch, count == 0)
        return count + (len(batch) if done else 0)

    def sync(self) -> None:
        """What was written is on the disk when this returns."""
        os.fdatasync(self._fd)
        if self._fresh:
            folder = os.open(os.path.dirname(os.path.abspath(self.path)), os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
            self._fresh = False

    def _look(self) -> None:
        """Go on in a new file if somebody has moved or removed this one."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            found = None
        mine = os.fstat(self._fd) if self._fd >= 0 else None
        if found is None or mine is None or not os.path.samestat(found, mine):
            self.open()
        else:
            self._size = mine.st_size

    def _put(self, batch: list[bytes], first: bool = True) -> bool:
        """All of it or nothing; raises OSError for nothing if it is the `first`."""
        data = memoryview(b"".join(batch))
        done = 0
        try:
            while done < len(data):
                done += os.write(self._fd, data[done:])
        except OSError:
            if done:
                os.ftruncate(self._fd, self._size)
            if first:
                raise
            return False
        self._size += done
        self.written += done
        return True

    def _rotate(self) -> bool:
        """The files move on by one, and the oldest goes; if that can't be, this one grows."""
        try:
            os.fsync(self._fd)
            for number in range(self.keep - 1, 0, -1):
                with suppress(FileNotFoundError):
                    os.replace(f"{self.path}.{number}", f"{self.path}.{number + 1}")
            os.replace(self.path, f"{self.path}.1")
            self.open()
        except OSError as problem:
            if not self._stuck:
                log.error("the audit log %s can't be rotated: %s", self.path, problem.strerror)
            self._stuck = True
            return False
        self._stuck = False
        return True
