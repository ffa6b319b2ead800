"""Plans that change while they run: pushes and their numbers are those of plans that never do."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.generate.many_windows import joined_windows
from tests.replans import forced
from tests.stories.model import Story
from tests.stories.play import Way
from tests.test_equivalence import check
from tests.test_recovery_equivalence import check as check_restarts

SEEDS = st.integers(0, 9999)


def ways(seed: int) -> list[Way]:
    joins = (("joins", ("auto", "tree", "pipeline")[seed % 3]),)
    return [
        Way("upa", "rows", True, seed),
        Way("upa", "random", True, seed, joins),
        Way("direct", "rows", True, seed, joins),
        Way("nt", "random", True, seed + 1, joins),
    ]


@settings(max_examples=examples(45), deadline=None)
@given(joined_windows(), SEEDS)
def test_any_change_at_any_instant(story: Story, seed: int) -> None:
    """Windows of all kinds, ties, NULLs, filters, tables beside; GROUP BY, DISTINCT, UNION ALL and
    negation above: as the oracle has it."""
    with forced(seed):
        check(story, ways(seed))


@settings(max_examples=examples(30), deadline=None)
@given(joined_windows(), SEEDS)
def test_across_kills(story: Story, seed: int) -> None:
    """With checkpoints before and after, and changes that the journal alone knows."""
    with forced(seed):
        check_restarts(story, ways(seed)[seed % 4], seed)
