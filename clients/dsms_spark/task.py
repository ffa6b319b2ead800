"""A request that the server's Spark process works on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dsms.api import Cancel


class Task:
    """A request at work: `check` between steps, `progress` when one is reached."""

    def __init__(self, ident: int, send: Callable[[dict[str, Any]], None]) -> None:
        self.ident = ident
        self.group = f"dsms-{ident}"  # what its jobs are called in Spark
        self.cancel = Cancel()
        self.cancelled = False
        self._send = send
        self._reported: Any = None

    def check(self) -> None:
        """Raise DS610 if its answer is not wanted any more."""
        self.cancel.check()

    def progress(self, what: str, done: int = 0, of: int = 0) -> None:
        """Tell how far it is: `done` of `of` steps (0: unknown).  Raises DS610 if it was
        cancelled."""
        self.tell(what, done, of)
        self.check()

    def tell(self, what: str, done: int = 0, of: int = 0) -> None:
        """Report how far it is, unless that was reported already."""
        if (what, done, of) != self._reported:
            self._reported = (what, done, of)
            self._send({"id": self.ident, "progress": what, "done": done, "of": of})
