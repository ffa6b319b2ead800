"""What users may take of a server: sessions, rows in a second, and, as the engine says, state.

Who sends more rows than he may is slowed: none of his sessions is read on until the rows beyond it
would have had their time.  Nothing is dropped, and others go on.  All but `rate` belongs to the
event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dsms.errors import UsageError
from dsms.rights import Rights
from dsms.rights.model import key_of
from dsms.rights.quotas import QUOTAS, ROWS, SESSIONS, full, limit_of, over, too_long
from dsms.rights.writers import name_of as writer_name
from dsms.sizes import size_of

BURST = 1.0  # seconds' worth of rows that may come at once
LONGEST = 60  # ... and of those in one frame


class Quoted(Protocol):
    """A session, as `dsms_server.session.Session` says."""

    @property
    def user(self) -> str | None: ...

    @property
    def requests(self) -> Any: ...

    def regulate(self) -> None: ...


def parse(texts: tuple[str, ...]) -> dict[str, int]:
    """``("queries=10", "state=64M")``, as options of a server have it.  Raises DS640."""
    quota = {}
    for text in texts:
        name, _, value = text.partition("=")
        most = size_of(value) if name.strip() in QUOTAS else None
        if most is None:
            known = ", ".join(QUOTAS)
            raise UsageError(
                "DS640", f"a quota is written name=number, not {text!r}", hint=f"names are {known}"
            )
        quota[name.strip()] = most
    return quota


@dataclass(slots=True)
class Meter:
    """The rows of a user.

    debt    rows that have not had their time yet, at `at`, under a quota of `under`: another
            quota, or none, takes it away
    second  in which `count` came, after `before` in the one before it
    held    whether his sessions wait"""

    at: float
    debt: float = 0.0
    second: int = 0
    count: int = 0
    before: int = 0
    held: bool = False
    under: float | None = None

    def add(self, rows: int, rate: float | None, now: float) -> None:
        self.settle(rate)
        if rate is not None:
            self.debt = max(0.0, self.debt - rate * max(0.0, now - self.at)) + rows
        self.at = now
        self._turn(int(now))
        self.count += rows

    def settle(self, rate: float | None) -> None:
        """The quota is that now."""
        if rate != self.under:
            self.debt, self.under = 0.0, rate

    def wait(self, rate: float, now: float) -> float:
        """Seconds until the next rows may come."""
        return max(0.0, (self.debt - rate * (now - self.at)) / rate - BURST)

    def rate(self, now: float) -> int:
        """Rows of the last second, about."""
        passed = int(now) - self.second
        before = self.before if passed == 0 else self.count if passed == 1 else 0
        count = self.count if passed == 0 else 0
        return int(count + before * (1 - now % 1))

    def _turn(self, second: int) -> None:
        if second != self.second:
            self.before = self.count if second == self.second + 1 else 0
            self.second, self.count = second, 0


class Quotas:
    """`rights`, `sessions`: as they are now; `default`: of who has none; `elapsed`: seconds on a
    clock that never goes back; `later`: calls something in so many seconds."""

    def __init__(
        self,
        rights: Callable[[], Rights],
        default: Mapping[str, int],
        sessions: Callable[[], Iterable[Quoted]],
        elapsed: Callable[[], float],
        later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        self._rights, self._default, self._sessions = rights, default, sessions
        self.elapsed, self.later = elapsed, later
        self._meters: dict[str, Meter] = {}
        self.full: Mapping[str, UsageError] = {}  # owners who keep as much as they may

    def _limit(self, user: str, quota: str) -> int | None:
        found = limit_of(self._rights(), self._default, user, quota)
        return None if found is None else found.most

    # -- sessions ----------------------------------------------------------------------------------

    def check_session(self, user: str | None, client: str | None) -> UsageError | None:
        """Why there can't be one more; the one that has the writer's name makes room for it."""
        if user is None:
            return None
        limit = limit_of(self._rights(), self._default, user, SESSIONS)
        if limit is None:
            return None
        name = None if client is None else writer_name(user, client)
        others = [s for s in self._of(user) if name is None or s.requests.client != name]
        if len(others) < limit.most:
            return None
        return over(user, SESSIONS, limit, len(others), "more sessions")

    def _of(self, user: str) -> list[Quoted]:
        key = key_of(user)
        return [s for s in self._sessions() if s.user is not None and key_of(s.user) == key]

    # -- rows --------------------------------------------------------------------------------------

    def check_rows(self, user: str | None, stream: str, rows: int, key: str | None = None) -> None:
        """Raise DS681 if the stream's owner can keep no more, DS682 for a frame that is too long.
        Any thread may ask."""
        owner = self._rights().owners.get(key or key_of(stream))
        found = None if owner is None else self.full.get(owner)
        if found is not None:
            if owner != key_of(user or ""):
                raise full(stream)
            raise UsageError(found.code, found.message, hint=found.hint)
        if user is None:
            return
        limit = limit_of(self._rights(), self._default, user, ROWS)
        if limit is not None and rows > limit.most * LONGEST:
            raise too_long(user, limit, rows, LONGEST)

    def took(self, user: str | None, rows: int) -> None:
        """Rows of the user have come: slow him if they are too many."""
        if user is None:
            return
        key, now, rate = key_of(user), self.elapsed(), self._limit(user, ROWS)
        meter = self._meters.setdefault(key, Meter(now))
        meter.add(rows, rate, now)
        if rate and not meter.held and meter.wait(rate, now) > 0:
            self._hold(user, meter, meter.wait(rate, now))

    def waits(self, user: str | None) -> bool:
        """Whether his sessions are not read on for now."""
        meter = None if user is None else self._meters.get(key_of(user))
        return meter is not None and meter.held

    def rate(self, user: str) -> int:
        """Rows that he has sent in the last second, about.  Any thread may ask."""
        meter = self._meters.get(key_of(user))
        return 0 if meter is None else meter.rate(self.elapsed())

    def _hold(self, user: str, meter: Meter, seconds: float) -> None:
        meter.held = True
        for session in self._of(user):
            session.regulate()
        self.later(min(seconds, 1.0), lambda: self._look(user, meter))  # the quota may change

    def _look(self, user: str, meter: Meter) -> None:
        now, rate = self.elapsed(), self._limit(user, ROWS)
        meter.settle(rate)
        seconds = meter.wait(rate, now) if rate else 0.0
        if seconds > 0:
            self._hold(user, meter, seconds)
            return
        meter.held = False
        for session in self._of(user):
            session.regulate()
