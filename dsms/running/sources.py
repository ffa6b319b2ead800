"""Where a running plan gets its rows: queues of stream rows, changes of tables."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from dsms.sql.types import FOREVER, Schema
from dsms.state.batch import Batch, concat, empty_batch


@dataclass(slots=True)
class StreamSource:
    """Rows of one stream that a query has not taken yet, in (ts, arrival) order; shares arrays with the stream."""

    schema: Schema
    queue: deque[Batch] = field(default_factory=deque)
    waiting: int = 0
    nothing: Batch = field(init=False)

    def __post_init__(self) -> None:
        self.nothing = empty_batch(self.schema, 1)

    def push(self, rows: Batch) -> None:
        """Rows released by the stream; their instants are not before those pushed earlier."""
        if len(rows):
            self.queue.append(rows)
            self.waiting += len(rows)

    def cut(self, upto: int, rows: int) -> int:
        """The instant <= `upto` at which about `rows` waiting rows have been taken."""
        seen = 0
        for batch in self.queue:
            if seen + len(batch) >= rows:
                return min(upto, int(batch.ts[rows - seen - 1]))
            seen += len(batch)
        return upto

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        taken = []
        while self.queue and self.queue[0].ts[0] <= upto:
            head = self.queue.popleft()
            if head.ts[-1] > upto:
                stop = int(np.searchsorted(head.ts, upto, side="right"))
                self.queue.appendleft(head.slice(stop, len(head)))
                head = head.slice(0, stop)
            taken.append(head)
        self.waiting -= sum(len(b) for b in taken)
        return concat(taken) if taken else self.nothing

    def live(self) -> int:
        return self.waiting

    def nbytes(self) -> int:
        return sum(int(b.ts.nbytes) * 2 + sum(c.nbytes for c in b.cols) for b in self.queue)

    def next_due(self) -> int:
        return int(self.queue[0].ts[0]) if self.queue else FOREVER


class Source(Protocol):
    """Takes the rows that a stream hands on."""

    def push(self, rows: Batch) -> None: ...
