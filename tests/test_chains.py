"""Tables that grow a bucket at a time, and arrays that become longer where they lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.aggregates.parts.valued import Valued, enter, find, leave
from dsms.state import lengthening
from dsms.state.batch import Batch
from dsms.state.chains import END, Chains
from dsms.state.ids import IdIndex
from dsms.state.intern import Intern
from dsms.state.lengthening import FROM, grown
from dsms.state.vec import Vec, Vec2
from dsms.storage.frozen import freeze, thaw
from tests.effort import examples

PLACES = FROM // 4  # 2 * FROM bytes


def _again(thing):
    """What a checkpoint makes of it."""
    return thaw(b"".join(map(bytes, freeze(thing, {}))), {}, lambda ref: ref, Path("here"))


def _lengths(chains: Chains) -> list[int]:
    found = []
    for item in chains.head[: chains.size[0]].tolist():
        found.append(0)
        while item >= 0:
            found[-1] += 1
            item = chains.link[item, 0]
    return found


def test_buckets_come_with_the_keys_and_not_all_at_once() -> None:
    intern, first = Intern(1), 0
    for stop in range(700, 12_000, 700):
        intern.codes([pa.array(np.arange(first, stop) * 1000)], stop - first)
        chains = intern.chains
        assert chains.size.tolist() == [max(1024, 2 * stop), stop]
        lengths = _lengths(chains)
        assert sum(lengths) == stop and max(lengths) < 12
        assert intern.lookup([pa.array([0, (stop - 1) * 1000, 1])], 3).tolist() == [0, stop - 1, -1]
        first = stop


@given(st.lists(st.lists(st.integers(0, 400), max_size=300), max_size=8), st.booleans())
@settings(max_examples=examples(40), deadline=None)
def test_codes_outlive_purges_and_checkpoints(batches, text):
    intern, known = Intern(1), {}
    for k, batch in enumerate(batches):
        values = [f"value {v}" if text else v for v in batch]
        col = pa.array(values, pa.string() if text else pa.int64())
        codes = intern.codes([col], len(values)).tolist()
        assert all(known.setdefault(v, c) == c for v, c in zip(values, codes, strict=True))
        assert len(set(known.values())) == len(known) == intern.size
        if k % 2:
            known = {v: c for v, c in known.items() if c % 3}
            live = np.zeros(intern.capacity, np.bool_)
            live[list(known.values())] = True
            intern.purge(live)
        if k % 3:
            intern = _again(intern)
        assert sum(_lengths(intern.chains)) == len(known)


def test_a_state_that_lacks_keys_is_refused() -> None:
    intern = Intern(1)
    intern.codes([pa.array([1, 2, 3])], 3)
    state = intern.__getstate__()
    with pytest.raises(ValueError, match="keys are missing"):
        Intern.__new__(Intern).__setstate__({**state, "known": state["known"][:2]})


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), max_size=400))
@settings(max_examples=examples(40), deadline=None)
def test_rows_are_found_by_their_ids(moves):
    """An id that is there leaves, in one of three ways; one that is not there comes."""
    index, store, where = IdIndex(), np.empty(len(moves), np.int64), {}
    index.rebuild((store,), np.empty(0, np.int64), 0)
    n = 0
    for ident, how in moves:
        gone = ident in where
        if gone and how == 1:
            index.remove((store[:n],), np.array([where.pop(ident)]))
            continue
        if not gone:
            store[n] = ident
            n += 1
        sign = np.array([-1 if gone else 1], np.int8)
        zero = np.zeros(1, np.int64)
        batch = Batch(zero, zero, sign, (np.array([ident]),), ())
        (slot,) = index.follow((store[:n],), np.ones(n, np.int64), batch, n - 1).tolist()
        assert slot == (where.pop(ident) if gone else n - 1)
        if not gone:
            where[ident] = slot
        if how == 2:
            index = _again(index)
            assert not index.made
            index.rebuild((store[:n],), np.array(sorted(where.values()), np.int64), n)
        assert sum(_lengths(index.chains)) == len(where) == index.chains.size[1]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.booleans()), max_size=400))
@settings(max_examples=examples(40), deadline=None)
def test_values_of_groups_are_counted(moves):
    values, counted, most = Valued(), {}, 0
    for k, (g, w, again) in enumerate(moves):
        values.reserve(1)
        at = int(find(*values.kernel[:4], g, w, 7))
        assert (at == END) == ((g, w) not in counted)
        if at == END:
            at = int(enter(*values.kernel, g, w, 7))
            values.rows[at, 3] = counted[g, w] = k + 1
        else:
            assert values.rows[at].tolist() == [g, w, 7, counted.pop((g, w))]
            leave(*values.kernel, at)
        most = max(most, len(counted))
        if again:
            values, most = _again(values), len(counted)
        assert values.state[0] == most  # rows that are spare are taken first
        assert sorted(values.words.tolist()) == sorted(w for _, w in counted)
        assert sum(_lengths(values.chains)) == len(counted)


# ---------------------------------------------------------------- arrays


@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("fill", [0, -1, None])
def test_a_long_array_becomes_longer_where_it_lies(shape, fill) -> None:
    array = np.arange(300 * int(np.prod(shape)), dtype=np.int64).reshape(-1, *shape)
    before = array.copy()
    long = grown(array, PLACES, fill)
    longer = grown(long, len(long) + 1, fill)
    assert len(long) < len(longer) <= len(long) + 1 + lengthening.STEP
    assert not np.shares_memory(array, long)
    assert (longer[:300] == before).all()
    if fill is not None:
        assert (longer[300:] == fill).all()
    if lengthening._are_free():
        assert np.shares_memory(long, longer)


def test_only_the_whole_of_an_array_is_made_longer_where_it_lies() -> None:
    long = grown(np.zeros(10, np.int64), PLACES)
    part = grown(long[:-5], len(long) + 9, 7)
    assert not np.shares_memory(part, long)
    longer = grown(long, len(long) + 1)
    assert not np.shares_memory(grown(long, len(long) + 1), longer)  # these are taken now
    assert grown(longer, 5) is longer


def test_addresses_are_given_back() -> None:
    before = lengthening._taken
    arrays = [grown(np.zeros(10, np.int64), PLACES) for _ in range(3)]
    taken = lengthening._taken
    assert taken - before in (0, 3 * lengthening.RANGE)
    del arrays
    assert lengthening._taken == before


@pytest.mark.parametrize("how", ["no addresses", "refused", "not there"])
def test_without_addresses_arrays_are_copied(how, monkeypatch) -> None:
    if how == "no addresses":
        monkeypatch.setattr(lengthening, "RANGES", 0)
    elif how == "refused":
        monkeypatch.setattr(lengthening, "RANGE", 1 << 60)
        monkeypatch.setattr(lengthening, "RANGES", 1 << 62)
    else:
        monkeypatch.setattr(lengthening, "_overcommit", [True])
    long = grown(np.arange(10), PLACES, -1)
    longer = grown(long, len(long) + 1, -1)
    assert longer[:11].tolist() == [*range(10), -1] and longer[-1] == -1
    assert not np.shares_memory(long, longer)


def test_vectors_grow_like_that() -> None:
    for kind in (Vec, Vec2):
        vec = kind()
        for k in range(4):
            vec.extend(np.full(PLACES // 3, k, np.int64))
        column = vec.view if kind is Vec else vec.view[:, 0]
        assert column.tolist() == np.repeat(np.arange(4), PLACES // 3).tolist()
        vec.keep(np.arange(0, vec.n, 100_000))
        assert vec.nbytes < FROM
