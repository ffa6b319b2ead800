"""Rows that wait to be archived: out of a stream's windows, or results of a query.

They wait in the order of their marks, the instants in whose order they land: of a stream's row and
of a result whose death is known its birth, of other results their death, of a periodic answer its
boundary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dsms.sql.types import FOREVER, MIN_INSTANT, Schema
from dsms.state.columns import all_sliced
from dsms.state.queue import BatchQueue
from dsms.storage.archive.schema import names_of, stored, stored_schema


@dataclass(frozen=True, slots=True)
class Leaving:
    """n rows.

    mark   int64[n]  non-decreasing
    born   int64[n]  insertion time in the archive (µs)
    dies   int64[n]  when the archive lets go of it; None: never
    number int64[n]  arrival number, or that of the result row
    cols   Arrow arrays of physical types
    """

    mark: np.ndarray
    born: np.ndarray
    dies: np.ndarray | None
    number: np.ndarray
    cols: tuple[pa.Array, ...]

    def __len__(self) -> int:
        return len(self.mark)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, about."""
        return 32 * len(self.mark) + sum(c.nbytes for c in self.cols)

    def slice(self, start: int, stop: int) -> Leaving:
        """Rows [start, stop), without copying."""
        dies = None if self.dies is None else self.dies[start:stop]
        cols = all_sliced(self.cols, start, stop)
        return Leaving(
            self.mark[start:stop], self.born[start:stop], dies, self.number[start:stop], cols
        )

    def after(self, mark: int) -> Leaving:
        """The rows with marks > `mark`."""
        start = int(np.searchsorted(self.mark, mark, side="right"))
        return self if start == 0 else self.slice(start, len(self))


def kept_until(instants: np.ndarray, lifetime: int | None) -> np.ndarray | None:
    """FOR `lifetime` µs from those instants on; None: for good."""
    if lifetime is None:
        return None
    return np.where(instants > FOREVER - lifetime, FOREVER, instants + lifetime)


def dated(instants: np.ndarray) -> np.ndarray:
    """What was there before every instant counts from the first one that can be written."""
    return np.maximum(instants, MIN_INSTANT)


def table_of(rows: Sequence[Leaving], schema: Schema, columns: Schema) -> pa.Table:
    """Rows of the columns `schema` as an archive with the columns `columns` keeps them: those that
    the rows lack have their default, or NULL; then `__ts`, `__exp`, `__id`."""
    known = {f.name: k for k, f in enumerate(schema)}
    made, total = [], sum(map(len, rows))
    for f in columns:
        k = next((known[n] for n in names_of(f) if n in known), None)
        if k is None:
            default = None if f.default is None else f.default.value
            alike = stored(pa.repeat(pa.scalar(default, f.type.arrow), total), f.type)
            made.append(pa.chunked_array([alike]))
            continue
        chunks = pa.chunked_array([r.cols[k] for r in rows], f.type.arrow)
        made.append(stored(chunks, f.type))
    dies = [np.full(len(r), FOREVER, np.int64) if r.dies is None else r.dies for r in rows]
    for parts in ([r.born for r in rows], dies, [r.number for r in rows]):
        made.append(pa.chunked_array([pa.array(p, pa.int64()) for p in parts], pa.int64()))
    return pa.table(made, schema=stored_schema(columns))


def _by_mark() -> BatchQueue[Leaving]:
    return BatchQueue("mark")


@dataclass(slots=True)
class Waiting:
    """What waits, by mark, and its bytes, which are asked for with every batch."""

    queue: BatchQueue[Leaving] = field(default_factory=_by_mark)
    nbytes: int = 0

    def add(self, rows: Leaving) -> None:
        """The next rows."""
        self.queue.push(rows)
        self.nbytes += rows.nbytes if len(rows) else 0

    def drop(self, mark: int) -> None:
        """Rows with marks <= `mark` wait no more."""
        self.queue.take(mark)
        self.nbytes = self.queue.nbytes
