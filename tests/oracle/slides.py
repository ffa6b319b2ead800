"""What boundaries mean inside of a periodic query: for windows that follow the calendar, and for
blocks that append.

A block over INTERNAL windows with a SLIDE, or inside of Wstream, appends at each boundary b: of
rows without parts (aggregates) the whole answer of b, though it be the one of the boundary before,
of other rows those that its answer had not at the boundary before.  These are rows of the instant b
- 1, so that what stands above, which at b answers as of b - 1, has them already: the outer answer
of b includes the inner answer of b.  A mixed block, whose results die with their external parts, is
no such block: its part of the answer is that of b - 1 like any other.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property

from dsms.sql import logical as lp
from dsms.sql.window import Time, WindowSpec
from tests.oracle.boundaries import range_start


@dataclass
class Beats:
    """`all`: the boundaries, ascending; `within` those at which blocks append (none under -restore,
    where blocks hand on everything that a continuous query would)."""

    all: list[int] = field(default_factory=list)
    restore: bool = False
    _starts: dict[tuple, list[int]] = field(default_factory=dict)

    @cached_property
    def within(self) -> frozenset[int]:
        return frozenset() if self.restore else frozenset(self.all)

    def start(self, spec: WindowSpec, now: int) -> int | None:
        """Where a window that follows the calendar begins: it moves at boundaries b, from the
        instant b - 1 on, and never back, though clocks be set back.  None: any row is in it."""
        if not isinstance(spec, Time) or spec.calendar is None:
            return None
        passed = bisect_right(self.all, now + 1)
        return max(self._known(spec)[:passed], default=None)

    def _known(self, spec: Time) -> list[int]:
        key = (spec.calendar, spec.slide)
        if key not in self._starts:
            self._starts[key] = [range_start(spec, b) for b in self.all]
        return self._starts[key]


def changes_at_boundaries(node: lp.Node) -> bool:
    """Can the answer change at a boundary, though nothing comes or expires?"""
    match node:
        case lp.Append() if appends_at_boundaries(node.child):
            return True
        case lp.Window(spec=Time(calendar=(_, _))):
            return True
        case _:
            return any(changes_at_boundaries(child) for child in lp.children(node))


def appends_at_boundaries(block: lp.Node) -> bool:
    """Has a window of the block itself, not of blocks that append within it, a SLIDE?"""
    match block:
        case lp.Append():
            return False
        case lp.Window() if block.spec.slide is not None:
            return True
        case _:
            return any(appends_at_boundaries(child) for child in lp.children(block))
