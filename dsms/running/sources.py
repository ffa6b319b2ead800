"""Where a running plan gets its rows: queues of stream rows, changes of tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dsms.sql.types import Schema
from dsms.state.batch import Batch, concat, empty_batch, narrow
from dsms.state.queue import BatchQueue


@dataclass(slots=True)
class StreamSource:
    """Rows of one stream that a query has not taken yet, in (ts, arrival) order; shares arrays with
    the stream."""

    schema: Schema
    queue: BatchQueue[Batch] = field(default_factory=BatchQueue)
    nothing: Batch = field(init=False)

    def __post_init__(self) -> None:
        self.nothing = empty_batch(self.schema, 1)

    @property
    def waiting(self) -> int:
        """How many rows wait."""
        return self.queue.rows

    def push(self, rows: Batch) -> None:
        """Rows released by the stream; their instants are not before those pushed earlier.  Columns
        that were added to it since are left out."""
        self.queue.push(narrow(rows, len(self.schema)))

    def cut(self, upto: int, rows: int) -> int:
        """The instant <= `upto` at which about `rows` waiting rows have been taken."""
        return self.queue.cut(upto, rows)

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        taken = self.queue.take(upto)
        return concat(taken) if taken else self.nothing

    def live(self) -> int:
        return self.queue.rows

    def nbytes(self) -> int:
        return self.queue.nbytes

    def next_due(self) -> int:
        return self.queue.first


class StreamConsumer(Protocol):
    """Takes the rows that a stream hands on."""

    def push(self, rows: Batch) -> None: ...
