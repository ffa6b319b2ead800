"""Steps whose rows have no parts: GROUP BY by our own kernels, DISTINCT and set operations that
must know the oldest.

They are taken where SQL's meaning differs from ours, or where an operator above asks for the rows'
ages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from dsms.aggregates.cards import CARDS
from dsms.oneshot.grouping import by_cells, grouped, in_one_part
from dsms.oneshot.parts import AgedRows, concat, ints
from dsms.oneshot.sampled import sampled_aggregate
from dsms.oneshot.steps import Env, by_age
from dsms.operators.expressions import ErrorCounter, compile_expr, compile_predicate
from dsms.operators.group import GroupByOp
from dsms.plan.identity import timed
from dsms.plan.physical import State
from dsms.sql import logical as lp
from dsms.sql.expr import Expr
from dsms.sql.types import ALWAYS, Schema
from dsms.state.batch import Batch
from dsms.state.batch import concat as joined
from dsms.state.intern import Intern

BLANK = -1


@dataclass(slots=True)
class GroupStep:
    """GROUP BY: the rows, oldest first; as cells of all at once where these are exact
    (`dsms.oneshot.grouping`), else all at one instant through the operator that persistent queries
    run."""

    target: str
    source: str
    node: lp.GroupBy
    width: int
    sorted: bool
    aged: bool
    order: tuple[int, ...]

    @property
    def takes(self) -> tuple[str, ...]:
        return (self.source,)

    def run(self, env: Env) -> list[AgedRows]:
        cells = by_cells(self.node)
        if cells and not self.sorted:
            rows = in_one_part(env.rels[self.source], self.node)
        else:
            rows = env.in_one_part(self.source, self.node.child.schema, self.width)
        rows = by_age(rows, self.order, "ts") if self.sorted else rows
        env.look()
        if cells:
            cols, first = grouped(self.node, rows, env.errors, env.look)
            return [self._part(rows, first, cols, len(first))]
        unsampled = tuple(k for k, call in enumerate(self.node.aggs) if not CARDS[call.fn].sampled)
        operator, made = self._grouped(rows, unsampled, env)
        keys, aggs = (
            made.cols[: len(self.node.keys)],
            dict(zip(unsampled, made.cols[len(self.node.keys) :], strict=True)),
        )
        if len(unsampled) < len(self.node.aggs):
            codes = operator.groups.codes(
                [compile_expr(k)(rows.cols, rows.n, ErrorCounter()) for k in self.node.keys], rows.n
            )
            shown = operator.groups.codes(list(keys), len(made))
            for k, call in enumerate(self.node.aggs):
                if k not in aggs:
                    aggs[k] = sampled_aggregate(call, rows, codes, shown, env.errors)
        cols = (*keys, *(aggs[k] for k in range(len(self.node.aggs))))
        return [self._part(rows, made.ids[0], cols, len(made))]

    def _grouped(
        self, rows: AgedRows, unsampled: Sequence[int], env: Env
    ) -> tuple[GroupByOp, Batch]:
        """The operator, and its rows: keys, then the aggregates `plain`; ids: positions of the
        groups' first rows."""
        errors, aggs = env.errors, tuple(self.node.aggs[k] for k in unsampled)
        fields = self.node.schema[: len(self.node.keys)]
        schema = (*fields, *(self.node.schema[len(self.node.keys) + k] for k in unsampled))
        node = replace(self.node, aggs=aggs, schema=schema)
        operator = GroupByOp(
            node,
            1,
            State("grow"),
            False,
            [_run(k, errors) for k in node.keys],
            [[_run(a, errors) for a in agg.args] for agg in aggs],
            [None if agg.filter is None else _passes(agg.filter, errors) for agg in aggs],
            (0,),
        )
        now = np.full(rows.n, ALWAYS, np.int64)
        given = Batch(now, None, None, (np.arange(rows.n, dtype=np.int64),), rows.cols)
        made = joined([out for out, _ in operator.pieces((given,), ALWAYS, env.look)])
        if operator.failure is not None:
            raise operator.failure[0]
        return operator, made

    def _part(
        self, rows: AgedRows, first: np.ndarray, cols: tuple[pa.Array, ...], n: int
    ) -> AgedRows:
        if not self.aged:
            return AgedRows(n, cols)
        assert rows.ts is not None and rows.birth is not None
        ages = [rows.ts, rows.birth, *rows.ids]
        blanks = [ALWAYS, ALWAYS, *[BLANK] * self.width]
        if not rows.n:
            ts, birth, *ids = (np.full(n, b, np.int64) for b in blanks)
        else:
            ts, birth, *ids = (
                np.where(first < 0, b, a[first]) for a, b in zip(ages, blanks, strict=True)
            )
        if timed(self.node):
            ids.append(np.full(n, BLANK, np.int64))  # it says nothing here
        return AgedRows(n, cols, ts, birth, tuple(ids))


