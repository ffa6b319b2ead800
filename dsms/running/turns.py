"""Turns: what one call makes queries do may be divided among many calls, so that no call holds the
engine's thread for long.

`Settings.pause` is asked between two steps of a query (or of what queries share); where it says so
the call returns, and `Engine.work` goes on with what is left.  A query that is behind is in the
state that a cancelled call leaves: what was handed over stands, and the next call that moves it
goes on where it was.  Hence nothing here changes an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from dsms.api import Cancel
from dsms.errors import DsmsError, UsageError
from dsms.running.faults import CANCELLED

T = TypeVar("T")


class Pause(UsageError):
    """The turn is over, and some queries are not where they should be."""


FEW, MANY = 1, 4  # steps in a turn: those are too long, and might be longer


@dataclass(slots=True)
class Turns:
    """Which queries are to have a turn.  `behind`: a call has left something; `left`: the queries
    that are concerned, the next one first."""

    behind: bool = False
    at: str = ""  # the name of the query (or group of them) that has its turn, or had the last one
    steps: int = 0  # in all turns
    pauses: int = 0
    left: dict[int, Any] = field(default_factory=dict)  # by identity

    def remaining(self, units: Sequence[T]) -> list[T]:
        """Those of them that are to go on."""
        here = set(map(id, units))
        return [u for key, u in self.left.items() if key in here]

    def order(self, units: Sequence[T]) -> list[T]:
        """All of them are to move; those that were to move before come first."""
        if not self.left:
            return list(units)
        return [*self.remaining(units), *(u for u in units if id(u) not in self.left)]

    def done(self, units: Sequence[Any], count: int) -> None:
        """The first `count` have moved as far as they may; the one behind them goes on after the
        others."""
        if self.left:
            for unit in units[: count + 1]:
                self.left.pop(id(unit), None)
        for unit in (*units[count + 1 :], *units[count : count + 1]):
            self.left[id(unit)] = unit

    def take(
        self,
        move: Callable[[Cancel | None], None],
        pause: Callable[[], bool] | None,
        cancel: Cancel | None,
    ) -> None:
        """Move queries for one turn; without `pause` until all is done."""
        if pause is None:
            move(cancel)
            return
        try:
            move(Turn(self, pause, cancel))
        except Pause:
            self.behind = True
        except DsmsError:
            self.behind = True  # the cancelled statement does not go on, but the queries do
            raise


class Turn(Cancel):
    """A `Cancel` that also ends the call, by `Pause`, when the turn is over.

    pause  asked after each step;  cancel  the caller's own"""

    __slots__ = ("_cancel", "_pause", "steps", "turns")

    def __init__(self, turns: Turns, pause: Callable[[], bool], cancel: Cancel | None) -> None:
        super().__init__()
        self.turns = turns
        self._pause = pause
        self._cancel = cancel
        self.steps = 0  # in this turn

    def check(self) -> None:
        if self._cancel is not None:
            self._cancel.check()

    def between(self) -> None:
        self.check()
        self.turns.steps += 1
        self.steps += 1
        if self._pause():
            self.turns.pauses += 1
            raise Pause(CANCELLED, "the turn is over")
