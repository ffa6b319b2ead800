"""Small choices, so that failing examples shrink to plain ones: no, the first of a list, the
smallest number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Draws:
    """Wraps hypothesis' `draw`; also numbers the names that a query needs."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw
        self._names = 0

    def of(self, strategy: st.SearchStrategy[T]) -> T:
        return self._draw(strategy)

    def chance(self, percent: int) -> bool:
        return self._draw(st.integers(0, 99)) >= 100 - percent

    def pick(self, options: Sequence[T]) -> T:
        return options[self._draw(st.integers(0, len(options) - 1))]

    def number(self, least: int, most: int) -> int:
        return self._draw(st.integers(least, most))

    def some(self, options: Sequence[T], least: int = 0, most: int | None = None) -> list[T]:
        """A few of the options, in their order."""
        most = len(options) if most is None else min(most, len(options))
        count = self.number(min(least, most), most)
        left = list(options)
        while len(left) > count:
            left.pop(self.number(0, len(left) - 1))
        return left

    def name(self) -> str:
        """An alias that no other part of the query has."""
        self._names += 1
        return f"a{self._names}"
