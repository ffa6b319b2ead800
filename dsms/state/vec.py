"""A growable int64 (or other) NumPy array: amortised O(1) append, contiguous, usable by kernels
through `.view`."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dsms.state.lengthening import grown


@dataclass(slots=True)
class Vec:
    """The first `n` places of `data` are in use; `data` is replaced when it grows, so take `view`
    anew each time."""

    dtype: type = np.int64
    n: int = 0
    data: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    def __post_init__(self) -> None:
        self.data = np.empty(64, self.dtype)

    @property
    def view(self) -> np.ndarray:
        """The used part, not a copy."""
        return self.data[: self.n]

    def reserve(self, extra: int) -> None:
        """Make room for `extra` more without using it."""
        if self.n + extra > len(self.data):
            self.data = grown(self.data, self.n + extra, None)

    def extend(self, values: np.ndarray) -> None:
        """Append values."""
        self.reserve(len(values))
        self.data[self.n : self.n + len(values)] = values
        self.n += len(values)

    def extend_fill(self, count: int, value: int | tuple[int, ...]) -> None:
        """Append `count` times the same value (of rows of several: a value for each place)."""
        self.reserve(count)
        self.data[self.n : self.n + count] = value
        self.n += count

    def keep(self, index: np.ndarray) -> None:
        """Keep only the places `index`, in that order; shrinks the memory when much of it is
        unused."""
        kept = self.data[: self.n][index]
        self.n = len(kept)
        if 4 * self.n < len(self.data):
            self.data = np.empty(max(64, 2 * self.n), self.dtype)
        self.data[: self.n] = kept

    def drop(self, count: int) -> None:
        """Forget the first `count` places; shrinks the memory when much of it is unused."""
        rest = self.n - count
        if 4 * rest < len(self.data):
            old, self.data = (
                self.data,
                np.empty((max(64, 2 * rest), *self.data.shape[1:]), self.data.dtype),
            )
            self.data[:rest] = old[count : self.n]
        else:
            self.data[:rest] = self.data[count : self.n].copy()
        self.n = rest

    @property
    def nbytes(self) -> int:
        return int(self.data.nbytes)


class Vec2(Vec):
    """int64 rows of two, so that what a kernel reads together lies together; `extend` puts -1 into
    the second."""

    def __post_init__(self) -> None:
        self.data = np.empty((64, 2), np.int64)

    def extend(self, values: np.ndarray) -> None:
        self.reserve(len(values))
        self.data[self.n : self.n + len(values), 0] = values
        self.data[self.n : self.n + len(values), 1] = -1
        self.n += len(values)

    def keep(self, index: np.ndarray) -> None:
        kept = self.data[: self.n][index]
        self.n = len(kept)
        if 4 * self.n < len(self.data):
            self.data = np.empty((max(64, 2 * self.n), 2), np.int64)
        self.data[: self.n] = kept


@dataclass(slots=True)
class Matrix(Vec):
    """int64 rows of `width` columns."""

    width: int = 1

    def __post_init__(self) -> None:
        self.data = np.empty((64, self.width), np.int64)

    def keep(self, index: np.ndarray) -> None:
        kept = self.data[: self.n][index]
        self.n = len(kept)
        if 4 * self.n < len(self.data):
            self.data = np.empty((max(64, 2 * self.n), self.width), np.int64)
        self.data[: self.n] = kept
