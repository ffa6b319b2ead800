"""Plans run once (`dsms.oneshot`) against the oracle: any construct, any instant, one meaning."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.plan.identity import by_value
from dsms.plan.paths import from_past
from dsms.plan.planner import plan
from dsms.sql import logical as lp
from tests.effort import examples
from tests.generate.stories import stories
from tests.oneshot_runs import run, values
from tests.oracle import Oracle
from tests.oracle.values import canons
from tests.stories import text
from tests.stories.judge import take_in
from tests.stories.model import Story


@settings(max_examples=examples(60), deadline=None)
@given(stories(), st.integers(0, 9999))
def test_plans_run_once_answer_as_the_oracle_does(story: Story, seed: int) -> None:
    declared = text.resolve(story)
    output, came = declared.queries["q"], take_in(declared, story)
    why = from_past(output)
    if why is not None and "INTERNAL" not in why:  # what was appended is given
        return
    oracle = Oracle(output, came.streams, came.tables)
    rewritten = plan(output).node
    for k in range(3):
        at = oracle.instants[(seed * (k + 1)) % len(oracle.instants)]
        _check(output, output, oracle, came, at, story, declared)
        _check(rewritten, output, oracle, came, at, story, declared)


def _check(
    once: lp.Node, output: lp.Output, oracle: Oracle, came, at: int, story: Story, declared
) -> None:
    facts = oracle.answer(at)
    want = [canons(f.values) for f in facts]
    got = list(map(canons, values(run(once, came.streams, came.tables, at))))
    shown = text.render(story, declared)
    assert Counter(got) == Counter(want), f"at {at}: {got}\nnot {want}\n{shown}"
    if not by_value(output.child):
        assert got == want, f"order at {at}: {got}\nnot {want}\n{shown}"
