"""What the transaction scheduler hands out: the sub-window to read, rows that came too late for a
read, and its counters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

Insert = tuple[int, Any]  # a sub-window's number and what comes into it


class Read(NamedTuple):
    """A sub-window to read now.

    number   its absolute number; slot = number mod the ring's size.  With `ws` the slot may hold a
             younger one already: look it up by number (`pinned` says which must be kept)
    newest   the youngest sub-window of the state that the transaction reads
    version  how many updates of the ring that state has seen: rows that later ones inserted are not
             part of this read (they come by `late`, if they belong to the state in the end)
    attempt  aborts of the transaction so far
    """

    transaction: int
    ring: str
    slot: int
    number: int
    newest: int
    version: int
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Late:
    """Rows that came into a sub-window after the transaction had read it, and belong to its
    answer."""

    ring: str
    slot: int
    number: int
    payload: Any


@dataclass(slots=True)
class Counters:
    """Transactions begun, committed, given up; aborts (each one a restart); window updates
    executed; transactions set aside half-way for one of higher priority."""

    begun: int = 0
    committed: int = 0
    aborted: int = 0
    cancelled: int = 0
    writes: int = 0
    suspended: int = 0
