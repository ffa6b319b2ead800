"""ASOF JOIN in a plan that is run once: both sides in order of time, merged by the kernel of
persistent queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dsms.oneshot.expressions import Evaluates
from dsms.oneshot.parts import AgedRows
from dsms.oneshot.steps import STRETCH, Env
from dsms.operators.asof import probe_of
from dsms.plan.identity import order, width
from dsms.sql import logical as lp
from dsms.state.batch import Batch


@dataclass(slots=True)
class AsofStep:
    """Each left row with what it finds on the right; left rows stay in their order."""

    target: str
    left: str
    right: str
    node: lp.AsofJoin
    aged: bool

    @property
    def takes(self) -> tuple[str, ...]:
        return (self.left, self.right)

    def run(self, env: Env) -> list[AgedRows]:
        left, right = self.node.left, self.node.right
        rows = env.in_one_part(self.left, left.schema, width(left))
        found = env.in_one_part(self.right, right.schema, width(right))
        probe = probe_of(self.node, Evaluates(env.errors))
        probe.come(_batch(found, _by_age(found, order(right))), env.look)
        oldest = np.argsort(rows.ts, kind="stable")  # type: ignore[arg-type]
        numbered = _batch(rows, oldest, (oldest,))
        parts = []
        for start in range(0, max(rows.n, 1), STRETCH):
            env.look()
            some = numbered.slice(start, min(start + STRETCH, rows.n))
            parts += self._in_place(rows, probe.results(some))
        return parts

    def _in_place(self, rows: AgedRows, made: Batch) -> list[AgedRows]:
        if not len(made):
            return []
        if not self.aged:
            return [AgedRows(len(made), made.cols)]
        assert rows.ts is not None and rows.birth is not None
        at, found = made.ids
        ids = (*(i[at] for i in rows.ids), found)
        return [AgedRows(len(made), made.cols, rows.ts[at], rows.birth[at], ids)]


def _by_age(rows: AgedRows, by: Sequence[int]) -> np.ndarray:
    """Places of the rows by (timestamp, arrival)."""
    assert rows.ts is not None
    return np.lexsort((*(rows.ids[k] for k in reversed(by)), rows.ts))


def _batch(rows: AgedRows, places: np.ndarray, ids: tuple[np.ndarray, ...] = ()) -> Batch:
    assert rows.ts is not None
    there = rows.take(places)
    assert there.ts is not None
    return Batch(there.ts, None, None, ids or there.ids, there.cols)
