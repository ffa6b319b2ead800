"""What operators do where nothing comes any more that could meet some of what they keep
(punctuations, as Tucker, Maier, Sheard and Fegaras 2003 purge state by them).

They let go of it, which changes no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from dsms.state.intern import Intern


@runtime_checkable
class LetsGo(Protocol):
    """An operator of one input that need not keep all of it."""

    def let_go(self, columns: Sequence[int], values: Sequence[pa.Array]) -> None:
        """No row comes any more whose `columns` have one of the combinations of `values`."""
        ...


def equal_to(cols: Sequence[pa.Array], values: Sequence[pa.Array]) -> np.ndarray:
    """Which rows of `cols` are one of the rows of `values`, bool[n]; NULLs are equal."""
    found: np.ndarray = places_among(cols, values) >= 0
    return found


def places_among(cols: Sequence[pa.Array], values: Sequence[pa.Array]) -> np.ndarray:
    """Which of the rows of `values`, all different, each row of `cols` is; -1: none of them."""
    if not len(cols[0]) or not len(values[0]):
        return np.full(len(cols[0]), -1, np.int64)
    known = Intern(len(cols))
    place = np.empty(len(values[0]), np.int64)
    place[known.codes(values, len(place))] = np.arange(len(place))
    codes = known.lookup(cols, len(cols[0]))
    return np.where(codes >= 0, place[codes], -1)
