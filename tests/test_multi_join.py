"""Joins of many windows in one operator: the pushes of trees of joins, and those of the oracle."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.operators import multi_join_kernels as kernels
from dsms.operators.multi_join import Arena
from tests.effort import examples
from tests.generate.many_windows import joined_sliding, joined_windows
from tests.stories.model import Story
from tests.stories.play import Way
from tests.test_equivalence import check
from tests.test_periodic_equivalence import check as check_boundaries
from tests.test_recovery_equivalence import check as check_restarts

SEEDS = st.integers(0, 9999)
PIPELINE, TREE = (("joins", "pipeline"),), (("joins", "tree"),)
NOW = np.iinfo(np.int64).max


def ways(seed: int, more: tuple[tuple[str, str], ...] = ()) -> list[Way]:
    return [
        Way("upa", "all", True, seed, PIPELINE + more),
        Way("upa", "random", True, seed, TREE + more),
        Way("direct", "rows", True, seed, PIPELINE + more),
        Way("nt", "random", True, seed, PIPELINE + more),
        Way("upa", "random", True, seed + 1, more),
    ]


@settings(max_examples=examples(48))
@given(joined_windows(), SEEDS)
def test_pipeline_tree_and_oracle_agree(story: Story, seed: int) -> None:
    """Over windows of all kinds, NULLs, ties, tables beside, and however the rows are cut."""
    check(story, ways(seed))


@settings(max_examples=examples(12), deadline=None)
@given(joined_windows(), SEEDS)
def test_restarts(story: Story, seed: int) -> None:
    check_restarts(story, ways(seed)[(0, 2, 3)[seed % 3]], seed)


@settings(max_examples=examples(18))
@given(joined_sliding(), SEEDS)
def test_boundaries(story: Story, seed: int) -> None:
    """Rows of a period come at its end, and those of one key look together; or each at its own
    instant, with restore."""
    path = (("path", ("'is'", "'is'", "ws")[seed % 3]),)
    check_boundaries(story, ways(seed, path))


# ---------------------------------------------------------------- the kernel


def every(rows: list[list[tuple[int, int, int]]]) -> list[tuple[int, ...]]:
    """Slots of all results, from the definition: (ts, exp, key) by input."""
    out = []
    for slots in product(*(range(len(r)) for r in rows)):
        parts = [rows[i][s] for i, s in enumerate(slots)]
        if len({key for _, _, key in parts}) == 1 and max(p[0] for p in parts) < min(
            p[1] for p in parts
        ):
            out.append(slots)
    return sorted(out)


@pytest.mark.parametrize("n", [3, 4, 8])
@pytest.mark.parametrize("enough", [1, 1000])
def test_the_kernel_makes_each_combination_once(n: int, enough: int) -> None:
    """Also where the product of one row is cut, and where rows of one instant look together."""
    random = Random(n)
    rows = [
        sorted((random.randint(0, 9), random.randint(0, 1)) for _ in range(14 if n < 5 else 4))
        for _ in range(n)
    ]
    lives = [[(ts, ts + 1 + 3 * (i + 1), key) for ts, key in r] for i, r in enumerate(rows)]
    arena = Arena(n)
    arena.reserve([len(r) for r in lives])
    for i, r in enumerate(lives):
        _, exp, keys = (np.array(c, np.int64) for c in zip(*r, strict=True))
        arena.add(i, keys, np.ones(len(r), np.bool_), exp)
    first = np.append(0, np.cumsum([len(r) for r in rows]))
    when = np.array([ts for r in lives for ts, _, _ in r], np.int64)
    side = np.repeat(np.arange(n), np.diff(first))
    slot = np.concatenate([np.arange(len(r)) for r in rows])
    by = kernels.merged(when, np.ones(len(when), np.int64), first)
    order = np.array([[j for j in range(n) if j != i] for i in range(n)])
    events = (when[by], np.ones(len(by), np.int64), side[by], slot[by])
    at, found = np.zeros(2, np.int64), []
    while at[0] < len(by):
        given = (arena.head, arena.rows, arena.offset, arena.old, np.zeros(n, np.int64))
        made, _ = kernels.multi_join(*given, np.ones(n, np.bool_), order, at, enough, *events)
        *slots, exp, ts = made.tolist()
        assert len(ts) <= enough
        for row, end, born in zip(zip(*slots, strict=True), exp, ts, strict=True):
            parts = [lives[i][s] for i, s in enumerate(row)]
            assert (born, end) == (max(p[0] for p in parts), min(p[1] for p in parts))
            found.append(row)
    assert sorted(found) == every(lives)
