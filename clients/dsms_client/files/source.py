"""A file, or standard input (`-`): its bytes, decompressed and in UTF-8, and how far it was read.

The ending of its name says what it holds and how it is compressed; where it does not, or nothing is
named, the first bytes do.  Standard input is read once, as it comes.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import os
import stat
import sys
import threading
import zlib
from collections.abc import Iterator
from typing import Any

from dsms.errors import UsageError
from dsms_client.files.guess import kind_of
from dsms_client.files.options import BOM, KINDS, NULLS, Options
from dsms_client.files.unreadable import MAGIC, unpacked

__all__ = ["BOM", "KINDS", "NULLS", "FileSource"]

STDIN = "-"
ENDINGS = {
    "csv": "csv", "tsv": "tsv", "jsonl": "jsonl", "ndjson": "jsonl", "json": "json",
    "parquet": "parquet", "pq": "parquet", "arrow": "arrow", "arrows": "arrow",
    "feather": "arrow", "ipc": "arrow", "txt": None, "log": None, "dat": None, "data": None,
}  # a table  # fmt: skip
PACKED = {"gz": "gzip", "zst": "zstd", "bz2": "bz2"}
MARKS = (  # how files begin that are something else than text: bytes, what it is, what to do
    (b"\x1f\x8b", "compressed with gzip", "add .gz to its name"),
    (b"PAR1", "a Parquet file", "its name should end in .parquet, or give --format parquet"),
    (b"ARROW1", "an Arrow file", "its name should end in .arrow, or give --format arrow"),
    (b"\xff" * 4, "an Arrow stream", "its name should end in .arrow, or give --format arrow"),
    (b"PK\x03\x04", "a ZIP archive, or a spreadsheet", "unpack it, or save it as CSV"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "add .zst to its name"),
    (b"BZh", "compressed with bzip2", "add .bz2 to its name"),
    (b"\xfd7zXZ", "compressed with xz", "unpack it: unxz FILE"),
    (b"\xff\xfe", "text in UTF-16, not UTF-8", "give --encoding utf-16"),
    (b"\xfe\xff", "text in UTF-16, not UTF-8", "give --encoding utf-16"),
)
ENCODINGS = "say what it is: --encoding latin-1, cp1252, ..."
POLL = 0.2  # seconds between two looks at a file that grows
HEAD = 1 << 16  # bytes of which the kind is judged


class FileSource:
    """`path`: a file, or `-`.  `kind` is one of KINDS."""

    def __init__(
        self,
        path: str,
        options: Options = Options(),  # noqa: B008  (frozen)
        follow: threading.Event | None = None,
    ) -> None:
        self.path = path
        self._follow = follow
        self.name = "standard input" if path == STDIN else path
        self.options = options
        base, _, last = path.lower().rpartition(".")
        self.packed = PACKED.get(last) if base else None
        ending = os.path.splitext(base if self.packed else path.lower())[1].lstrip(".")
        self._raw: Any = None
        known = path == STDIN or options.kind is not None or ending in ENDINGS
        if not known:
            raise UsageError(
                "DS530",
                f"cannot tell what {path} holds from its name",
                hint="names end in .csv, .tsv, .jsonl, .json, .parquet, .arrow, .feather, .txt or "
                f".log; .gz, .zst or .bz2 may follow; or say --format {'|'.join(KINDS)}",
            )
        self.size = 0 if path == STDIN else _size(path)
        self.kind: str = options.kind or ENDINGS.get(ending) or self._guess()

    def _guess(self) -> str:
        return kind_of(self.head(HEAD))

    def head(self, size: int) -> bytes:
        """The first bytes, decompressed; at most `size`.  Raises DS530."""
        if self.path != STDIN:
            with self.guarded(), open(self.path, "rb") as raw:
                unpacked = _unpacked(raw, self.packed)
                return bytes(_filled(_recoded(unpacked, self.options.encoding), size))
        with self.guarded():
            return _stdin(self.options.encoding).head(size)

    def whole(self) -> bytes:
        """All bytes, decompressed; of standard input they are still to be read.  Raises DS530."""
        size = HEAD
        while len(found := self.head(size)) == size:
            size *= 2
        return found

    def raw_head(self) -> bytes | None:
        """The first bytes as they are on disk; None if they can't be looked at."""
        try:
            if self.path != STDIN:
                with open(self.path, "rb") as raw:
                    return raw.read(8)
        except OSError:
            pass
        return None

    def position(self) -> int:
        """Bytes of the file (as it is on disk) read so far."""
        if self._raw is None or self.path == STDIN:
            return self.size
        return self.size if self._raw.closed else int(self._raw.tell())

    @contextlib.contextmanager
    def binary(self) -> Iterator[Any]:
        """The contents, decompressed, in UTF-8: what has `read(n)`, which gives at most n bytes,
        none at the end.  Raises DS530, also where they are something else by how they begin."""
        with self.guarded():
            if self.path == STDIN:
                yield _stdin(self.options.encoding)
                return
            with open(self.path, "rb") as raw:
                self._raw = raw
                stream = _unpacked(raw, self.packed)
                if self._follow is not None:
                    stream = Growing(self.path, raw, self._follow)
                yield _recoded(stream, self.options.encoding)

    def has_changed(self) -> bool:
        """Whether the file is longer or shorter than it was at the beginning."""
        if self.path == STDIN or self._follow is not None:
            return False
        try:
            return os.stat(self.path).st_size != self.size
        except OSError:
            return True

    def judge(self, start: bytes) -> None:
        """Raises DS530 for what begins so, if that is no text."""
        for mark, what, hint in MARKS:
            if start.startswith(mark):
                raise UsageError("DS530", f"cannot read {self.name}: it is {what}", hint=hint)
        # every second byte of a wide encoding's ASCII
        if start[:1] == b"\0" or start[1:2] == b"\0" == start[3:4]:
            raise UsageError(
                "DS530",
                f"cannot read {self.name}: it is not UTF-8 text",
                hint="text in UTF-16 or UTF-32 needs --encoding utf-16-le, utf-16-be, utf-32, ...",
            )

    @contextlib.contextmanager
    def guarded(self) -> Iterator[None]:
        """DS530 for whatever the system or a compression says of the file."""
        try:
            yield
        except (OSError, EOFError, zlib.error) as problem:
            what, hint = unpacked(problem, self.packed, self.raw_head())
            raise UsageError("DS530", f"cannot read {self.name}: {what}", hint=hint) from None
        except UnicodeError as problem:  # some codecs raise no UnicodeDecodeError
            encoding = self.options.encoding or "UTF-8"
            raise UsageError(
                "DS530",
                f"{self.name} is not {encoding} text: {problem}",
                hint=ENCODINGS,
            ) from None


