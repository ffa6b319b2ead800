"""Rows on their way through a plan that is run once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dsms.sql.types import Schema
from dsms.state.batch import Batch
from dsms.state.columns import all_joined, all_sliced, all_taken, arrow_values, numpy_values

SMALL = 4096  # rows of a part below which parts are better put together


@dataclass(slots=True)
class AgedRows:
    """n rows: values, and where the plan asks for their ages

    ts     int64[n]: the largest timestamp of the row's parts
    birth  int64[n]: the instant at which it entered its window or join (which a non-retroactive
           relation is read at)
    ids    w arrays int64[n]: arrival numbers of the row's parts, as the plan has them
           (`dsms.plan.identity`)
    until  int64[n], of a non-retroactive relation: the instant at which the version ended
    """

    n: int
    cols: tuple[pa.Array, ...]
    ts: np.ndarray | None = None
    birth: np.ndarray | None = None
    ids: tuple[np.ndarray, ...] = ()
    until: np.ndarray | None = None

    def take(self, index: np.ndarray) -> AgedRows:
        """The rows at `index`, in that order."""
        return AgedRows(len(index), all_taken(self.cols, index), *self._hidden(lambda a: a[index]))  # type: ignore[arg-type]

    def slice(self, start: int, stop: int) -> AgedRows:
        """Rows [start, stop), without copying."""
        stop = max(start, stop)
        return AgedRows(
            stop - start, all_sliced(self.cols, start, stop), *self._hidden(lambda a: a[start:stop])
        )  # type: ignore[arg-type]

    def _hidden(self, pick):  # type: ignore[no-untyped-def]
        some = [None if a is None else pick(a) for a in (self.ts, self.birth, self.until)]
        return some[0], some[1], tuple(pick(i) for i in self.ids), some[2]

    def with_cols(self, cols: Sequence[pa.Array]) -> AgedRows:
        """The same rows with other values."""
        return AgedRows(self.n, tuple(cols), self.ts, self.birth, self.ids, self.until)

    @property
    def nbytes(self) -> int:
        hidden = [a for a in (self.ts, self.birth, self.until, *self.ids) if a is not None]
        return sum(c.nbytes for c in self.cols) + sum(int(a.nbytes) for a in hidden)


def of_batch(rows: Batch) -> AgedRows:
    """A batch as the ring or a table hands it out; a table's versions bear their end in `exp`."""
    return AgedRows(len(rows), rows.cols, rows.ts, rows.ts, rows.ids, rows.exp)


def nothing(schema: Schema, width: int) -> AgedRows:
    """No rows."""
    none = np.empty(0, np.int64)
    return AgedRows(
        0, tuple(pa.array([], f.type.arrow) for f in schema), none, none, (none,) * width, none
    )


def concat(parts: Sequence[AgedRows]) -> AgedRows:
    """All rows as one part (at least one)."""
    if len(parts) == 1:
        return parts[0]
    hidden = []
    for pick in (lambda p: p.ts, lambda p: p.birth, lambda p: p.until):
        arrays = [pick(p) for p in parts]
        hidden.append(None if any(a is None for a in arrays) else np.concatenate(arrays))
    ids = tuple(np.concatenate(i) for i in zip(*(p.ids for p in parts), strict=True))
    return AgedRows(
        sum(p.n for p in parts),
        all_joined(p.cols for p in parts),
        hidden[0],
        hidden[1],
        ids,
        hidden[2],
    )


def gathered(parts: Sequence[AgedRows]) -> list[AgedRows]:
    """The same rows in parts of a decent size."""
    if len(parts) < 2 or sum(p.n for p in parts) >= SMALL * len(parts):
        return list(parts)
    return [concat(parts)]


# ---------------------------------------------------------------- as Arrow tables


def hidden_names(width: int) -> list[str]:
    """Names of the columns that tell a row's age: ts, birth, arrival numbers."""
    return ["t", "b", *(f"i{k}" for k in range(width))]


def bound_names(columns: int, width: int, aged: bool) -> list[str]:
    """Names of all columns of a relation; SQL knows no rows without any, so there is one at
    least."""
    names = [f"c{k}" for k in range(columns)] + (hidden_names(width) if aged else [])
    return names or ["z"]


def to_table(
    parts: Sequence[AgedRows], schema: Schema, width: int, aged: bool, versions: bool
) -> pa.Table:
    """The parts as one Arrow table over the same memory; `versions`: with the end of each (column
    `u`)."""
    names = bound_names(len(schema), width, aged) + (["u"] if versions else [])
    types = [f.type.arrow for f in schema]
    types += [pa.int64()] * (len(names) - len(types))
    chunks = [_arrays(p, width, aged, versions) for p in parts if p.n]
    columns = list(zip(*chunks, strict=True)) or [()] * len(types)
    arrays = [pa.chunked_array(list(c), t) for c, t in zip(columns, types, strict=True)]
    return pa.table(arrays, names=names)


def _arrays(part: AgedRows, width: int, aged: bool, versions: bool) -> list[pa.Array]:
    arrays = list(part.cols)
    if aged:
        assert part.ts is not None and part.birth is not None
        arrays += [pa.array(a) for a in (part.ts, part.birth, *part.ids[:width])]
    arrays = arrays or [pa.array(np.zeros(part.n, np.int64))]
    return [*arrays, pa.array(part.until)] if versions else arrays


def from_batch(rows: pa.RecordBatch, schema: Schema, width: int, aged: bool) -> AgedRows:
    """Rows that SQL answered, columns as `bound_names` says, with the physical types of the
    schema."""
    cols = tuple(_typed(c, f.type.arrow) for c, f in zip(rows.columns, schema, strict=False))
    if not aged:
        return AgedRows(rows.num_rows, cols)
    ts, birth, *ids = (numpy_values(c) for c in rows.columns[len(schema) : len(schema) + 2 + width])
    return AgedRows(rows.num_rows, cols, ts, birth, tuple(ids))


def _typed(col: pa.Array, want: pa.DataType) -> pa.Array:
    if pa.types.is_null(want):
        return pa.nulls(len(col))
    return col if col.type == want else col.cast(want)


def ints(values: np.ndarray) -> pa.Array:
    """An INT column."""
    return arrow_values(values, None)
