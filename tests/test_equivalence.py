"""The engine against the oracle, on random worlds, inputs and queries; every strategy, cut and rule
setting alike.

A failing example is printed as a golden file: paste it below tests/golden.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.api import Rows
from dsms.engine import Engine
from dsms.errors import QueryError
from dsms.sql.ast import SelectStatement
from dsms.sql.binder import bind_query, expanded
from dsms.sql.parser import parse_one
from dsms.sql.types import ALWAYS
from tests.effort import examples
from tests.generate.stories import (
    entries_stories,
    kept_stories,
    long_stories,
    one_time,
    slack_stories,
    stories,
)
from tests.oracle import Oracle, ambiguous
from tests.oracle.keys import by_value
from tests.oracle.values import canons
from tests.stories import text
from tests.stories.compare import complaint, same_lines, smaller
from tests.stories.declared import Declared
from tests.stories.judge import expected, followed, registered, take_in
from tests.stories.model import Line, Story
from tests.stories.play import Way, feed, play, rows_of, some_ways, taken

SEEDS = st.integers(0, 9999)


@dataclass(frozen=True, slots=True)
class Case:
    """A story and what the oracle says: what is pushed, in order, and the answer at the end (None:
    no view).

    `loose`: the order of rows that tie in one instant is the engine's choice (after a registration
    over kept rows the oracle knows more of what is older than the engine); it must be the same
    every way.
    """

    story: Story
    declared: Declared
    want: list[Line]
    answer: Counter | None
    loose: bool

    @staticmethod
    def of(story: Story) -> Case:
        declared = text.resolve(story)
        came = take_in(declared, story)
        output = declared.queries["q"]
        oracle = Oracle(output, came.streams, came.tables)
        viewed = oracle.kind == "rstream" and not text.inexact(story)
        answer = (
            Counter(canons(f.values) for f in oracle.answer(followed(output, came)))
            if viewed
            else None
        )
        begun = registered(story, declared, "q")
        loose = ambiguous(output) or (begun > ALWAYS and by_value(output.child))
        return Case(story, declared, expected(output, came, begun), answer, loose)

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
        got = Counter(map(canons, played.snapshots["q"]))
        if self.answer is None or got == self.answer:
            return None
        shown = text.render(self.story, self.declared)
        return f"{way}: the snapshot is {dict(got)}, not {dict(self.answer)}\n\n{shown}"


def check(story: Story, ways: Sequence[Way]) -> None:
    """All ways must push what the oracle says; if not, fail with a story as small as can be had
    quickly."""
    case = Case.of(story)
    for way in ways:
        found = case.trouble(way)
        if found is None and case.loose:  # the first way set the order that the others must keep
            case = replace(case, want=play(story, case.declared, way).pushes["q"], loose=False)
        if found is not None:
            least = Case.of(smaller(story, lambda s, way=way: Case.of(s).trouble(way)))  # type: ignore[misc]
            pytest.fail(least.trouble(way) or "it went wrong once only", pytrace=False)


@settings(max_examples=examples(90))
@given(stories(), SEEDS)
def test_engine_and_oracle_agree(story: Story, seed: int) -> None:
    check(story, some_ways(seed))


@settings(max_examples=examples(60))
@given(entries_stories(), SEEDS)
def test_what_enters_a_subquery_is_appended(story: Story, seed: int) -> None:
    """Istream in FROM, over anything."""
    check(story, some_ways(seed))


@settings(max_examples=examples(8))
@given(long_stories(), SEEDS)
def test_long_inputs(story: Story, seed: int) -> None:
    """State that grows and is compacted answers as it did when it was small."""
    check(story, some_ways(seed))


@settings(max_examples=examples(25))
@given(slack_stories(), SEEDS)
def test_slack_sorts_back(pair: tuple[Story, Story], seed: int) -> None:
    """Rows shuffled within the stream's slack give what sorted rows give, numbered the same."""
    ordered, shuffled = pair
    declared = text.resolve(ordered)
    want = expected(declared.queries["q"], take_in(declared, ordered))
    assert same_lines(want, expected(declared.queries["q"], take_in(declared, shuffled)))
    check(ordered, some_ways(seed)[:2])
    check(shuffled, some_ways(seed))


@settings(max_examples=examples(60))
@given(kept_stories(), SEEDS)
def test_queries_begin_with_rows_that_are_kept(story: Story, seed: int) -> None:
    """Registered later, over streams that have kept all rows, a query answers as if it had been
    there, and tells what has changed since."""
    check(story, some_ways(seed))


@settings(max_examples=examples(40))
@given(kept_stories(appended=True), SEEDS)
def test_queries_begin_with_all_that_blocks_have_appended(story: Story, seed: int) -> None:
    check(story, some_ways(seed))


@settings(max_examples=examples(40))
@given(one_time())
def test_one_time_queries_answer_as_of_the_clock(pair: tuple[Story, str]) -> None:
    story, sql = pair
    declared = text.resolve(story)
    came = take_in(declared, story)
    statement = expanded(parse_one(sql), declared.catalog)
    assert isinstance(statement, SelectStatement)
    output = bind_query(statement, declared.catalog, persistent=False)
    at = followed(output, came)
    want = Counter(canons(f.values) for f in Oracle(output, came.streams, came.tables).answer(at))
    engine = Engine()
    for section in story.of("sql"):
        engine.execute(section.body)
    feed(engine, declared, list(story.events()), Way(cut="random"))
    try:
        (rows,) = engine.execute(sql)
    except QueryError as error:
        # one-time queries fail where persistent ones give NULL
        assert error.code in ("DS701", "DS702", "DS703"), error
        return
    assert isinstance(rows, Rows)
    assert Counter(map(canons, rows_of(rows.data))) == want, (
        f"{sql}\n{text.render(story, declared)}"
    )


@settings(max_examples=examples(15))
@given(stories(), SEEDS)
def test_a_reader_resumes_at_any_row(story: Story, seed: int) -> None:
    """What a reader that starts at row n gets is what another got from there on."""
    declared = text.resolve(story)
    engine = Engine()
    for section in story.sections:
        match section.kind:
            case "sql":
                engine.execute(section.body)
            case "query":
                engine.execute(f"CREATE QUERY q AS {section.body}")
    feed(engine, declared, list(story.events()), Way(cut="random", seed=seed))
    whole = list(taken(engine.subscribe("q", 0), 0))
    for start in range(0, len(whole) + 1, max(1, len(whole) // 5)):
        assert same_lines(list(taken(engine.subscribe("q", start), start)), whole[start:])
    assert all(line.at is not None and line.at >= ALWAYS for line in whole)


def test_generated_queries_are_queries() -> None:
    """Nearly all random queries bind; those that don't break a rule of the language, not its
    syntax."""
    bound: list[bool] = []

    @settings(max_examples=examples(60), database=None)
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
