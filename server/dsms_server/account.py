"""What is known of a session beside its bytes: who it is, what it runs, what has passed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

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
    """Of one session.

    statement_timeout  seconds; 0: none
    client, claimed    the names of a writer, and of a user, that its peer has said
    certificate        the name in its peer's TLS certificate
    entered            whether the audit log tells of it
    ended              the code of the error by which the server has ended it
    follow             told of each statement of a request, and again once it is parsed; answers
                       whether it is to wait before it is done
    """

    id: int
    peer: str
    address: str
    since: int
    statement_timeout: float
    user: str | None = None
    rows_in: int = 0
    rows_out: int = 0
    work: Work | None = field(default=None)
    client: str | None = None
    claimed: str | None = None
    certificate: str | None = None
    entered: bool = False
    ended: str | None = None
    follow: Callable[[str, Any], bool] | None = None

    def begins(self, text: str, statement: Any) -> bool:
        """As `dsms.sessions.Caller` says."""
        return self.follow is not None and self.follow(text, statement)

    def who(self) -> dict[str, Any]:
        """As the audit log names it."""
        return {
            "session": self.id,
            "user": self.user,
            "address": self.peer,
            "client": self.client,
            "certificate": self.certificate,
        }

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
