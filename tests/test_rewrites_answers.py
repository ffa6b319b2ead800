"""Rewrite rules change no answer: each on and off, on random queries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings

from dsms.errors import QueryError
from dsms.plan.chooser import Chooser
from dsms.plan.identity import leaves
from dsms.plan.optimize import _Optimizer, apply, positions, put
from dsms.plan.options import PlanOptions
from dsms.plan.planner import plan, with_kind
from dsms.plan.rules import RULES
from dsms.plan.statistics import Statistics
from dsms.sql import logical as lp
from tests.effort import examples
from tests.generate.stories import stories
from tests.oracle import Oracle
from tests.oracle.values import canons
from tests.plan_forms import shape
from tests.plan_queries import plan_stories
from tests.stories import text
from tests.stories.judge import Input, followed, take_in
from tests.stories.model import Story

FAST = Statistics({"s": 100.0, "t": 100.0, "u": 0.1})


def rewritten(output: lp.Output, most: int) -> Iterator[tuple[str, lp.Output, lp.Output]]:
    """(rule, before, after) for plans reached by single steps, breadth first, at most so many."""
    optimizer = _Optimizer(Chooser(Statistics(), PlanOptions()))
    seen, queue = {output}, [output]
    rules = sorted(RULES, key=lambda r: r.when == "last")
    while queue:
        current = queue.pop(0)
        for path, node, ctx in positions(current, optimizer.context()):
            for rule in rules:
                new = apply(rule, node, ctx)
                tree = current if new is node else put(current, path, new)
                if tree not in seen:
                    seen.add(tree)
                    queue.append(tree)  # type: ignore[arg-type]
                    yield rule.name, current, tree  # type: ignore[misc]
                    if len(seen) > most:
                        return


def answers(output: lp.Output, came: Input, ordered: bool) -> list[tuple]:
    deltas = Oracle(output, came.streams, came.tables).deltas(followed(output, came))
    found = [(d.at, d.kind, canons(d.values)) for d in deltas]
    return found if ordered else sorted(found, key=repr)


def check(story: Story, most: int = 24) -> None:
    """Every step of rewriting leaves all answers as they were; in the same order if the ids are."""
    declared = text.resolve(story)
    came = take_in(declared, story)
    for bound in declared.queries.values():
        output = with_kind(bound)
        want = {ordered: answers(output, came, ordered) for ordered in (False, True)}
        for name, before, after in rewritten(output, most):
            ordered = leaves(after) == leaves(output)
            if answers(after, came, ordered) != want[ordered]:
                pytest.fail(
                    f"{name} changed "
                    f"answers\n{text.render(story, declared)}\n{shape(before)}\n{shape(after)}"
                )


@settings(max_examples=examples(25))
@given(plan_stories())
def test_rewrites_change_no_answer(story: Story) -> None:
    try:
        check(story)
    except QueryError as error:
        assert error.code.startswith("DS3"), error


@settings(max_examples=examples(12))
@given(stories(10))
def test_rewrites_change_no_answer_of_any_query(story: Story) -> None:
    try:
        check(story)
    except QueryError as error:
        assert error.code.startswith("DS3"), error


@settings(max_examples=examples(40))
@given(plan_stories(1), stories(1))
def test_every_query_gets_a_plan(one: Story, other: Story) -> None:
    """The rules come to an end and the driver finds no fault, under every strategy and place of
    negation."""
    for story in (one, other):
        try:
            declared = text.resolve(story)
        except QueryError:
            continue
        for output in declared.queries.values():
            for options in (
                PlanOptions(),
                PlanOptions("nt", negation="down"),
                PlanOptions("direct", negation="up"),
            ):
                phys = plan(output, FAST, options)
                assert [f.type for f in phys.node.schema] == [f.type for f in output.schema]
                assert sorted(leaves(phys.node)) == sorted(leaves(output))
