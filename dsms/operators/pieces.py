"""Operators that produce the output of a step in pieces, so that few rows are held at once.

A piece is (deltas, instant): all deltas of the step up to that instant that were not in an earlier
piece.  Instants are never divided, and the last piece of a step reaches to its end.  An operator
that takes pieces sees steps, only shorter ones.  An error that concerns one instant is raised
behind the piece that reaches to the instant before it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from dsms.errors import UsageError
from dsms.sql.types import ALWAYS
from dsms.state.batch import Batch, concat

T = TypeVar("T")
Piece = tuple[Batch, int]
# results, the instant they reach to, whether there are no more of that instant
ResultPart = tuple[Batch, int, bool]
Look = Callable[[], None]


@runtime_checkable
class Pieces(Protocol):
    """An operator whose steps may come in pieces.  All of them must be taken before the next
    step."""

    def pieces(self, inputs: Sequence[Batch], upto: int, look: Look) -> Iterator[Piece]:
        """`Operator.step` in pieces.  `look` is called between stretches of work; it may raise to
        end it for good."""
        ...


class InPieces:
    """`step` of such an operator: all pieces at once."""

    def step(self: Pieces, inputs: Sequence[Batch], upto: int) -> Batch:
        return concat([rows for rows, _ in self.pieces(inputs, upto, go_on)])


STRETCH = 1 << 17  # rows taken in at a time, about


class InStretches(InPieces):
    """An operator that takes its rows in by stretches, cut between instants: `stretch` is its step
    over one of them."""

    def pieces(self: Stretching, inputs: Sequence[Batch], upto: int, look: Look) -> Iterator[Piece]:
        for given, until in stretches(inputs, upto, STRETCH):
            look()
            yield self.stretch(given, until, look), until


LOADED = 1 << 16  # rows that a window is given in one go, where it is filled with what there is


def portions(rows: Batch, look: Look) -> Iterator[Batch]:
    """The rows, some at a time; `look` is called before each."""
    for start in range(0, max(len(rows), 1), LOADED):
        look()
        yield rows if len(rows) <= LOADED else rows.slice(start, min(start + LOADED, len(rows)))


class Stretching(Protocol):
    """What `InStretches` asks for."""

    def stretch(self, inputs: Sequence[Batch], upto: int, look: Look) -> Batch:
        """`Operator.step`; `look` may be called on the way, and may raise to end it for good."""
        ...


def stretches(
    inputs: Sequence[Batch], upto: int, rows: int
) -> Iterator[tuple[Sequence[Batch], int]]:
    """The batches in stretches of about `rows` rows, cut at common instants, each with the instant
    it reaches to."""
    while any(len(b) > rows for b in inputs):
        cut = min(int(b.ts[rows - 1]) for b in inputs if len(b) > rows)
        now, inputs = parted(inputs, cut)
        if not any(len(b) for b in inputs):
            yield now, upto
            return
        yield now, cut
    yield inputs, upto


def finished(pieces: Generator[Any, Any, T]) -> T:
    """All pieces of some work at once: its result."""
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def looking(pieces: Generator[Any, Any, T], look: Look) -> T:
    """`finished`, with a `look` at each piece."""
    while True:
        look()
        try:
            next(pieces)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def go_on() -> None:
    """A `look` that lets all work go on."""


def parted(batches: Sequence[Batch], upto: int) -> tuple[list[Batch], list[Batch]]:
    """The rows of instants <= `upto`, and the others."""
    stops = [
        len(b) if not len(b) or b.ts[-1] <= upto else int(np.searchsorted(b.ts, upto, "right"))
        for b in batches
    ]
    both = list(zip(batches, stops, strict=True))
    return [b if stop == len(b) else b.slice(0, stop) for b, stop in both], [
        b.slice(stop, len(b)) for b, stop in both
    ]


def aligned(flows: Sequence[Iterator[Piece]], upto: int) -> Iterator[tuple[list[Batch], int]]:
    """Pieces of several inputs, cut at common instants; each flow reaches to `upto`."""
    heads = [next(flow) for flow in flows]
    while True:
        cut = min(reach for _, reach in heads)
        if all(reach == cut for _, reach in heads):
            yield [rows for rows, _ in heads], cut
        else:
            now, later = parted([rows for rows, _ in heads], cut)
            yield now, cut
            heads = [(rows, reach) for rows, (_, reach) in zip(later, heads, strict=True)]
        if cut == upto:
            break
        heads = [
            next(flow) if head[1] == cut else head for flow, head in zip(flows, heads, strict=True)
        ]
    for flow in flows:  # what they do behind their last piece
        for _ in flow:
            raise AssertionError("a piece behind the end of a step")


def by_instants(parts: Iterable[ResultPart], most: int) -> Iterator[Piece]:
    """Results that come in parts, cut between instants.  Raises DS631 for an instant that has more
    than `most`."""
    held: list[Batch] = []  # of the instant that goes on
    for rows, last, whole in parts:
        if whole:
            yield from _checked(concat([*held, rows]), last, most)
            held = []
            continue
        stop = int(np.searchsorted(rows.ts, last, side="left"))
        if held and held[0].ts[0] == last:
            held.append(rows)
        elif last > ALWAYS:
            yield from _checked(concat([*held, rows.slice(0, stop)]), last - 1, most)
            held = [rows.slice(stop, len(rows))]
        else:
            held = [*held, rows]
        held = [b for b in held if len(b)]
        if sum(len(b) for b in held) > most:
            raise too_many(most)


def _checked(rows: Batch, upto: int, most: int) -> Iterator[Piece]:
    if len(rows) > most:
        begin = np.flatnonzero(np.append(True, rows.ts[1:] != rows.ts[:-1]))
        large = np.flatnonzero(np.diff(np.append(begin, len(rows))) > most)
        if len(large):
            stop = int(begin[large[0]])
            if rows.ts[stop] > ALWAYS:
                yield rows.slice(0, stop), int(rows.ts[stop]) - 1
            raise too_many(most)
    yield rows, upto


def too_many(most: int) -> UsageError:
    """DS631."""
    hint = (
        "join on a key, filter what is joined, or take narrower windows; the limit is the setting "
        "step_rows (--step-rows)"
    )
    return UsageError("DS631", f"a join has more than {most} results at one instant", hint=hint)
