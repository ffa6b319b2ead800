"""Comparisons with all rows of a subquery that are left as they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dsms.sql import logical as lp
from dsms.sql.expr import Call, Lit
from dsms.sql.types import INT
from tests.oracle import plans as p
from tests.test_rewrites import EXISTS, JOIN, WT, T, apply_named, at, both, compared, win

KEPT: dict[str, lp.SemiJoin] = {
    "a comparison by key": (replace(EXISTS, residual=both("gt", at(JOIN, 1), at(JOIN, 4)))),
    "two comparisons": (
        compared(both("gt", at(JOIN, 1), at(JOIN, 4)), both("gt", at(JOIN, 0), at(JOIN, 3)))
    ),
    "a comparison of one row": (
        compared(both("gt", at(JOIN, 1), at(JOIN, 3)), right=p.group(WT, (), p.agg(WT, "max", "b")))
    ),
    "a comparison with what can fail": (
        compared(both("gt", at(JOIN, 1), Call("div", (Lit(1, INT), at(JOIN, 4)), INT)))
    ),
    "a comparison with rows that stay": (compared(both("gt", at(JOIN, 1), at(JOIN, 4)), right=T)),
    "a comparison with INTERNAL windows": (
        compared(both("gt", at(JOIN, 1), at(JOIN, 4)), anti=True, right=win(T, internal=True))
    ),
}


@pytest.mark.parametrize("case", KEPT)
def test_it_stays(case: str) -> None:
    assert apply_named("compare_extremes", KEPT[case]) is KEPT[case]
