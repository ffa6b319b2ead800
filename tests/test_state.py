"""State structures against brute force: interning, row stores, expiry structures, live inputs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.plan.physical import State
from dsms.sql.types import FLOAT, FOREVER, INT, STRING, Field
from dsms.state.batch import Batch
from dsms.state.intern import Intern
from dsms.state.live import LiveInput
from tests.effort import examples

SCHEMA = (Field("a", INT), Field("b", STRING), Field("c", FLOAT))


@given(
    st.lists(
        st.lists(
            st.tuples(st.none() | st.integers(-3, 3), st.none() | st.sampled_from("abc")),
            max_size=8,
        )
    )
)
@settings(max_examples=examples(60), deadline=None)
def test_intern_gives_equal_keys_equal_codes(batches):
    intern, seen = Intern(2), {}
    for rows in batches:
        cols = [
            pa.array([r[0] for r in rows], pa.int64()),
            pa.array([r[1] for r in rows], pa.string()),
        ]
        for row, code in zip(rows, intern.codes(cols, len(rows)).tolist(), strict=True):
            assert seen.setdefault(row, code) == code
        assert intern.lookup(cols, len(rows)).tolist() == [seen[r] for r in rows]
    assert len(set(seen.values())) == len(seen) == intern.size


def test_intern_takes_zeros_and_nans_as_equal_and_keeps_null_apart():
    intern = Intern(1)
    col = pa.array([0.0, -0.0, float("nan"), -float("nan"), None, 0.0])
    codes = intern.codes([col], 6).tolist()
    assert (
        codes[0] == codes[1] == codes[5]
        and codes[2] == codes[3]
        and len({codes[0], codes[2], codes[4]}) == 3
    )


def test_purged_codes_are_handed_out_again():
    intern = Intern(1)
    first = intern.codes([pa.array([f"k{i}" for i in range(5000)])], 5000)
    live = np.zeros(intern.capacity, bool)
    live[first[:10]] = True
    intern.purge(live)
    assert intern.lookup([pa.array(["k3", "k20"])], 2).tolist() == [first[3], -1]
    again = intern.codes([pa.array([f"n{i}" for i in range(4990)])], 4990)
    assert intern.capacity == 5000 and not set(again.tolist()) & set(first[:10].tolist())


def _batch(rows):
    """rows: (ts, exp, sign, id, a)."""
    cols = (
        pa.array([r[4] for r in rows], pa.int64()),
        pa.array([f"s{r[4]}" for r in rows], pa.string()),
        pa.array([None if r[4] == 1 else r[4] / 2 for r in rows], pa.float64()),
    )
    ints = [np.array([r[k] for r in rows], np.int64) for k in range(4)]
    return Batch(ints[0], ints[1], ints[2].astype(np.int8), (ints[3],), cols)


@st.composite
def _histories(draw, fifo):
    """Steps of rows in batch order, with deletions of rows alive at that instant."""
    now, ident, alive, steps = 0, 0, {}, []
    for _ in range(draw(st.integers(1, 6))):
        rows = []
        for _ in range(draw(st.integers(0, 6))):
            now += draw(st.integers(0, 3))
            alive = {i: r for i, r in alive.items() if r[1] > now}
            if (
                alive
                and not fifo
                and draw(st.booleans())
                and not any(r[0] == now and r[2] > 0 for r in rows)
            ):
                i = draw(st.sampled_from(sorted(alive)))
                if alive[i][0] < now:
                    rows.append((now, alive[i][1], -1, i, alive.pop(i)[4]))
                    continue
            exp = now + 5 if fifo else draw(st.sampled_from([now + 1, now + 4, now + 50, FOREVER]))
            alive[ident] = (now, exp, 1, ident, draw(st.integers(0, 3)))
            rows.append(alive[ident])
            ident += 1
        steps.append((rows, now))
        now += draw(st.integers(1, 8))
    return steps


@pytest.mark.parametrize(
    "kind,eager", [("fifo", False), ("calendar", False), ("list", False), ("list", True)]
)
@given(data=st.data())
@settings(max_examples=examples(60), deadline=None)
def test_every_structure_tells_the_same_story(kind, eager, data):
    steps = data.draw(_histories(kind == "fifo"))
    live = LiveInput(SCHEMA, 1, State(kind, 2 if kind == "calendar" else 0), True, None, eager)
    story, expected = [], []
    for rows, upto in steps:
        batch = _batch(rows)
        _, spoken = live.arrive(batch)
        events = live.depart(batch, spoken, upto)
        cols = live.store.columns(events.slot)
        ids = live.store.ids[0].view[events.slot]
        told = list(
            zip(
                events.at.tolist(),
                events.sign.tolist(),
                ids.tolist(),
                cols[1].to_pylist(),
                strict=True,
            )
        )
        assert [e[:2] for e in told] == sorted(e[:2] for e in told)
        story += told
        live.settle()
    last = steps[-1][1]
    deaths = {}
    for rows, _ in steps:
        for ts, exp, sign, i, a in rows:
            if sign > 0:
                expected.append((ts, 1, i, f"s{a}"))
                deaths[i] = (exp, a)
            else:
                deaths[i] = (ts, a)
    expected += [(at, -1, i, f"s{a}") for i, (at, a) in deaths.items() if at <= last]
    assert sorted(story) == sorted(expected)


def test_state_of_a_sliding_window_stays_bounded():
    live, sizes = LiveInput(SCHEMA, 1, State("fifo"), False), []
    for step in range(200):
        ts = np.arange(step * 500, (step + 1) * 500, dtype=np.int64)
        cols = (pa.array(ts), pa.array([f"v{t}" for t in ts.tolist()]), pa.array(ts * 1.0))
        batch = Batch(ts, ts + 1000, None, (ts,), cols)
        live.depart(batch, live.arrive(batch)[1], int(ts[-1]))
        live.settle()
        sizes.append(live.nbytes)
    assert live.store.live == 1000 and max(sizes[100:]) <= 2 * max(sizes[20:100])
