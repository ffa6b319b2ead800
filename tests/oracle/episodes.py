"""Episodes: which rows of a key belong together, and when they leave ([SESSION ...], [WHEN ...]).

Rows of each key are taken in order of (timestamp, arrival); what was there before every instant is
in no episode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dsms.sql import logical as lp
from dsms.sql.types import ALWAYS, FOREVER
from dsms.sql.window import Session, When
from tests.oracle.facts import Fact
from tests.oracle.scalar import evaluate
from tests.oracle.values import canons


@dataclass
class Episode:
    """Its rows, and the instant at which all of them leave; FOREVER while that is not known."""

    rows: list[Fact]
    end: int = FOREVER

    @property
    def lasted(self) -> bool:
        return self.rows[0].birth < self.end


def in_window(spec: Session | When, rows: Sequence[Fact], now: int) -> list[Fact]:
    """The rows of the episodes that are open at `now`; `at_close`: of those that end then."""
    found = [e for part in _keys(spec, rows) for e in _episodes(spec, part)]
    if spec.at_close:
        return [row for e in found if e.end == now and e.lasted for row in e.rows]
    return [row for e in found if e.end > now for row in e.rows]


def _keys(spec: Session | When, rows: Sequence[Fact]) -> list[list[Fact]]:
    parts: dict[tuple, list[Fact]] = {}
    for row in sorted(rows, key=lambda r: (r.birth, r.key)):
        if row.birth > ALWAYS:
            parts.setdefault(canons(tuple(row.values[c] for c in spec.by)), []).append(row)
    return list(parts.values())


def _episodes(spec: Session | When, rows: Sequence[Fact]) -> list[Episode]:
    return _sessions(spec, rows) if isinstance(spec, Session) else _whens(spec, rows)


def _sessions(spec: Session, rows: Sequence[Fact]) -> list[Episode]:
    found: list[Episode] = []
    for row in rows:
        until = row.birth + gap_of(spec, row.values)
        if found and row.birth < found[-1].end:
            found[-1].rows.append(row)
            found[-1].end = max(found[-1].end, min(until, FOREVER))
        elif until > row.birth:
            found.append(Episode([row], min(until, FOREVER)))
    return found


def gap_of(spec: Session, values: tuple) -> int:
    """µs by which a row prolongs its session."""
    gap = spec.gap if isinstance(spec.gap, int) else evaluate(spec.gap, values)
    return max(0, gap or 0)  # type: ignore[call-overload, no-any-return]


def _whens(spec: When, rows: Sequence[Fact]) -> list[Episode]:
    found: list[Episode] = []
    is_open = False
    for row in rows:
        if is_open and evaluate(spec.stop, row.values) is True:
            found[-1].end, is_open = row.birth, False
        if is_open:
            found[-1].rows.append(row)
        elif evaluate(spec.start, row.values) is True:
            found.append(Episode([row]))
            is_open = True
    return found


def at_close(node: lp.Node) -> bool:
    """Is this a GROUP BY of episodes that are told as they end, or something above one, within its
    block?"""
    match node:
        case lp.Window(spec=Session() | When() as spec):
            return spec.at_close
        case lp.Append() | lp.Window():
            return False
        case _:
            return any(map(at_close, lp.children(node)))
