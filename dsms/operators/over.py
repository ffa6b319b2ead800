"""f(x) OVER (PARTITION BY k ...): each row with what was true of the rows up to it when it came.

Input    MON: rows of an append-only input, in order of (timestamp, arrival).
Output   MON: the same rows with more columns.  What a row says was settled when it came, so nothing
         is taken back; the window above gives the row its lifetime.
State    The rows in the frames, linked by group, with words of the arguments; nothing of them where
         none ever leaves its frame.  Rows go with the window, groups with their last row.
Cost     O(1) amortised a row and frame, and what the aggregates ask for (`dsms.aggregates`).
The rows before the current one of its instant are those that came before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from dsms.aggregates.parts.words import arg_coding, coding, form
from dsms.aggregates.registry import answer_coding, follow
from dsms.errors import QueryError
from dsms.operators.basic import by_parts
from dsms.operators.group_args import ArgColumn
from dsms.operators.over_bounds import Bounds, Numbering
from dsms.operators.over_frame import Before, Evaluate, Folded, FrameRows
from dsms.operators.over_places import Places
from dsms.operators.pieces import InPieces, Look, Piece, stretches
from dsms.plan.identity import order
from dsms.plan.over import keeps_rows
from dsms.sql import logical as lp
from dsms.sql.expr import AggCall, Expr
from dsms.sql.types import FOREVER, INT
from dsms.state.batch import Batch
from dsms.state.columns import column_store, numpy_true

SLICE = 1 << 15  # rows taken in at a time, so that what the kernels pass on stays in the cache
LAG, ROW_NUMBER, RANKS = "lag", "row_number", ("rank", "dense_rank")


class Evaluates(Protocol):
    """What makes evaluators (`build.Builder`)."""

    def expr(self, expr: Expr) -> Callable[..., pa.Array]: ...

    def predicate(self, expr: Expr) -> Callable[..., pa.BooleanArray]: ...


@dataclass(slots=True)
class Frames:
    """All frames of a node: `step` for each stretch of rows.

    counts  which rows count; None: all"""

    numbering: Numbering
    counts: Callable[..., pa.BooleanArray] | None
    rows: list[FrameRows]

    def step(self, given: Batch, upto: int, look: Look) -> Batch:
        """The rows, whole instants of them and in order, with what the calls are."""
        n = len(given)
        bounds = self.numbering.bounds(given.ts, given.cols)
        if self.counts is not None and n:
            bounds = _counting(bounds, numpy_true(self.counts(given.cols, n)))
        cols = given.cols
        if bounds.places is not None:
            places = pa.array(bounds.places)
            cols = tuple(c.take(places) for c in cols)
        more = [col for rows in self.rows for col in rows.step(cols, bounds, upto, look)]
        return given.with_cols((*given.cols, *more))

    @property
    def failure(self) -> tuple[QueryError, int] | None:
        """Why the query must stop, and at which instant."""
        found = [rows.failure for rows in self.rows if rows.failure is not None]
        return min(found, key=lambda f: f[1], default=None)

    @property
    def nbytes(self) -> int:
        return self.numbering.nbytes + sum(rows.nbytes for rows in self.rows)


def _counting(bounds: Bounds, passed: np.ndarray) -> Bounds:
    if bounds.places is None:
        return bounds if passed.all() else bounds.take(np.flatnonzero(passed))
    kept = passed[bounds.places]
    found = bounds.take(np.flatnonzero(kept))
    found.places = bounds.places[kept]
    return found


def frames_of(node: lp.Over, make: Evaluates) -> Frames:
    """What is kept for this node, and its calls."""
    predicate = None if node.predicate is None else make.predicate(node.predicate)
    return Frames(Numbering(node.window), predicate, [_rows(node, f, make) for f in node.frames])


def _rows(node: lp.Over, frame: lp.Frame, make: Evaluates) -> FrameRows:
    keeps = keeps_rows(node, frame)
    calls = [_call(call, keeps, make) for call in frame.calls]
    return FrameRows(frame, keeps, [make.expr(e) for e in frame.by], calls)


def _call(call: AggCall, keeps: bool, make: Evaluates) -> Folded | Before | None:
    if call.fn == ROW_NUMBER:
        return None
    if call.fn == LAG:
        value, *default = (make.expr(e) for e in call.args)
        kept = column_store(call.args[0].type.arrow)
        return Before(value, default[0] if default else None, kept)
    if call.fn in RANKS:
        column = ArgColumn(make.expr(call.args[0]), None, coding(call.args[0].type), True)
        return Folded([column], Places.of(call), coding(INT))
    passes = None if call.filter is None else make.predicate(call.filter)
    evaluators: list[Evaluate | None] = [make.expr(e) for e in call.args]
    columns = [
        ArgColumn(e, passes, arg_coding(call, k), form(call, k) != "valid")
        for k, e in enumerate(evaluators or [None])
    ]
    serving = follow(call, "in order" if keeps else "never")
    answers = answer_coding(call, tuple(c.coding for c in columns), serving)
    return Folded(columns, serving, answers)


@dataclass(slots=True)
class OverOp(InPieces):
    """See the module.  `order`: id columns by which rows of one instant are sorted."""

    frames: Frames
    order: tuple[int, ...]

    def pieces(self, inputs: Sequence[Batch], upto: int, look: Look) -> Iterator[Piece]:
        rows = by_parts(inputs[0], self.order)
        for (part,), until in stretches((rows,), upto, SLICE):
            look()
            out = self.frames.step(part, until, look)
            if self.frames.failure is not None:
                error, at = self.frames.failure
                before = out.slice(0, int(np.searchsorted(out.ts, at)))
                if len(before):
                    yield before, at - 1
                raise error
            yield out, until

    def live(self) -> int:
        return sum(rows.kept for rows in self.frames.rows)

    def nbytes(self) -> int:
        return self.frames.nbytes

    def next_due(self) -> int:
        return FOREVER  # rows that are too old go when others come


def over_op(make: Evaluates, node: lp.Over) -> OverOp:
    """The operator of a node."""
    return OverOp(frames_of(node, make), order(node.child))
