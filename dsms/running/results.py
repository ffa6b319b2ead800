"""Result rows of a query in columnar chunks, numbered without gaps, and the bounded log from which readers resume."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa

from dsms.api import Push, PushKind
from dsms.errors import UsageError
from dsms.sql.types import ALWAYS

INSERT, DELETE = 1, -1


@dataclass(frozen=True, slots=True)
class Chunk:
    """Result rows `seq`, `seq` + 1, ...: sign int8[n] (+1 insert, -1 delete), at int64[n] instants, values."""

    seq: int
    sign: np.ndarray
    at: np.ndarray
    data: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.at)

    @property
    def nbytes(self) -> int:
        return int(self.data.nbytes + self.sign.nbytes + self.at.nbytes)

    def after(self, seq: int) -> Chunk:
        """The rows numbered `seq` and above."""
        skip = max(0, seq - self.seq)
        return Chunk(self.seq + skip, self.sign[skip:], self.at[skip:], self.data.slice(skip))


def instant(at: int) -> int | None:
    """An instant as the outside sees it: None before any clock."""
    return None if at == ALWAYS else at


def pushes(query: str, chunk: Chunk) -> Iterator[Push]:
    """The chunk as pushes, one per run of rows of one kind."""
    if not len(chunk):
        return
    cuts = np.flatnonzero(np.diff(chunk.sign)) + 1
    bounds = [0, *cuts.tolist(), len(chunk)]
    for start, stop in pairwise(bounds):
        kind: PushKind = "insert" if chunk.sign[start] > 0 else "delete"
        at = chunk.at[start:stop]
        ats = None if at[0] == at[-1] else pa.array(at)
        yield Push(query, chunk.seq + start, kind, instant(int(at[-1])), chunk.data.slice(start, stop - start), ats)


@dataclass(slots=True)
class ResultLog:
    """The newest result rows of a query, up to `limit` rows; what is older is forgotten whole chunks at a time."""

    limit: int
    chunks: deque[Chunk] = field(default_factory=deque)
    rows: int = 0
    next_seq: int = 0

    def append(self, chunk: Chunk) -> None:
        self.chunks.append(chunk)
        self.rows += len(chunk)
        self.next_seq = chunk.seq + len(chunk)
        while self.chunks and self.rows - len(self.chunks[0]) >= self.limit:
            self.rows -= len(self.chunks.popleft())

    def since(self, seq: int) -> list[Chunk]:
        """All rows numbered `seq` and above.

        Raises DS409 if rows from there on are forgotten or were never made."""
        first = self.chunks[0].seq if self.chunks else self.next_seq
        if not first <= seq <= self.next_seq:
            raise UsageError(
                "DS409",
                f"result rows from {seq} on can't be had: the log holds {first} to {self.next_seq - 1}",
                hint="subscribe without `from` for a fresh snapshot, or register the query with a larger result_log",
            )
        return [c.after(seq) for c in self.chunks if c.seq + len(c) > seq]

    @property
    def nbytes(self) -> int:
        return sum(c.nbytes for c in self.chunks)
