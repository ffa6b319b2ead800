"""Things that happen too often for a line each: the first one of a session and stream is written at
once, what follows within an interval as one.

Belongs to the event loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

MOST_KEYS = 1000  # of one session, or address: what it names beyond that is summed up as one
OTHERS = "(others)"

Key = tuple[Any, str, str | None]  # who (a session's number, or an address), what, of what


@dataclass(slots=True)
class Sum:
    """What has come since the line before."""

    who: dict[str, Any]
    since: int
    counts: Counter[str] = field(default_factory=Counter)

    def said(self) -> dict[str, Any]:
        """As an event says it: counts, and by code how many failed."""
        found = {key: n for key, n in self.counts.items() if not key.startswith("DS")}
        errors = {key: n for key, n in self.counts.items() if key.startswith("DS")}
        return {**found, "errors": errors or None}


class Sums:
    """By who and what."""

    def __init__(self) -> None:
        self._open: dict[Key, Sum] = {}
        self._keys: Counter[Any] = Counter()

    def add(self, key: Key, who: dict[str, Any], at: int, counts: dict[str, int]) -> Sum | None:
        """Count; returns what is to be written now: of the first of its kind in an interval."""
        if key not in self._open and self._keys[key[0]] >= MOST_KEYS:
            key = key[0], key[1], OTHERS
        found = self._open.get(key)
        if found is not None:
            found.counts.update(counts)
            return None
        self._open[key] = Sum(who, at)
        self._keys[key[0]] += 1
        return Sum(who, at, Counter(counts))

    def take(self, who: Any = None) -> Iterator[tuple[Key, Sum]]:
        """What has gathered (of one session), which begins anew."""
        keys = [key for key in self._open if who is None or key[0] == who]
        for key in keys:
            found = self._open.pop(key)
            self._keys[key[0]] -= 1
            if not self._keys[key[0]]:
                del self._keys[key[0]]
            if found.counts:
                yield key, found
