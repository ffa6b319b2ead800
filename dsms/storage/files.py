"""All that storage does with files, behind one small protocol, so that tests can let any operation
fail.

Errors of the operating system come as UsageError DS55x that name the file and the way out.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from dsms.errors import UsageError

CODES = {
    errno.ENOSPC: (
        "DS550",
        "the disk is full",
        "make room, then send the rows again: nothing of them was kept",
    ),
    errno.EDQUOT: (
        "DS550",
        "the disk quota is used up",
        "make room, then send the rows again: nothing of them was kept",
    ),
    errno.EACCES: ("DS551", "it may not be used", "check who owns the folder and its permissions"),
    errno.EPERM: ("DS551", "it may not be used", "check who owns the folder and its permissions"),
    errno.EROFS: ("DS551", "the file system may only be read", "check how it is mounted"),
    errno.EMFILE: (
        "DS552",
        "too many files are open",
        "raise the limit of this process (`ulimit -n`)",
    ),
    errno.ENFILE: ("DS552", "too many files are open", "raise the system's limit (`fs.file-max`)"),
    errno.ENOENT: ("DS553", "it is missing", "restore the data directory from a backup"),
}
AT_ONCE = 1 << 20  # bytes that are gathered before they are written
OTHER = ("DS552", "reading or writing it failed", "check the disk, then start again")


class Appender(Protocol):
    """A file that is written from its beginning, or from where it ended, on.  size: bytes up to
    there."""

    size: int

    def write(self, buffers: Sequence[Any]) -> None:
        """Write all of the buffers behind what there is, or raise; what a failed call left behind
        is for `truncate`."""
        ...

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """What was written is on the disk when this returns."""
        ...

    def close(self) -> None: ...


class Files(Protocol):
    """File operations on paths with `/`."""

    def append(self, path: str) -> Appender:
        """The file, made if it is not there."""
        ...

    def recycle(self, old: str, path: str) -> Appender:
        """The file `old` under another name, to be written over from its beginning: what stands
        behind means nothing.

        (Writing over pages that the system has costs a tenth of adding new ones.)"""
        ...

    def read(self, path: str) -> Any: ...

    def map(self, path: str) -> pa.Buffer:
        """The contents, mapped into memory."""
        ...

    def write_atomic(self, path: str, buffers: Iterable[Any], sync: bool = True) -> None:
        """The whole file, or nothing of it: the old one stands until the new one is complete (and,
        `sync`, on the disk).  Buffers are asked for as they are written."""
        ...

    def remove(self, path: str) -> None: ...

    def rename(self, old: str, new: str) -> None: ...

    def list(self, folder: str) -> list[str]: ...

    def exists(self, path: str) -> bool: ...

    def size(self, path: str) -> int: ...

    def make_folder(self, folder: str) -> None: ...

    def remove_folder(self, folder: str) -> None: ...

    def sync(self, path: str) -> None:
        """The file and its name are on the disk when this returns."""
        ...

    def sync_contents(self, path: str) -> None:
        """What is in the file is on the disk; its name only once its folder is synced."""
        ...

    def sync_folder(self, folder: str) -> None: ...


@contextmanager
def explained(path: str) -> Iterator[None]:
    """An OSError as DS55x about that file."""
    try:
        yield
    except OSError as error:
        code, what, hint = CODES.get(error.errno or 0, OTHER)
        raise UsageError(code, f"{path}: {what} ({error.strerror or error})", hint=hint) from None


@dataclass(slots=True)
class RealAppender:
    """An open file of the operating system."""

    path: str
    fd: int
    size: int

    def write(self, buffers: Sequence[Any]) -> None:
        views = [memoryview(b).cast("B") for b in buffers]
        views = [v for v in views if len(v)]
        with explained(self.path):
            while views:
                done = os.pwritev(self.fd, views[:512], self.size)
                self.size += done
                while views and done >= len(views[0]):
                    done -= len(views.pop(0))
                if done:
                    views[0] = views[0][done:]

    def truncate(self, size: int) -> None:
        self.size = size  # even if that fails: what is written next goes there
        with explained(self.path):
            os.ftruncate(self.fd, size)

    def sync(self) -> None:
        with explained(self.path):
            getattr(os, "fdatasync", os.fsync)(self.fd)

    def close(self) -> None:
        os.close(self.fd)


class RealFiles:
    """Files as the operating system has them."""

    def append(self, path: str) -> RealAppender:
        with explained(path):
            fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
            return RealAppender(path, fd, os.fstat(fd).st_size)

    def recycle(self, old: str, path: str) -> RealAppender:
        with explained(path):
            os.rename(old, path)
            return RealAppender(path, os.open(path, os.O_WRONLY), 0)

    def read(self, path: str) -> bytes:
        with explained(path), open(path, "rb") as file:
            return file.read()

    def map(self, path: str) -> pa.Buffer:
        with explained(path):
            if not os.path.getsize(path):
                return pa.py_buffer(b"")
            with pa.memory_map(path, "r") as file:
                return file.read_buffer()

    def write_atomic(self, path: str, buffers: Iterable[Any], sync: bool = True) -> None:
        part = f"{path}.part"
        try:
            with explained(path):
                if os.path.exists(part):
                    os.remove(part)
            out = self.append(part)
            try:
                for some in _gathered(buffers):
                    out.write(some)
                if sync:
                    out.sync()
            finally:
                out.close()
            with explained(path):
                os.rename(part, path)
            if sync:
                self.sync_folder(os.path.dirname(path))
        except BaseException:
            if os.path.exists(part):
                os.remove(part)
            raise

    def remove(self, path: str) -> None:
        with explained(path):
            os.remove(path)

    def rename(self, old: str, new: str) -> None:
        with explained(new):
            os.rename(old, new)

    def list(self, folder: str) -> list[str]:
        with explained(folder):
            return sorted(os.listdir(folder))

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def size(self, path: str) -> int:
        with explained(path):
            return os.path.getsize(path)

    def make_folder(self, folder: str) -> None:
        with explained(folder):
            _make_private(folder)

    def remove_folder(self, folder: str) -> None:
        with explained(folder):
            os.rmdir(folder)

    def sync(self, path: str) -> None:
        self.sync_contents(path)
        self.sync_folder(os.path.dirname(path))

    def sync_contents(self, path: str) -> None:
        with explained(path):
            fd = os.open(path, os.O_RDONLY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def sync_folder(self, folder: str) -> None:
        self.sync_contents(folder)


def _gathered(buffers: Iterable[Any]) -> Iterator[list[Any]]:
    """Small ones together, so that each call of the system has something to do."""
    some, size = list[Any](), 0
    for buffer in buffers:
        some.append(buffer)
        size += memoryview(buffer).nbytes
        if size >= AT_ONCE:
            yield some
            some, size = [], 0
    yield some


def _make_private(folder: str) -> None:
    """A folder that is its owner's alone, and so those above it that are not there."""
    if os.path.isdir(folder):
        return
    above = os.path.dirname(folder)
    if above:
        _make_private(above)
    os.mkdir(folder, 0o700)
