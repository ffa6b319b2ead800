"""Which rows an instant's window holds (design page, "Time" and "Corner rules")."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dsms.sql.logical import WindowSpec
from dsms.sql.types import ALWAYS
from tests.oracle.facts import Fact
from tests.oracle.values import canons


def content(
    spec: WindowSpec, rows: Sequence[Fact], now: int, start: int | None = None, instant: Callable[[int], int] = int
) -> list[Fact]:
    """The rows of the window at `now`; `rows` is everything that has come so far, each born when it came.

    `start`: where a RANGE in units of the calendar begins; `instant`: of a point (`tests.oracle.points`)."""

    def when(row: Fact) -> float:
        return float("-inf") if row.birth == ALWAYS else instant(row.birth)

    if spec.kind not in ("rows", "partitioned"):
        now = instant(now)
    match spec.kind:
        case "time" if spec.calendar is not None:
            return [r for r in rows if (start is None or start <= when(r)) and when(r) <= now - spec.until]
        case "time":
            return [r for r in rows if now - spec.length < when(r) <= now - spec.until]
        case "now":
            return [r for r in rows if when(r) == now]
        case "landmark":
            return [r for r in rows if instant(r.birth) >= spec.since]
        case "rows":
            return newest(rows, spec.length, spec.until)
        case "partitioned":
            return [r for part in _partitions(spec, rows) for r in newest(part, spec.length, spec.until)]
        case "unbounded":
            return list(rows)


def newest(rows: Sequence[Fact], count: int, skip: int) -> list[Fact]:
    """The newest `count` rows by (instant, arrival), without the newest `skip` of them."""
    order = sorted(rows, key=lambda r: (r.birth, r.key))
    return order[max(0, len(order) - count) : max(0, len(order) - skip)]


def _partitions(spec: WindowSpec, rows: Sequence[Fact]) -> list[list[Fact]]:
    parts: dict[tuple, list[Fact]] = {}
    for row in rows:
        parts.setdefault(canons(tuple(row.values[c] for c in spec.partition)), []).append(row)
    return list(parts.values())
