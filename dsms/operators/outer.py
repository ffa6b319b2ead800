"""LEFT, RIGHT and FULL outer joins: the inner join, and rows without a match padded with NULL.

The padded row is taken back when a match comes and returns when the last match goes, so the output
is STR.  A NULL key never matches, and its row is still padded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dsms.operators.join import JoinOp
from dsms.operators.matching import MatchCounter, pair_state
from dsms.operators.pieces import InPieces, Look, Piece, parted
from dsms.plan.identity import width
from dsms.plan.physical import Phys
from dsms.sql import logical as lp
from dsms.sql.types import Schema
from dsms.state.batch import Batch, concat, in_order


@dataclass(slots=True)
class Padding:
    """Rows of one side without a match, as output rows: the other side's columns NULL, its ids
    -1."""

    counter: MatchCounter
    side: int
    other: Schema
    other_width: int

    def step(self, inputs: Sequence[Batch], pairs: Batch, upto: int) -> Batch:
        rows = self.counter.step(inputs[self.side], pairs, upto)
        n = len(rows)
        nulls = tuple(pa.nulls(n, f.type.arrow) for f in self.other)
        blank = (np.full(n, -1, np.int64),) * self.other_width
        if self.side == 0:
            return Batch(
                rows.ts, rows.exp, rows.sign, (*rows.ids, *blank), (*rows.cols, *nulls), rows.life
            )
        return Batch(
            rows.ts, rows.exp, rows.sign, (*blank, *rows.ids), (*nulls, *rows.cols), rows.life
        )


@dataclass(slots=True)
class OuterJoinOp(InPieces):
    """Inner results and padded rows, merged by instant."""

    inner: JoinOp
    paddings: list[Padding]

    def pieces(self, inputs: Sequence[Batch], upto: int, look: Look) -> Iterator[Piece]:
        later = inputs
        for pairs, until in self.inner.pieces(inputs, upto, look):
            rows, later = parted(later, until)
            yield (
                in_order(concat([pairs, *(p.step(rows, pairs, until) for p in self.paddings)])),
                until,
            )

    def live(self) -> int:
        return self.inner.live() + sum(p.counter.live() for p in self.paddings)

    def nbytes(self) -> int:
        return self.inner.nbytes() + sum(p.counter.nbytes() for p in self.paddings)

    def next_due(self) -> int:
        return min(p.counter.next_due() for p in self.paddings)


def outer_join(node: lp.Join, inner: JoinOp, phys: Phys, eager_instants: bool) -> OuterJoinOp:
    """The operator for a LEFT, RIGHT or FULL join over its inner join."""
    wide = (width(node.left), width(node.right))
    parts = (tuple(range(wide[0])), tuple(range(wide[0], wide[0] + wide[1])))
    kept, announced = pair_state(phys)
    paddings = []
    for side, child in enumerate((node.left, node.right)):
        if node.kind == ("left", "right")[side] or node.kind == "full":
            counter = MatchCounter(
                child.schema,
                wide[side],
                parts[side],
                sum(wide),
                phys.state(side),
                phys.children[side].strict,
                kept,
                announced,
                True,
                eager_instants,
            )
            other = (node.right, node.left)[side]
            paddings.append(Padding(counter, side, other.schema, wide[1 - side]))
    return OuterJoinOp(inner, paddings)
