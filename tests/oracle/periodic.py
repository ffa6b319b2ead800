"""The oracle for queries with SLIDE (Golab 2006, §3.3.4; design page, "Time" and "Corner rules").

At boundary b a periodic query answers Q(b - 1 us): what the same query without SLIDE answers after
that instant.

    Rstream           the whole answer
    Istream, Dstream  what entered it, what left it, between two evaluations; before the first
                      nothing was there
    Istream-restore   all that the continuous Istream tells in the instants [boundary before, b), in
                      its order
    Rstream-restore   the answer, and of the rows that entered since the evaluation before those
                      that are gone again

In ROWS n SLIDE m each row of the stream is an instant of its own: an answer after every m-th,
reported at its ts.  Other streams and tables, and what expires, are seen as of that whole instant
(`tests.oracle.points`).  Rows of one boundary stand in the order of ORDER BY; without it rows with
parts by the arrival numbers of their parts in FROM order, others by their columns, NULLs last.
ORDER BY and LIMIT belong to the answer, of which Istream and Dstream tell what entered and left;
with -restore to the rows that are reported.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dsms.sql import logical as lp
from dsms.sql.types import ALWAYS, MAX_INSTANT, MIN_INSTANT
from dsms.sql.window import Slide, Time
from tests.oracle.boundaries import all_boundaries, range_start
from tests.oracle.facts import Change, Fact, Row, Values, by_columns, changed, in_order, net
from tests.oracle.instants import instants
from tests.oracle.keys import by_value
from tests.oracle.lasting import with_deaths
from tests.oracle.oracle import is_monotonic
from tests.oracle.points import Points
from tests.oracle.relational import Evaluator, sort_rows
from tests.oracle.slides import Beats, changes_at_boundaries, slides_of
from tests.oracle.values import canons

Streams = Mapping[str, Sequence[Row]]


@dataclass(frozen=True, slots=True)
class Answered:
    """What is pushed at a boundary."""

    at: int
    rows: tuple[Values, ...]


class Periodic:
    """One bound query with SLIDE over given input, up to the instant `upto`, registered when its
    clock was at `registered`."""

    def __init__(
        self,
        output: lp.Output,
        streams: Streams,
        tables: Mapping[str, Sequence[Change]] | None = None,
        upto: int = 0,
        registered: int = ALWAYS,
        ages: Mapping[str, int] | None = None,
    ) -> None:
        assert output.slide is not None
        self.output = output
        self.kind = (
            output.kind
            if output.explicit
            else "istream"
            if is_monotonic(output.child)
            else "rstream"
        )
        self.sort = output.child if isinstance(output.child, lp.Sort) else None
        self.core = output.child if self.sort is None else self.sort.child
        self.by_value = by_value(self.core)
        read: Streams = {
            name: rows for name, rows in streams.items() if name in streams_of(self.core)
        }
        self.real_instants: dict[int, int] = {}  # instants of boundaries, where rows are counted
        given, real = tables or {}, int
        if output.slide.by_rows:
            begun = registered
            points = Points.of(self.core, _governing(self.core), read, given)
            bounds = self._counted(output.slide, points, upto, registered)
            read, given, real = points.streams, points.tables, points.instant  # type: ignore[assignment]
            found = set(range(len(points.real)))
        else:
            firsts = [row.ts for rows in read.values() for row in rows if row.ts <= upto]
            begun = max(registered, min(firsts)) if firsts else upto + 1
            bounds = all_boundaries(output.slide, begun, upto + 1)
            beats = Beats(bounds, output.restore, output.slide, begun, upto + 1)
            found = with_deaths(
                self.core,
                lambda deaths: instants(self.core, read, given, ages or {}, beats.of, deaths),
                lambda steps: Evaluator(steps, read, given, beats=beats, ages=ages or {}),
            )
            if changes_at_boundaries(self.core):
                found |= {b - 1 for b in bounds}
                for slide in slides_of(self.core):
                    found |= {b - 1 for b in all_boundaries(slide, begun, upto + 1)}
        self.bounds = bounds
        self.instants = sorted(found | {ALWAYS})
        beats = Beats(bounds, output.restore, output.slide, begun, upto + 1)
        self._evaluator = Evaluator(
            self.instants, read, given, beats=beats, real=real, ages=ages or {}
        )

    def _counted(self, slide: Slide, points: Points, upto: int, registered: int) -> list[int]:
        """Boundaries just behind the points of every m-th row, of those that complete later than
        the registration."""
        last = [
            p
            for p in points.counted[slide.every - 1 :: slide.every]
            if registered < points.real[p] <= upto
        ]
        self.real_instants = {p + 1: points.real[p] for p in last}
        return [p + 1 for p in last]

    def pushes(self) -> Iterator[Answered]:
        """What is reported at each boundary, also if that is nothing."""
        before: list[Fact] = []
        last = ALWAYS
        for b in self.bounds:
            now = self._answer(b)
            rows = self._shown(b, before, now, range(*self._steps(last, b)))
            yield Answered(
                self.real_instants.get(b, b),
                tuple(self._stamped(f.values[: len(self.output.schema)], b) for f in rows),
            )
            before, last = now, b

    def answer(self) -> Answered | None:
        """The answer of the last boundary; None before the first."""
        if not self.bounds:
            return None
        b = self.bounds[-1]
        width = len(self.output.schema)
        rows = tuple(self._stamped(f.values[:width], b) for f in self._answer(b))
        return Answered(self.real_instants.get(b, b), rows)

    def _stamped(self, values: Values, boundary: int) -> Values:
        """WINDOW_START() and WINDOW_END() are those of the boundary at which a row is told: its
        window is [b - RANGE, b - UNTIL), or begins SINCE an instant; NULL where that is no
        TIMESTAMP."""
        out = list(values)
        for stamp in self.output.stamps:
            window = stamp.window
            if stamp.end:
                at = boundary - (0 if window is None else window.until)
            elif isinstance(window, Time):
                at = range_start(window, boundary)
            else:
                assert window is not None
                at = window.since
            out[stamp.column] = at if MIN_INSTANT <= at <= MAX_INSTANT else None
        return tuple(out)

    def _at(self, instant: int) -> list[Fact]:
        return self._evaluator.at(self.core, bisect_right(self.instants, instant) - 1)

    def _answer(self, boundary: int) -> list[Fact]:
        return self._sorted(self._at(boundary - 1))

    def _sorted(self, rows: list[Fact]) -> list[Fact]:
        rows = in_order(rows)
        if self.sort is not None:
            return sort_rows(self.sort, rows)
        return by_columns(rows) if self.by_value else rows

    def _steps(self, first: int, end: int) -> tuple[int, int]:
        """The numbers of the instants in [first, end)."""
        return bisect_left(self.instants, first), bisect_left(self.instants, end)

    def _shown(
        self, boundary: int, before: list[Fact], now: list[Fact], steps: range
    ) -> list[Fact]:
        match self.kind, self.output.restore:
            case "istream", True:
                came = [f for step in steps for f in self._came(step)]
                return came if self.sort is None else sort_rows(self.sort, came)
            case "rstream", True:
                return self._sorted(self._at(boundary - 1) + self._lost(boundary, steps))
            case "istream", _:
                return self._missing(now, before)
            case "dstream", _:
                return self._missing(before, now)
            case _:
                return now

    def _came(self, step: int) -> list[Fact]:
        """What the continuous Istream tells at one instant."""
        left, entered = changed(
            self._evaluator.at(self.core, step - 1), self._evaluator.at(self.core, step)
        )
        return in_order(net(left, entered)[1] if self.by_value else entered)

    def _lost(self, boundary: int, steps: range) -> list[Fact]:
        """Of the rows that entered in those instants as many as are not there at their end, by
        identity or by value."""
        there = self._count(self._at(boundary - 1))
        lost = []
        for fact in [f for step in reversed(steps) for f in reversed(self._came(step))]:
            if there.get(self._same(fact), 0) > 0:
                there[self._same(fact)] -= 1
            else:
                lost.append(fact)
        return lost[::-1]

    def _missing(self, rows: list[Fact], others: list[Fact]) -> list[Fact]:
        """Of the rows those that the others lack, in their order."""
        there = self._count(others)
        out = []
        for fact in rows:
            if there.get(self._same(fact), 0) > 0:
                there[self._same(fact)] -= 1
            else:
                out.append(fact)
        return out

    def _count(self, rows: list[Fact]) -> dict[object, int]:
        out: dict[object, int] = {}
        for fact in rows:
            out[self._same(fact)] = out.get(self._same(fact), 0) + 1
        return out

    def _same(self, fact: Fact) -> object:
        """Two rows with equal ones are the same."""
        return canons(fact.values[: len(self.output.schema)]) if self.by_value else fact.ident


def _sliding(node: lp.Node) -> Iterator[lp.Window]:
    """The windows with a SLIDE, outer ones before those inside."""
    if isinstance(node, lp.Window) and node.spec.slide is not None:
        yield node
    for child in lp.children(node):
        yield from _sliding(child)


def _governing(node: lp.Node) -> str:
    """The stream whose rows are counted: that of the first window with the SLIDE, or of a like one
    around it."""
    first = next(w for w in _sliding(node) if len(list(_sliding(w))) == 1)
    around = next(w for w in _sliding(node) if type(w.spec) is type(first.spec))
    return next(iter(streams_of(around)))


def streams_of(node: lp.Node) -> set[str]:
    """Names of the streams that a plan reads."""
    if isinstance(node, lp.StreamScan):
        return {node.stream.name}
    return {name for child in lp.children(node) for name in streams_of(child)}
