"""What the server tells the audit log, and what becomes of it: the events of sessions, their
requests and statements."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from dsms.api import IngestReport
from dsms.errors import DsmsError, UsageError
from dsms_server.account import Account
from dsms_server.audit.events import Event, chosen, instant, of_text
from dsms_server.audit.sums import OTHERS, Sum, Sums
from dsms_server.audit.writer import AuditWriter

OK = "ok"


class Trail:
    """`writer` None: nothing is written down.

    now       system time, µs since the epoch
    names     the groups of events that are
    required  what can't be written down is refused (DS674)
    interval  seconds for which what happens often is summed up
    All but `statement` and `check` belongs to the event loop."""

    def __init__(
        self,
        writer: AuditWriter | None = None,
        now: Callable[[], int] = lambda: 0,
        names: tuple[str, ...] = ("all",),
        required: bool = False,
        interval: float = 60.0,
    ) -> None:
        self.writer, self.required = writer, required
        self._now, self._wanted, self._interval = now, chosen(names), interval
        self._names = names
        self._sums = Sums()
        self._due: float | None = None

    # -- life --------------------------------------------------------------------------------------

    def start(self, version: str) -> None:
        """The first line."""
        if self.writer is not None:
            self.writer.start()
            said = {"version": version, "pid": os.getpid(), "events": ",".join(self._names)}
            self._put(Event("start", self._now(), said=said))

    def stop(self, seconds: float) -> None:
        """The last line; waits for the disk, so in another thread than the loop's."""
        if self.writer is not None:
            self._flush()
            self._put(Event("stop", self._now()))
            self.writer.stop(seconds)

    def reopen(self) -> None:
        """The file was moved away."""
        if self.writer is not None:
            self.writer.reopen()

    def sweep(self, now: float) -> None:
        """Called every so often, with seconds on a clock that never goes back."""
        if self.writer is None:
            return
        self.writer.sweep()
        if self._due is None:
            self._due = now + self._interval
        elif now >= self._due:
            self._due = now + self._interval
            self._flush()

    @property
    def complaint(self) -> str:
        """Why events are not written; empty if they are."""
        return "" if self.writer is None else self.writer.complaint or "the disk does not answer"

    def wants(self, kind: str) -> bool:
        """Whether events of this kind are written down."""
        return self.writer is not None and kind in self._wanted

    def check(self, kind: str) -> None:
        """Raise DS674 for what must not be done unless it is written down, and can't be."""
        if self.required and self.wants(kind) and self.writer is not None:
            why = self.writer.complaint
            if why:
                raise unwritten(why)

    # -- sessions ----------------------------------------------------------------------------------

    def login(self, account: Account) -> None:
        """Somebody has shown who he is."""
        account.entered = True
        self._event("login", account, outcome=OK)

    def refused(self, account: Account, code: str) -> None:
        """Somebody was not let in."""
        if not self.wants("login_refused"):
            return
        said = {"claimed": account.claimed, "certificate": account.certificate}
        who = {**account.who(), "user": None, **said}
        key = (account.address, "login_refused", account.claimed or account.certificate)
        all_of = {"address": account.address, **said}  # of several sessions
        if self._sums.add(key, all_of, self._now(), {"count": 1, code: 1}) is not None:
            self._put(Event("login_refused", self._now(), who, {"outcome": code}))

    def logout(self, account: Account) -> None:
        """The session is over."""
        if not account.entered:
            return
        self._flush(account.id)
        seconds = (self._now() - account.since) / 1e6
        said = {"seconds": round(seconds, 3), "rows_in": account.rows_in}
        self._event("logout", account, outcome=account.ended or OK, **said, rows=account.rows_out)
        account.entered = False

    # -- requests ----------------------------------------------------------------------------------

    def request(
        self, kind: str, account: Account, what: str, problem: DsmsError | None = None
    ) -> None:
        """One that is written down by itself; `what`: the stream or query."""
        name = "query" if kind in ("subscribe", "unsubscribe") else "stream"
        self._event(kind, account, outcome=_outcome(problem), **{name: what})

    def often(
        self,
        kind: str,
        account: Account,
        stream: str,
        problem: DsmsError | None = None,
        report: IngestReport | None = None,
    ) -> None:
        """One of which there may be thousands in a second: frames of rows, heartbeats."""
        if not (self.wants(kind) or (problem is not None and problem.code == "DS670")):
            return
        counts = {"frames" if kind == "ingest" else "count": 1}
        if report is not None:
            counts |= {"accepted": report.accepted, "late": report.late, "refused": report.refused}
        if problem is not None:
            counts[problem.code] = 1
        self._entered(account)
        found = self._sums.add((account.id, kind, stream), account.who(), self._now(), counts)
        if found is not None:
            self._summed(kind, stream, found)

    # -- statements --------------------------------------------------------------------------------

    def statement(
        self,
        kind: str,
        account: Account,
        text: str,
        outcome: str,
        wait: bool = False,
        **said: Any,
    ) -> Future[bool] | None:
        """One that begins, or is over; with `wait` what is returned tells whether it is written.
        Called in the engine's thread."""
        self._entered(account)
        kept, characters = of_text(text)
        said = {**said, "characters": characters, "outcome": outcome}
        return self._put(Event(kind, self._now(), account.who(), said, kept), wait)

    # -- how ---------------------------------------------------------------------------------------

    def _event(self, kind: str, account: Account, **said: Any) -> None:
        if self.writer is None:
            return
        self._entered(account)
        self._put(Event(kind, self._now(), account.who(), said))

    def _entered(self, account: Account) -> None:
        """Of a server that asks for nothing, a session begins with the first thing that it does."""
        if self.writer is not None and not account.entered:
            self.login(account)

    def _put(self, event: Event, wait: bool = False) -> Future[bool] | None:
        if self.writer is None or not (event.groups & self._wanted):
            return None
        return self.writer.put(event, wait)

    def _flush(self, session: int | None = None) -> None:
        for (_, kind, what), found in list(self._sums.take(session)):
            self._summed(kind, what, found)

    def _summed(self, kind: str, what: str | None, found: Sum) -> None:
        said = found.said()
        codes = said["errors"] or {}
        outcome = OK if not codes else next(iter(codes)) if len(codes) == 1 else "several"
        name = {"stream": what}
        if kind == "login_refused":
            name = {"claimed": what} if what == OTHERS else {}
        since = {"since": instant(found.since)}
        self._put(
            Event(kind, self._now(), found.who, {**name, **said, **since, "outcome": outcome})
        )


def _outcome(problem: DsmsError | None) -> str:
    return OK if problem is None else problem.code


def unwritten(why: str) -> UsageError:
    """DS674"""
    return UsageError(
        "DS674",
        f"this was not done, since it must stand in the audit log, which can't be written: {why}",
        hint="mend that (room on its disk, its folder, its mode); the server goes on by itself",
    )
