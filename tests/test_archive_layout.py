"""Sub-indices as Algorithm 1 of Golab 2006, §4.3 has them, what updates touch, and Theorem 4.1."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsms.errors import UsageError
from dsms.sql.types import ALWAYS, FOREVER
from dsms.storage.archive.choose import Load, choose
from dsms.storage.archive.layout import Layout

D = 2  # the steps of the thesis' figures: two minutes, lifetimes up to 16


def algorithm_1(
    g: int, e: int, steps: int, updates: int
) -> list[dict[int, tuple[set[int], set[int]]]]:
    """Algorithm 1 to the letter, in steps: after each update, the insertion and expiration steps of
    each sub-index.

    At the start the sub-indices have the last `steps` insertion steps and the next `steps`
    expiration steps; an update replaces the oldest of each."""
    subs: dict[int, tuple[set[int], set[int]]] = {n: (set(), set()) for n in range(g * e)}
    for i, j in itertools.product(range(steps // g), range(g)):
        for k in range(j * e, (j + 1) * e):
            subs[k][0].add(i * g + j - steps)
    for i, j in itertools.product(range(steps // e), range(e)):
        for k in range(j, g * e, e):
            subs[k][1].add(i * e + j)
    out = []
    for now in range(updates):
        for born, dies in subs.values():
            if now in dies:
                dies.remove(now)
                dies.add(now + steps)
            if now - steps in born:
                born.remove(now - steps)
                born.add(now)
        out.append({n: (set(born), set(dies)) for n, (born, dies) in subs.items()})
    return out


@pytest.mark.parametrize(
    ("g", "e", "steps"), [(2, 2, 8), (4, 4, 16), (2, 4, 8), (5, 5, 25), (3, 1, 9), (1, 4, 8)]
)
def test_the_layout_is_algorithm_1(g, e, steps):
    shape = Layout(g, e, D, steps * D)
    for now, state in enumerate(algorithm_1(g, e, steps, 3 * steps)):
        for sub, (born, dies) in state.items():
            assert {
                s for s in range(now - steps + 1, now + 1) if shape.generation(s * D) == sub // e
            } == born
            assert {
                s for s in range(now + 1, now + steps + 1) if shape.expiration(s * D) == sub % e
            } == dies


def test_figure_4_2():
    """The update at time 18 inserts into I1 and I2 and expires from I1 and I3; the next one I3, I4
    and I2, I4."""
    shape = Layout(2, 2, D, 16, origin=17)
    assert (shape.inserting(16, 18), shape.expiring(16, 18)) == ({0, 1}, {0, 2})
    assert (shape.inserting(18, 20), shape.expiring(18, 20)) == ({2, 3}, {1, 3})


def test_figure_4_1():
    """Partitioned chronologically, I4 is not accessed by the updates at 18, 20, 22 and 24, nor I1
    by those after."""
    shape = Layout(2, 2, D, 16, origin=17, order="chronological")
    assert [shape.touched(t - D, t) for t in range(18, 26, D)] == [(0, 1, 2)] * 4
    assert [shape.touched(t - D, t) for t in range(26, 34, D)] == [(1, 2, 3)] * 4


@pytest.mark.parametrize("order", ["round-robin", "chronological"])
@pytest.mark.parametrize(
    ("g", "e"), [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (2, 8), (9, 1), (1, 9)]
)
def test_an_update_of_one_step_touches_g_plus_e_minus_1_sub_indices(g, e, order):
    shape = Layout(g, e, D, 100, origin=7, order=order)
    for step in range(-60, 60):
        touched = shape.touched(7 + step * D - 1, 7 + step * D + D - 1)
        assert len(touched) == g + e - 1


@given(
    st.integers(1, 6),
    st.integers(1, 6),
    st.sampled_from(["round-robin", "chronological"]),
    st.integers(-1000, 1000),
    st.integers(0, 90),
    st.integers(-50, 50),
)
def test_an_update_touches_what_rows_of_its_time_come_to_or_leave(
    g, e, order, after, length, origin
):
    shape = Layout(g, e, 7, 60, origin, order)
    times = np.arange(after + 1, after + length + 1)
    grid = np.arange(after - 400, after + 400)
    born = {int(s) for t in times for s in np.unique(shape.sub(np.full(len(grid), t), grid))}
    dies = {int(s) for t in times for s in np.unique(shape.sub(grid, np.full(len(grid), t)))}
    assert set(shape.touched(after, after + length)) == born | dies


def test_the_first_update_may_touch_all_and_rows_kept_for_good_never_leave():
    assert Layout(3, 3, D, 16).touched(ALWAYS, 100) == tuple(range(9))
    assert Layout(4, 1, D, None).touched(99, 101) == (2,)
    shape = Layout(3, 3, D, 16, origin=-5)
    assert shape.expiration(FOREVER) == 0
    assert shape.expiration(np.array([FOREVER, -5, -3, 1])).tolist() == [0, 0, 1, 0]


def sizes(shape: Layout, p: int, now: int) -> np.ndarray:
    """Rows of each sub-index after step `now`: one unit for each pair of a step and a lifetime of
    up to p steps."""
    born = np.arange(now - p + 1, now + 1)
    ts, life = np.meshgrid(born, np.arange(1, p + 1))
    alive = ts + life > now
    return np.bincount(shape.sub(ts[alive] * D, (ts + life)[alive] * D), minlength=shape.count)


def variance(side: int, p: int, order) -> float:
    """The mean over time of the sum of squared differences from the mean size, as in appendix A."""
    shape = Layout(side, side, D, p * D, order=order)
    seen = [sizes(shape, p, now) for now in range(p, 3 * p)]
    assert {int(s.sum()) for s in seen} == {p * (p + 1) // 2}
    return float(np.mean([((s - s.mean()) ** 2).sum() for s in seen]))


@pytest.mark.parametrize(
    ("side", "p"), [(2, 4), (2, 8), (2, 40), (3, 6), (3, 36), (4, 8), (4, 36), (5, 10), (5, 60)]
)
def test_theorem_4_1(side, p):
    """Round-robin sub-indices differ less in size than chronological ones.

    Lemma A.1 is exact for n = 4 and too small beyond (it lets all sub-indices that grow or shrink
    do so at once); Lemma A.2 is too large (of its two states, the second has fewer rows than the
    first).  So the gap is wider than proven."""
    even, uneven = variance(side, p, "round-robin"), variance(side, p, "chronological")
    n, root = side * side, side
    chronological = (
        p**2 / (12 * root) - p**2 / (4 * n) + p**4 / (12 * n) - p**4 / (12 * n * root) + p**2 / 6
    )
    assert even < p**2 / 2 * (1 / 2 + 1 / (2 * n) + 1 / (n * root)) and even < uneven
    assert uneven == pytest.approx(chronological) if side == 2 else uneven > chronological


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"generations": 0}, "generations must lie in 1..256"),
        ({"expirations": 300}, "expirations must lie in 1..256"),
        ({"every": 0}, "updated every 0 us"),
        ({"span": None}, "kept for good"),
        ({"span": -1}, "kept for -1 us"),
        ({"order": "random"}, "order is round-robin or chronological"),
        ({"strategy": "lazy"}, "strategy is rebuild or no rebuild"),
    ],
)
def test_layouts_that_make_no_sense_are_refused(changes, what):
    with pytest.raises(UsageError, match=what) as caught:
        Layout(**{"generations": 2, "expirations": 2, "every": D, "span": 16, **changes})
    assert caught.value.code == "DS950"


GB = 1 << 30
DAY = 86_400_000_000


@pytest.mark.parametrize(
    ("load", "shape"),
    [
        (Load(GB // 2, 0.1), "4x4, round-robin, no rebuild"),
        (Load(GB // 2, 100), "2x2, round-robin, rebuild"),
        (Load(50 * GB, 0.1), "3x3, round-robin, no rebuild"),
        (Load(50 * GB, 100), "2x2, round-robin, no rebuild"),
    ],
)
def test_layouts_are_chosen_as_the_thesis_recommends(load, shape):
    """Golab 2006, §4.4.6: small or large windows, few or many queries."""
    assert str(choose(load, DAY // 24, 30 * DAY)) == shape


def test_a_chosen_layout_has_two_steps_in_each_partition_and_keeps_for_good_in_one():
    for steps in range(1, 40):
        shape = choose(Load(GB, 0.1), DAY, steps * DAY)
        assert shape.generations == shape.expirations == max(1, min(4, steps // 2))
    assert str(choose(Load(GB), DAY, None)) == "4x1, round-robin, no rebuild"
