"""LEFT, RIGHT and FULL outer joins: the inner join, and rows without a match padded with NULL.

The padded row is taken back when a match comes and returns when the last match goes, so the output
is STR.  A NULL key never matches, and its row is still padded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from dsms.operators.join import JoinOp
from dsms.operators.matching import MatchCounter, pair_state
from dsms.operators.not_coming import NotComing, Places, Told, may_go, told
from dsms.operators.pieces import InPieces, Look, Piece, go_on, parted
from dsms.operators.sweeping import Sweep
from dsms.plan.identity import width
from dsms.plan.physical import Pattern, Phys
from dsms.sql import logical as lp
from dsms.sql.types import Schema
from dsms.state.batch import Batch, concat, in_order


@dataclass(slots=True)
class Padding:
    """Rows of one side without a match, as output rows: the other side's columns NULL, its ids
    -1.  `stays`: no row of either side leaves."""

    counter: MatchCounter
    side: int
    other: Schema
    other_width: int
    stays: bool = False

    def step(self, inputs: Sequence[Batch], pairs: Batch, upto: int, away: NotComing) -> Batch:
        final = partial(away.dead, self.side, 2, self.counter) if self.stays and away.sets else None
        rows = self.counter.step(inputs[self.side], pairs, upto, final)
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
    """Inner results and padded rows, merged by instant.

    sweep  promises by which rows without a match have to be looked for"""

    inner: JoinOp
    paddings: list[Padding]
    sweep: Sweep[Told] = field(default_factory=Sweep)

    def pieces(self, inputs: Sequence[Batch], upto: int, look: Look) -> Iterator[Piece]:
        later = inputs
        for pairs, until in self.inner.pieces(inputs, upto, look):
            rows, later = parted(later, until)
            yield (
                in_order(
                    concat(
                        [
                            pairs,
                            *(p.step(rows, pairs, until, self.inner.away) for p in self.paddings),
                        ]
                    )
                ),
                until,
            )
        if not self.sweep.idle:
            self._sweep(look=look)

    def none_come(self, child: int, places: Places, values: Sequence[pa.Array]) -> None:
        """See `not_coming.Meets`.  Whether rows of the other side have a match stays as it is."""
        many, promise = len(values[0]), told(places, values)
        stays = any(padding.stays for padding in self.paddings)
        self.inner.go_by(child, places, values, closes=not stays)
        if stays:
            self.sweep.promised(promise, many)
            self._sweep(many)

    def _sweep(self, many: int = 0, look: Look = go_on) -> None:
        """Let go of rows whose padding is final, if it is time to look for some."""
        away = self.inner.away
        counters = [padding.counter for padding in self.paddings]
        sizes = [
            len(padding.counter.rows.store) if padding.stays and may_go(padding.counter) else 0
            for padding in self.paddings
        ]
        dead: list[list[np.ndarray]] = [[] for _ in counters]
        for k, slots in self.sweep.places(sizes, many, look):
            alive = slots[counters[k].rows.store.alive.view[slots]]
            dead[k].append(away.dead(self.paddings[k].side, 2, counters[k], alive))
        for counter, slots_of in zip(counters, dead, strict=True):
            if slots_of:
                counter.let_go(found := np.concatenate(slots_of))
                self.sweep.freed(len(found))
        for promise in self.sweep.ended():
            away.found(promise)

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
    stays = all(child.pattern is Pattern.MON for child in phys.children)
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
            paddings.append(Padding(counter, side, other.schema, wide[1 - side], stays))
    return OuterJoinOp(inner, paddings)