def _size(path: str) -> int:
    try:
        found = os.stat(path)
    except OSError as problem:
        raise UsageError("DS530", f"cannot read {path}: {problem.strerror}") from None
    if not stat.S_ISREG(found.st_mode):
        what = "a folder" if stat.S_ISDIR(found.st_mode) else "no file on disk"
        raise UsageError(
            "DS530",
            f"cannot read {path}: it is {what}",
            hint="of a folder name the files ('folder/*.csv'); a pipe is read as standard input: "
            "dsms load - < PIPE",
        )
    return found.st_size


def _unpacked(raw: Any, packed: str | None) -> Any:
    if packed is None:
        return raw
    if packed == "gzip":
        return gzip.GzipFile(fileobj=raw)
    import pyarrow as pa

    return pa.CompressedInputStream(raw, packed)


def _recoded(stream: Any, encoding: str | None) -> Any:
    if encoding is None or codecs.lookup(encoding).name in ("utf-8", "ascii"):
        return stream
    return _Recoded(stream, codecs.getincrementaldecoder(encoding)("strict"))


def _filled(stream: Any, size: int) -> bytes:
    """Up to so many bytes, fewer only at the end."""
    parts, missing = [], size
    while missing and (part := stream.read(missing)):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


class _Stdin:
    """Standard input: looked at, then read, whoever opens it."""

    def __init__(self, file: Any, encoding: str | None) -> None:
        self.file = file
        raw = getattr(file, "buffer", file)
        raw = getattr(raw, "raw", raw)  # what is there, without waiting for a whole block
        start = raw.read(4) or b""
        start = start.encode() if isinstance(start, str) else start
        packed = next((p for mark, p in MAGIC.items() if start.startswith(mark)), None)
        self._stream = _recoded(_unpacked(_Behind(start, raw), packed), encoding)
        self._head, self._at = b"", 0  # what was looked at, and how much of it was read

    def head(self, size: int) -> bytes:
        end = self._at + size
        if len(self._head) < end:
            self._head += _filled(self._stream, end - len(self._head))
        return self._head[self._at : end]

    def read(self, size: int) -> bytes:
        part = self._head[self._at : self._at + size]
        if not part:
            self._head, self._at = b"", 0
            return bytes(self._stream.read(size) or b"")
        self._at += len(part)
        return part


_open: list[_Stdin] = []  # at most one


def _stdin(encoding: str | None) -> _Stdin:
    if not _open or _open[0].file is not sys.stdin:
        _open[:] = [_Stdin(sys.stdin, encoding)]
    return _open[0]


class _Behind(io.RawIOBase):
    """Bytes that were read already, then the rest of a stream."""

    def __init__(self, start: bytes, stream: Any) -> None:
        self._start, self._stream = start, stream

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self._start:
            size = len(self._start) if size < 0 else size
            part, self._start = self._start[:size], self._start[size:]
            return part
        part = self._stream.read(size)
        return part.encode() if isinstance(part, str) else bytes(part or b"")

    def readinto(self, buffer: Any) -> int:
        part = self.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)


class Growing:
    """A file that others append to: its end is only one when it was rotated away, cut off, or
    `stop` is set."""

    def __init__(self, path: str, raw: Any, stop: threading.Event) -> None:
        self._path, self._raw, self._stop = path, raw, stop

    def read(self, size: int) -> bytes:
        """What has come, once something has."""
        while True:
            gone = self._is_gone()
            part = bytes(self._raw.read(size))
            if part:
                return part
            if gone or self._stop.is_set():
                return b""
            self._stop.wait(POLL)

    def _is_gone(self) -> bool:
        mine = os.fstat(self._raw.fileno())
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            return False  # the next one will come
        same = (there.st_ino, there.st_dev) == (mine.st_ino, mine.st_dev)
        return not same or mine.st_size < self._raw.tell()


class _Recoded:
    """A stream of another encoding, as UTF-8."""

    def __init__(self, stream: Any, decoder: codecs.IncrementalDecoder) -> None:
        self._stream, self._decoder, self._left, self._over = stream, decoder, b"", False

    def read(self, size: int) -> bytes:
        while not self._left and not self._over:
            part = self._stream.read(size)
            self._over = not part
            self._left = self._decoder.decode(bytes(part or b""), self._over).encode()
        out, self._left = self._left[:size], self._left[size:]
        return out
