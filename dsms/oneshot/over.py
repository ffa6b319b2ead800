"""OVER in a plan that is run once: the rows in the order in which they came, through the state of
persistent queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsms.oneshot.expressions import Evaluates
from dsms.oneshot.parts import AgedRows
from dsms.oneshot.steps import STRETCH, Env, by_age
from dsms.operators.over import frames_of
from dsms.operators.pieces import stretches
from dsms.plan.identity import order, width
from dsms.sql import logical as lp
from dsms.state.batch import Batch


@dataclass(slots=True)
class OverStep:
    """Each row with what was true of the rows up to it when it came.  `aged`: its age is asked
    for."""

    target: str
    source: str
    node: lp.Over
    aged: bool

    @property
    def takes(self) -> tuple[str, ...]:
        return (self.source,)

    def run(self, env: Env) -> list[AgedRows]:
        child = self.node.child
        rows = by_age(env.in_one_part(self.source, child.schema, width(child)), order(child))
        frames, parts = frames_of(self.node, Evaluates(env.errors)), []
        for part, upto in stretches(_batch(rows), env.at, STRETCH):
            env.look()
            made = frames.step(part[0], upto, env.look)
            if frames.failure is not None:
                raise frames.failure[0]
            parts.append(AgedRows(len(made), made.cols))
        return parts if not self.aged else self._with_ages(rows, parts)

    def _with_ages(self, rows: AgedRows, parts: list[AgedRows]) -> list[AgedRows]:
        out, start = list[AgedRows](), 0
        for part in parts:
            there = rows.slice(start, start + part.n)
            out.append(there.with_cols(part.cols))
            start += part.n
        return out


def _batch(rows: AgedRows) -> tuple[Batch]:
    assert rows.birth is not None
    ids = rows.ids or (np.arange(rows.n, dtype=np.int64),)
    return (Batch(rows.birth, None, None, ids, rows.cols),)
