"""What operators do where nothing comes any more that could meet some of what they keep
(punctuations, as Tucker, Maier, Sheard and Fegaras 2003 purge state by them).

They let go of it, which changes no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.state.intern import Intern


@runtime_checkable
class LetsGo(Protocol):
    """An operator of one input that need not keep all of it."""

    def let_go(self, columns: Sequence[int], values: Sequence[pa.Array]) -> None:
        """No row comes any more whose `columns` have one of the combinations of `values`."""
        ...


Before = tuple[int, pa.Array]
# columns, combinations of values in them, values below which another key is (or None)
Promise = tuple[tuple[int, ...], list[pa.Array], Before | None]


def merged(promises: Sequence[Promise]) -> list[Promise]:
    """The same promises, as few: all over the same columns in one."""
    same: dict[tuple[tuple[int, ...], int | None], list[Promise]] = {}
    for promise in promises:
        columns, _, before = promise
        same.setdefault((columns, None if before is None else before[0]), []).append(promise)
    return [_one(columns, key, each) for (columns, key), each in same.items()]


def _one(columns: tuple[int, ...], key: int | None, each: Sequence[Promise]) -> Promise:
    """`places_among` takes the last of equal combinations: that has to be the latest instant."""
    values = [pa.concat_arrays(v) for v in zip(*(values for _, values, _ in each), strict=True)]
    if key is None:
        return columns, values, None
    bound = pa.concat_arrays([before[1] for _, _, before in each if before is not None])
    order = pc.array_sort_indices(bound, null_placement="at_start")
    return columns, [v.take(order) for v in values], (key, bound.take(order))


def equal_to(cols: Sequence[pa.Array], values: Sequence[pa.Array]) -> np.ndarray:
    """Which rows of `cols` are one of the rows of `values`, bool[n]; NULLs are equal."""
    found: np.ndarray = places_among(cols, values) >= 0
    return found


def places_among(cols: Sequence[pa.Array], values: Sequence[pa.Array]) -> np.ndarray:
    """Which of the rows of `values` each row of `cols` is, of equal ones the last; -1: none of
    them."""
    if not len(cols[0]) or not len(values[0]):
        return np.full(len(cols[0]), -1, np.int64)
    known = Intern(len(cols))
    place = np.empty(len(values[0]), np.int64)
    place[known.codes(values, len(place))] = np.arange(len(place))
    codes = known.lookup(cols, len(cols[0]))
    return np.where(codes >= 0, place[codes], -1)
