"""Tables that a statement is changing piece by piece: those that change the same one wait for it,
in the order in which they came.

Who can't wait goes first: the statement finds that its table has changed, and does what it was at
once more.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Hold:
    """A table's.  `over`: done when others may go on."""

    key: str
    over: Future[None] = field(default_factory=Future)

    def let_go(self) -> None:
        """Others need not wait any more."""
        if not self.over.done():
            self.over.set_result(None)


@dataclass(slots=True)
class Holds:
    """The tables that are held, by key."""

    held: dict[str, Hold] = field(default_factory=dict)

    def of(self, key: str) -> Hold | None:
        """Who has the table, if others are to wait."""
        hold = self.held.get(key)
        return None if hold is None or hold.over.done() else hold

    def take(self, key: str) -> Hold:
        """Have a table that nobody else has."""
        hold = self.held[key] = Hold(key)
        return hold

    def release(self, hold: Hold) -> None:
        """The change is made, or will not be."""
        if self.held.get(hold.key) is hold:
            del self.held[hold.key]
        hold.let_go()
