"""What boundaries mean inside of a periodic query: for windows that follow the calendar, and for
blocks that append.

A block over INTERNAL windows with a SLIDE, or inside of Wstream, appends at each boundary b of that
SLIDE, which may be another one than that of the query: of
rows without parts (aggregates) the whole answer of b, though it be the one of the boundary before,
of other rows those that its answer had not at the boundary before.  These are rows of the instant b
- 1, so that what stands above, which at b answers as of b - 1, has them already: the outer answer
of b includes the inner answer of b.  A mixed block, whose results die with their external parts, is
no such block: its part of the answer is that of b - 1 like any other.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from dsms.sql import logical as lp
from dsms.sql.window import Slide, Time, WindowSpec
from tests.oracle.boundaries import all_boundaries, range_start


@dataclass
class Beats:
    """`all`: the boundaries of the query, ascending.  None is looked at under -restore, where
    blocks hand on everything that a continuous query would.  `slide` is that of the query, and
    those of others lie in (`begun`, `upto`]."""

    all: list[int] = field(default_factory=list)
    restore: bool = False
    slide: Slide | None = None
    begun: int = 0
    upto: int = 0
    _starts: dict[tuple, list[int]] = field(default_factory=dict)
    _others: dict[Slide, list[int]] = field(default_factory=dict)

    def of(self, slide: Slide | None) -> list[int]:
        """The boundaries of a SLIDE."""
        if slide is None or self.slide is None or slide.by_rows or slide == self.slide:
            return self.all
        if slide not in self._others:
            self._others[slide] = all_boundaries(slide, self.begun, self.upto)
        return self._others[slide]

    def within(self, block: lp.Node) -> frozenset[int] | None:
        """Those at which a block appends; None if it is continuous."""
        slide = None if self.restore or self.slide is None else slide_of(block)
        return None if slide is None else frozenset(self.of(slide))

    def start(self, spec: WindowSpec, now: int) -> int | None:
        """Where a window that follows the calendar begins: it moves at boundaries b, from the
        instant b - 1 on, and never back, though clocks be set back.  None: any row is in it."""
        if not isinstance(spec, Time) or spec.calendar is None:
            return None
        passed = bisect_right(self.of(spec.slide), now + 1)
        return max(self._known(spec)[:passed], default=None)

    def _known(self, spec: Time) -> list[int]:
        key = (spec.calendar, spec.slide)
        if key not in self._starts:
            self._starts[key] = [range_start(spec, b) for b in self.of(spec.slide)]
        return self._starts[key]


def changes_at_boundaries(node: lp.Node) -> bool:
    """Can the answer change at a boundary, though nothing comes or expires?"""
    match node:
        case lp.Append() if slide_of(node.child) is not None:
            return True
        case lp.Window(spec=Time(calendar=(_, _))):
            return True
        case _:
            return any(changes_at_boundaries(child) for child in lp.children(node))


def slide_of(block: lp.Node) -> Slide | None:
    """The SLIDE of a window of the block itself, not of blocks that append within it."""
    match block:
        case lp.Append():
            return None
        case lp.Window() if block.spec.slide is not None:
            return block.spec.slide
        case _:
            return next(filter(None, map(slide_of, lp.children(block))), None)


def slides_of(node: lp.Node) -> set[Slide]:
    """All SLIDEs of windows of a plan."""
    own = {node.spec.slide} if isinstance(node, lp.Window) and node.spec.slide else set()
    return own.union(*map(slides_of, lp.children(node)))
