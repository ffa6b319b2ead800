"""Joins at work, watched: when what comes to them is measured, and since when others would be much
better."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dsms.plan.boundaries import next_boundary
from dsms.plan.estimate import Estimate
from dsms.plan.options import PlanOptions
from dsms.plan.parts import node_at
from dsms.plan.rejoin import Better, Joins, Unfit, key_columns, places
from dsms.running.exchanging import JoinInput, inputs_at, shared_below
from dsms.running.measuring import Figures, figures, lasts, longest
from dsms.running.pipeline import Path, Stage
from dsms.running.query import RunningQuery
from dsms.running.splitting import Unit, located, stage_at
from dsms.sql.types import ALWAYS
from dsms.sql.window import Slide

TOO_DEAR = 2.0
BLIND_DEAR = 1.1  # where nothing was known when the plan was chosen: so nothing speaks for it
LEAST = (
    4096  # rows that come out of three joined inputs and their joins between two looks, at least
)
DEARER = 3  # of so many times as many plans one is searched for with each input more
FIRST = 1024  # ... before the first look, where nothing was known when the plan was chosen
ENOUGH = 128  # rows of an input between two looks, on average: of fewer no rate is known
FRUITLESS = 16  # so much longer it may last at most, if searches find nothing
MOST_DOUBLED = 8  # changes after which the price of another one grows no more
USUAL = 60_000_000  # µs that a row lives, where no window says so
MOVED = 4  # row operations to put a row that is alive into other joins
SECOND = 1_000_000


@dataclass(slots=True)
class Watch:
    """The joins at one place of a query's plan.  Not stored: after a restart it begins anew.

    slide    of a periodic query, which looks at the ends of periods alone
    columns  of each input, by its number, those that rows are matched by
    unit     whose operators the uppermost of the joins are: the query's, or those of a part
    there    the inputs, and all stages from there up to the joins; none: nobody looks here
    free     places of joins among them that run for others, too, counted from the uppermost
    seen     rows of each input at the last look, which was at instant `at`
    due      how much must have come out of the stages, and out of the inputs, for the next one
    waits    how much longer that takes than at first
    found    what the last search went by, and what was expected
    dear     the instant from which on other joins have been much better
    lost     row operations that these would have saved since then, and what was found of them
    why_not  why they can't be exchanged now
    """

    query: RunningQuery
    path: Path
    slide: Slide | None
    columns: dict[int, set[int]]
    at: int
    seen: dict[int, int] = field(default_factory=dict)
    due: tuple[int, int] = (0, 0)
    waits: int = 1
    found: dict[int, Figures] = field(default_factory=dict)
    usual: dict[int, Estimate] = field(default_factory=dict)
    dear: int | None = None
    lost: float = 0.0
    better: Better | None = None
    why_not: str | None = None

    unit: Unit = field(init=False)
    there: list[JoinInput] = field(default_factory=list)
    free: list[Path] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.unit = self.query

    @staticmethod
    def of(query: RunningQuery, path: Path, slide: Slide | None) -> Watch:
        """One that begins now."""
        return Watch(query, path, slide, key_columns(node_at(query.phys, path)), query.clock)

    def begun(self) -> Watch:
        """It knows where its rows are counted; where joins are of a kind that can't be exchanged it
        waits until that changes (`why_not`)."""
        self.unit, place = located(self.query, self.path)
        self.free, self.stages = [], []
        try:
            self.there, self.why_not = inputs_at(self.query, self.path), None
            below = shared_below(self.unit, place)
        except Unfit as problem:
            self.give_up(str(problem))
        else:
            self.free = [feed.path[len(place) :] for feed in below]
            joins = {one.path[:n] for one in self.there
                     for n in range(len(self.path), len(one.path))}  # paths  # fmt: skip
            self.stages = [one.stage for one in self.there]
            self.stages += [stage_at(self.query, at) for at in sorted(joins)]
        self.rest()
        return self

    @property
    def stands(self) -> bool:
        """Whether the same operators run the joins as when it began."""
        try:
            now = inputs_at(self.query, self.path)
        except Unfit:
            return False
        pairs = zip(self.there, now, strict=False)
        same = all(a.stage is b.stage and a.rows is b.rows for a, b in pairs)
        return len(now) == len(self.there) and same

    def follow(self, led: set[tuple[int, Path]]) -> None:
        """Look where nobody does yet: joins that several queries share are looked at for the first
        of them.  led: the joins that somebody looks at, by unit and place"""
        unit, place = located(self.query, self.path)
        if (id(unit), place) in led:
            self.there, self.unit = [], unit
        elif not self.there or not self.stands:
            self.begun()
        led.add((id(unit), place))

    def give_up(self, why: str) -> None:
        """Until others are registered or go."""
        self.there, self.why_not = [], why

    def rest(self) -> None:
        """Until the next look."""
        self.at = self.unit.clock
        self.seen = {one.number: one.stage.positive for one in self.there}
        alive = sum(one.rows.store.live for one in self.there)
        n = len(self.there)
        if self.query.chosen.blind:
            self.due = self._done() + FIRST, self._came() + ENOUGH // 8 * n
        else:
            least = max(LEAST * DEARER ** max(n - 3, 0), alive // 2)
            self.due = self._done() + self.waits * least, self._came() + ENOUGH * n

    def _done(self) -> int:
        return sum(stage.positive for stage in self.stages)

    def _came(self) -> int:
        return sum(one.stage.positive for one in self.there)

    @property
    def is_due(self) -> bool:
        """Whether enough has been done for a look."""
        done, came = self.due
        return bool(self.there) and self._came() >= came and self._done() >= done

    def look(
        self, options: PlanOptions, asked: int | None
    ) -> tuple[Better, dict[int, Figures]] | None:
        """Measure; what to change the joins for, and by which figures, if it is time.  asked: µs
        for which other joins must have been much better (None: until it pays)"""
        since, now = self._since(), self._measured()
        alike = bool(self.found) and all(
            f.alike(self.found[k], lasts(self.usual[k])) for k, f in now.items()
        )
        if not alike:
            self.better = self._searched(now, options)
        found, dear = self.better, self.dear
        if found is None or dear is None:
            self.waits, self.lost = min(2 * self.waits, FRUITLESS), 0.0
            self.rest()
            return None
        self.waits = 1
        self.lost += (found.cost - found.best) * (self.unit.clock - since) / SECOND
        self.rest()
        return (found, now) if self._pays(found, dear, asked) else None

    def _pays(self, found: Better, dear: int, asked: int | None) -> bool:
        """Whether it is time: for a plan that was chosen blind at once; else if as much has been
        lost as a change would cost, twice, and with each change twice as much.  So all changes cost
        at most a part of what they save, and joins do not go to and fro."""
        chosen = self.query.chosen
        if chosen.blind:
            return True
        changes = min(chosen.changes, MOST_DOUBLED)
        if asked is not None:
            return self.unit.clock - dear >= asked << changes
        alive = sum(one.rows.store.live for one in self.there)
        lives = (longest(self.there) or USUAL) / SECOND
        return self.lost >= (MOVED * alive + found.best * lives) * max(2, 1 << changes)

    def _searched(self, now: dict[int, Figures], options: PlanOptions) -> Better | None:
        """The best joins, if those at work are too dear (`dear` says since when)."""
        self.found = now
        self.usual = {one.number: now[one.number].estimate(one.phys) for one in self.there}
        try:
            joins = node_at(self.query.phys, self.path)
            better = Joins(joins, self.usual, options, self.free).better()
        except Unfit as problem:
            self.give_up(str(problem))
            return None
        too_dear = BLIND_DEAR if self.query.chosen.blind else TOO_DEAR
        if better.cost <= too_dear * better.best:
            self.dear = None
        elif self.dear is None:
            self.dear = self.unit.clock
        return better

    def _measured(self) -> dict[int, Figures]:
        clock, since = self.unit.clock, self._since()
        return {
            one.number: figures(
                one,
                self.columns[one.number],
                one.stage.positive - self.seen[one.number],
                clock - since,
                clock,
            )
            for one in self.there
        }

    def _since(self) -> int:
        """The instant of the last look."""
        clock, since = self.unit.clock, self.at
        if since == ALWAYS:  # since the first row
            since = min(
                (int(one.rows.store.ts.view[0]) for one in self.there if len(one.rows.store)),
                default=clock,
            )
            if self.slide is not None:  # which came in the period that ended then
                since -= next_boundary(self.slide, clock + 1) - clock - 1
        return since


def watches(query: RunningQuery, slide: Slide | None) -> Iterator[Watch]:
    """One for each place of its plan where it has joins of three inputs or more."""
    for path in places(query.phys):
        yield Watch.of(query, path, slide)
