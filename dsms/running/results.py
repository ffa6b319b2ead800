"""The bounded log of a query's result rows, from which readers resume."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from dsms.api import Chunk
from dsms.errors import UsageError
from dsms.sql.types import ALWAYS


@dataclass(slots=True)
class ResultLog:
    """The newest result rows of a query, up to `limit` rows and `limit_bytes`; what is older is
    forgotten, whole chunks at a time (the newest chunk stays).

    known_from  the first instant as of which these rows undo the answer; None: not known
    forgotten   the last instant of rows that it has forgotten; None: of none, or not known
    current     the number of the first row since it began, or since a clock was set back"""

    limit: int
    limit_bytes: int = 64 << 20
    chunks: deque[Chunk] = field(default_factory=deque)
    rows: int = 0
    nbytes: int = 0
    next_seq: int = 0
    known_from: int | None = None
    forgotten: int | None = None
    current: int = 0

    def append(self, chunk: Chunk) -> None:
        count = len(chunk.at)
        self.chunks.append(chunk)
        self.rows += count
        self.nbytes += chunk.nbytes
        self.next_seq = chunk.seq + count
        if self.rows >= self.limit or self.nbytes > self.limit_bytes:
            self._forget()

    def shorten(self, limit: int) -> None:
        """It holds so many rows from here on; or more than it did."""
        self.limit = limit
        self._forget()

    def _forget(self) -> None:
        while len(self.chunks) > 1 and self._too_much(len(self.chunks[0])):
            old = self.chunks.popleft()
            self.rows -= len(old)
            self.nbytes -= old.nbytes
            last = int(old.at.max())
            self.forgotten = last if self.forgotten is None else max(self.forgotten, last)
            if self.known_from is not None and old.seq >= self.current:
                self.known_from = max(self.known_from, last)

    def go_on(self, seq: int) -> None:
        """Number the rows on from `seq`, instead of from 0."""
        for chunk in self.chunks:
            chunk.seq += seq
        self.next_seq += seq
        self.current += seq

    def prepend(self, older: ResultLog) -> None:
        """The rows of another log come before these."""
        self.chunks.extendleft(reversed(older.chunks))
        self.rows, self.nbytes = self.rows + older.rows, self.nbytes + older.nbytes
        self.forgotten = older.forgotten

    @property
    def lost(self) -> int:
        """The last instant of which rows may be forgotten; ALWAYS: there is none."""
        if not self.chunks or not self.chunks[0].seq:
            return ALWAYS
        return int(self.chunks[0].at[0]) if self.forgotten is None else self.forgotten

    def __getstate__(self) -> dict[str, Any]:
        """A checkpoint has the rows in one piece: thousands of small chunks take far longer to
        write."""
        return {f.name: getattr(self, f.name) for f in fields(self)} | {
            "chunks": PackedChunks.of(self.chunks)
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.known_from, self.forgotten, self.current = None, None, 0  # of earlier versions
        for name, value in state.items():
            setattr(self, name, deque(value.chunks()) if name == "chunks" else value)

    def _too_much(self, oldest: int) -> bool:
        return self.rows - oldest >= self.limit or self.nbytes > self.limit_bytes

    def since(self, seq: int) -> list[Chunk]:
        """All rows numbered `seq` and above.

        Raises DS409 if rows from there on are forgotten or were never made."""
        first = self.chunks[0].seq if self.chunks else self.next_seq
        if not 0 <= seq <= self.next_seq:
            raise UsageError(
                "DS409",
                f"there is no result row {seq} yet: the next one is {self.next_seq}",
                hint="subscribe without `from` for a fresh snapshot",
            )
        if seq < first:
            raise UsageError(
                "DS409",
                f"result rows from {seq} on can't be had: the log holds {first} to "
                f"{self.next_seq - 1}",
                hint="subscribe without `from` for a fresh snapshot, or register the query with a "
                "larger result_log",
            )
        return [c.after(seq) for c in self.chunks if c.seq + len(c) > seq]


@dataclass(frozen=True, slots=True)
class PackedChunks:
    """The chunks of a log with their rows in one piece.

    seqs, nbytes    int64[c]      of each chunk
    starts          int64[c + 1]  where its rows begin, and where the last ones end
    sign, at, data  of all rows; data is None where there is no chunk
    """

    seqs: np.ndarray
    nbytes: np.ndarray
    starts: np.ndarray
    sign: np.ndarray
    at: np.ndarray
    data: pa.RecordBatch | None

    @classmethod
    def of(cls, chunks: Sequence[Chunk]) -> PackedChunks:
        """Of one log: all have the same columns."""
        return cls(
            np.array([c.seq for c in chunks], np.int64),
            np.array([c.nbytes for c in chunks], np.int64),
            np.cumsum([0, *map(len, chunks)], dtype=np.int64),
            np.concatenate([np.empty(0, np.int8), *(c.sign for c in chunks)]),
            np.concatenate([np.empty(0, np.int64), *(c.at for c in chunks)]),
            _whole([c.data for c in chunks]) if chunks else None,
        )

    def chunks(self) -> Iterator[Chunk]:
        """The chunks again; they share these rows."""
        seqs, sizes = self.seqs.tolist(), self.nbytes.tolist()
        for seq, nbytes, (start, stop) in zip(
            seqs, sizes, pairwise(self.starts.tolist()), strict=True
        ):
            assert self.data is not None
            data = self.data.slice(start, stop - start)
            yield Chunk(seq, self.sign[start:stop], self.at[start:stop], data, nbytes)


def _whole(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    columns = [pa.concat_arrays([p.column(k) for p in parts]) for k in range(parts[0].num_columns)]
    return pa.RecordBatch.from_arrays(columns, schema=parts[0].schema)
