"""The first rows of each key, asked once: all rows in order, and of each key the first.

Ties as `dsms.plan.ranking` says: where arrivals decide, the rows come with their arrival numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dsms.oneshot.parts import AgedRows
from dsms.oneshot.steps import Env
from dsms.operators.expressions import compile_expr
from dsms.operators.sort import Key, ordered
from dsms.plan.ranking import arrivals_of, keys_of
from dsms.sql import logical as lp
from dsms.state.intern import Intern


@dataclass(slots=True)
class TopStep:
    """The first rows of each key, in the order in which the rows are given."""

    target: str
    source: str
    node: lp.TopN
    width: int
    aged: bool

    @property
    def takes(self) -> tuple[str, ...]:
        return (self.source,)

    def run(self, env: Env) -> list[AgedRows]:
        rows = env.in_one_part(self.source, self.node.child.schema, self.width * self.aged)
        env.look()
        codes = self._codes(rows, env)
        keys: list[Key] = [(pa.array(codes), False, False)]
        for expr, descending, first in keys_of(self.node):
            keys.append((compile_expr(expr)(rows.cols, rows.n, env.errors), descending, first))
        if self.aged:
            keys += [(pa.array(rows.ids[k]), False, False) for k in arrivals_of(self.node)]
        order = ordered(keys, rows.n, env.look)
        # of the row at that place, within its key
        place = np.arange(rows.n) - np.searchsorted(codes[order], codes[order])
        found = rows.take(np.sort(order[place < self.node.limit]))
        return [found] if found.n else []

    def _codes(self, rows: AgedRows, env: Env) -> np.ndarray:
        if not self.node.by:
            return np.zeros(rows.n, np.int64)
        cols = [compile_expr(e)(rows.cols, rows.n, env.errors) for e in self.node.by]
        return Intern(len(cols)).codes(cols, rows.n, env.look)
