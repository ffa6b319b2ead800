"""Files: a source of one that grows, a sink that appends.

Source.  Lines as they are written behind the last end of a line, also when the file is rotated
(another file has its name: the old one is read to its end first) or cut (it is read from its
beginning).  Position: which file (device and inode, and its first bytes), and how far.  Exactly
once, as long as the file that was being read is there, under its name or beside it.

Sink.  JSON and CSV are appended to one file, and what was written behind the last rows that were
noted is cut off again; Parquet and Arrow are a file for each telling, named by the numbers of its
rows and put there as a whole.  Exactly once."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow.parquet as pq

from dsms_server.connectors.protocol import (
    Connector,
    Failed,
    Messages,
    Option,
    Place,
    Sink,
    Source,
    Told,
    Unreachable,
)

BLOCK = 1 << 20  # bytes that are read at once
HEAD = 64  # first bytes by which a file is known again
LONGEST = 64 << 20  # bytes of a line
PACKED = {".gz", ".bz2", ".xz", ".zst", ".zip"}
LOOK = 0.2  # seconds between two looks at a file that does not grow

PATH = Option("path", "of the file, below a folder of --files, or --sink-files", needed=True)


def find(path: str, folders: tuple[str, ...], exists: bool) -> Path:
    """The file below one of the folders, all links followed.  Raises DS665, in one way for what is
    not there and what lies outside; DS664 for one that may yet come."""
    for folder in map(Path, folders):
        root = folder.resolve()
        found = (root / path).resolve()
        if found.is_relative_to(root) and found != root:
            if exists and not found.exists():
                raise Unreachable("DS664", f"there is no file {path} yet")
            return found
    raise Failed(
        "DS665",
        f"there is no file {path} below the folders that sources and sinks may use",
        hint="dsms serve --files DIR names one for sources, --sink-files DIR one for sinks; paths "
        "are relative to it",
    )


@dataclass(slots=True)
class Reader:
    """An open file, how far its whole lines are read, and what follows of a line."""

    file: BinaryIO
    at: int
    rest: bytes = b""
    began_as: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.began_as = self.known_by

    @property
    def known_by(self) -> list[Any]:
        """What tells it from others, whatever it is called."""
        return identity(self.file.fileno())

    def lines(self) -> list[bytes]:
        """Whole lines that have come, some at a time.  Raises Failed DS668 for one too long."""
        block = self.file.read(BLOCK)
        if not block:
            return []
        text = self.rest + block
        end = text.rfind(b"\n") + 1
        self.rest = text[end:]
        if len(self.rest) > LONGEST:
            raise Failed("DS668", f"a line has more than {LONGEST} bytes")
        self.at += end
        return text[:end].split(b"\n")[:-1] if end else []


def identity(handle: int) -> list[Any]:
    """Device, inode and a digest of the first bytes (of a file with fewer, none)."""
    about = os.fstat(handle)
    head = os.pread(handle, HEAD, 0)
    digest = hashlib.sha256(head).hexdigest()[:16] if len(head) == HEAD else ""
    return [about.st_dev, about.st_ino, digest]


def same(a: list[Any], b: list[Any]) -> bool:
    """Whether two files are one, as far as was known of the first then."""
    return a[:2] == b[:2] and (not a[2] or not b[2] or a[2] == b[2])


class FileSource(Source):
    """A file that grows."""

    options = (
        PATH,
        Option(
            "begin", "where a file is begun that is new", default="start", words=("start", "end")
        ),
    )

    def __init__(self, options: Mapping[str, Any], place: Place) -> None:
        super().__init__(options, place)
        self._reader: Reader | None = None
        self._header: bytes | None = None
        self._names = options["format"] == "csv" and options["header"]

    async def open(self, position: Any) -> Any:
        path = find(self.said["path"], self.place.files, exists=True)
        await self.apart(self._open, path, position)
        self._path = path
        return self._position()

    def _open(self, path: Path, position: Any) -> None:
        """The file that the position is of, wherever it is now; else the one of that name."""
        if position is None:
            self._begin(path, self.said["begin"] == "end")
            return
        known, at = position
        for one in (path, *sorted(path.parent.glob(f"{path.name}*"))):
            with contextlib.suppress(OSError):
                file = one.open("rb")
                if same(known, identity(file.fileno())) and os.fstat(file.fileno()).st_size >= at:
                    self._take(file, at)
                    return
                file.close()
        self._begin(path, False)  # it is gone, or was cut: what has its name is another one

    def _begin(self, path: Path, at_end: bool) -> None:
        file = path.open("rb")
        size = os.fstat(file.fileno()).st_size
        self._take(file, _line_start(file, size) if at_end else 0)

    def _take(self, file: BinaryIO, at: int) -> None:
        self._close()
        file.seek(0)
        self._header = None
        if self._names:
            line = file.readline(LONGEST)
            if line.endswith(b"\n"):
                self._header, at = line.rstrip(b"\r\n"), max(at, len(line))
        file.seek(at)
        self._reader = Reader(file, at)

    def _position(self) -> Any:
        reader = self._reader
        return None if reader is None else [reader.known_by, reader.at]

    async def read(self) -> AsyncIterator[Messages]:
        while True:
            messages = await self.apart(self._next)
            if messages is None:
                self.lag = 0
                await asyncio.sleep(LOOK)
            else:
                yield messages

    def _next(self) -> Messages | None:
        """What has come; None: nothing."""
        reader = self._reader
        assert reader is not None
        lines = reader.lines()
        if not lines:
            return self._other(reader)
        if self._names and self._header is None:
            self._header, lines = lines[0].rstrip(b"\r"), lines[1:]
        return Messages(lines, self._position(), header=self._header)

    def _other(self, reader: Reader) -> Messages | None:
        """At the end of the file: it may have been cut, or another one may follow it, and then
        nothing comes behind its last line, ended or not."""
        size = os.fstat(reader.file.fileno()).st_size
        if size < reader.at or not same(reader.began_as, reader.known_by):
            self._take(self._path.open("rb"), 0)
            return Messages((), self._position(), header=self._header)
        following = _following(self._path, reader)
        if following is None or reader.file.read(1):  # which came while we looked
            reader.file.seek(reader.at + len(reader.rest))
            return None
        last, header = ([reader.rest] if reader.rest else []), self._header
        self._begin(following, False)
        return Messages(last, self._position(), header=header)

    def _close(self) -> None:
        if self._reader is not None:
            self._reader.file.close()
            self._reader = None

    async def close(self) -> None:
        self._close()


def _following(path: Path, reader: Reader) -> Path | None:
    """The file that is to be read behind this one, by the times of their last changes."""
    here = os.fstat(reader.file.fileno())
    found: list[tuple[int, Path]] = []
    own = None
    for one in path.parent.glob(f"{path.name}*"):
        with contextlib.suppress(FileNotFoundError):
            about = one.stat()
            if (about.st_dev, about.st_ino) == (here.st_dev, here.st_ino):
                own = one
            elif one.suffix not in PACKED:
                found.append((about.st_mtime_ns, one))
    if own == path:
        return None
    later = [(at, one) for at, one in found if one == path or at >= here.st_mtime_ns]
    others = sorted(pair for pair in later if pair[1] != path)
    return others[0][1] if others and own else next((o for _, o in later if o == path), None)


def _line_start(file: BinaryIO, size: int) -> int:
    """Behind the last end of a line."""
    at = size
    while at:
        first = max(0, at - BLOCK)
        found = os.pread(file.fileno(), at - first, first).rfind(b"\n")
        if found >= 0:
            return first + found + 1
        at = first
    return 0


class FileSink(Sink):
    """Rows at the end of a file, or files of rows."""

    options = (
        PATH,
        Option("parquet", "a file of Parquet for each telling, in a folder", "flag", default=False),
    )

    def __init__(self, options: Mapping[str, Any], place: Place) -> None:
        super().__init__(options, place)
        self._file: BinaryIO | None = None

    async def open(self, note: Any) -> int | None:
        path = find(self.said["path"], self.place.files, exists=False)
        return await self.apart(self._open, path, note)

    def _open(self, path: Path, note: Any) -> int | None:
        self._path = path
        if self._by_files:
            path.mkdir(mode=0o755, exist_ok=True)
            return None
        self._file = path.open("ab")
        if note is not None and os.fstat(self._file.fileno()).st_size > note:
            self._file.truncate(note)
        return None

    @property
    def _by_files(self) -> bool:
        """Whether each telling is a file of its own."""
        return bool(self.said["parquet"]) or self.said["format"] == "arrow"

    async def write(self, told: Told) -> Any:
        return await self.apart(self._put_file if self._by_files else self._written, told)

    def _written(self, told: Told) -> int:
        file, writing = self._file, self.place.writing
        assert file is not None and writing is not None
        head = writing.head(told) if not os.fstat(file.fileno()).st_size else b""
        lines = writing.lines(told)
        file.write(head + b"".join(line + b"\n" for line in lines))
        file.flush()
        os.fsync(file.fileno())
        return os.fstat(file.fileno()).st_size

    def _put_file(self, told: Told) -> None:
        writing = self.place.writing
        assert writing is not None
        form = "parquet" if self.said["parquet"] else "arrow"
        which = f"{told.first:018d}{'-snapshot' if told.snapshot else ''}"
        path = self._path / f"{self.place.name}-{which}.{form}"
        beside = path.with_suffix(".new")
        if self.said["parquet"]:
            pq.write_table(writing.table(told), beside)
        else:
            beside.write_bytes(writing.whole(told))
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(beside, path)

    async def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


CONNECTOR = Connector("file", FileSource, FileSink)
