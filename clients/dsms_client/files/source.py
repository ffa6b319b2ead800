"""A file on disk, plain or gzipped, and how far it has been read."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from dsms.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = ("csv", "tsv", "jsonl", "ndjson", "json", "parquet", "pq")
MARKS = (  # how files begin that are something else than text: bytes, what it is, what to do
    (b"\x1f\x8b", "compressed with gzip", "add .gz to its name"),
    (b"PAR1", "a Parquet file", "its name should end in .parquet"),
    (b"ARROW1", "an Arrow file", "write it as Parquet: pyarrow.parquet.write_table"),
    (b"PK\x03\x04", "a ZIP archive, or a spreadsheet", "unpack it, or save it as CSV"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "unpack it: unzstd FILE"),
    (b"BZh", "compressed with bzip2", "unpack it: bunzip2 FILE"),
    (b"\xfd7zXZ", "compressed with xz", "unpack it: unxz FILE"),
    (b"\xff\xfe", "text in UTF-16, not UTF-8", "iconv -f UTF-16 -t UTF-8 FILE > other.csv"),
    (b"\xfe\xff", "text in UTF-16, not UTF-8", "iconv -f UTF-16 -t UTF-8 FILE > other.csv"),
)
# cells of CSV that are NULL unless others are given, and unless they are quoted
NULLS = ("", "NULL", "\\N")
BOM = b"\xef\xbb\xbf"


class FileSource:
    """`path` ends in .csv, .tsv, .jsonl, .ndjson, .json or .parquet, perhaps with .gz after it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.gzipped = path.lower().endswith(".gz")
        base = path[:-3] if self.gzipped else path
        self.kind = os.path.splitext(base)[1].lower().lstrip(".")
        if self.kind not in KINDS:
            raise UsageError(
                "DS530",
                f"cannot tell what {path} holds from its name",
                hint="names end in .csv, .tsv, .jsonl or .parquet; .gz may follow",
            )
        try:
            found = os.stat(path)
        except OSError as problem:
            raise UsageError("DS530", f"cannot read {path}: {problem.strerror}") from None
        if not stat.S_ISREG(found.st_mode):
            what = "a folder" if stat.S_ISDIR(found.st_mode) else "no file on disk"
            raise UsageError(
                "DS530",
                f"cannot read {path}: it is {what}",
                hint="files are loaded one at a time, and read twice: pipes are not",
            )
        self.size = found.st_size
        self._raw: Any = None

    def another(self) -> FileSource:
        """The same file, read apart from this one."""
        return FileSource(self.path)

    def position(self) -> int:
        """Bytes of the file (as it is on disk) read so far."""
        return self._raw.tell() if self._raw is not None and not self._raw.closed else self.size

    @contextlib.contextmanager
    def binary(self) -> Iterator[Any]:
        """The contents, decompressed.  Raises DS530."""
        with self.guarded(), open(self.path, "rb") as raw:
            self._raw = raw
            yield gzip.GzipFile(fileobj=raw) if self.gzipped else raw

    @contextlib.contextmanager
    def stream(self) -> Iterator[pa.NativeFile]:
        """The contents, decompressed, as Arrow reads them without asking Python.  Raises DS530."""
        import pyarrow as pa

        with self.guarded(), pa.OSFile(self.path) as raw:
            self._raw = raw
            if not self.gzipped:
                yield raw
                return
            with pa.CompressedInputStream(raw, "gzip") as unpacked:
                yield unpacked

    @contextlib.contextmanager
    def text(self, errors: str = "strict") -> Iterator[IO[str]]:
        """The contents as text.  Raises DS530, also where they are something else by how they
        begin; `errors`: what to do where they are not UTF-8."""
        with self.binary() as stream:
            self._judge(stream)
            with io.TextIOWrapper(stream, encoding="utf-8-sig", errors=errors, newline="") as lines:
                yield lines

    def _judge(self, stream: Any) -> None:
        start = stream.read(8)
        stream.seek(0)
        for mark, what, hint in MARKS:
            if start.startswith(mark):
                raise UsageError("DS530", f"cannot read {self.path}: it is {what}", hint=hint)
        # every second byte of a wide encoding's ASCII
        if start[:1] == b"\0" or start[1:2] == b"\0" == start[3:4]:
            raise UsageError(
                "DS530",
                f"cannot read {self.path}: it is not UTF-8 text",
                hint="text in UTF-16 or UTF-32 has to be converted first (iconv)",
            )

    @contextlib.contextmanager
    def guarded(self) -> Iterator[None]:
        """DS530 for whatever the system or a compression says of the file."""
        try:
            yield
        except (OSError, EOFError, zlib.error) as problem:
            raise UsageError("DS530", f"cannot read {self.path}: {problem}") from None
        except UnicodeDecodeError as problem:
            raise UsageError("DS530", f"{self.path} is not UTF-8 text: {problem}") from None
