"""The engine against the oracle, on random worlds, inputs and queries; every strategy, cut and rule setting alike.

A failing example is printed as a golden file: paste it below tests/golden.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from dsms.errors import QueryError
from tests.generate.stories import examples, stories
from tests.stories import text
from tests.stories.compare import complaint, same_lines
from tests.stories.judge import expected, take_in
from tests.stories.model import Story
from tests.stories.play import play, some_ways


def check(story: Story, seed: int = 0) -> None:
    """All ways to run the story push what the oracle says, in its order."""
    declared = text.resolve(story)
    given_ = take_in(declared, story)
    for name, output in declared.queries.items():
        want = expected(output, given_)
        for way in some_ways(seed):
            got = play(story, declared, way).pushes[name]
            if not same_lines(want, got):
                pytest.fail(complaint(story, declared, name, want, got, str(way)), pytrace=False)


@settings(max_examples=examples(120))
@given(stories())
def test_engine_and_oracle_agree(story: Story) -> None:
    check(story)


def test_generated_queries_are_queries() -> None:
    """Nearly all random queries bind; those that don't break a rule of the language, not its syntax."""
    bound: list[bool] = []

    @settings(max_examples=examples(150), database=None)
    @given(stories())
    def run(story: Story) -> None:
        try:
            text.resolve(story)
            bound.append(True)
        except QueryError as error:
            assert error.code.startswith("DS3"), error
            bound.append(False)

    run()
    assert sum(bound) > 0.95 * len(bound)
