"""Aggregates that are worked out over all rows of a group at once: TOPK, and those that are put together from
sub-windows, for which the window is one sub-window here."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dsms.adhoc.parts import Part
from dsms.operators.expressions import ErrorCounter, compile_expr, compile_predicate
from dsms.operators.sort import ordered
from dsms.sql.expr import AggCall, Col
from dsms.sql.functions import cast
from dsms.sql.types import STRING
from dsms.state.columns import numpy_true, numpy_valid
from dsms.state.intern import Intern
from dsms.synopses.cells import Algebra, Rows
from dsms.synopses.frequent import frequent
from dsms.synopses.sketches import sketch

SAMPLED = ("approx_count_distinct", "approx_quantile", "approx_topk", "frequent")
WHOLE = ("topk", *SAMPLED)


def whole_aggregate(call: AggCall, rows: Part, codes: np.ndarray, shown: np.ndarray, errors: ErrorCounter) -> pa.Array:
    """The aggregate for the groups `shown`; `codes` are those of the rows."""
    if call.filter is not None:
        kept = np.flatnonzero(numpy_true(compile_predicate(call.filter)(rows.cols, rows.n, errors)))
        rows, codes = rows.take(kept), codes[kept]
    values = compile_expr(call.args[0])(rows.cols, rows.n, errors)
    if call.fn in SAMPLED:
        return _sampled(call, values, codes, shown)
    valid = numpy_valid(values)
    if valid is not None:
        kept = np.flatnonzero(valid)
        values, codes = values.take(pa.array(kept)), codes[kept]
    texts = _topk(values, codes, int(str(call.params[0])), call, errors)
    return pa.array([texts.get(int(g)) for g in shown], pa.string())


def _sampled(call: AggCall, values: pa.Array, codes: np.ndarray, shown: np.ndarray) -> pa.Array:
    """Lifted in one go, a cell per group."""
    place = np.full(1 + max(codes.max(initial=-1), shown.max(initial=-1)), -1, np.int64)
    place[shown] = np.arange(len(shown))
    kept, n = np.flatnonzero(place[codes] >= 0), np.arange(len(codes))
    values = values if len(kept) == len(codes) else values.take(pa.array(kept))
    how: Algebra = frequent(call) if call.fn == "frequent" else sketch(call)
    return how.lower(how.lift(Rows(place[codes][kept], n[kept], n[kept], (values,)), len(shown)))


def _topk(values: pa.Array, codes: np.ndarray, k: int, call: AggCall, errors: ErrorCounter) -> dict[int, str]:
    """By group the text of its k most frequent values, of equally frequent ones the smaller first."""
    pair = Intern(2).codes([pa.array(codes), values], len(values))
    which, first, count = np.unique(pair, return_index=True, return_counts=True)
    found, group = values.take(pa.array(first)), codes[first]
    keys = [(pa.array(group), False, False), (pa.array(count.astype(np.int64)), True, False), (found, False, False)]
    order = ordered(keys, len(which))
    shown = compile_expr(cast(Col(0, call.args[0].type), STRING))([found], len(which), errors)
    lists: dict[int, list[str]] = {}
    for g, text in zip(group[order].tolist(), shown.take(pa.array(order)).to_pylist(), strict=True):
        members = lists.setdefault(g, [])
        if len(members) < k:
            members.append(text)
    return {g: f"[{', '.join(members)}]" for g, members in lists.items()}
