"""GROUP BY with aggregates of episodes as they end ([SESSION ... INTERNAL], [WHEN ... INTERNAL]).

Input    MON: the rows of an episode come together, as of the instant at which it ends.
State    None: the keys of the groups tell episodes that end in one instant apart, so all of a
         group is there.
Output   MON: a row for each group of each episode.
Cost     That of GROUP BY over rows that only come (`group`), which does the work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from dsms.errors import QueryError
from dsms.operators.base import Stateless
from dsms.operators.basic import by_parts
from dsms.operators.group import SLICE, Evaluate, GroupByOp
from dsms.operators.group_keys import RunKeys
from dsms.operators.pieces import InPieces, Look, Piece, stretches
from dsms.plan.physical import State
from dsms.sql.expr import Col
from dsms.sql.logical import GroupBy
from dsms.sql.types import INT, Field
from dsms.state.batch import Batch, empty_batch

Columns = Sequence[pa.Array]


@dataclass(slots=True)
class ClosingGroupOp(InPieces, Stateless):
    """node  keys, aggregates, schemas;  width  id columns of the input edge;  order  their FROM
    order;  keys, args, filters  as of GROUP BY"""

    node: GroupBy
    width: int
    order: tuple[int, ...]
    keys: Sequence[Evaluate]
    args: Sequence[Sequence[Evaluate]]
    filters: Sequence[Evaluate | None]

    def pieces(self, inputs: Sequence[Batch], upto: int, look: Look) -> Iterator[Piece]:
        for (rows,), until in stretches(inputs, upto, SLICE):
            look()
            try:
                out = self._grouped(rows)
            except QueryError:
                yield from self._one_by_one(rows, until)
            else:
                yield out, until

    def _one_by_one(self, rows: Batch, upto: int) -> Iterator[Piece]:
        """Instant by instant: what is answered before the one that fails stands."""
        for (part,), until in stretches((rows,), upto, 1):
            yield self._grouped(part), until

    def _grouped(self, rows: Batch) -> Batch:
        n = len(rows)
        if not n:
            return empty_batch(self.node.schema, self.width)
        at_once, places = np.zeros(n, np.int64), np.arange(n, dtype=np.int64)
        cols = (*rows.cols, pa.array(rows.ts))
        out = self._inner().step([Batch(at_once, None, None, (places,), cols)], 0)
        first = out.number  # the place of the oldest row of each group
        ids = tuple(i[first] for i in rows.ids)
        return by_parts(Batch(rows.ts[first], None, None, ids, out.cols[1:]), self.order)

    def _inner(self) -> GroupByOp:
        """GROUP BY of rows as if all came in one instant: that of theirs is a key."""
        at, node = len(self.node.child.schema), self.node
        node = replace(node, keys=(Col(at, INT), *node.keys), schema=(Field("", INT), *node.schema))
        keys = [last, *self.keys]
        out = GroupByOp(node, 1, State("none"), False, keys, self.args, self.filters, (0,))
        out.groups = RunKeys(out.groups.types)  # the rows of an episode stand together
        return out


def last(cols: Columns, n: int) -> pa.Array:
    """The last column."""
    return cols[-1]
