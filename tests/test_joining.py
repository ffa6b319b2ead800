"""Rows of an open sub-window are one behind the other while they come, not when it closes."""

from __future__ import annotations

import pickle
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.state import joining
from dsms.state.batch import Batch, concat
from dsms.state.joining import LONG, MOVED, Column, Joining
from dsms.state.ring import Need, Ring
from tests.effort import examples

TYPES = {
    pa.int64(): lambda k: k,
    pa.float64(): lambda k: k / 3,
    pa.bool_(): lambda k: k % 3 == 0,
    pa.string(): lambda k: "é" * (k % 7),
    pa.binary(): lambda k: b"x" * (k % 5),
    pa.decimal128(38, 2): lambda k: Decimal(k) * 10**25 / 4,
    pa.null(): lambda k: None,
}


def batch(first: int, n: int, nulls: bool = False) -> Batch:
    """Rows of all types, cut out of longer arrays."""
    at = np.arange(first, first + n)
    numbers = range(first - 1, first + n + 1)
    cols = [
        pa.array([None if nulls and k % 4 == 0 else make(k) for k in numbers], type_)
        for type_, make in TYPES.items()
    ]
    return Batch(at, None, None, (at * 2,), tuple(c.slice(1, n) for c in cols))


def same(one: Batch, other: Batch) -> bool:
    for col in one.cols:
        col.validate(full=True)
    return (
        (one.ts == other.ts).all()
        and (one.ids[0] == other.ids[0]).all()
        and all(a.equals(b) for a, b in zip(one.cols, other.cols, strict=True))
    )


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 60), st.booleans(), st.booleans()), min_size=1, max_size=12),
    st.integers(1, 40),
)
def test_joined_rows_are_the_rows(parts: list[tuple[int, bool, bool]], most: int) -> None:
    """However they come, and whoever looks in between; what was handed out stays as it is."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("MUCH", 8), ("LEAST", 16), ("SHORT", 4)):
            patch.setattr(joining, name, value)
        one, held, n = Joining(), [], 0
        seen: list[tuple[Batch, Batch]] = []
        for size, nulls, looks in parts:
            held.append(batch(n, size, nulls))
            n += size
            before = concat(held)
            held = list(one.ahead(held, most))
            if looks:
                held = [one.joined(held)]
                seen.append((held[0], before))
            assert sum(map(len, held)) == n
        assert same(one.joined(held), concat(held))
        assert all(same(*both) for both in seen)


def test_no_call_moves_much_more_than_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[int] = []
    switch = Column._switch

    def counted(self: Column, least: int) -> None:
        moved.append(self.n - (self.moved if self.longer is not None else 0))
        switch(self, least)

    monkeypatch.setattr(Column, "_switch", counted)
    column = Column(np.empty(1000, np.int64))
    for k in range(0, 100_000, 50):
        column.add(np.arange(k, k + 50))
    assert (column.view == np.arange(100_000)).all()
    assert len(moved) > 10 and max(moved) <= MOVED * 50


def test_a_sub_window_of_a_million_rows_closes_without_a_copy() -> None:
    """What is left to join is what came last."""
    ring, frame = Ring(declared=10_000_000), LONG // 4
    ring.keep("q", Need(length=10_000_000))
    given = 0
    for first in range(0, 1_000_000, frame):
        at = np.arange(first, first + frame)
        ring.add(Batch(at, None, None, (at,), (pa.array(at),)))
        given += frame
        assert given < 2 * joining.MUCH or sum(map(len, ring.buffer[1:])) < LONG
    ring.move(20_000_000)
    (sub,) = ring.closed
    assert len(sub.rows) == given and sub.rows.cols[0].to_pylist() == sub.rows.ts.tolist()


def test_rows_that_are_there_already_are_joined_to_later_ones_bit_by_bit() -> None:
    """As after a restart, or ADD COLUMN."""
    held = [batch(0, 1)]
    held[0] = concat([batch(k, 1000) for k in range(0, 20 * LONG, 1000)])
    one, calls, n = Joining(), 0, len(held[0])
    while len(held) > 1 or not calls:
        held.append(batch(n, 1000))
        n += 1000
        held, before = one.gathered(held), one.done
        assert before <= (calls + 1) * MOVED * LONG
        calls += 1
    assert calls > 4 and (held[0].ts == np.arange(n)).all()


def _cut_finer(ring: Ring) -> int:
    ring.keep("p", Need(length=920, span=46))
    return 51


def _set_back(ring: Ring) -> int:
    ring.set_back(46)
    return 45


@pytest.mark.parametrize("after", [_cut_finer, _set_back])
def test_rows_that_are_put_together_anew_are_there_once(monkeypatch, after) -> None:
    """The first batch stays as it is; to it had been joined what lies elsewhere now."""
    for name, value in (("LONG", 2), ("MUCH", 16), ("LEAST", 64), ("SHORT", 4)):
        monkeypatch.setattr(joining, name, value)
    ring = Ring()
    ring.keep("q", Need(length=920, span=920))
    for start, stop in pairwise((0, *range(40, 53, 2))):
        ring.add(batch(start, stop - start))
    assert ring.joining.done == 48 and len(ring.buffer) == 7
    newest = after(ring)
    found = concat([s.rows for s in ring.subwindows()])
    assert found.ids[0].tolist() == [2 * n for n in range(52)] and ring.count == 52
    assert found.ts.tolist() == [min(n, newest) for n in range(52)]


def test_texts_that_no_column_holds_are_not_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: joining.Values, values: pa.Array) -> None:
        raise OverflowError

    held = [batch(0, joining.MUCH), batch(joining.MUCH, 10)]
    monkeypatch.setattr(joining.Values, "add", full)
    one = Joining()
    assert len(one.joined(held)) == joining.MUCH + 10 and one.first is None


def test_a_checkpoint_has_no_rows_twice() -> None:
    one = Joining()
    one.joined([batch(0, joining.MUCH), batch(joining.MUCH, 10)])
    assert one.first is not None
    again = pickle.loads(pickle.dumps(one))
    assert again.__getstate__() == {} and again.first is None and again.columns == []
