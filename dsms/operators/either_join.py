"""Inner join on one of several equalities: a hash join for each of them.

Input    Two of any pattern, as of a join of two (`join`).
State    The rows of both sides, once for each equality.
Cost     That of a hash join for each equality: O(1 + candidates) a row.  A pair that is equal in
         several ways is a candidate of each, and a result of the first (`dsms.plan.either`).
Output   The results of all ways in order; of more than `most` at one instant DS631 is said by the
         way that finds them.
Twin     `join` without keys, which looks at each pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dsms.operators.base import Builds
from dsms.operators.join import JoinOp, inner_join
from dsms.operators.pieces import InPieces, Look, Piece, aligned
from dsms.plan.either import ways
from dsms.plan.physical import Phys
from dsms.sql import logical as lp
from dsms.sql.types import FOREVER
from dsms.state.batch import Batch, concat, in_order


@dataclass(slots=True)
class EitherJoinOp(InPieces):
    """`ways`: joins of the same inputs, whose results are disjoint."""

    ways: list[JoinOp]

    def pieces(self, inputs: Sequence[Batch], upto: int, look: Look) -> Iterator[Piece]:
        flows = [way.pieces(inputs, upto, look) for way in self.ways]
        for found, until in aligned(flows, upto):
            some = [rows for rows in found if len(rows)] or found[:1]
            yield in_order(concat(some)), until

    def load(self, inputs: Sequence[Batch], look: Look) -> None:
        """See `JoinOp.load`."""
        for way in self.ways:
            way.load(inputs, look)

    def live(self) -> int:
        return self.ways[0].live()

    def nbytes(self) -> int:
        return sum(way.nbytes() for way in self.ways)

    def next_due(self) -> int:
        return FOREVER


def either_join(builder: Builds, phys: Phys, node: lp.Join | lp.SemiJoin) -> EitherJoinOp:
    """The operator that finds the pairs of a node whose condition has several `ways`."""
    return EitherJoinOp([inner_join(builder, phys, way.keys, way.residual) for way in ways(node)])
