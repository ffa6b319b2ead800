"""Every synopsis times every algebra it admits, through random lives, against recomputation from
the rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

from dsms.aggregates import ranks
from dsms.aggregates.parts import additive, counters, limbs
from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.parts.words import Codes
from dsms.aggregates.registry import algebra
from dsms.sql.expr import AggCall
from dsms.sql.types import INT, STRING
from dsms.synopses import interval, tape
from dsms.synopses.basic import Basic
from dsms.synopses.choose import choose
from dsms.synopses.interval import Interval
from dsms.synopses.landmark import Landmark, clusters
from dsms.synopses.running import Running
from tests.effort import examples
from tests.grouping import COL, call
from tests.synopsis_model import CALLS, Model, exact, lifted, spans_of, synopses, tame, value

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module", params=["roomy", "tight"])
def limits(request):
    """Tight: what is otherwise done now and then, for many rows, is done all the time."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "tight":
            patch.setattr(limbs, "CARRY_EVERY", 8)
            patch.setattr(additive, "KEPT", 0)
            patch.setattr(ranks, "MANY", 1)
            patch.setattr(tape, "LEAST", 2)
            patch.setattr(tape, "BLOCK", 6)
            patch.setattr(tape, "RUNS", 2)
            patch.setattr(interval, "PART", 2)
            patch.setattr(counters, "HEAVY", 4)
            patch.setattr(Codes, "crowded", lambda self, live: True)
        yield


def live(model: Model, rng: Random, draw) -> None:
    """A few steps of a life, and questions in between."""
    for _ in range(rng.randint(1, 6)):
        match rng.randrange(7):
            case 0:
                model.grow(rng.randint(1, 3))
            case 1:
                model.trim(rng.randint(0, model.next + 1))
            case 2:
                for name, synopsis in model.held.items():
                    if isinstance(synopsis, Landmark) and name != "landmark, of nothing":
                        synopsis.expect([rng.randint(1, 9)])
            case _:
                model.append(rng, rng.choice([1, 1, 2, 5, 13]), rng.choice([1, 3]), draw)
        model.check(spans_of(rng, model.first, model.next))


@pytest.mark.parametrize("family", CALLS)
@given(seed=st.integers(0, 2**32), wild=st.booleans())
@settings(max_examples=examples(12), deadline=None)
def test_synopses_answer_what_the_rows_say(limits, family, seed, wild):
    rng = Random(seed)
    wanted = rng.choice(CALLS[family])
    how = algebra(wanted)
    model = Model(wanted, how, {name: make() for name, make in synopses(how).items()})
    model.check([(0, 0)])
    live(model, rng, value if wild else tame)


SUMMARIES = {
    "distinct": AggCall("approx_count_distinct", (COL["s"],), INT, params=(11,)),
    "frequent": AggCall("frequent", (COL["s"],), STRING, params=(2,)),
    "ranges": AggCall("approx_histogram", (COL["f"],), STRING, params=(3, "linear")),
    "ranges of both": AggCall("approx_intersect", (COL["i"], COL["b"]), STRING, params=(3,)),
}


@pytest.mark.parametrize("name", SUMMARIES)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(8), deadline=None)
def test_summaries_of_other_kinds_are_kept_by_every_synopsis_alike(name, seed):
    rng, wanted = Random(seed), SUMMARIES[name]
    how = algebra(wanted)
    model = Model(wanted, how, {name: make() for name, make in synopses(how).items()})
    for _ in range(4):
        model.append(rng, rng.randint(1, 5), 3)
        model.trim(rng.randint(0, model.next))
        if rng.random() < 0.5:
            model.grow(1)
        spans = spans_of(rng, model.first, model.next)
        low, high = (np.array([s[k] for s in spans], np.int64) for k in range(2))
        seen = [exact(how.lower(s.probe(low, high))) for s in model.held.values()]
        assert all(s == seen[0] for s in seen)
        if name != "frequent":
            assert seen[0] == exact(how.lower(lifted(how, wanted, model.cells(spans))))


def test_a_million_groups_cost_what_occurs():
    """Sub-windows of two hundred rows each in a million groups: a basic interval synopsis keeps
    just these."""
    how = algebra(call("sum", "i"))
    groups, rng = 1_000_000, np.random.default_rng(5)
    synopsis, why = choose(how, [10], groups, 10, 3)
    assert isinstance(synopsis, Basic) and "occur" in why
    total = np.zeros(groups, np.int64)
    for k in range(6):
        group, number = rng.integers(0, groups, 200), rng.integers(0, 9, 200)
        synopsis.append(how.lift(CellRows(group, group, group, (pa.array(number),)), groups), 1)
        if k >= 2:
            np.add.at(total, group, number)
    assert synopsis.nbytes < 1 << 18
    answer = how.lower(synopsis.probe(np.array([2]), np.array([6])))
    assert (np.asarray(answer.fill_null(0)) == total).all()


