"""Joins at work, watched: when what comes to them is measured, and since when others would be much
better."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dsms.plan.options import PlanOptions
from dsms.plan.parts import node_at
from dsms.plan.rejoin import Better, Joins, Unfit, key_columns, places
from dsms.running.exchanging import JoinInput, inputs_at
from dsms.running.measuring import Figures, figures, longest
from dsms.running.pipeline import Path
from dsms.running.query import RunningQuery
from dsms.sql.types import ALWAYS

TOO_DEAR = 2.0
BLIND_DEAR = 1.1  # where nothing was known when the plan was chosen: so nothing speaks for it
LEAST = 512  # rows between two looks, at least
MOST_DOUBLED = 8  # changes after which the time before another one grows no more
USUAL = 60_000_000  # µs before a change, where no window says how fast things change


@dataclass(slots=True)
class Watch:
    """The joins at one place of a query's plan.  Not stored: after a restart it begins anew.

    columns  of each input, by its number, those that rows are matched by
    seen     rows of each input at the last look, which was at instant `at`
    due      rows of all at the next one
    found    what the last search went by
    dear     the instant from which on other joins have been much better
    why_not  why they can't be exchanged now
    """

    query: RunningQuery
    path: Path
    columns: dict[int, set[int]]
    at: int
    seen: dict[int, int] = field(default_factory=dict)
    due: int = LEAST
    found: dict[int, Figures] = field(default_factory=dict)
    dear: int | None = None
    why_not: str | None = None

    there: list[JoinInput] = field(default_factory=list)

    @staticmethod
    def of(query: RunningQuery, path: Path) -> Watch:
        """One that begins now."""
        return Watch(query, path, key_columns(node_at(query.phys, path)), query.clock).begun()

    def begun(self) -> Watch:
        """It knows where its rows are counted; where others run them it waits until that changes
        (`why_not`)."""
        try:
            self.there, self.why_not = inputs_at(self.query, self.path), None
        except Unfit as problem:
            self.there, self.why_not = [], str(problem)
        self.rest()
        return self

    def rest(self) -> None:
        """Until the next look."""
        self.at = self.query.clock
        self.seen = {one.number: one.stage.positive for one in self.there}
        alive = sum(one.rows.store.live for one in self.there)
        self.due = sum(self.seen.values()) + max(LEAST, alive // 2)

    @property
    def is_due(self) -> bool:
        """Whether enough rows have come for a look."""
        return bool(self.there) and sum(one.stage.positive for one in self.there) >= self.due

    def look(self, options: PlanOptions, patience: int) -> tuple[Better, dict[int, Figures]] | None:
        """Measure; what to change the joins for, and by which figures, if it is time."""
        now = self._measured()
        self.rest()
        alike = now.keys() == self.found.keys() and all(
            f.alike(self.found[k]) for k, f in now.items()
        )
        if self.dear is None and alike:
            return None
        self.found = now
        phys = node_at(self.query.phys, self.path)
        estimates = {one.number: now[one.number].estimate(one.phys) for one in self.there}
        try:
            better = Joins(phys, estimates, options).better()
        except Unfit as problem:
            self.there, self.why_not = [], str(problem)
            return None
        too_dear = BLIND_DEAR if self.query.chosen.blind else TOO_DEAR
        if better.cost <= too_dear * better.best:
            self.dear = None
            return None
        self.dear = self.query.clock if self.dear is None else self.dear
        return (better, now) if self.query.clock - self.dear >= patience else None

    def _measured(self) -> dict[int, Figures]:
        clock, since = self.query.clock, self.at
        if since == ALWAYS:  # since the first row
            since = min(
                (int(one.rows.store.ts.view[0]) for one in self.there if len(one.rows.store)),
                default=clock,
            )
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

    def patience(self, asked: int | None) -> int:
        """µs for which other joins must have been much better."""
        chosen = self.query.chosen
        if chosen.blind:
            return 0
        usual = longest(self.there) or USUAL
        least = usual if asked is None else asked
        return least << min(chosen.changes, MOST_DOUBLED)


def watches(query: RunningQuery) -> Iterator[Watch]:
    """One for each place of its plan where it has joins of three inputs or more."""
    for path in places(query.phys):
        yield Watch.of(query, path)
