"""Operators that only pass rows on: as they are, or through two others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dsms.operators.base import Operator
from dsms.sql.types import FOREVER
from dsms.state.batch import Batch


class Through:
    """Passes rows on as they are (an unbounded window, the root)."""

    def step(self, inputs: Any, upto: int) -> Batch:
        return inputs[0]

    def live(self) -> int:
        return 0

    def nbytes(self) -> int:
        return 0

    def next_due(self) -> int:
        return FOREVER


@dataclass(slots=True)
class Piped:
    """One operator behind another, as one."""

    first: Operator
    second: Operator

    def step(self, inputs: Any, upto: int) -> Batch:
        return self.second.step((self.first.step(inputs, upto),), upto)

    def live(self) -> int:
        return self.first.live() + self.second.live()

    def nbytes(self) -> int:
        return self.first.nbytes() + self.second.nbytes()

    def next_due(self) -> int:
        return min(self.first.next_due(), self.second.next_due())


def unpiped(operator: Operator) -> Iterator[Operator]:
    """The operators that it is made of, in order."""
    if isinstance(operator, Piped):
        yield from unpiped(operator.first)
        yield from unpiped(operator.second)
    else:
        yield operator
