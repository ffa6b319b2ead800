"""How far back the frames of OVER reach."""

from __future__ import annotations

from dsms.plan import windows
from dsms.plan.physical import State
from dsms.sql import logical as lp
from dsms.sql.window import UNBOUNDED, Landmark, Partitioned, Rows, Time, WindowSpec, keeps_all


def keeps_rows(node: lp.Over, frame: lp.Frame) -> bool:
    """Whether rows leave the frame, so that those in it are kept."""
    return frame.rows is not None or frame.span is not None or not keeps_all(node.window)


def state(node: lp.Over) -> State:
    """What is kept of the rows."""
    if any(keeps_rows(node, frame) for frame in node.frames):
        return State("fifo", of="rows of frames")
    return State("none", of="frames")


def by_keys(node: lp.Over) -> bool:
    """Whether something is kept of each key for good."""
    match node.window:
        case Partitioned(age=age):
            return age is None
        case window:
            frames = any(frame.by and frame.span is None for frame in node.frames)
            return keeps_all(window) and frames


def span(node: lp.Over) -> int | None:
    """µs for which a row may be in a frame; None: no length says so."""
    longest = windows.longest(node.window)
    spans = [_shorter(longest, frame.span) for frame in node.frames]
    return None if None in spans else max(spans, default=0)  # type: ignore[type-var]


def _shorter(window: int | None, frame: int | None) -> int | None:
    found = [s for s in (window, None if frame is None else frame + 1) if s is not None]
    return min(found, default=None)


def seen_from(node: lp.Over, above: WindowSpec) -> WindowSpec:
    """A window that holds all rows that rows of the window `above` have in their frames."""
    own = span(node)
    longest = windows.longest(above)
    if own is not None and longest is not None:
        return Time(longest + own)
    match above, node.window:
        case Rows(until=0) as outer, Rows() as inner:
            return Rows(outer.count + inner.count)
        case Landmark(until=0) as outer, Landmark() as inner:
            return Landmark(min(outer.since, inner.since))
    return UNBOUNDED
