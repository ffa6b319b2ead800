"""Groups over joins made for what is asked of them, and made anew where more is asked.

The rings give what the windows reach, as far as they still hold it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Protocol

from dsms.operators.expressions import ErrorCounter
from dsms.settings import Settings
from dsms.sharing.columns import needed
from dsms.sharing.join_feed import JoinFeed, JoinShape, new_feed
from dsms.sharing.join_group import JoinGroup
from dsms.sharing.join_request import JoinRequest
from dsms.sharing.request import phase_of
from dsms.sharing.shared_join import SharedJoin, shared_join
from dsms.sql.types import ALWAYS
from dsms.state.ring import Ring

MOST_CELLS = 1 << 13  # of one group and aggregate
FLAGS = 32  # g at most


class Surroundings(Protocol):
    """What a new group needs to know of the runtime."""

    settings: Settings
    rings: dict[str, Ring]
    first_rows: dict[str, int]

    def handed_on(self, stream: str) -> int: ...

    def clock_of(self, streams: Sequence[str]) -> int: ...


def new_group(name: str, wanted: JoinRequest, synopsis: str, runtime: Surroundings) -> JoinGroup:
    """A group for one request, with what the rings hold."""
    shape = fitting_shape([wanted])
    assert shape is not None
    feed, upstream = _made([wanted], shape, synopsis, runtime)
    group = JoinGroup(name, feed, stem=upstream, gone=(ALWAYS, ALWAYS), asked=wanted)
    _fill(group, runtime, runtime.clock_of(group.streams))
    return group


def renew(
    group: JoinGroup, requests: Sequence[JoinRequest], shape: JoinShape, runtime: Surroundings
) -> None:
    """The group with other windows, sub-windows or columns."""
    front = _front(group, runtime)
    group.feed, group.stem = _made(requests, shape, group.feed.asked, runtime)
    _fill(group, runtime, front)


def fitting_shape(requests: Sequence[JoinRequest]) -> JoinShape | None:
    """The coarsest sub-windows and the fewest intervals that answer all; None where they are too
    many."""
    span = gcd(*(r.span for r in requests))
    phases = {phase_of(r, span) for r in requests}
    pairs = [(r.lengths[0] // span, r.lengths[1] // span) for r in requests]
    if len(phases) > 1:
        return None
    if len({n1 - n2 for n1, n2 in pairs}) == 1:
        shape = JoinShape(span, phases.pop(), max(n for n, _ in pairs), max(n for _, n in pairs))
    else:
        b = max(max(p) for p in pairs)
        g = b - min(min(p) for p in pairs if p[0] != p[1])
        shape = JoinShape(span, phases.pop(), b, b, g)
    if len(requests) > 1 and (shape.cells > MOST_CELLS or shape.g > FLAGS):
        return None
    return shape


def _made(
    requests: Sequence[JoinRequest], shape: JoinShape, synopsis: str, runtime: Surroundings
) -> tuple[JoinFeed, SharedJoin]:
    from dsms.aggregates.registry import algebra

    first, used = requests[0], frozenset[int]().union(*(r.used for r in requests))
    errors = ErrorCounter()
    upstream = shared_join(first, used, shape, errors, runtime.settings)
    feed = new_feed(
        shape, first.keys, upstream.times, upstream.mapped, first.join.left.stream, synopsis
    )
    feed.errors = errors
    pairs = len({r.lengths for r in requests})
    for call in dict.fromkeys(c for r in requests for c in needed(r.aggs, bool(r.keys))):
        feed.column(call, algebra(call), pairs)
    return feed, upstream


def _gone(stream: str, runtime: Surroundings) -> int:
    """Rows of the stream up to there can't be had."""
    ring = runtime.rings.get(stream)
    return runtime.handed_on(stream) if ring is None else ring.reach


def _front(group: JoinGroup, runtime: Surroundings) -> int:
    """Where a member that comes now begins: streams that have ended take a group on to the boundary
    behind them."""
    return min(group.clock, runtime.clock_of(group.streams))


def in_reach(group: JoinGroup, shape: JoinShape, runtime: Surroundings) -> bool:
    """Whether the rings hold what the windows reach, or at least all that the group has seen."""
    front = _front(group, runtime)
    for stream, length, had in zip(group.sides, shape.lengths, group.gone, strict=True):
        gone = _gone(stream, runtime)
        if gone > ALWAYS and gone > had and gone > front - length:
            return False
    return True


def _fill(group: JoinGroup, runtime: Surroundings, clock: int) -> None:
    """What the rings hold of its windows goes in; nothing is answered."""
    lengths: dict[str, int] = {}
    for stream, length in zip(group.sides, group.feed.shape.lengths, strict=True):
        lengths[stream] = max(length, lengths.get(stream, 0))
    for stream, length in lengths.items():
        ring, since = runtime.rings.get(stream), ALWAYS if clock <= ALWAYS else clock - length
        for rows in () if ring is None else ring.rows(since):
            group.stem.push(stream, rows)
    group.gone = (_gone(group.sides[0], runtime), _gone(group.sides[1], runtime))
    for rows, _ in group.stem.pieces(clock):
        group.feed.push(rows)
    if clock > ALWAYS:
        group.feed.close(group.feed.number(clock + 1))
    group.clock = clock
    failed = group.feed.errors
    failed.count, failed.first, failed.by_code = 0, None, {}
