"""Wrong tokens: the answer to each waits longer, by address, and only a few may wait at a time.

The right token is never held up by wrong ones of other addresses, nor by a few of its own: a client
with an old token beside it holds nobody else up.  A client that gives up waiting gains nothing,
since the place stays taken until the time is over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

LONGEST = 50  # times the first delay
FORGIVEN = 60.0  # seconds after which an address that is quiet begins anew
AT_ONCE = 8  # wrong tokens of one address whose answers wait
REMEMBERED = 10_000  # addresses


@dataclass(slots=True)
class _Record:
    wrong: int = 0
    latest: float = 0.0
    until: list[float] = field(default_factory=list)  # when the answers that wait are due


class Guesses:
    """`now` gives seconds on a clock that never goes back; `first` is the delay of an address's
    first wrong token."""

    def __init__(self, first: float, now: Callable[[], float]) -> None:
        self._first, self._now = first, now
        self._records: dict[str, _Record] = {}

    def wait(self, address: str) -> float:
        """Seconds until a token of this address is looked at; 0: now."""
        record = self._records.get(address)
        if record is None:
            return 0.0
        now = self._now()
        record.until = [due for due in record.until if due > now]
        return 0.0 if len(record.until) < AT_ONCE else min(record.until) - now

    def wrong(self, address: str) -> float:
        """Note a wrong token; returns the seconds until it may be answered."""
        now = self._now()
        record = self._records.pop(address, None) or _Record()
        if now - record.latest > FORGIVEN:
            record.wrong = 0
        delay = self._first * min(2**record.wrong, LONGEST)
        record.wrong = min(record.wrong + 1, LONGEST)
        record.latest = now
        record.until = [due for due in record.until if due > now] + [now + delay]
        self._records[address] = record
        if len(self._records) > REMEMBERED:
            del self._records[next(iter(self._records))]
        return delay