def test_running_sums_do_not_remember_what_left():
    """NaN, infinity and 1e308 come and go; what stays is exact."""
    how = algebra(call("sum", "f"))
    synopsis = Running(how)
    values = [0.1, float("nan"), 1e308, 1e308, float("-inf"), 0.2, 5e-324, 0.3]
    column = pa.array(values)
    order = np.arange(8)
    synopsis.append(how.lift(CellRows(order, order, order, (column,)), 8), 8)
    low = np.array([0, 0, 2, 5, 6, 7, 0])
    high = np.array([1, 2, 4, 8, 7, 8, 8])
    assert exact(how.lower(synopsis.probe(low, high))) == [
        "0.1",
        "nan",
        "inf",
        "0.5",
        "5e-324",
        "0.3",
        "nan",
    ]
    synopsis.trim(5)
    assert exact(how.lower(synopsis.probe(np.array([0]), np.array([9])))) == ["0.5"]


def test_sums_that_leave_their_range_are_errors_only_in_the_answer():
    how = algebra(call("sum", "i"))
    synopsis, order = Running(how), np.arange(3)
    column = pa.array([2**63 - 1, 2**63 - 1, -(2**63 - 1)])
    synopsis.append(how.lift(CellRows(order, order, order, (column,)), 3), 3)
    assert how.lower(synopsis.probe(np.array([0]), np.array([3]))).to_pylist() == [2**63 - 1]
    with pytest.raises(Exception, match="DS706"):
        how.lower(synopsis.probe(np.array([0]), np.array([2])))


@pytest.mark.parametrize(
    ("wanted", "widths", "groups", "b", "together", "kind", "why"),
    [
        (call("sum", "f"), [5, 600], 10, 600, 1, Running, "subtractable"),
        (call("sum", "f"), [600], 10_000, 600, 1, Basic, "of 10000 groups"),
        (
            call("max", "f"),
            [600],
            1,
            600,
            64,
            Interval,
            "64 queries together are fewer than b / log2 b = 65.0",
        ),
        (
            call("max", "f"),
            [600],
            1,
            600,
            66,
            Basic,
            "66 queries together, at least b / log2 b = 65.0",
        ),
        (call("max", "f"), [100, 120, 130, 150], 1, 150, 4, Landmark, "100 to 150"),
        (call("max", "f"), [1, 10, 100, 150], 1, 150, 4, Interval, "fewer"),
        (call("max", "f"), [3], 1, 3, 1, Basic, "no window is longer than 3"),
        (call("median", "f"), [600], 1, 600, 900, Interval, "sorted arrays"),
        (call("count", "s", distinct=True), [60], 1, 60, 1, Interval, "fewer"),
        (AggCall("frequent", (COL["s"],), STRING, params=(2,)), [60], 1, 60, 20, Basic, "one scan"),
    ],
)
def test_the_choice_follows_the_rule(wanted, widths, groups, b, together, kind, why):
    synopsis, said = choose(algebra(wanted), widths, groups, b, together)
    assert type(synopsis) is kind and synopsis.groups == groups
    assert why in said


def test_widths_cluster_within_a_factor_of_two():
    assert clusters([]) == []
    assert clusters([0, 7, 10, 14, 15, 40, 7]) == [(7, 14), (15, 15), (40, 40)]


def test_costs_are_cells_combined():
    """B-INT combines at most 2 log W cells, whatever lies to the left; L-INT two where it knows the
    width."""
    how = algebra(call("max", "f"))
    interval, landmark = Interval(how), Landmark(how, [60, 90])
    order = np.arange(4096)
    interval.append(how.lift(CellRows(order, order, order, (pa.array(order * 1.0),)), 4096), 4096)
    rng = np.random.default_rng(2)
    for width in (1, 2, 3, 17, 500, 4000):
        low = rng.integers(0, 4096 - width + 1, 50)
        span, _, _ = interval.cut(low, low + width)
        assert np.bincount(span).max() <= interval.cost(width)
    assert (landmark.cost(75), landmark.cost(30)) == (2.0, 30.0)
    assert (Running(how).cost(9), Basic(how).cost(9)) == (2.0, 9.0)


# In a process of its own, where nothing else has compiled anything.  Kernels that follow events
# (`code` comes first) are no part of synopses.
LIVES = """
import sys
from random import Random
from dsms.synopses import warm
warm.ready()
from numba.core.dispatcher import Dispatcher
from dsms.aggregates.registry import algebra
from tests.synopsis_model import CALLS, Model, synopses, tame, value
from tests.test_synopses import live
def met():
    modules = [m for name, m in list(sys.modules.items()) if name.startswith(("dsms.synopses", "dsms.aggregates"))]
    kernels = [k for m in modules for k in vars(m).values() if isinstance(k, Dispatcher)]
    return {k: len(k.nopython_signatures) for k in kernels if k.py_func.__code__.co_varnames[0] != "code"}
ready = met()
for seed in range(60):
    rng = Random(seed)
    wanted = rng.choice(CALLS[rng.choice(list(CALLS))])
    how = algebra(wanted)
    live(Model(wanted, how, {name: make() for name, make in synopses(how).items()}), rng, value if seed % 2 else tame)
assert len(ready) > 20
print([k.__name__ for k, n in met().items() if n != ready.get(k)])
"""  # noqa: E501


@pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")
def test_nothing_is_compiled_after_the_warm_up():
    run = subprocess.run([sys.executable, "-c", LIVES], capture_output=True, text=True, cwd=ROOT)
    assert (run.stdout.strip(), run.stderr) == ("[]", "")
