"""Functions and aggregates in Python, drawn at random, in random queries: the engine against the
oracle, which calls them row by row; by all paths, cuts and strategies, over archives, and after
crashes.

A failing example is printed as a golden file: its functions are of tests/functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from dsms.python_functions import Functions, host
from tests import test_archive_small as archives
from tests import test_equivalence as continuous
from tests import test_periodic_equivalence as periodic
from tests import test_recovery_equivalence as recovery
from tests.effort import example, examples, thinned
from tests.generate.own import with_own
from tests.generate.own_grouped import grouped_stories
from tests.generate.periodic import (
    beside_stories,
    counted_stories,
    every_stories,
    late_stories,
    periodic_merged_stories,
    periodic_stories,
)
from tests.generate.stories import (
    entries_stories,
    kept_stories,
    long_stories,
    one_time,
    slack_stories,
    stories,
)
from tests.oracle import own
from tests.stories.model import Story

LONG = 120.0  # seconds that no call takes, however busy the machine
FOLDER = Path(__file__).parent / "functions"
SEEDS = st.integers(0, 9999)
SLOWLY = list(HealthCheck)
PERIODIC = {
    "seconds": periodic_stories(),
    "merged": periodic_merged_stories(),
    "rows": counted_stories(),
    "beside": beside_stories(),
    "every": every_stories(),
    "groups": grouped_stories(True),
    "late groups": grouped_stories(True, 4),
}
CONTINUOUS = {
    "any": stories(),
    "kept": kept_stories(),
    "entries": entries_stories(),
    "groups": grouped_stories(False),
    "late groups": grouped_stories(False, 4),
}


@pytest.fixture(scope="module", autouse=True)
def _folder() -> Iterator[None]:
    own.define(FOLDER)
    host.name(Functions(str(FOLDER), LONG))
    yield
    host.close()


@thinned(2)
@pytest.mark.parametrize("kind", CONTINUOUS)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=SLOWLY)
@given(data=st.data(), seed=SEEDS)
def test_continuous_queries(kind: str, data: st.DataObject, seed: int) -> None:
    continuous.check(data.draw(with_own(CONTINUOUS[kind])), continuous.some_ways(seed))


@settings(max_examples=examples(3), deadline=None, suppress_health_check=SLOWLY)
@given(with_own(long_stories(120)), SEEDS)
def test_long_inputs(story: Story, seed: int) -> None:
    continuous.check(story, continuous.some_ways(seed))


@settings(max_examples=examples(30), deadline=None, suppress_health_check=SLOWLY)
@given(with_own(slack_stories()), SEEDS)
def test_slack_sorts_back(pair: tuple[Story, Story], seed: int) -> None:
    example(continuous.test_slack_sorts_back)(pair, seed)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=SLOWLY)
@given(with_own(one_time()))
def test_one_time_queries(pair: tuple[Story, str]) -> None:
    example(continuous.test_one_time_queries_answer_as_of_the_clock)(pair)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=SLOWLY)
@given(story=with_own(st.one_of(stories(), grouped_stories(False))), seed=SEEDS)
def test_archives(tmp_path_factory: pytest.TempPathFactory, story: Story, seed: int) -> None:
    example(archives.test_any_query_answers_as_the_oracle_does)(tmp_path_factory, story, seed)


@thinned(2)
@pytest.mark.parametrize("kind", PERIODIC)
@settings(max_examples=examples(40), deadline=None, suppress_health_check=SLOWLY)
@given(data=st.data(), seed=SEEDS)
def test_periodic_queries(kind: str, data: st.DataObject, seed: int) -> None:
    periodic.check(data.draw(with_own(PERIODIC[kind])), periodic.ways(seed))


@pytest.mark.parametrize("slack", [0, 4])
@settings(max_examples=examples(40), deadline=None, suppress_health_check=SLOWLY)
@given(data=st.data(), seed=SEEDS)
def test_what_leaves_is_subtracted(slack: int, data: st.DataObject, seed: int) -> None:
    story = data.draw(with_own(grouped_stories(True, slack, minus=True)))
    iss = ("path", "'iss'")
    periodic.check(story, [replace(way, options=(iss,)) for way in periodic.ways(seed)])


@settings(max_examples=examples(30), deadline=None, suppress_health_check=SLOWLY)
@given(with_own(late_stories()), SEEDS)
def test_late_rows(story: Story, seed: int) -> None:
    periodic.check(story, [way for way in periodic.ways(seed) if way.cut == "rows"])


@thinned(3)
@pytest.mark.parametrize("kind", CONTINUOUS)
@settings(max_examples=examples(30), deadline=None, suppress_health_check=SLOWLY)
@given(data=st.data(), seed=SEEDS)
def test_continuous_queries_of_engines_that_are_killed(
    kind: str, data: st.DataObject, seed: int
) -> None:
    recovery.check(data.draw(with_own(CONTINUOUS[kind])), recovery.one_way(seed), seed)


@thinned(3)
@pytest.mark.parametrize("kind", PERIODIC)
@settings(max_examples=examples(30), deadline=None, suppress_health_check=SLOWLY)
@given(data=st.data(), seed=SEEDS)
def test_periodic_queries_of_engines_that_are_killed(
    kind: str, data: st.DataObject, seed: int
) -> None:
    recovery.check(data.draw(with_own(PERIODIC[kind])), recovery._periodic(seed), seed)


@thinned()
@pytest.mark.parametrize("word", ["chain", "_minus", "FILTER", "FUNCTION", "DECIMAL", "LIST"])
@pytest.mark.parametrize("kind", [CONTINUOUS, PERIODIC], ids=["continuous", "periodic"])
def test_drawn_queries_have_calls_of_all_sorts(
    kind: dict[str, st.SearchStrategy[Story]], word: str
) -> None:
    def calls(story: Story) -> bool:
        texts = "".join(section.body for section in story.sections)
        return "AS PYTHON" in texts and word in texts

    found = find(with_own(st.one_of(*kind.values())), calls, random=Random(1))
    assert calls(found)
