"""A file on disk, plain or gzipped, and how far it has been read."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
from collections.abc import Iterator
from typing import IO, Any

from dsms.errors import UsageError


class Source:
    """`path` ends in .csv, .tsv, .jsonl, .ndjson, .json or .parquet, perhaps with .gz after it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.gzipped = path.lower().endswith(".gz")
        base = path[:-3] if self.gzipped else path
        self.kind = os.path.splitext(base)[1].lower().lstrip(".")
        if self.kind not in ("csv", "tsv", "jsonl", "ndjson", "json", "parquet", "pq"):
            raise UsageError("DS521", f"cannot tell what {path} holds from its name",
                             hint="names end in .csv, .tsv, .jsonl or .parquet; .gz may follow")  # fmt: skip
        try:
            self.size = os.stat(path).st_size
        except OSError as problem:
            raise UsageError("DS521", f"cannot read {path}: {problem.strerror}") from None
        self._raw: IO[bytes] | None = None

    def position(self) -> int:
        """Bytes of the file (as it is on disk) read so far."""
        return self._raw.tell() if self._raw is not None and not self._raw.closed else self.size

    @contextlib.contextmanager
    def binary(self) -> Iterator[Any]:
        """The contents, decompressed.  Raises DS521."""
        try:
            with open(self.path, "rb") as raw:
                self._raw = raw
                yield gzip.GzipFile(fileobj=raw) if self.gzipped else raw
        except (OSError, EOFError) as problem:
            raise UsageError("DS521", f"cannot read {self.path}: {problem}") from None

    @contextlib.contextmanager
    def text(self) -> Iterator[IO[str]]:
        """The contents as text.  Raises DS521."""
        with self.binary() as stream, io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as lines:
            try:
                yield lines
            except UnicodeDecodeError as problem:
                raise UsageError("DS521", f"{self.path} is not UTF-8 text: {problem}") from None
