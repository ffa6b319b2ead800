"""Sampled aggregates, which synopses combine from sub-windows: here the whole window is one
sub-window."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.registry import algebra
from dsms.oneshot.parts import AgedRows
from dsms.operators.expressions import ErrorCounter, compile_expr, compile_predicate
from dsms.sql.expr import AggCall
from dsms.state.columns import numpy_true


def sampled_aggregate(
    call: AggCall, rows: AgedRows, codes: np.ndarray, shown: np.ndarray, errors: ErrorCounter
) -> pa.Array:
    """The aggregate for the groups `shown`; `codes` are those of the rows."""
    if call.filter is not None:
        kept = np.flatnonzero(numpy_true(compile_predicate(call.filter)(rows.cols, rows.n, errors)))
        rows, codes = rows.take(kept), codes[kept]
    args = tuple(compile_expr(a)(rows.cols, rows.n, errors) for a in call.args)
    return _sampled(call, args, codes, shown)


def _sampled(
    call: AggCall, args: tuple[pa.Array, ...], codes: np.ndarray, shown: np.ndarray
) -> pa.Array:
    """Lifted in one go, a cell per group."""
    place = np.full(1 + max(codes.max(initial=-1), shown.max(initial=-1)), -1, np.int64)
    place[shown] = np.arange(len(shown))
    kept, n = np.flatnonzero(place[codes] >= 0), np.arange(len(codes))
    if len(kept) < len(codes):
        args = tuple(values.take(pa.array(kept)) for values in args)
    how = algebra(call)
    return how.lower(how.lift(CellRows(place[codes][kept], n[kept], n[kept], args), len(shown)))
