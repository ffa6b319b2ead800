"""Two answers that go on changing: what a reader of the first has to be told to have the second.

Comparing large answers takes long, and may be done in another thread: over copies, while both
queries go on; what these have told since is added at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dsms.api import Chunk, Subscription
from dsms.forms import bags
from dsms.operators.answers import Answer
from dsms.operators.sort import by_columns
from dsms.running.registered import Registered
from dsms.sql.types import arrow_schema
from dsms.state.columns import all_taken

Columns = Sequence[pa.Array]
LARGE = 1 << 14  # rows of both answers from which they are compared beforehand


@dataclass(slots=True)
class Difference:
    """Between the answers of two queries, which are followed from wherever they stand, and stand at
    the same instant when it is asked for.

    copies       of the answers, as of the instants from which on they are `told`
    rows, signs  of the copies, once they are compared"""

    old: Registered
    new: Registered
    copies: list[pa.RecordBatch] = field(default_factory=list)
    told: list[Subscription] = field(default_factory=list)
    rows: Columns | None = None
    signs: np.ndarray = field(default_factory=lambda: np.empty(0, np.int8))

    def follow(self) -> None:
        """The first of them, then the second, is followed from here on."""
        query = (self.old, self.new)[len(self.told)]
        self.copies.append(_answer(query))
        self.told.append(Subscription(query.name, (), 1 << 62))
        query.readers.append(self.told[-1])

    @property
    def large(self) -> bool:
        """Whether comparing them is worth another thread."""
        return sum(b.num_rows for b in self.copies) >= LARGE

    def run(self) -> None:
        """Compare the copies, in any thread."""
        before, after = self.copies
        signs = np.repeat(np.array([-1, 1], np.int8), [before.num_rows, after.num_rows])
        columns = list(map(pa.concat_arrays, zip(before.columns, after.columns, strict=True)))
        self.rows, self.signs = _net(columns, signs)
        self.copies = []

    def close(self) -> None:
        """Nobody follows the two any more."""
        for query, reader in zip((self.old, self.new), self.told, strict=False):
            query.readers = [r for r in query.readers if r is not reader]

    def change(self) -> Chunk:
        """Result rows from the number at which the new query is, of its instant: what leaves, then
        what enters, each in order of its columns (not as operators happen to have it)."""
        if self.rows is None:
            while len(self.told) < 2:
                self.follow()
            self.run()
        assert self.rows is not None
        since = [*_since(self.told[0], -1), *_since(self.told[1], 1)]
        rows, signs = self.rows, self.signs
        if since:
            parts = zip(rows, *(columns for columns, _ in since), strict=True)
            all_signs = np.concatenate([signs, *(s for _, s in since)])
            rows, signs = _net([pa.concat_arrays(p) for p in parts], all_signs)
        self.close()
        data = pa.RecordBatch.from_arrays(list(rows), schema=arrow_schema(self.new.output.schema))
        at = np.full(len(signs), self.new.clock, np.int64)
        return Chunk(self.new.seq, signs, at, data)


def _answer(query: Registered) -> pa.RecordBatch:
    rows = query.answer()
    assert rows is not None
    return rows


def _since(reader: Subscription, sign: int) -> Iterator[tuple[Columns, np.ndarray]]:
    for item in reader.take_chunks():
        if isinstance(item, Chunk):
            yield item.data.columns, (item.sign * sign).astype(np.int8)


def _net(columns: Columns, signs: np.ndarray) -> tuple[Columns, np.ndarray]:
    rows, signs = bags.net(columns, signs)
    found = Answer(len(rows), all_taken(tuple(columns), rows))
    order = by_columns(found.cols, found.n)
    order = order[np.argsort(signs[order], kind="stable")]
    return found.take(order).cols, signs[order]
