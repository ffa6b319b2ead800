"""A queue of batches in the order of a key: added behind, cut off in front."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Generic, Literal, Protocol, Self, TypeVar

import numpy as np

from dsms.sql.types import FOREVER


class KeyedRows(Protocol):
    """Some rows, at least one, with a key."""

    def __len__(self) -> int: ...

    def slice(self, start: int, stop: int) -> Self: ...

    @property
    def nbytes(self) -> int: ...


B = TypeVar("B", bound=KeyedRows)


@dataclass(slots=True)
class BatchQueue(Generic[B]):
    """Batches that wait.

    key      the attribute of a batch that they wait by: int64[n], which never falls, nor from one
             batch to the next
    rows     how many wait
    """

    key: Literal["ts", "number", "mark"] = "ts"
    batches: deque[B] = field(default_factory=deque)
    rows: int = 0

    def __bool__(self) -> bool:
        return bool(self.batches)

    def push(self, rows: B) -> None:
        """The next rows, if there are any."""
        if len(rows):
            self.batches.append(rows)
            self.rows += len(rows)

    def take(self, upto: int) -> list[B]:
        """The rows with keys <= `upto`, in order; they wait no more."""
        batches, key = self.batches, self.key
        taken: list[B] = []
        while batches:
            head = batches[0]
            keys = getattr(head, key)
            if keys[0] > upto:
                break
            if keys[-1] > upto:
                stop = int(np.searchsorted(keys, upto, side="right"))
                batches[0] = head.slice(stop, len(head))
                taken.append(head.slice(0, stop))
                break
            taken.append(batches.popleft())
        self.rows -= sum(map(len, taken))
        return taken

    def upto(self, upto: int) -> list[B]:
        """The rows with keys <= `upto`, in order, without taking them."""
        return BatchQueue(self.key, self.batches.copy(), self.rows).take(upto)

    def cut(self, upto: int, most: int) -> int:
        """`upto`, or if more than `most` rows wait up to there, an earlier key up to which about so
        many do."""
        seen = 0
        for batch in self.batches:
            if seen + len(batch) >= most:
                return min(upto, int(getattr(batch, self.key)[most - seen - 1]))
            seen += len(batch)
        return upto

    @property
    def first(self) -> int:
        """The least key; FOREVER if nothing waits."""
        return int(getattr(self.batches[0], self.key)[0]) if self.batches else FOREVER

    @property
    def nbytes(self) -> int:
        """Bytes of what waits."""
        return sum(b.nbytes for b in self.batches)
