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
    if not len(cols[0]) or not len(values[0]):
        return np.zeros(len(cols[0]), np.bool_)
    known = Intern(len(cols))
    known.codes(values, len(values[0]))
    found: np.ndarray = known.lookup(cols, len(cols[0])) >= 0
    return found
