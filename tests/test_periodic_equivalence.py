"""Periodic queries: the engine against the oracle, on random worlds, inputs and queries, at every
boundary.

A failing example is printed as a golden file: paste it below tests/golden/periodic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.plan.paths import from_past
from dsms.sql.binder.options import OPTIONS
from tests.effort import effort, examples
from tests.generate.periodic import (
    beside_stories,
    calendar_stories,
    counted_stories,
    late_stories,
    long_periodic_stories,
    periodic_entries_stories,
    periodic_merged_stories,
    periodic_stories,
)
from tests.oracle import ambiguous
from tests.stories import cells, text
from tests.stories.compare import complaint, same_lines, smaller
from tests.stories.declared import Declared
from tests.stories.judge import answer, clock, expected, kind, periodic, take_in
from tests.stories.model import Line, Story
from tests.stories.play import Played, Way, feed, play, some_ways, taken, with_options

SEEDS = st.integers(0, 9999)
PATHS = OPTIONS["path"].choices


@dataclass(frozen=True, slots=True)
class Case:
    """A story and what the oracle says: all rows in order, the boundaries (and whether rows were
    reported there), the last answer (None: none is kept)."""

    story: Story
    declared: Declared
    want: list[Line]
    bounds: list[tuple[int, bool]]
    answer: list[tuple] | None
    loose: bool

    @staticmethod
    def of(story: Story) -> Case:
        declared = text.resolve(story)
        came = take_in(declared, story)
        output = declared.queries["q"]
        bounds = [(p.at, bool(p.rows)) for p in periodic(output, came).pushes()]
        last = None if kind(output) != "rstream" or output.restore else answer(output, came)
        return Case(story, declared, expected(output, came), bounds, last, ambiguous(output))

    def trouble(self, way: Way) -> str | None:
        """What is wrong with this way to run the story, as a golden file that shows it; None if
        nothing is."""
        try:
            played = play(self.story, self.declared, way)
        except Exception as error:
            return (
                f"{way}: {type(error).__name__}: "
                f"{error}\n\n{text.render(self.story, self.declared)}"
            )
        if not same_lines(self.want, played.pushes["q"], self.loose):
            return complaint(
                self.story, self.declared, "q", self.want, played.pushes["q"], str(way)
            )
        found = self._progress(played) or self._snapshot(played)
        return found and f"{way}: {found}\n\n{text.render(self.story, self.declared)}"

    def _progress(self, played: Played) -> str | None:
        """Every boundary is reported, those without rows as progress; of a run of these the last is
        enough."""
        told = set(played.progress["q"])
        silent = {at for at, rows in self.bounds if not rows}
        want = {
            at for (at, rows), (_, more) in pairwise([*self.bounds, (0, True)]) if more and not rows
        }
        if want <= told <= silent:
            return None
        return (
            f"progress at {list(map(cells.shown_instant, told))}, not at "
            f"{list(map(cells.shown_instant, want))}"
        )

    def _snapshot(self, played: Played) -> str | None:
        got = played.snapshots["q"]
        if self.answer is None or self.loose:
            return None
        alike = len(got) == len(self.answer) and all(map(cells.same, self.answer, got))
        return None if alike else f"the snapshot is {got}, not {self.answer}"


def ways(seed: int) -> list[Way]:
    """Some ways to run it, each by another access path."""
    random = Random(seed)
    paths = (f"'{random.choice(PATHS)}'" for _ in count())
    return [replace(way, options=(*way.options, ("path", next(paths)))) for way in some_ways(seed)]


def check(story: Story, ways: Sequence[Way]) -> None:
    """All ways must push what the oracle says; if not, fail with a story as small as can be had
    quickly."""
    case = Case.of(story)
    for way in ways:
        if case.trouble(way) is not None:
            least = Case.of(smaller(story, lambda s, way=way: Case.of(s).trouble(way)))  # type: ignore[misc]
            pytest.fail(least.trouble(way) or "it went wrong once only", pytrace=False)


@settings(max_examples=examples(60))
@given(periodic_stories(), SEEDS)
def test_boundaries_in_seconds(story: Story, seed: int) -> None:
    check(story, ways(seed))


@settings(max_examples=examples(40))
@given(periodic_entries_stories(), SEEDS)
def test_what_enters_a_subquery_is_appended(story: Story, seed: int) -> None:
    """Istream in FROM: continuous inside of a periodic query, or at its boundaries."""
    check(story, ways(seed))


@settings(max_examples=examples(40))
@given(periodic_merged_stories(), SEEDS)
def test_streams_merged(story: Story, seed: int) -> None:
    """Rows of several streams that live equally long: they may share a queue."""
    check(story, ways(seed))


@settings(max_examples=examples(25))
@given(calendar_stories(), SEEDS)
def test_boundaries_by_the_calendar(story: Story, seed: int) -> None:
    check(story, ways(seed))


@settings(max_examples=examples(25))
@given(counted_stories(), SEEDS)
def test_boundaries_in_rows(story: Story, seed: int) -> None:
    check(story, ways(seed))


@settings(max_examples=examples(25))
@given(beside_stories(), SEEDS)
def test_boundaries_in_rows_beside_other_inputs(story: Story, seed: int) -> None:
    check(story, ways(seed))


@settings(max_examples=examples(20))
@given(late_stories(), SEEDS)
def test_late_rows_and_boundaries(story: Story, seed: int) -> None:
    check(story, [way for way in ways(seed) if way.cut == "rows"])


@settings(max_examples=examples(5) if effort() else 1)
@given(long_periodic_stories(), SEEDS)
def test_long_inputs(story: Story, seed: int) -> None:
    check(story, ways(seed))


@settings(max_examples=examples(25))
@given(beside_stories(), SEEDS)
def test_rows_counted_from_the_middle_of_a_story(story: Story, seed: int) -> None:
    """Over streams that kept all rows, a query registered later answers as if it had been there;
    what came before its registration is not reported once more."""
    declared = text.resolve(story)
    output = declared.queries["q"]
    if output.restore or from_past(output.child) is not None or ambiguous(output):
        return
    ddl, query, events = story.sections[0], story.sections[1], story.sections[2].events
    half = Random(seed).randrange(len(events))
    before = replace(story, sections=[ddl, query, replace(story.sections[2], events=events[:half])])
    registered = clock(output, take_in(declared, before))
    want = expected(output, take_in(declared, story), registered)
    for path in ("is", "ws"):
        engine, way = Engine(), Way(cut="rows", options=(("path", f"'{path}'"),))
        engine.execute(
            text.expand(ddl.body.replace("TIMESTAMP BY ts", "TIMESTAMP BY ts RETAIN 1000 s"))
        )
        feed(engine, declared, events[:half], way)
        engine.execute(f"CREATE QUERY q AS {with_options(query.body, way)}")
        reader = engine.subscribe("q", 0)
        feed(engine, declared, events[half:], way)
        got = list(taken(reader, 0))
        assert same_lines(want, got), complaint(
            story, declared, "q", want, got, f"{path}, after {half} events"
        )
