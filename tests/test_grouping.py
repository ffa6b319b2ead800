"""Codes of the groups of a one-time GROUP BY."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.oneshot.grouping import group_codes
from tests.effort import examples

INTS = st.integers(-3, 3) | st.sampled_from([-(2**63), 2**63 - 1, 70_000])


@given(st.lists(st.tuples(st.none() | INTS, st.sampled_from(["", "a", "ab", None]))), st.booleans())
@settings(max_examples=examples(200), deadline=None)
def test_groups_are_numbered_as_they_come(rows, both):
    rows = rows if both else [(a or 0, b) for a, b in rows]
    ints = pa.array([a for a, _ in rows], pa.int64())
    texts = pa.array([b for _, b in rows], pa.string())
    for keys, values in (([ints], [a for a, _ in rows]), ([ints, texts], rows)):
        seen: dict = {}
        codes, first = group_codes(keys, len(rows), lambda: None)
        assert codes.tolist() == [seen.setdefault(v, len(seen)) for v in values]
        assert first.tolist() == [values.index(v) for v in seen]


def test_no_keys_are_one_group():
    assert group_codes([], 0, lambda: None)[1].tolist() == [-1]
    codes, first = group_codes([], 3, lambda: None)
    assert (codes.tolist(), first.tolist()) == ([0, 0, 0], [0])
