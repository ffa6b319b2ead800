"""Looking through all that an operator keeps for what promises (punctuations) make needless, where
no hash leads to it.

To look at a place for each promise would cost promises times places.  So promises wait until a walk
over all places pays: it is paid by the promises, PROMISE places each, and by places that are new or
were freed, NEW each.  All walks together look at no more than that.  A walk goes on piece by piece,
the last place first: where gaps are closed meanwhile, what it has yet to look at stays before it.
When it comes changes no answer: what it is after meets nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from dsms.operators.pieces import Look, go_on

PROMISE = 64  # places that a walk may look at for each promise
NEW = 8  # ... and for each new place: a walk pays when an eighth is new
FEW = 1024  # so many places are looked at for any promise
PIECE = 1 << 14  # places looked at in one go

T = TypeVar("T")


@dataclass(slots=True)
class Sweep(Generic[T]):
    """waiting  promises that the next walk goes by;  walking: those of the walk under way
    at    by input: all places from here on have been looked at
    paid  places that may be looked at;  seen: places there, when that was counted"""

    waiting: list[T] = field(default_factory=list)
    walking: list[T] = field(default_factory=list)
    at: list[int] = field(default_factory=list)
    paid: int = 0
    seen: int = 0

    @property
    def idle(self) -> bool:
        """Whether no promise waits."""
        return not self.waiting and not self.walking

    def promised(self, what: T, many: int) -> None:
        """One more promise, of so many combinations of values."""
        self.waiting.append(what)
        self.paid += PROMISE * many

    def freed(self, many: int) -> None:
        """So many places were found to be needless: more of them may be."""
        self.paid += NEW * many

    def places(
        self, sizes: Sequence[int], many: int = 0, look: Look = go_on
    ) -> Iterator[tuple[int, np.ndarray]]:
        """(input, places) to be looked at now, if it is time for any: about PIECE, and more where
        `many` combinations have been promised at once.

        sizes  by input, how many places there are"""
        total = sum(sizes)
        self.paid += NEW * max(0, total - self.seen)
        self.seen = total
        if not self.walking:
            if not self.waiting or max(self.paid, FEW) < total:
                return
            self.walking, self.waiting, self.paid = self.waiting, [], 0
            self.at = list(sizes)
        left = PIECE + PROMISE * many
        for k, size in enumerate(sizes):
            self.at[k] = min(self.at[k], size)
            while left > 0 and self.at[k]:
                look()
                stop = self.at[k]
                self.at[k] = max(stop - min(left, PIECE), 0)
                left -= stop - self.at[k]
                yield k, np.arange(self.at[k], stop)

    def ended(self) -> list[T]:
        """Promises by which everything has been looked at now."""
        if not self.walking or any(self.at):
            return []
        done, self.walking = self.walking, []
        return done

    def __getstate__(self) -> dict[str, Any]:
        """A walk begins anew where the state goes on."""
        return {"waiting": [*self.walking, *self.waiting]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.waiting, self.walking = list(state["waiting"]), []
        self.at = []
        self.paid = self.seen = 0
