"""Values as words inside cells, and the dictionary behind them where a word is only a code.

One algebra has one dictionary; it forgets the values that no column of cells uses any more, which
it knows from the columns themselves: they are on a list for as long as there is a reference to
them.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from dsms.aggregates.parts.words import Codes, Coding, validity
from dsms.state.columns import arrow_values

NAN = 0x7FF8000000000000
ALL = np.empty(0, np.bool_)  # nothing is NULL


def fixed(array: np.ndarray) -> np.ndarray:
    """The array as one that is contiguous and only read: kernels are compiled for those, wherever
    values come from."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def counting(column: pa.Array) -> np.ndarray:
    """bool[n]: which values are not NULL; empty if all are."""
    found = validity(column)
    return ALL if found is None else found


def floats(values: np.ndarray, valid: np.ndarray) -> pa.Array:
    """A FLOAT column with one zero and one NaN, as the engine writes it; changes `values`."""
    values += 0.0
    values.view(np.int64)[np.isnan(values)] = NAN
    return arrow_values(values, valid)


class Words:
    """The words of one argument.  `columns`: columns of cells that hold some, and the attribute in
    which."""

    def __init__(self, coding: Coding) -> None:
        self.coding = coding
        self.coded = isinstance(coding, Codes)
        self.columns: WeakKeyDictionary[Any, str] = WeakKeyDictionary()

    def __getstate__(self) -> dict[str, Any]:
        return {"coding": self.coding, "columns": list(self.columns.items())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["coding"])  # type: ignore[misc]
        self.columns.update(state["columns"])

    @property
    def rank(self) -> np.ndarray:
        """int64 by word where words are codes of values; empty where words themselves are in
        order."""
        return self.coding.rank

    def enter(self, column: Any, name: str) -> None:
        """A column of cells has come to be."""
        if self.coded:
            self.columns[column] = name

    def encode(self, column: pa.Array) -> np.ndarray:
        """int64[n], arbitrary where NULL.  Values that no cell holds are forgotten first, if that
        pays."""
        if isinstance(self.coding, Codes) and self.coding.value:
            held = [getattr(c, name) for c, name in self.columns.items()]
            if self.coding.crowded(sum(map(len, held))):
                self.coding.purge(held)
        return fixed(self.coding.encode(column)[0])

    def decode(self, words: np.ndarray, valid: np.ndarray) -> pa.Array:
        """The values of the words, NULL where not valid."""
        return self.coding.decode(words, words[:0], valid, np.arange(len(words)))

    @property
    def nbytes(self) -> int:
        return self.coding.nbytes
