"""UNNEST: each row once for each item of its list.

Input    Any; a deletion takes back what its row became, since it carries the row's values.
State    None.
Output   The rows with their lifetimes, the item behind their columns, its place, from 1 on, behind
         their ids: what tells rows of one list apart, also where items are equal.  0: the padded
         row of a list without items.
Cost     O(1) an item; lists are opened by the column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms import lists
from dsms.operators.base import Builds, Stateless
from dsms.operators.pieces import InPieces, Look, Piece
from dsms.sql import logical as lp
from dsms.state.batch import Batch

BYTES = 1 << 18  # of lists that are opened at a time, about: a row may become many


@dataclass(frozen=True, slots=True)
class Opening:
    """How the lists of a column are opened: of items of that SQL type, with their places as a
    column, with a row for a list that has none."""

    item: str
    places: bool
    padded: bool

    def open(self, texts: pa.Array) -> tuple[np.ndarray, np.ndarray, list[pa.Array]]:
        """The lists as they are kept -> (int64: the list of each row, int64: the place of its item,
        the columns that are new)."""
        if isinstance(texts, pa.ChunkedArray):
            texts = texts.combine_chunks()
        found = lists.items(texts)
        values, _ = lists.item_values(found, self.item)
        starts, rows = found.starts, found.rows
        place = np.arange(len(rows), dtype=np.int64) - starts[rows] + 1
        if self.padded:
            rows, place, values = _with_pads(np.diff(starts), rows, place, values)
        if not self.places:
            return rows, place, [values]
        shown = pa.array(place, pa.int64(), mask=place == 0)
        return rows, place, [values, shown]


def opening(node: lp.Unnest) -> Opening:
    """How the node opens its lists."""
    item = node.schema[len(node.child.schema)].type
    return Opening(str(item), node.ordinality, node.kind == "left")


def _with_pads(
    counts: np.ndarray, rows: np.ndarray, place: np.ndarray, values: pa.Array
) -> tuple[np.ndarray, np.ndarray, pa.Array]:
    """The same with a row of NULL where a list has no items."""
    bare = np.flatnonzero(counts == 0)
    if not len(bare):
        return rows, place, values
    all_rows = np.concatenate([rows, bare])
    order = np.argsort(all_rows, kind="stable")
    place = np.concatenate([place, np.zeros(len(bare), np.int64)])[order]
    padded = pa.concat_arrays([values, pa.nulls(len(bare), values.type)])
    return all_rows[order], place, pc.take(padded, pa.array(order))


def unnest_op(builder: Builds, node: lp.Unnest) -> UnnestOp:
    """The operator of an Unnest."""
    return UnnestOp(builder.expr(node.items), opening(node))


@dataclass(slots=True)
class UnnestOp(InPieces, Stateless):
    """`items(cols, n)` answers the lists."""

    items: Callable[[Sequence[pa.Array], int], pa.Array]
    opening: Opening

    def pieces(self, inputs: Sequence[Batch], upto: int, look: Look) -> Iterator[Piece]:
        (rows,) = inputs
        texts = self.items(rows.cols, len(rows))
        for start, stop, until in _parts(rows.ts, _ends(texts), upto):
            look()
            yield self._opened(rows.slice(start, stop), texts.slice(start, stop - start)), until

    def _opened(self, rows: Batch, texts: pa.Array) -> Batch:
        index, place, made = self.opening.open(texts)
        out = rows.take(index)
        return Batch(out.ts, out.exp, out.sign, (*out.ids, place), (*out.cols, *made), out.life)


def _ends(texts: pa.Array) -> np.ndarray:
    """int64[n + 1]: the bytes of all texts before each, and of all."""
    sizes = pc.fill_null(pc.binary_length(texts), 0)
    return np.concatenate([[0], np.cumsum(np.asarray(sizes, np.int64))])


def _parts(ts: np.ndarray, ends: np.ndarray, upto: int) -> Iterator[tuple[int, int, int]]:
    """Rows first to end of whole instants, with lists of about BYTES, and the instant that they
    reach to."""
    start = 0
    while ends[-1] - ends[start] > BYTES:
        last = int(np.searchsorted(ends, ends[start] + BYTES)) - 1
        stop = int(np.searchsorted(ts, ts[last], "right"))
        if stop == len(ts):
            break
        yield start, stop, int(ts[stop - 1])
        start = stop
    yield start, len(ts), upto
