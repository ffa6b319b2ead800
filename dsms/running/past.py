"""What a new query gets of the past: rows that a ring still holds, and the instant from which on
its answers are complete."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import assert_never

from dsms.plan import over, windows
from dsms.plan.variants import slides
from dsms.sql import logical as lp
from dsms.sql.plan_reads import holds_all
from dsms.sql.types import ALWAYS, FOREVER
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
from dsms.state.batch import Batch
from dsms.state.ring import Ring, between


@dataclass(frozen=True, slots=True)
class Past:
    """What the windows above stream leaf `leaf` reach: the rows with ts > clock - `length` (None:
    all), or the last `rows` of them, or those from the instant `since` on.  `ago`: the last rows
    are those that are so many µs old; younger ones have yet to enter.  `current`: of these what
    the stream with KEY holds, which it keeps for good.  `held`: so many µs back (None: for good) it
    has to be known what that held."""

    leaf: int
    stream: str
    length: int | None
    rows: int | None = None
    since: int | None = None
    ago: int = 0
    current: bool = False
    held: int | None = None


def pasts(node: lp.Node) -> Iterator[Past]:
    """What the answer of the node rests on, once per stream leaf below it.

    What a block has appended belongs to the answer for good, so it rests on all that came; but what
    it appends at boundaries begins with the first one."""
    match node:
        case lp.Output() if node.kind == "istream":
            yield from births(node.child)
        case lp.StreamScan():
            yield Past(node.leaf, node.stream.home, None)
        case lp.Window(spec=Latest()):
            for past in pasts(node.child):
                yield replace(past, current=holds_all(node), held=_held_ago(node))
        case lp.Window():
            for past in births(node.child):
                yield _windowed(past, node)
        case lp.AsofJoin():
            yield from pasts(node.left)
            yield from _found(node, pasts(node.left))
        case lp.Match(skip=True):  # a match may be skipped because of any before it
            for past in chain.from_iterable(map(pasts, node.inputs)):
                yield Past(past.leaf, past.stream, None)
        case lp.Append() if node.mixed:
            for past in pasts(node.child):
                yield _longer(past, _life(node.child))
        case lp.Append() if not slides(node.child):
            for past in pasts(node.child):
                yield Past(past.leaf, past.stream, None)
        case _:
            for child in lp.children(node):
                yield from pasts(child)


def _held_ago(latest: lp.Node) -> int:
    """How many µs ago it was held, what a stream with KEY held."""
    below = latest.child if isinstance(latest, lp.Window) else latest
    while isinstance(below, lp.Project):
        below = below.child
    match below:
        case lp.Window(spec=Time(until=until) | Unbounded(until=until) | Landmark(until=until)):
            return until
        case _:
            return 0


def births(node: lp.Node) -> Iterator[Past]:
    """What the rows rest on that enter the answer of the node at one instant."""
    match node:
        case lp.StreamScan():
            yield Past(node.leaf, node.stream.home, 0, held=0)
        case lp.Select() | lp.Project() | lp.Union() | lp.JoinNRR() | lp.Unnest():
            for child in lp.children(node):
                yield from births(child)
        case lp.Over():
            for past in births(node.child):
                yield _framed(past, node)
        case lp.AsofJoin():
            yield from births(node.left)
            yield from _found(node, births(node.left))
        case lp.Window(spec=Unbounded() | Landmark() as spec):
            for past in births(node.child):
                yield _longer(past, windows.until(spec))
        case lp.Window() if _at_once(node.spec):
            yield from births(node.child)
        case lp.Append() if not node.mixed:
            yield from pasts(node.child)
        case _:
            yield from pasts(node)


def _found(node: lp.AsofJoin, left: Iterator[Past]) -> Iterator[Past]:
    """What rows rest on that left rows, which rest on `left`, find; these are as old as they."""
    lengths = [past.length for past in left]
    longest = None if None in lengths else max(lengths, default=0)  # type: ignore[type-var]
    for past in births(node.right):
        yield _longer(_longer(past, longest), node.span)


def _framed(past: Past, node: lp.Over) -> Past:
    """What a row rests on with the rows in its frames, where it rests itself on `past`."""
    span = over.span(node)
    if span is not None:
        return _longer(past, span)
    return _windowed(past, lp.Window(node.child, node.window, node.child.schema))


def _at_once(spec: WindowSpec) -> bool:
    """Whether what enters a window at an instant is what enters its input then."""
    match spec:
        case Time() | Now() | Rows() | Partitioned() | Unbounded() | Latest():
            return not windows.until(spec)
        case Session(gap=int()):
            return True
        case Lasting():
            return not windows.until(spec)
        case Landmark() | Throttled() | First() | Session() | When():
            return False
        case _:
            assert_never(spec)


def _life(node: lp.Node) -> int | None:
    """How long a result of a block lives at most, which dies with its parts in windows not
    INTERNAL; None: for good."""
    if isinstance(node, lp.Window) and not node.spec.internal:
        return windows.longest(node.spec)
    lives = [_life(child) for child in lp.children(node)]
    return None if None in lives else max(lives, default=0)  # type: ignore[type-var]


def _longer(past: Past, length: int | None) -> Past:
    """As much, `length` µs earlier, too (None: for good)."""
    held = None if past.held is None or length is None else past.held + length
    if past.length is None or length is None:
        return Past(past.leaf, past.stream, None, held=held)
    return replace(past, length=past.length + length, held=held)


def _windowed(past: Past, node: lp.Window) -> Past:
    """What a window rests on, where what enters it at one instant rests on `past`."""
    spec, everything = node.spec, Past(past.leaf, past.stream, None)
    if isinstance(spec, Time | Now):
        return _longer(past, windows.longest(spec))
    if past.length is None:
        return _with_frames(past, node) or everything
    match spec:
        case Partitioned(age=int()):
            return _longer(past, windows.longest(spec))
        case Rows() if (ago := _each(node.child)) is not None:
            return replace(everything, rows=spec.count, ago=ago)
        case Landmark() if past.length == 0:
            return replace(everything, since=spec.since)
        case Rows() | Partitioned() | Unbounded() | Landmark() | Latest():
            return everything
        case Session() | When() | Lasting() | Throttled() | First():
            return everything
        case _:
            assert_never(spec)


def _with_frames(past: Past, node: lp.Window) -> Past | None:
    """What a window right above frames rests on with the rows in these, where one row rests on
    `past`; None: everything."""
    below = node.child
    while isinstance(below, lp.Project):
        below = below.child
    if not isinstance(below, lp.Over):
        return None
    match node.spec:
        case Rows(until=0) as spec if past.rows is not None:
            return replace(past, rows=past.rows + spec.count)
        case Landmark(until=0) as spec if past.since is not None:
            return replace(past, since=min(past.since, spec.since))
        case _:
            return None


def _each(node: lp.Node) -> int | None:
    """µs after which each row of a stream is a row of the node, for good; None: not each is."""
    match node:
        case lp.StreamScan():
            return 0
        case lp.Project() | lp.Over():
            return _each(node.child)
        case lp.Window(spec=Unbounded(until=until)):
            below = _each(node.child)
            return None if below is None else below + until
        case _:
            return None


def rows_of(past: Past, ring: Ring | None, clock: int) -> list[Batch]:
    """What the ring holds of it; rows later than `clock` too, since the stream has handed them on
    already."""
    if ring is None:
        return []
    if clock <= ALWAYS:
        return ring.rows(ring.reach)
    if past.rows is not None:
        old = clock - past.ago
        last = [between(b, ring.reach, old) for b in ring.last(past.rows, old)]
        return [b for b in last if len(b)] + ring.rows(max(old, ring.reach) if past.ago else clock)
    if past.since is not None:
        return ring.rows(max(min(past.since - 1, clock), ring.reach))
    return ring.rows(ring.reach if past.length is None else max(clock - past.length, ring.reach))


def complete_after(
    needed: Sequence[Past],
    rings: Mapping[str, Ring],
    fronts: Mapping[str, int],
    clock: int,
    unknown: Mapping[str, int] | None = None,
) -> int:
    """The instant from which on the answers miss nothing; ALWAYS if they never do, FOREVER if they
    always will.

    `fronts`: per stream the instant up to which rows were handed on before now.
    `unknown`: per stream with KEY the instant before which it is not known what it held."""
    worst = held_after(needed, {} if unknown is None else unknown, clock)
    for past in needed:
        ring = rings.get(past.stream)
        gone = fronts[past.stream] if ring is None else ring.reach  # rows up to here can't be had
        if gone <= ALWAYS or past.current:
            continue
        if past.rows is not None and not _missing(past.rows, ring, clock):
            continue
        if past.since is not None and gone < past.since:
            continue
        if past.length is None:
            return FOREVER
        if clock - past.length < gone:
            worst = max(worst, gone + past.length)
    return worst


def held_after(needed: Sequence[Past], unknown: Mapping[str, int], clock: int) -> int:
    """`complete_after`, as far as that is of what streams with KEY held."""
    worst = ALWAYS
    for past in needed:
        at = unknown.get(past.stream, ALWAYS)
        if at <= ALWAYS or past.held == 0:
            continue
        if past.held is None:
            return FOREVER
        if clock - past.held < at:
            worst = max(worst, at + past.held)
    return worst


def rows_missing(
    needed: Sequence[Past], rings: Mapping[str, Ring], fronts: Mapping[str, int], clock: int
) -> dict[str, int]:
    """How many more rows must come until windows of the last rows are full, by stream; those that
    miss none are left out.  Where rows must be so old, no number of those that come says it:
    FOREVER."""
    found: dict[str, int] = {}
    for past in needed:
        ring = rings.get(past.stream)
        gone = fronts[past.stream] if ring is None else ring.reach
        if not past.rows or gone <= ALWAYS:
            continue
        if (missing := _missing(past.rows, ring, clock - past.ago)) > 0:
            missing = FOREVER if past.ago else missing
            found[past.stream] = max(missing, found.get(past.stream, 0))
    return found


def too_young(needed: Sequence[Past], rings: Mapping[str, Ring], clock: int) -> bool:
    """Whether the rings lack last rows that are old enough for the windows over them."""
    return any(
        past.rows and past.ago and _missing(past.rows, rings.get(past.stream), clock - past.ago) > 0
        for past in needed
    )


def _missing(rows: int, ring: Ring | None, clock: int) -> int:
    return rows - (
        0
        if ring is None
        else sum(len(between(b, ring.reach, clock)) for b in ring.last(rows, clock))
    )
