"""Rows that an index finds in many sub-windows, compared and taken in one go."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from dsms.state.batch import Batch
from dsms.state.index import LIKELY, WindowIndex
from dsms.state.probing import compared_all
from dsms.state.ring import Ring, SubWindow
from tests.test_window_index_rows import COLUMNS


@pytest.mark.parametrize("name", ["ints", "texts", "bytes"])
def test_a_whole_column_is_compared(name):
    whole = COLUMNS[name].drop_null()
    for col in (whole, whole.slice(1, 3), whole.slice(2), whole.slice(0, 0)):
        for n in (1, 2, len(whole)):
            values = whole.slice(0, n).to_pylist()
            expected = [k for k, v in enumerate(col.to_pylist()) if v in values]
            assert compared_all(col, whole.slice(0, n)).tolist() == expected


def test_columns_of_all_types_are_taken_together():
    """From arrays that are slices, in sub-windows of which some have NULLs there; and from those
    that have taken the place of others."""
    rng, n = np.random.default_rng(1), 40
    cols = [
        pa.array(rng.integers(0, 9, n)),
        pa.array(rng.random(n)),
        pa.array([f"{'x' * (k % 5)}é{k}" for k in range(n)]),
        pa.array([bytes([k]) * (k % 3) for k in range(n)]),
        pa.array([None if k > 30 else k for k in range(n)]),
        pa.array([k % 2 == 0 for k in range(n)]),
        pa.array([Decimal(k) for k in range(n)]),
        pa.array([""] * n),
    ]
    ts = np.arange(n)
    whole = Batch(ts, None, None, (ts + 100,), tuple(cols))
    ring, index = Ring(), WindowIndex(0)
    ring.closed.extend(SubWindow(k, whole.slice(10 * k, 10 * k + 10)) for k in range(4))
    index.follow(ring, n)
    for _ in range(2):
        for values in ([3], [1, 2, 8], [77]):
            found = index.find(pa.array(values))
            at = np.flatnonzero(np.isin(np.asarray(cols[0]), values))
            rows, expected = found.taken(list(ring.closed), range(len(cols))), whole.take(at)
            assert rows is not None and rows.ids[0].tolist() == expected.ids[0].tolist()
            assert [c.to_pylist() for c in rows.cols] == [c.to_pylist() for c in expected.cols]
            assert [c.type for c in rows.cols] == [c.type for c in cols]
        copy = SubWindow(1, whole.take(np.arange(10, 20)))
        ring.closed[1] = copy
        assert index.covers(copy)


def test_a_value_that_is_in_very_many_sub_windows_is_found_in_all():
    ring, index, n = Ring(), WindowIndex(0), LIKELY + 3
    one = pa.array([5])
    for k in range(n):
        at = np.array([k])
        ring.closed.append(SubWindow(k, Batch(at, None, None, (at,), (one,))))
    index.follow(ring, n)
    found = index.find(one)
    assert found.count == n == len(found.taken(list(ring.closed), {0}) or ())
