"""Periodic aggregates that run beside each other, come and go, against the oracle, which takes each
by itself."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.generate.shared import shared_stories
from tests.stories import text
from tests.stories.compare import complaint, same_lines, smaller
from tests.stories.declared import Declared
from tests.stories.judge import clock, expected, take_in
from tests.stories.model import Line, Story
from tests.stories.play import Way, play

CUTS = ("all", "rows", "random")


def wanted(story: Story, declared: Declared) -> dict[str, list[Line]]:
    """What each query tells: from its registration on, until it is dropped."""
    names = [s.name for s in story.of("query")]
    return {name: _wanted(story, declared, name) for name in names}


def _wanted(story: Story, declared: Declared, name: str) -> list[Line]:
    output = declared.queries[name]
    place = next(i for i, s in enumerate(story.sections) if s.kind == "query" and s.name == name)
    end = next(
        (i for i, s in enumerate(story.sections) if s.body == f"DROP QUERY {name};"),
        len(story.sections),
    )
    before, until = (
        take_in(declared, replace(story, sections=story.sections[:i])) for i in (place, end)
    )
    lines = expected(output, until, registered=clock(output, before))
    return lines if end == len(story.sections) else [*lines, Line(None, "!", ("dropped",))]


def trouble(story: Story, way: Way) -> str | None:
    declared = text.resolve(story)
    want = wanted(story, declared)
    try:
        played = play(story, declared, way)
    except Exception as error:
        return f"{way}: {type(error).__name__}: {error}\n\n{text.render(story, declared)}"
    for name, lines in want.items():
        if not same_lines(lines, played.pushes[name]):
            difference = complaint(
                story, declared, name, lines, played.pushes[name], f"{way}: {name}"
            )
            return (
                difference
                + "\n# it should have been\n"
                + "\n".join(f"# {text.shown_line(line, declared.types_of(name))}" for line in lines)
            )
    return None


@settings(max_examples=examples(40))
@given(shared_stories(), st.integers(0, 9999))
def test_queries_beside_each_other(story: Story, seed: int) -> None:
    for cut, number in zip(CUTS, count(seed), strict=False):
        way = Way("upa", cut, True, number)
        if trouble(story, way) is not None:
            least = smaller(story, lambda s, way=way: trouble(s, way))  # type: ignore[misc]
            pytest.fail(trouble(least, way) or "it went wrong once only", pytrace=False)
