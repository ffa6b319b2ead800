"""How hard the tests try: a little (`make test`), all there is (`--all`), or many times that
(`--fuzz N`).

A little leaves nothing out but repetitions: fewer random examples, fewer crashes, some of many like
cases.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

# what DSMS_TEST_EFFORT says for `make test`; 1: all; more: so many times the random examples
QUICK = 0
SLOW = pytest.mark.slow


def effort() -> int:
    return int(os.environ.get("DSMS_TEST_EFFORT", "0"))


def examples(count: int) -> int:
    """How many examples a property test tries, whose whole number is `count`: of that a
    fifteenth, or all."""
    return count * effort() if effort() else min(count, max(2, count // 15))


def sampled(cases: Iterable[Any], every: int) -> list[Any]:
    """Cases of a test, all but each n-th of which are slow."""
    return [case if k % every == 0 else _slow(case) for k, case in enumerate(cases)]


def _slow(case: Any) -> Any:
    # a pytest.param
    if isinstance(case, tuple) and hasattr(case, "values") and hasattr(case, "marks"):
        return pytest.param(*case.values, marks=(*case.marks, SLOW), id=case.id)
    values: Sequence[Any] = case if isinstance(case, tuple | list) else (case,)
    return pytest.param(*values, marks=SLOW)
