"""Indices over windows against the rows themselves: of one sub-window, and of a ring of them."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.sql.types import FOREVER
from dsms.state import counts, stores
from dsms.state.batch import Batch, concat
from dsms.state.counts import WindowCounts
from dsms.state.index import WindowIndex
from dsms.state.probing import column_at, compared, places_at
from dsms.state.ring import Need, Ring
from dsms.state.stores import BUCKETS, Buckets, buckets_of
from tests.effort import examples

# ---------------------------------------------------------------- one sub-window

COLUMNS = {
    "ints": pa.array([5, None, 7, 5, -(2**63), 7, 7], pa.int64()),
    "texts": pa.array(["b", "", None, "a", "b", "ab" * 50, ""], pa.string()),
    "bytes": pa.array([b"b", b"", None, b"a", b"b", b"\x00", b""], pa.binary()),
    "decimals": pa.array([Decimal("1.50"), None, Decimal("-1.50"), Decimal("1.50")]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_buckets_hold_each_row_once_and_equal_values_together(name):
    whole = COLUMNS[name]
    for col in (whole, whole.slice(2), whole.slice(1, 2), whole.slice(0, 0)):
        store = Buckets.of(col, np.full(BUCKETS, -1, np.int32))
        rows = [store.rows(k).tolist() for k in range(len(store.present))]
        assert sorted(place for bucket in rows for place in bucket) == list(range(len(col)))
        assert all(r == sorted(r) for r in rows)
        for value in col.drop_null():
            bucket = buckets_of(pa.array([value.as_py()], col.type))[0]
            held = rows[store.present.tolist().index(bucket)]
            assert {k for k, v in enumerate(col.to_pylist()) if v == value.as_py()} <= set(held)


def test_places_of_a_large_sub_window_take_more_than_16_bits():
    col = pa.array(np.arange(stores.NARROW + 10) % 1000)
    store = Buckets.of(col, np.full(BUCKETS, -1, np.int32))
    found = buckets_of(col)
    assert store.places.dtype == np.int32
    assert store.places.tolist() == np.argsort(found, kind="stable").tolist()
    assert store.present.tolist() == np.unique(found).tolist()
    assert np.diff(store.starts).tolist() == np.unique(found, return_counts=True)[1].tolist()


@pytest.mark.parametrize("name", ["ints", "texts", "bytes"])
def test_rows_of_many_sub_windows_are_compared_in_one_go(name):
    whole = COLUMNS[name].drop_null()
    for cols in ([whole], [whole.slice(1, 3), whole.slice(2), whole.slice(0, 0)]):
        for n in (1, 2, len(whole)):
            values = whole.slice(0, n)
            spans = [(np.arange(len(c), dtype=t), c) for c in cols for t in PLACES]
            where = np.array([(*places_at(p), *column_at(c)) for p, c in spans], np.int64)
            ends = np.array([len(c) for _, c in spans])
            span, place = compared(where, np.arange(len(spans)), ends * 0, ends, values)
            expected = [
                (k, at)
                for k, (_, col) in enumerate(spans)
                for at, value in enumerate(col.to_pylist())
                if value in values.to_pylist()
            ]
            assert list(zip(span.tolist(), place.tolist(), strict=True)) == expected


PLACES = (np.uint16, np.int32)


# ---------------------------------------------------------------- a ring


class Held:
    """A ring of rows (k, ts), beside an index of it that may lag behind."""

    def __init__(self) -> None:
        self.ring, self.index, self.rows = Ring(), WindowIndex(0), 0
        self.counts = WindowCounts(0)
        self.ring.keep("x", Need(100, span=10))

    def add(self, keys: list[int | None], ts: list[int]) -> None:
        n = len(keys)
        ids = np.arange(self.rows, self.rows + n)
        self.rows += n
        cols = (pa.array(keys, pa.int64()),)
        self.ring.add(Batch(np.array(ts, np.int64), None, None, (ids,), cols))

    def check(self, most: int) -> None:
        done = self.index.follow(self.ring, most)
        parts = self.index.parts
        assert done == (len(parts) == len(self.ring.closed))
        assert [p.number for p in parts] == [s.number for s in self.ring.closed][: len(parts)]
        for values in ([3], [1, 4, 77]):
            found = self.index.find(pa.array(values))
            for sub in self.ring.closed:
                if self.index.covers(sub):
                    keys = sub.rows.cols[0].to_pylist()
                    expected = [k for k, key in enumerate(keys) if key in values]
                    assert found.rows(sub).tolist() == expected
                    (rows,) = [p for _, p in found.among([sub])] or [np.empty(0)]
                    assert rows.tolist() == expected
                    assert not expected or sub.number in found.places
            self.check_together(values)

    def check_together(self, values: list[int]) -> None:
        """Runs of sub-windows that the index knows, whose rows are taken in one go."""
        found, known = (
            self.index.find(pa.array(values)),
            list(map(self.index.covers, self.ring.closed)),
        )
        n = known.index(False) if False in known else len(known)
        for subs in (list(self.ring.closed)[:n], list(self.ring.closed)[n // 2 : n]):
            nulls = any(s.rows.cols[0].null_count for s in subs)
            rows = found.taken(subs, {0}) if subs else None
            assert (rows is None) == (nulls or not subs)
            if rows is not None:
                whole = concat([s.rows for s in subs])
                at = [k for k, key in enumerate(whole.cols[0].to_pylist()) if key in values]
                expected = whole.take(np.array(at, np.int64))
                assert rows.ts.tolist() == expected.ts.tolist()
                assert rows.ids[0].tolist() == expected.ids[0].tolist()
                assert rows.cols[0].equals(expected.cols[0])
                assert found.taken(subs, ()).cols[0].null_count == len(at)  # type: ignore[union-attr]

    def check_counts(self, most: int, since: int, upto: int) -> None:
        done = self.counts.follow(self.ring, most)
        assert not done or all(map(self.counts.covers, self.ring.closed))
        values, found = self.counts.counted(list(self.ring.subwindows()), since, upto)
        rows = [k for b in self.ring.rows(since, upto) for k in b.cols[0].to_pylist()]
        assert dict(zip(values.to_pylist(), found.tolist(), strict=True)) == Counter(rows)


def shaken(pick: Random, ring: Ring, now: int) -> int | None:
    """What may happen to a ring besides rows: its clock then; None: rows are to come."""
    match pick.randint(0, 9):
        case 0:
            ring.keep("y", Need(pick.choice([50, 100, 200]), span=pick.choice([4, 5, 6])))
        case 1:
            ring.release("y")
        case 2:
            ring.drop()
        case 3:
            now = max(now - pick.randint(0, 30), 0)
            ring.set_back(now)
        case 4:
            now += pick.randint(0, 60)
            ring.move(now)
            now += 1  # rows to come are younger than what is complete
        case 5:
            ring.let_go(now - pick.randint(0, 80))
        case _:
            return None
    return now


@pytest.fixture(scope="module")
def forgetful():
    """Values without rows go at once."""
    before, counts.SPARE = counts.SPARE, 0
    yield
    counts.SPARE = before


@given(st.integers(0, 2**32))
@settings(max_examples=examples(300), deadline=None)
def test_an_index_finds_and_counts_what_is_in_the_ring(forgetful, seed):
    pick, held, now = Random(seed), Held(), 0
    for _ in range(pick.randint(1, 25)):
        at = shaken(pick, held.ring, now)
        if at is None:
            n = pick.randint(1, 12)
            ts = sorted(pick.randint(now, now + 15) for _ in range(n))
            keys = [pick.choice([None, *range(6), now]) for _ in range(n)]
            held.add(keys, ts)
            now = ts[-1]
        else:
            now = at
        held.check(pick.choice([0, 3, FOREVER]))
        if pick.randint(0, 1):
            since = now - pick.randint(0, 120)
            held.check_counts(pick.choice([0, 3, FOREVER]), since, now - pick.choice([0, 0, 7]))


def test_values_without_rows_are_forgotten_once_they_are_as_many_as_those_with(forgetful):
    held, most = Held(), 0
    for k in range(500):
        held.add([k, k % 3], [k, k])
        held.ring.drop()
        held.check_counts(FOREVER, k - 50, k)
        most = max(most, held.counts.intern.size)
    alive = 3 + sum(len(sub.rows) // 2 for sub in held.ring.subwindows())
    assert alive < most <= 2 * alive + 3
    assert len(held.counts.total) <= most + len(held.ring.closed)


def test_a_probe_passes_over_sub_windows_without_the_value():
    held = Held()
    for k in range(100):
        held.add([k % 50], [k])
    held.check(FOREVER)
    assert sorted(held.index.find(pa.array([7])).places) == [0, 5]
