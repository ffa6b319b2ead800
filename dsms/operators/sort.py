"""ORDER BY and LIMIT over a whole answer: of one-time queries, and of periodic ones at each
boundary."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.operators.expressions import ErrorCounter, compile_expr
from dsms.operators.pieces import Look, go_on
from dsms.sql import logical as lp
from dsms.sql.expr import Col
from dsms.state.columns import numpy_values

Key = tuple[pa.Array, bool, bool]  # values, descending, NULLs first


def sort_order(
    cols: Sequence[pa.Array],
    n: int,
    sort: lp.Sort,
    errors: ErrorCounter,
    look: Look = go_on,
    spans: np.ndarray | None = None,
) -> np.ndarray:
    """int64: the rows of the sorted answer, LIMIT and OFFSET applied; ties by the other columns,
    left to right.

    `look` is called between two passes over the rows; it may raise.  `spans`: int64[n], ascending;
    rows of each span are an answer by themselves."""
    keys: list[Key] = []
    for expr, descending, nulls_first in sort.keys:
        keys.append((compile_expr(expr)(cols, n, errors), descending, nulls_first))
    named = {expr.index for expr, _, _ in sort.keys if isinstance(expr, Col)}
    keys += [(c, False, False) for i, c in enumerate(cols) if i not in named]
    stop = None if sort.limit is None else sort.offset + sort.limit
    if spans is None:
        return ordered(keys, n, look)[sort.offset : stop]
    order = ordered([(pa.array(spans), False, False), *keys], n, look)
    # of the row at that place, within its span
    place = np.arange(n) - np.searchsorted(spans, spans)
    return order[(place >= sort.offset) & (place < (n if stop is None else stop))]


def by_columns(cols: Sequence[pa.Array], n: int, look: Look = go_on) -> np.ndarray:
    """int64[n]: the rows by their columns, left to right, ascending, NULLs last."""
    return ordered([(c, False, False) for c in cols], n, look)


def ordered(keys: Sequence[Key], n: int, look: Look = go_on) -> np.ndarray:
    """int64[n]: a stable order by those keys."""
    if n < 2:
        return np.arange(n, dtype=np.int64)
    passes = [r for key in keys for r in _ranks(*key)]
    look()
    if len(passes) == 1:
        return np.argsort(passes[0], kind="stable")
    order = np.arange(n, dtype=np.int64)
    for ranks in reversed(passes):
        look()
        order = order[np.argsort(ranks[order], kind="stable")]
    return order


def _ranks(values: pa.Array, descending: bool, nulls_first: bool) -> list[np.ndarray]:
    """Sort keys of a column, most significant first: NULL or not, NaN or not, then what orders like
    the value."""
    keys: list[np.ndarray] = []
    null = np.asarray(values.is_null()) if values.null_count else None
    if null is not None:
        keys.append(~null if nulls_first else null)
    order = _ordering(values)
    if null is not None:
        order[null] = 0
    if order.dtype == np.float64:
        nan = np.isnan(order)
        if nan.any():
            keys.append(~nan if descending else nan)
            order[nan] = 0.0
    elif descending:
        order = ~order
    return [*keys, -order if descending and order.dtype == np.float64 else order]


def _ordering(values: pa.Array) -> np.ndarray:
    """A new array of numbers in the order of the values (any where NULL): themselves, or ranks of
    different ones."""
    if values.type in (pa.int64(), pa.float64(), pa.bool_()):
        plain = numpy_values(values)
        return plain.astype(np.float64 if plain.dtype == np.float64 else np.int64)
    coded = values.dictionary_encode()
    ranks = np.asarray(pc.rank(coded.dictionary, tiebreaker="dense")).astype(np.int64)
    return np.append(ranks, 0)[np.asarray(coded.indices.fill_null(len(ranks)))]
