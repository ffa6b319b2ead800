"""GROUP BY of rows that are all there: a code for each group, then cells of each aggregate, lifted
and lowered once (`dsms.aggregates.parts.cells`).

The operator of persistent queries answers the same; but it follows each row, and here only the end
counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.aggregates.cards import CARDS
from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.registry import algebra
from dsms.oneshot.parts import AgedRows, concat, nothing
from dsms.operators.expressions import ErrorCounter, compile_expr, compile_predicate
from dsms.operators.group_keys import canonical
from dsms.operators.pieces import Look
from dsms.sql import logical as lp
from dsms.sql.expr import AggCall, columns
from dsms.sql.types import Kind
from dsms.state.columns import numpy_true, numpy_values
from dsms.state.intern import Intern

CLOSE = 1 << 16  # so many whole numbers apart (or as many as rows) get codes from an array
STRETCH = 1 << 22  # rows that are lifted at a time
# of which cells and states of single rows hold the same numbers exactly; or rows are not followed
# where nothing leaves
FAMILIES = ("bools", "counts", "ends", "extremes", "python", "spreads", "sums")


@njit(cache=True, nogil=True)
def _close_codes(values, low, table, codes, first):
    """Codes of whole numbers in the order in which they come, and the first row of each; how
    many.  table: int32 of -1, by value - low."""
    n = 0
    for i in range(len(values)):
        at = values[i] - low
        code = table[at]
        if code < 0:
            code = n
            table[at] = n
            first[n] = i
            n += 1
        codes[i] = code
    return n


@njit(cache=True, nogil=True)
def _first_rows(codes, first):
    """The first row of each code; first: int64 of -1, by code."""
    for i in range(len(codes)):
        if first[codes[i]] < 0:
            first[codes[i]] = i


def group_codes(keys: Sequence[pa.Array], n: int, look: Look) -> tuple[np.ndarray, np.ndarray]:
    """Codes of n rows by their keys, NULLs being equal, and the first row of each code (-1: the one
    group of no keys and no rows)."""
    if not keys:
        return np.zeros(n, np.int64), np.array([0 if n else -1], np.int64)
    close = _closely(keys[0], n) if len(keys) == 1 and n else None
    if close is not None:
        return close
    intern = Intern(len(keys))
    codes = intern.codes(keys, n, look)
    first = np.full(intern.capacity, -1, np.int64)
    _first_rows(codes, first)
    return codes, first


def _closely(key: pa.Array, n: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Of whole numbers that lie close together."""
    if not pa.types.is_int64(key.type) or key.null_count:
        return None
    values = numpy_values(key)
    low, high = int(values.min()), int(values.max())
    room = high - low + 1
    if room > max(CLOSE, n):
        return None
    codes, first = np.empty(n, np.int64), np.empty(min(n, room), np.int64)
    d = _close_codes(values, low, np.full(room, -1, np.int32), codes, first)
    return codes, first[:d].copy()


def by_cells(node: lp.GroupBy) -> bool:
    """Whether all of its aggregates are computed so."""
    calls = node.aggs
    return (
        all(CARDS[c.fn].family in FAMILIES and not CARDS[c.fn].sampled for c in calls)
        and not any(a.type.kind is Kind.NULL for c in calls for a in c.args)
        and not any(k.type.kind is Kind.NULL for k in node.keys)
    )


def grouped(
    node: lp.GroupBy, rows: AgedRows, errors: ErrorCounter, look: Look
) -> tuple[tuple[pa.Array, ...], np.ndarray]:
    """Keys and aggregates of each group, and its first row.  `rows` stand in (ts, arrival) order if
    that matters to an aggregate.  Raises QueryError DS7xx."""
    keys = [compile_expr(k)(rows.cols, rows.n, errors) for k in node.keys]
    codes, first = group_codes(keys, rows.n, look)
    look()
    shown = pa.array(first)
    made = [canonical(key.take(shown)) for key in keys]
    aggs = [_aggregate(call, rows, codes, len(first), errors, look) for call in node.aggs]
    return (*made, *aggs), first


def _aggregate(
    call: AggCall, rows: AgedRows, codes: np.ndarray, groups: int, errors: ErrorCounter, look: Look
) -> pa.Array:
    if call.filter is not None:
        kept = np.flatnonzero(numpy_true(compile_predicate(call.filter)(rows.cols, rows.n, errors)))
        if len(kept) < rows.n:
            rows, codes = rows.take(kept), codes[kept]
    args = [compile_expr(a)(rows.cols, rows.n, errors) for a in call.args]
    how, state = algebra(call), None
    ordered = CARDS[call.fn].ordered  # others do not look at it
    order = np.arange(rows.n, dtype=np.int64) if ordered else codes
    for start in range(0, max(rows.n, 1), STRETCH):
        stop = min(start + STRETCH, rows.n)
        some = tuple(a.slice(start, stop - start) for a in args)
        found = how.lift(
            CellRows(codes[start:stop], order[start:stop], order[start:stop], some), groups
        )
        state = found if state is None else how.combine(state, found)
        look()
    return how.lower(state)


def used(node: lp.GroupBy) -> set[int]:
    """The columns of its rows that it looks at."""
    parts = [*node.keys, *(e for a in node.aggs for e in (*a.args, a.filter) if e is not None)]
    return {k for e in parts for k in columns(e)}


def in_one_part(parts: Sequence[AgedRows], node: lp.GroupBy) -> AgedRows:
    """The rows as one part, without what is not looked at."""
    schema, some = node.child.schema, used(node)
    if not parts:
        return nothing(schema, 0)
    n = sum(p.n for p in parts)
    plain = concat([AgedRows(p.n, tuple(p.cols[k] for k in sorted(some))) for p in parts])
    there = dict(zip(sorted(some), plain.cols, strict=True))
    cols = [there[k] if k in there else pa.nulls(n, f.type.arrow) for k, f in enumerate(schema)]
    return AgedRows(n, tuple(cols))


def ready() -> None:
    """Have the kernels compiled or loaded now."""
    for key in (pa.array([1, 2]), pa.array(["a", "b"])):
        group_codes([key], 2, lambda: None)
