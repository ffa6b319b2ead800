"""Append over rows without parts: only what is new in the answer is appended.

An aggregate's row may be replaced by an equal one (the difference projected away), a DISTINCT value
may be handed on: the answer does not change, and nothing may be appended.  So the block's answer is
kept and netted as at a plan's root.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dsms.operators.sink import Sink, SinkSpec, fitting_state
from dsms.plan.identity import by_value, order, width
from dsms.plan.physical import Phys
from dsms.state.batch import Batch


@dataclass(slots=True)
class NettedAppendOp:
    """The Istream of the child, or its Dstream, as rows that stay for ever, numbered in order."""

    child: Phys
    eager_instants: bool = False
    departures: bool = False
    sink: Sink = field(init=False)

    def __post_init__(self) -> None:
        node = self.child.node
        self.sink = Sink(
            SinkSpec(
                "dstream" if self.departures else "istream",
                node.schema,
                width(node),
                order(node),
                by_value(node),
                True,
                True,
                fitting_state(self.child),
                self.child.strict,
                self.eager_instants,
            )
        )

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        chunk = self.sink.step(inputs[0], upto)
        ids = np.arange(chunk.seq, chunk.seq + len(chunk), dtype=np.int64)
        return Batch(chunk.at, None, None, (ids,), tuple(chunk.data.columns))

    def live(self) -> int:
        return self.sink.live()

    def nbytes(self) -> int:
        return self.sink.nbytes()

    def next_due(self) -> int:
        return self.sink.next_due()
