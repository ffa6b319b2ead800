"""Sort keys of rows as words that compare one after the other: what ranked rows are kept with.

A key is two words, whether it is NULL and its value; a value is a word in the order of the values
(`dsms.aggregates.parts.words`), upside down for DESC, or a code whose rank is.  Behind the keys
stand the arrival numbers of the row's parts, so no two rows are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dsms.aggregates.parts.words import Codes, Coding, coding, validity
from dsms.sql.types import Type

PLAIN = -1


@dataclass(slots=True)
class SortWords:
    """Keys of these types, each descending or not, NULLs first or not; then `ids` numbers."""

    types: tuple[Type, ...]
    down: tuple[bool, ...]
    nulls_first: tuple[bool, ...]
    ids: int
    codings: list[Coding] = field(init=False)

    def __post_init__(self) -> None:
        self.codings = [coding(type_) for type_ in self.types]

    @property
    def width(self) -> int:
        """Words of a row."""
        return 2 * len(self.types) + self.ids

    def of(self, cols: Sequence[pa.Array], ids: Sequence[np.ndarray], n: int) -> np.ndarray:
        """int64[n, width]: the words of n rows with these keys and numbers."""
        out = np.empty((n, self.width), np.int64)
        for k, col in enumerate(cols):
            valid, first = validity(col), self.nulls_first[k]
            words, _ = self.codings[k].encode(col)
            if self.down[k] and not isinstance(self.codings[k], Codes):
                words = ~words
            out[:, 2 * k] = first if valid is None else valid == first
            out[:, 2 * k + 1] = words if valid is None else np.where(valid, words, 0)
        for k, number in enumerate(ids, 2 * len(cols)):
            out[:, k] = number
        return out

    def ranks(self) -> tuple[np.ndarray, np.ndarray]:
        """(int64[width]: where the ranks of a column of codes begin, or PLAIN;  int64: ranks)."""
        base, parts = np.full(self.width, PLAIN, np.int64), [np.zeros(1, np.int64)]
        for k, at in self._codes():
            base[at] = sum(map(len, parts))
            ranks = self.codings[k].rank
            parts += [~ranks if self.down[k] else ranks, np.zeros(1, np.int64)]
        return base, np.concatenate(parts)

    def purge(self, words: np.ndarray) -> None:
        """Forget values that none of these rows has."""
        for k, at in self._codes():
            if self.codings[k].crowded(len(words)):
                self.codings[k].purge([words[:, at]])

    def _codes(self) -> list[tuple[int, int]]:
        """The keys that are codes, each with the position of its word."""
        codes = [k for k, c in enumerate(self.codings) if isinstance(c, Codes)]
        return [(k, 2 * k + 1) for k in codes]

    @property
    def nbytes(self) -> int:
        return sum(c.nbytes for c in self.codings)
