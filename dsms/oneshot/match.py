"""MATCH in a plan that is run once: all steps in order of time, through the automaton of persistent
queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dsms.oneshot.parts import AgedRows
from dsms.oneshot.steps import STRETCH, Env
from dsms.operators.expressions import ErrorCounter, compile_expr
from dsms.operators.match import automaton
from dsms.operators.pieces import stretches
from dsms.plan.identity import order, width
from dsms.sql import logical as lp
from dsms.sql.expr import Expr
from dsms.sql.types import FOREVER
from dsms.state.batch import Batch


@dataclass(frozen=True, slots=True)
class _Evaluates:
    """Evaluators of keys, whose failing rows are counted in `errors`."""

    errors: ErrorCounter

    def expr(self, expr: Expr) -> Callable[..., pa.Array]:
        """(cols, n) -> array."""
        run = compile_expr(expr)
        return lambda cols, n: run(cols, n, self.errors)


@dataclass(slots=True)
class MatchStep:
    """The matches in order of their last rows.  `rows`: relations, one for each step."""

    target: str
    rows: tuple[str, ...]
    node: lp.Match
    aged: bool

    @property
    def takes(self) -> tuple[str, ...]:
        return self.rows

    def run(self, env: Env) -> list[AgedRows]:
        both = list(zip(self.rows, self.node.inputs, strict=True))
        found = [
            _by_age(env.in_one_part(name, node.schema, width(node)), order(node))
            for name, node in both
        ]
        machine = automaton(self.node, _Evaluates(env.errors), numbered=True)
        parts = []
        for some, upto in stretches([_numbered(rows) for rows in found], FOREVER - 1, STRETCH):
            made = machine.step(some, upto, env.look)
            if self.node.skip and made.exp is not None:  # of all that there ever were
                made = made.take(np.flatnonzero(made.exp > env.at))
            env.room.take(made.nbytes)
            if len(made):
                parts.append(self._aged(made, found))
        return parts

    def _aged(self, made: Batch, found: Sequence[AgedRows]) -> AgedRows:
        if not self.aged:
            return AgedRows(len(made), made.cols)
        taken = [rows for rows, kind in zip(found, self.node.kinds, strict=True) if kind == "one"]
        ids = tuple(i[at] for rows, at in zip(taken, made.ids, strict=True) for i in rows.ids)
        return AgedRows(len(made), made.cols, made.ts, made.ts, ids)


def _by_age(rows: AgedRows, by: Sequence[int]) -> AgedRows:
    """The rows by (timestamp, arrival)."""
    assert rows.ts is not None
    return rows.take(np.lexsort((*(rows.ids[k] for k in reversed(by)), rows.ts)))


def _numbered(rows: AgedRows) -> Batch:
    """The rows with their places as ids."""
    assert rows.ts is not None
    return Batch(rows.ts, None, None, (np.arange(rows.n),), rows.cols)
