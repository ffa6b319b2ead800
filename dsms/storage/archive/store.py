"""The files of one archive, on whatever file system they are: a local folder, or one that pyarrow
and Spark share.

On a local file system what was written is on the disk when a call returns, and a file that must be
new is made by one process only.  Object stores write a file whole or not at all, but two processes
that make the same one both succeed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from dsms.errors import UsageError

HIDDEN = ".part"  # how names of files end that are being written


@contextmanager
def operation(where: str) -> Iterator[None]:
    """Every operation on a file goes through here: what the file system says is DS955 that names
    the place."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        said = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise UsageError(
            "DS955",
            f"{where} can't be used: {said}",
            hint="check that it exists, has room, and may be written",
        ) from error


@dataclass(slots=True)
class Store:
    """url  as it was given: a path, or a URL that pyarrow and Spark both understand.  Paths are
         lists of names below
    it."""

    url: str
    fs: pafs.FileSystem = field(init=False)
    root: str = field(init=False)

    def __post_init__(self) -> None:
        self.fs, self.root = file_system(self.url)

    @property
    def local(self) -> bool:
        """Whether it is a folder of this machine."""
        return self.fs.type_name == "local"

    def path(self, *parts: str) -> str:
        """A path of the file system."""
        return "/".join((self.root, *parts))

    def location(self, path: str) -> str:
        """A file below the archive's folder, as its URL for Spark."""
        if self.local:
            return f"file://{self.path(path)}"
        scheme, _, rest = self.url.rstrip("/").partition("://")
        scheme = "s3a" if scheme == "s3" else scheme  # the name that Hadoop has for it
        return f"{scheme}://{rest.partition('?')[0].rstrip('/')}/{path}"

    # -- looking -----------------------------------------------------------------------------------

    def names(self, folder: str = "") -> list[str]:
        """The names in a folder below the archive's, sorted; none if it is not there."""
        return [i.base_name for i in self.infos(folder)]

    def infos(self, folder: str = "", recursive: bool = False) -> list[pafs.FileInfo]:
        """What is in a folder below the archive's, sorted by path."""
        where = self.path(folder) if folder else self.root
        with operation(where):
            selector = pafs.FileSelector(where, allow_not_found=True, recursive=recursive)
            return sorted(self.fs.get_file_info(selector), key=lambda i: i.path)

    def exists(self, *parts: str) -> bool:
        """Whether there is a file or folder of that name."""
        with operation(self.path(*parts)):
            return self.fs.get_file_info(self.path(*parts)).type != pafs.FileType.NotFound

    def read(self, *parts: str) -> bytes:
        """A whole file."""
        with operation(self.path(*parts)), self.fs.open_input_file(self.path(*parts)) as file:
            return file.read()

    def open(self, path: str) -> Any:
        """A file to read in any order."""
        with operation(self.path(path)):
            return self.fs.open_input_file(self.path(path))

    # -- changing ----------------------------------------------------------------------------------

    def write(self, data: bytes, *parts: str, new: bool = False) -> bool:
        """A small file, whole or not at all; `new`: only if there is none of that name, else
        False."""
        target, hidden = self.path(*parts), self.path(*parts[:-1], f".{parts[-1]}{HIDDEN}")
        self.make_folder(*parts[:-1])
        if not self.local:
            if new and self.exists(*parts):
                return False
            with operation(target), self.fs.open_output_stream(target) as out:
                out.write(data)
            return True
        if new:
            hidden = f"{hidden}.{os.getpid()}"
        with operation(target), open(hidden, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        with operation(target):
            return self._linked(hidden, target) if new else self._renamed(hidden, target)

    def write_parquet(self, write: Any, *parts: str) -> None:
        """A file that `write(file object)` writes, whole or not at all."""
        target, hidden = self.path(*parts), self.path(*parts[:-1], f".{parts[-1]}{HIDDEN}")
        self.make_folder(*parts[:-1])
        if not self.local:
            with operation(target), self.fs.open_output_stream(target) as out:
                write(out)
            return
        with operation(target), open(hidden, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        with operation(target):
            self._renamed(hidden, target)

    def _renamed(self, hidden: str, target: str) -> bool:
        os.replace(hidden, target)
        _sync_folder(os.path.dirname(target))
        return True

    def _linked(self, hidden: str, target: str) -> bool:
        """A link is made by one process only, where a rename would replace what is there."""
        try:
            os.link(hidden, target)
        except FileExistsError:
            return False
        finally:
            with suppress(OSError):
                os.remove(hidden)
        _sync_folder(os.path.dirname(target))
        return True

    def make_folder(self, *parts: str) -> None:
        """A folder, if it is not there."""
        where = self.path(*parts) if parts else self.root
        with operation(where):
            self.fs.create_dir(where, recursive=True)

    def move(self, old: str, new: str) -> None:
        """A file to another name below the archive's folder."""
        self.make_folder(*new.split("/")[:-1])
        with operation(self.path(new)):
            self.fs.move(self.path(old), self.path(new))

    def remove(self, *parts: str) -> None:
        """A file or folder, if it is there."""
        with operation(self.path(*parts)):
            info = self.fs.get_file_info(self.path(*parts))
            if info.type == pafs.FileType.Directory:
                self.fs.delete_dir(info.path)
            elif info.type == pafs.FileType.File:
                self.fs.delete_file(info.path)

    def sync(self, paths: Iterable[str]) -> None:
        """Files that another program wrote, and their names, are on the disk when this returns."""
        if not self.local:
            return
        folders = set()
        for path in paths:
            with operation(self.path(path)):
                _sync_folder(self.path(path))
            parts = path.split("/")[:-1]
            folders |= {self.path(*parts[:n]) for n in range(1, len(parts) + 1)}
        for folder in sorted(folders, reverse=True):
            with operation(folder):
                _sync_folder(folder)


def _sync_folder(path: str) -> None:
    """Or file."""
    fd = os.open(path or "/", os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def file_system(url: str) -> tuple[pafs.FileSystem, str]:
    """The file system of a path or URL, and the path in it.  Raises DS955."""
    try:
        if "://" not in url and not url.startswith("file:"):
            return pafs.LocalFileSystem(), os.path.abspath(url).rstrip("/")
        fs, path = _from_uri(url.replace("s3a://", "s3://", 1))
    except (pa.ArrowException, ValueError, OSError, ImportError) as error:
        raise UsageError(
            "DS955",
            f"{url} names no file system that can be used: {error}",
            hint="a path, or a URL such as s3://bucket/folder",
        ) from None
    return fs, path.rstrip("/")


def _from_uri(url: str) -> tuple[pafs.FileSystem, str]:
    """What pyarrow knows, else what fsspec knows where it is installed (gs:, abfss:, memory:,
    ...)."""
    try:
        return pafs.FileSystem.from_uri(url)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        try:
            from fsspec.core import url_to_fs  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            raise error from None
        fs, path = url_to_fs(url)
        return pafs.PyFileSystem(pafs.FSSpecHandler(fs)), path
