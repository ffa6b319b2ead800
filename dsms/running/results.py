"""The bounded log of a query's result rows, from which readers resume."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from dsms.api import Chunk
from dsms.errors import UsageError


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
        if not 0 <= seq <= self.next_seq:
            raise UsageError(
                "DS409",
                f"there is no result row {seq} yet: the next one is {self.next_seq}",
                hint="numbers begin at 0, and again after a restart: subscribe without `from` for a fresh snapshot",
            )
        if seq < first:
            raise UsageError(
                "DS409",
                f"result rows from {seq} on can't be had: the log holds {first} to {self.next_seq - 1}",
                hint="subscribe without `from` for a fresh snapshot, or register the query with a larger result_log",
            )
        return [c.after(seq) for c in self.chunks if c.seq + len(c) > seq]

    @property
    def nbytes(self) -> int:
        return sum(c.nbytes for c in self.chunks)
