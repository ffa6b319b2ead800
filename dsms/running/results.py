"""The bounded log of a query's result rows, from which readers resume."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from dsms.api import Chunk
from dsms.errors import UsageError


@dataclass(slots=True)
class ResultLog:
    """The newest result rows of a query, up to `limit` rows and `limit_bytes`; what is older is forgotten, whole chunks
    at a time (the newest chunk stays)."""

    limit: int
    limit_bytes: int = 64 << 20
    chunks: deque[Chunk] = field(default_factory=deque)
    rows: int = 0
    nbytes: int = 0
    next_seq: int = 0

    def append(self, chunk: Chunk) -> None:
        count = len(chunk.at)
        self.chunks.append(chunk)
        self.rows += count
        self.nbytes += chunk.nbytes
        self.next_seq = chunk.seq + count
        if self.rows < self.limit and self.nbytes <= self.limit_bytes:
            return
        while len(self.chunks) > 1 and self._too_much(len(self.chunks[0])):
            old = self.chunks.popleft()
            self.rows -= len(old)
            self.nbytes -= old.nbytes

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
                f"result rows from {seq} on can't be had: the log holds {first} to {self.next_seq - 1}",
                hint="subscribe without `from` for a fresh snapshot, or register the query with a larger result_log",
            )
        return [c.after(seq) for c in self.chunks if c.seq + len(c) > seq]
