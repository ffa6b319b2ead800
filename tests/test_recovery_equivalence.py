"""An engine that is killed at random moments pushes what one that lives pushes, each row once."""

from __future__ import annotations

from random import Random
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.sql.types import ALWAYS
from tests.effort import examples
from tests.generate.periodic import (
    beside_stories,
    calendar_stories,
    counted_stories,
    late_stories,
    periodic_stories,
)
from tests.generate.stories import kept_stories, long_stories, slack_stories, stories
from tests.oracle import ambiguous
from tests.oracle.keys import by_value
from tests.stories import text
from tests.stories.compare import complaint, same_lines
from tests.stories.crashing import play
from tests.stories.judge import expected, registered, take_in
from tests.stories.model import Story
from tests.stories.play import Way, some_ways
from tests.stories.play import play as play_once

SEEDS = st.integers(0, 9999)


def check(story: Story, way: Way, seed: int) -> None:
    declared = text.resolve(story)
    output = declared.queries["q"]
    begun = registered(story, declared, "q")
    want = expected(output, take_in(declared, story), begun)
    with TemporaryDirectory() as data:
        host = play(story, declared, way, data, Random(seed))
        got = host.pushes["q"]
        host.engine.close()
    loose = ambiguous(output)
    # the oracle knows more of what is older than the engine
    if begun > ALWAYS and by_value(output.child):
        assert same_lines(want, got, loose=True), complaint(
            story, declared, "q", want, got, f"{way}, but for the order"
        )
        want = play_once(story, declared, way).pushes["q"]
    assert same_lines(want, got, loose), complaint(
        story, declared, "q", want, got, f"{way}, {host.crashes} crashes"
    )


def one_way(seed: int) -> Way:
    return Random(seed).choice(some_ways(seed))


@settings(max_examples=examples(30), deadline=None)
@given(stories(), SEEDS)
def test_continuous_queries(story: Story, seed: int) -> None:
    check(story, one_way(seed), seed)


@settings(max_examples=examples(30), deadline=None)
@given(kept_stories(), SEEDS)
def test_queries_begin_with_rows_that_are_kept(story: Story, seed: int) -> None:
    check(story, one_way(seed), seed)


@settings(max_examples=examples(3), deadline=None)
@given(long_stories(), SEEDS)
def test_long_inputs(story: Story, seed: int) -> None:
    check(story, one_way(seed), seed)


@settings(max_examples=examples(10), deadline=None)
@given(slack_stories(), SEEDS)
def test_rows_that_wait_for_their_turn(pair: tuple[Story, Story], seed: int) -> None:
    check(pair[1], one_way(seed), seed)


@settings(max_examples=examples(30), deadline=None)
@given(periodic_stories(), SEEDS)
def test_periodic_queries(story: Story, seed: int) -> None:
    check(story, _periodic(seed), seed)


@settings(max_examples=examples(8), deadline=None)
@given(calendar_stories(), SEEDS)
def test_calendars(story: Story, seed: int) -> None:
    check(story, _periodic(seed), seed)


@settings(max_examples=examples(8), deadline=None)
@given(counted_stories(), SEEDS)
def test_boundaries_in_rows(story: Story, seed: int) -> None:
    check(story, _periodic(seed), seed)


@settings(max_examples=examples(8), deadline=None)
@given(beside_stories(), SEEDS)
def test_boundaries_in_rows_beside_other_inputs(story: Story, seed: int) -> None:
    check(story, _periodic(seed), seed)


@settings(max_examples=examples(8), deadline=None)
@given(late_stories(), SEEDS)
def test_late_rows(story: Story, seed: int) -> None:
    check(story, _periodic(seed, "rows"), seed)


def _periodic(seed: int, cut: str | None = None) -> Way:
    random = Random(seed)
    path = random.choice(("auto", "is", "ws", "ss", "iss"))
    return Way(
        "upa", cut or random.choice(("rows", "random")), True, seed, (("path", f"'{path}'"),)
    )
