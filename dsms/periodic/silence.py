"""Silence: boundaries at which nothing can have changed, and how many of them are reported.

When the last row that came has left every window, the answer stays what it is.  SILENCE more
boundaries are reported then, each with that answer (fewer where each takes its time); what follows
is passed over until something comes.  That depends on what has come and on the query alone: not on
how the input was cut, nor on how the query is answered.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dsms.plan import windows
from dsms.plan.boundaries import boundaries, next_boundary
from dsms.plan.deaths import Deaths
from dsms.plan.physical import Phys
from dsms.plan.variants import block_slide
from dsms.running.pipeline import Path
from dsms.sql import logical as lp
from dsms.sql.types import ALWAYS, FOREVER, MAX_INSTANT
from dsms.sql.window import Session, Slide, Time

SILENCE = 50_000  # boundaries
# of those that follow a calendar, and of queries in which a block appends at each of them
LESS = 10_000


def matters_for(node: lp.Node) -> int:
    """µs after which a row can't matter any more to a plan, but for its windows that never end or
    that count rows."""
    own = windows.matters_for(node.spec) if isinstance(node, lp.Window) else 0
    return own + sum(matters_for(child) for child in lp.children(node))


def matters_above(phys: Phys, path: Path) -> int:
    """µs for which what happens at that place of a plan matters to the windows above it."""
    found = 0
    for k in path:
        if isinstance(phys.node, lp.Window):
            found += windows.matters_for(phys.node.spec)
        phys = phys.children[k]
    return found


def empty_from(node: lp.Node, newest: Callable[[str], int]) -> int:
    """The first instant at which no row is left in a window in time of the plan; of windows that
    never end or that count rows, at which the last of theirs came.  `newest`: the timestamp of the
    last row of a stream, by its key; ALWAYS if it had none, and so is the result if none had."""
    if isinstance(node, lp.StreamScan):
        return newest(node.stream.home)
    below = max((empty_from(child, newest) for child in lp.children(node)), default=ALWAYS)
    if below == ALWAYS or not isinstance(node, lp.Window):
        return below
    if isinstance(node.spec, Time) and node.spec.calendar is not None:
        return int(Deaths(node.spec).exp(np.array([below], np.int64))[0])
    return min(below + windows.matters_for(node.spec), FOREVER - 1)


def gone_at(slide: Slide, length: int, newest: int) -> int:
    """The boundary from which on nothing is left of rows that came up to `newest`, if they matter
    for `length` µs."""
    return next_boundary(slide, newest + length)


def quiet(slide: Slide, node: lp.Node) -> int:
    """µs of silence, about, that a plan reports."""
    shortest = min([slide.every, *_appending(node)])
    return (SILENCE if slide.regular and steady(node) else LESS) * shortest


def _appending(node: lp.Node) -> list[int]:
    """µs between the boundaries of blocks that append at some of their own."""
    found = [every for child in lp.children(node) for every in _appending(child)]
    if isinstance(node, lp.Append) and not node.mixed:
        own = block_slide(node.child)
        found += [own.every] if own is not None and not own.by_rows else []
    return found


def steady(node: lp.Node) -> bool:
    """Whether the answer stays as it is while nothing comes or goes: nothing is appended at
    boundaries."""
    return not isinstance(node, lp.Append) and all(map(steady, lp.children(node)))


def wakes(node: lp.Node) -> bool:
    """Whether rows leave at instants that no length foretells: sessions whose gaps are those of
    their rows end."""
    if isinstance(node, lp.Window) and isinstance(node.spec, Session):
        return not isinstance(node.spec.gap, int) or wakes(node.child)
    return any(map(wakes, lp.children(node)))


def latest_boundary(slide: Slide, after: int, upto: int) -> int:
    """The last boundary in (after, upto], of which there is one at least."""
    ends = upto if slide.regular else min(upto, MAX_INSTANT)
    found = boundaries(slide, max(after, ends - 3 * slide.every), upto)
    return int(found[-1]) if len(found) else next_boundary(slide, after)


@dataclass(slots=True)
class Arrivals:
    """When something came, by where it came from: runs (first, last instant) with less than `gap`
    µs from one to the next."""

    gap: int
    starts: dict[str, list[int]] = field(default_factory=dict)
    ends: dict[str, list[int]] = field(default_factory=dict)

    def heard(self, source: str, instants: np.ndarray) -> None:
        """Something came at these instants (ascending, not before those of the same source that are
        known)."""
        if not len(instants):
            return
        starts, ends = self.starts.setdefault(source, []), self.ends.setdefault(source, [])
        first, last = int(instants[0]), int(instants[-1])
        if ends and first - ends[-1] <= self.gap:
            ends.pop()
        else:
            starts.append(first)
        if last - first > self.gap:
            cuts = np.flatnonzero(np.diff(instants) > self.gap)
            ends.extend(instants[cuts].tolist())
            starts.extend(instants[cuts + 1].tolist())
        ends.append(last)

    def before(self, instant: int) -> int:
        """The newest arrival before an instant, or an instant with less than `gap` to one; ALWAYS:
        there is none."""
        newest = ALWAYS
        for source, ends in self.ends.items():
            k = bisect_left(ends, instant)
            if k < len(ends) and self.starts[source][k] < instant:
                return instant - 1
            newest = max(newest, ends[k - 1] if k else ALWAYS)
        return newest

    def after(self, instant: int) -> int:
        """The first arrival later than `instant`, if `before(instant)` is no later one; FOREVER:
        none is known."""
        return min(
            (s[k] for s in self.starts.values() if (k := bisect_right(s, instant)) < len(s)),
            default=FOREVER,
        )

    def cut(self, instant: int) -> None:
        """Forget what came later, to hear it again."""
        for source, starts in self.starts.items():
            k, ends = bisect_right(starts, instant), self.ends[source]
            del starts[k:], ends[k:]
            if ends:
                ends[-1] = min(ends[-1], instant)

    def forget(self, instant: int) -> None:
        """Of what came before an instant, only the newest will be asked for."""
        for source, ends in self.ends.items():
            if (k := bisect_left(ends, instant) - 1) > 0:
                del ends[:k], self.starts[source][:k]
