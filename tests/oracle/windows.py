"""Which rows an instant's window holds (design page, "Time" and "Corner rules")."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

from dsms.sql.types import ALWAYS, MAX_INSTANT
from dsms.sql.window import (
    First,
    Landmark,
    Lasting,
    Latest,
    Now,
    Partitioned,
    Rows,
    Session,
    Throttled,
    Time,
    Unbounded,
    When,
    WindowSpec,
)
from tests.oracle.episodes import in_window
from tests.oracle.facts import Fact
from tests.oracle.values import canons


def content(
    spec: WindowSpec,
    rows: Sequence[Fact],
    now: int,
    start: int | None = None,
    instant: Callable[[int], int] = int,
) -> list[Fact]:
    """The rows of the window at `now`; `rows` is everything that has come so far, each born when it
    came.

    `start`: where a RANGE in units of the calendar begins; `instant`: of a point
    (`tests.oracle.points`)."""

    def when(row: Fact) -> float:
        return float("-inf") if row.birth == ALWAYS else instant(row.birth)

    at = instant(now)
    match spec:
        case Time(calendar=None):
            return [r for r in rows if at - spec.length < when(r) <= at - spec.until]
        case Time():
            return [
                r
                for r in rows
                if (start is None or start <= when(r)) and when(r) <= at - spec.until
            ]
        case Now():
            return [r for r in rows if when(r) == at]
        case Landmark():
            return [r for r in rows if spec.since <= when(r) <= at - spec.until]
        case First():
            parts = _partitions(spec, rows)
            return [
                r for p in parts for r in sorted(p, key=lambda r: (r.birth, r.key))[: spec.count]
            ]
        case Throttled():
            entered = _one_at_a_time(spec, rows, when)
            return [r for r in entered if at - spec.length < when(r) <= at - spec.until]
        case Lasting():
            return [r for r in rows if when(r) <= at - spec.until and at < end_of(spec, r, when(r))]
        case Rows():
            return newest(rows, spec.count, spec.until)
        case Partitioned():
            young = [r for r in rows if spec.age is None or when(r) > at - spec.age]
            return [
                r for part in _partitions(spec, young) for r in newest(part, spec.count, spec.until)
            ]
        case Unbounded():
            return [r for r in rows if when(r) <= at - spec.until]
        case Session() | When():
            return in_window(spec, rows, at)
        case Latest():
            last = [newest(part, 1, 0)[0] for part in _partitions(spec, rows)]
            return [r for r in last if r.values[spec.operation] != "D"]
        case _:
            assert_never(spec)


def end_of(spec: Lasting, row: Fact, came: float) -> float:
    """When a row leaves that came at an instant.  What was there before all is in no such window,
    and what would leave after the last instant never does."""
    said = row.values[spec.end]
    if came == float("-inf"):
        return came
    end = float("inf") if said is None else came + said if spec.spans else said
    return float("inf") if end > MAX_INSTANT else end


def _one_at_a_time(
    spec: Throttled, rows: Sequence[Fact], when: Callable[[Fact], float]
) -> list[Fact]:
    """The rows that have entered, each when none of its partition was there."""
    found: list[Fact] = []
    for part in _partitions(spec, rows):
        last = float("-inf")
        for row in sorted(part, key=lambda r: (r.birth, r.key)):
            if when(row) > float("-inf") and when(row) >= last + spec.length:
                found.append(row)
                last = when(row)
    return found


def lasts(spec: WindowSpec) -> bool:
    """Does a row that is in it never leave?"""
    match spec:
        case Unbounded() | Landmark() | First():
            return True
        case (
            Time()
            | Now()
            | Rows()
            | Partitioned()
            | Latest()
            | Session()
            | When()
            | Lasting()
            | Throttled()
        ):
            return False
        case _:
            assert_never(spec)


def newest(rows: Sequence[Fact], count: int, skip: int) -> list[Fact]:
    """The newest `count` rows by (instant, arrival), without the newest `skip` of them."""
    order = sorted(rows, key=lambda r: (r.birth, r.key))
    return order[max(0, len(order) - count) : max(0, len(order) - skip)]


def _partitions(
    spec: Partitioned | Latest | Throttled | First, rows: Sequence[Fact]
) -> list[list[Fact]]:
    parts: dict[tuple, list[Fact]] = {}
    for row in rows:
        parts.setdefault(canons(tuple(row.values[c] for c in spec.by)), []).append(row)
    return list(parts.values())
