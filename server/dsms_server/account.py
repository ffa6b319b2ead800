"""What is known of a session beside its bytes: who it is, what it runs, what has passed."""

from __future__ import annotations

from dataclasses import dataclass, field

from dsms.api import Cancel
from dsms_server.shares import Asking, Run

SHOWN = 200  # characters of a statement


@dataclass(slots=True, eq=False)
class Work:
    """A request to execute statements, from its turn on.  Written by the engine's thread."""

    sql: str
    cancel: Cancel
    began: float = 0.0  # when the turn of the statement under way came
    run: Run | None = None  # of its plan, if that is what it is at


@dataclass(slots=True, eq=False)
class Account:
    """Of one session.  `statement_timeout`: seconds; 0: none."""

    id: int
    peer: str
    address: str
    since: int
    statement_timeout: float
    user: str | None = None
    rows_in: int = 0
    rows_out: int = 0
    work: Work | None = field(default=None)

    @property
    def asking(self) -> Asking:
        """Who competes with others: the user, or the address where there are no users; and in which
        session."""
        return (self.address if self.user is None else f"user {self.user}", self.id)


def shown(sql: str) -> str:
    """The beginning of a statement in one line, without control characters."""
    text = "".join(
        c if c.isprintable() else " " if c.isspace() else f"\\u{ord(c):04x}"
        for c in sql[: 2 * SHOWN]
    )
    text = " ".join(text.split())
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
