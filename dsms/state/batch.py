"""The batch: columns of rows with lifetimes, what flows on every edge of a running plan.

A row is alive from its `ts` until its `exp`, or until a deletion (sign -1) with the same ids comes,
whichever is earlier.  On MON, WKS and WK edges there are no deletions; on STR edges deletions
announce the deaths that `exp` did not foretell.  Under the negative tuple strategy every death is
announced and `exp` is FOREVER.

Order: by `ts`; within one instant deletions stand before insertions.  All rows of a batch lie in
instants that the query's clock has completed, and a later batch holds only later instants: so
operators may finish each instant they see.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from dsms.sql.types import FOREVER, Schema
from dsms.state.columns import EIGHT_BYTES, all_joined, all_sliced, all_taken, numpy_values

Ints = np.ndarray  # int64
Bools = np.ndarray


@dataclass(slots=True)
class Batch:
    """n rows.

    ts    int64[n]  instant (µs) at which the row is born (sign +1) or taken back (sign -1);
          non-decreasing
    exp   int64[n]  instant of its foretold death, ts < exp; None: FOREVER for all
    sign  int8[n]   +1 or -1; None: +1 for all
    ids   w arrays int64[n]: identity, the arrival numbers of the row's parts in FROM order (-1:
          padded part).  A deletion carries the ids of the row that it takes back.  w is fixed per
          edge.
    cols  Arrow arrays of length n with the physical types of the edge's schema
    life  int64[n]  set only where INTERNAL and external windows mix: when the *result* dies, which
          may be later than `exp`, until which the row may still find partners; None: same as exp
    """

    ts: Ints
    exp: Ints | None
    sign: np.ndarray | None
    ids: tuple[Ints, ...]
    cols: tuple[pa.Array, ...]
    life: Ints | None = None

    def __len__(self) -> int:
        return len(self.ts)

    def take(self, index: Ints) -> Batch:
        """The rows at `index` (int64 positions), in that order."""
        return Batch(
            self.ts[index],
            None if self.exp is None else self.exp[index],
            None if self.sign is None else self.sign[index],
            tuple(i[index] for i in self.ids),
            all_taken(self.cols, index),
            None if self.life is None else self.life[index],
        )

    def slice(self, start: int, stop: int) -> Batch:
        """Rows [start, stop), without copying."""
        return Batch(
            self.ts[start:stop],
            None if self.exp is None else self.exp[start:stop],
            None if self.sign is None else self.sign[start:stop],
            tuple(i[start:stop] for i in self.ids),
            all_sliced(self.cols, start, stop),
            None if self.life is None else self.life[start:stop],
        )

    @property
    def number(self) -> Ints:
        """Of rows with one part: its arrival numbers."""
        return self.ids[0]

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        more = sum([a.nbytes for a in (self.exp, self.sign, self.life) if a is not None])
        return (
            self.ts.nbytes
            + more
            + sum([i.nbytes for i in self.ids])
            + sum([c.nbytes for c in self.cols])
        )

    def exps(self) -> Ints:
        """`exp`, spelled out."""
        return np.full(len(self.ts), FOREVER, np.int64) if self.exp is None else self.exp

    def signs(self) -> np.ndarray:
        """`sign`, spelled out (int8)."""
        return np.ones(len(self.ts), np.int8) if self.sign is None else self.sign

    def with_cols(self, cols: Sequence[pa.Array]) -> Batch:
        """The same rows with other values."""
        return Batch(self.ts, self.exp, self.sign, self.ids, tuple(cols), self.life)


def narrow(rows: Batch, width: int) -> Batch:
    """The rows with the first `width` columns alone."""
    return rows if len(rows.cols) <= width else rows.with_cols(rows.cols[:width])


def empty_batch(schema: Schema, width: int) -> Batch:
    """No rows of that schema, with `width` id columns."""
    none = np.empty(0, np.int64)
    return Batch(
        none, None, None, (none,) * width, tuple(pa.array([], f.type.arrow) for f in schema)
    )


def concat(batches: Sequence[Batch]) -> Batch:
    """The batches one after the other (at least one; the caller sees to the order)."""
    if len(batches) == 1:
        return batches[0]
    some_exp = any(b.exp is not None for b in batches)
    some_sign = any(b.sign is not None for b in batches)
    some_life = any(b.life is not None for b in batches)
    return Batch(
        np.concatenate([b.ts for b in batches]),
        np.concatenate([b.exps() for b in batches]) if some_exp else None,
        np.concatenate([b.signs() for b in batches]) if some_sign else None,
        tuple(np.concatenate(i) for i in zip(*(b.ids for b in batches), strict=True)),
        all_joined(b.cols for b in batches),
        np.concatenate([b.exps() if b.life is None else b.life for b in batches])
        if some_life
        else None,
    )


def gathered(parts: Sequence[tuple[Batch, Ints]], used: Collection[int]) -> Batch:
    """Some rows of each batch, one after the other (at least one batch; none has exp, sign or
    life).  Columns that are not `used` are NULL."""
    some = [(batch, places) for batch, places in parts if len(places)] or list(parts[:1])
    ts = np.concatenate([b.ts[p] for b, p in some])
    ids = [np.concatenate([b.ids[k][p] for b, p in some]) for k in range(len(some[0][0].ids))]
    cols = [
        picked([(b.cols[k], p) for b, p in some]) if k in used else pa.nulls(len(ts), col.type)
        for k, col in enumerate(some[0][0].cols)
    ]
    return Batch(ts, None, None, tuple(ids), tuple(cols))


def picked(parts: Sequence[tuple[pa.Array, Ints]]) -> pa.Array:
    """The values at some places of each column, one behind the other (at least one column)."""
    if parts[0][0].type in EIGHT_BYTES and not any(col.null_count for col, _ in parts):
        return pa.array(np.concatenate([numpy_values(col)[p] for col, p in parts]))
    return pa.concat_arrays([col.take(pa.array(p)) for col, p in parts])


def stamped_before(rows: Batch, to: int) -> Batch:
    """Rows of a stream; those stamped `to` or later are stamped in the instant before it."""
    return (
        rows if not len(rows) or rows.ts[-1] < to else replace(rows, ts=np.minimum(rows.ts, to - 1))
    )


def in_order(batch: Batch) -> Batch:
    """The rows sorted by (ts, deletions first), stably; the same object if they already are."""
    sign = batch.sign
    if sign is None:
        if len(batch) < 2 or bool((batch.ts[1:] >= batch.ts[:-1]).all()):
            return batch
        return batch.take(np.argsort(batch.ts, kind="stable"))
    if len(batch) < 2:
        return batch
    later = batch.ts[1:] > batch.ts[:-1]
    same = (batch.ts[1:] == batch.ts[:-1]) & (sign[1:] >= sign[:-1])
    if bool((later | same).all()):
        return batch
    return batch.take(np.lexsort((sign, batch.ts)))
