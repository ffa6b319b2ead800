"""Queries push what the oracle says, whatever streams promise and whether they hold to it: every
strategy and cut, and through crashes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from tests.effort import examples
from tests.generate.promised import of_many, periodic, promised_stories
from tests.replans import forced
from tests.stories.model import Story
from tests.stories.play import some_ways
from tests.test_equivalence import SEEDS
from tests.test_equivalence import check as check_ways
from tests.test_periodic_equivalence import Case, ways
from tests.test_recovery_equivalence import check as check_crashes
from tests.test_recovery_equivalence import one_way
from tests.test_replanning import ways as ways_to_replan


@settings(max_examples=examples(300))
@given(promised_stories(), SEEDS)
def test_promises_change_no_answer(story: Story, seed: int) -> None:
    check_ways(story, some_ways(seed))


@settings(max_examples=examples(60))
@given(promised_stories(asked=periodic), SEEDS)
def test_promises_change_no_answer_at_boundaries(story: Story, seed: int) -> None:
    case = replace(Case.of(story), loose=True)  # what came in one period stands in any order
    for way in ways(seed):
        if (trouble := case.trouble(way)) is not None:
            pytest.fail(trouble, pytrace=False)


@settings(max_examples=examples(60), deadline=None)
@given(promised_stories(), SEEDS)
def test_promises_survive_crashes(story: Story, seed: int) -> None:
    check_crashes(story, one_way(seed), seed)


@settings(max_examples=examples(60), deadline=None)
@given(promised_stories(asked=of_many), SEEDS)
def test_joins_that_let_go_take_other_shapes(story: Story, seed: int) -> None:
    with forced(seed):
        check_ways(story, ways_to_replan(seed))