def _run(expr: Expr, errors: ErrorCounter) -> Callable[..., pa.Array]:
    run = compile_expr(expr)
    return lambda cols, n: run(cols, n, errors)


def _passes(expr: Expr, errors: ErrorCounter) -> Callable[..., pa.Array]:
    run = compile_predicate(expr)
    return lambda cols, n: run(cols, n, errors)


@dataclass(slots=True)
class DistinctStep:
    """The oldest row of every value."""

    target: str
    source: str
    schema: Schema
    width: int
    order: tuple[int, ...]
    timed: bool = False  # a column more, which here says nothing

    @property
    def takes(self) -> tuple[str, ...]:
        return (self.source,)

    def run(self, env: Env) -> list[AgedRows]:
        rows = by_age(env.in_one_part(self.source, self.schema, self.width), self.order, "ts")
        env.look()
        _, first = np.unique(_codes(rows), return_index=True)
        out = rows.take(np.sort(first))
        return [
            replace(out, ids=(*out.ids, np.full(out.n, BLANK, np.int64))) if self.timed else out
        ]


@dataclass(slots=True)
class SetOpStep:
    """EXCEPT and INTERSECT [ALL]: copies of a value stand for its oldest left row, and are
    numbered."""

    target: str
    left: str
    right: str
    node: lp.SetOp
    width: int
    order: tuple[int, ...]

    @property
    def takes(self) -> tuple[str, ...]:
        return (self.left, self.right)

    def run(self, env: Env) -> list[AgedRows]:
        left = by_age(env.in_one_part(self.left, self.node.schema, self.width), self.order, "ts")
        right = env.in_one_part(self.right, self.node.schema, 0)
        codes = _codes(concat([AgedRows(left.n, left.cols), AgedRows(right.n, right.cols)]))
        env.look()
        size = int(codes.max()) + 1 if len(codes) else 0
        mine, theirs = (np.bincount(c, minlength=size) for c in (codes[: left.n], codes[left.n :]))
        value, first = np.unique(codes[: left.n], return_index=True)
        copies = self._copies(mine[value], theirs[value])
        out = left.take(np.repeat(first, copies))
        number = np.arange(out.n, dtype=np.int64) - np.repeat(np.cumsum(copies) - copies, copies)
        return [replace(out, ids=(*out.ids, number))]

    def _copies(self, mine: np.ndarray, theirs: np.ndarray) -> np.ndarray:
        if not self.node.all:
            mine, theirs = np.minimum(mine, 1), np.minimum(theirs, 1)
        return (
            np.maximum(mine - theirs, 0) if self.node.op == "except" else np.minimum(mine, theirs)
        )


def _codes(rows: AgedRows) -> np.ndarray:
    """Codes of the rows' values; NULLs are equal."""
    cols = rows.cols or (ints(np.zeros(rows.n, np.int64)),)
    return Intern(len(cols)).codes(cols, rows.n)
