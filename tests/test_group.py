"""GROUP BY against recomputation at every instant: all input patterns, state structures and batch
cuts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.errors import QueryError
from dsms.operators import group_extreme, pieces
from dsms.plan.physical import State
from dsms.sql.types import ALWAYS, FOREVER
from dsms.state.batch import Batch, concat
from tests.effort import examples, thinned
from tests.grouping import (
    COL,
    SCHEMA,
    STATES,
    Logged,
    batch_of,
    call,
    check,
    events,
    exact,
    getter,
    histories,
    node_of,
    operator,
    rows_of,
    run,
    steps,
)

BASIC = [
    call("count_star"),
    call("count", "i"),
    call("sum", "d"),
    call("min", "f"),
    call("max", "s"),
]
KEYS = {"none": (), "int": ("k",), "text": ("s",), "two": ("kf", "s")}


@thinned()
@pytest.mark.parametrize("pattern", STATES)
@pytest.mark.parametrize("keys", KEYS)
@given(data=st.data())
@settings(max_examples=examples(10))
def test_answers_are_those_of_recomputation(pattern, keys, data):
    node = node_of([COL[k] for k in KEYS[keys]], BASIC)
    log = data.draw(histories(pattern, ("k", "s", "i", "d", "f", "kf")))
    cuts = data.draw(st.lists(st.integers(-8, 200), max_size=8))
    check(node, pattern, log, cuts)


def big_batch(ts, k, exp=None, text=False, sign=None, ids=None):
    """Rows with keys `k` (also as text), arrival numbers as they stand, and f = k / 8."""
    n = len(ts)
    cols = [pa.nulls(n, f.type.arrow) for f in SCHEMA]
    cols[COL["k"].index], cols[COL["f"].index] = pa.array(k), pa.array(k / 8)
    if text:
        cols[COL["s"].index] = pa.array([f"key {x}" for x in k.tolist()])
    ids = np.arange(n, dtype=np.int64) if ids is None else ids
    return Batch(ts, exp, sign, (np.zeros(n, np.int64), ids), tuple(cols))


def _logged(n, seed):
    """Rows whose deaths are foretold or not: (batch with exp only, batch with every death
    announced)."""
    rng = np.random.default_rng(seed)
    ts = np.sort(rng.integers(0, n // 2, n))
    exp = ts + 400
    k = rng.integers(0, 300, n)
    told = big_batch(ts, k, exp)
    at = np.concatenate([ts, exp])
    sign = np.repeat(np.array([1, -1], np.int8), n)
    order = np.lexsort((sign, at))
    who = np.tile(np.arange(n), 2)[order]
    return told, big_batch(at[order], k[who], None, False, sign[order], who.astype(np.int64))


AGGS = [
    call("count_star"),
    call("sum", "f"),
    call("min", "f"),
    call("median", "f"),
    call("count", "f", distinct=True),
]


@pytest.mark.parametrize("keys", [(), ("k",)])
def test_many_rows_tell_the_same_story_under_every_structure_and_cut(keys):
    told, announced = _logged(20_000, 7)
    node, answers = node_of([COL[k] for k in keys], AGGS), []
    upto = int(announced.ts[-1])
    for rows, state, strict in [
        (told, State("fifo"), False),
        (told, State("calendar", 16), False),
        (announced, State("hash"), True),
    ]:
        for step in (len(rows), 777):
            op, out, start = operator(node, state, strict), [], 0
            while start < len(rows):
                stop = min(len(rows), start + step)
                stop = int(np.searchsorted(rows.ts, rows.ts[stop - 1], side="right"))
                out.append(op.step([rows.slice(start, stop)], int(rows.ts[stop - 1])))
                start = stop
            out.append(op.step([rows.slice(0, 0)], upto))
            answers.append(exact(rows_of(concat([b for b in out if len(b)]))))
            assert op.live() == 0
    assert len(answers[0]) > 20_000
    assert all(a == answers[0] for a in answers)


@pytest.mark.parametrize("kind", ["fifo", "calendar"])
def test_state_is_flat_with_ever_new_keys(kind):
    node = node_of(
        [COL["k"], COL["s"]],
        [call("max", "s"), call("sum", "f"), call("count", "s", distinct=True)],
    )
    op, sizes = operator(node, State(kind), False), []
    for step in range(150):
        k = np.arange(step * 200, (step + 1) * 200, dtype=np.int64)
        op.step([big_batch(k, k, k + 500, text=True)], int(k[-1]))
        sizes.append(op.nbytes())
    assert op.live() == 500
    assert max(sizes[75:]) <= 1.3 * max(sizes[20:75])


def test_a_million_groups():
    op = operator(node_of([COL["k"]], [call("count_star"), call("max", "f")]), State("fifo"), False)
    for start in range(0, 1_000_000, 100_000):
        k = np.arange(start, start + 100_000, dtype=np.int64)
        assert (
            len(op.step([big_batch(k // 1000, k, k // 1000 + 10_000)], int(k[-1]) // 1000))
            == 100_000
        )
    assert op.feed.groups.alive == 1_000_000
    assert len(op.step([big_batch(k[:0], k[:0], k[:0])], 10_500)) == 501_000
    again = op.step(
        [big_batch(k[:1] * 0 + 10_600, np.array([999_999]), k[:1] * 0 + 20_000)], 10_600
    )
    assert op.feed.groups.alive == 399_000 and len(again) == 100_002


def test_a_sum_that_overflows_stops_the_query_but_not_its_running_total():
    node = node_of([], [call("sum", "i")])
    big = tuple(2**63 - 1 if f.name == "i" else None for f in SCHEMA)
    low = tuple(-5 if f.name == "i" else None for f in SCHEMA)
    log = [Logged(0, FOREVER, FOREVER, (0, n), v) for n, v in enumerate([big, big, low, big, low])]
    fine = [
        *log[:1],
        Logged(0, FOREVER, FOREVER, (0, 9), tuple(-(2**63) if v else None for v in big)),
        log[0],
    ]
    answer = run(operator(node, State("grow"), False), events(fine, "mon", 9), [], 9, False)
    assert answer[-1][3] == (2**63 - 2,)
    with pytest.raises(QueryError, match="SUM left the range of INT") as error:
        run(operator(node, State("grow"), False), events(log, "mon", 9), [], 9, False)
    assert error.value.code == "DS706" and "DECIMAL" in (error.value.hint or "")


def test_the_empty_answer_of_a_global_aggregate_is_there_before_any_instant():
    op = operator(node_of([], [call("count_star"), call("avg", "f")]), State("fifo"), False)
    none = batch_of([], False, True)
    assert rows_of(op.step([none], -5)) == [(ALWAYS, 1, (-1, -1), (0, None))]
    assert rows_of(op.step([none], 99)) == []
    assert op.next_due() == FOREVER


@pytest.mark.parametrize("state", [State("fifo"), State("calendar"), State("grow")])
def test_rows_rest_on_the_first_member_that_dies_where_windows_mix(state):
    op = operator(node_of([COL["k"]], [call("count_star")]), state, False)
    ts = np.array([0, 1, 2, 3], np.int64)
    rows = big_batch(ts, np.array([7, 7, 7, 8]), ts + 100 if state.kind != "grow" else None)
    first = op.step([rows.slice(0, 1)], 0)  # nothing that dies yet: no lives
    assert first.life is None
    rows.life = np.array([0, FOREVER, 50, FOREVER])
    out = op.step([rows.slice(1, 4)], 3)
    assert out.life is not None
    inserted = out.life[out.signs() > 0].tolist()
    assert inserted == [FOREVER, 50, FOREVER]


def extreme(node):
    call_ = node.aggs[0]
    filter_ = None if call_.filter is None else getter(call_.filter)
    return group_extreme.extreme_op(node, 2, (1, 0), getter(call_.args[0]), filter_)


def told_in_steps(op, told, cuts, until):
    return [
        r
        for rows, upto in steps(told, cuts, until)
        for r in rows_of(op.step([batch_of(rows, False, True)], upto))
    ]


@thinned()
@pytest.mark.parametrize("fn", ["min", "max"])
@pytest.mark.parametrize("col", ["i", "f", "d", "t", "p", "b"])
@pytest.mark.parametrize("filter_", [None, "b"])
@given(data=st.data())
@settings(max_examples=examples(10))
def test_one_extreme_over_a_time_window_has_an_operator_with_the_same_answers(
    fn, col, filter_, data
):
    node = node_of([], [call(fn, col, filter_=filter_)])
    log = data.draw(histories("wks", (col, "b")))
    cuts = data.draw(st.lists(st.integers(-8, 60), max_size=8))
    told = events(log, "wks", 60)
    plain, own = operator(node, State("fifo"), False), extreme(node)
    want = exact(told_in_steps(plain, told, cuts, 60))
    assert exact(told_in_steps(own, told, cuts, 60)) == want
    assert exact(rows_of(own.current())) == exact(rows_of(plain.current()))
    assert (own.live(), own.next_due()) == (plain.live(), plain.next_due())
    assert exact(told_in_steps(extreme(node), told, [], 60)) == want


@pytest.mark.parametrize("order", ["random", "rising", "falling"])
def test_one_extreme_over_many_rows(order, monkeypatch):
    rng = np.random.default_rng(5)
    ts = np.sort(rng.integers(0, 30_000, 40_000))
    k = rng.integers(0, 1 << 40, len(ts))
    k = np.sort(k)[:: -1 if order == "falling" else 1].copy() if order != "random" else k
    rows, node = big_batch(ts, k, ts + 900), node_of([], [call("max", "f")])
    want = exact(rows_of(operator(node, State("fifo"), False).step([rows], 40_000)))
    for stretch in (700, 1 << 17):
        monkeypatch.setattr(pieces, "STRETCH", stretch)
        op = extreme(node)
        sizes = [
            (rows_of(part), op.nbytes()) for part, _ in op.pieces([rows], 40_000, pieces.go_on)
        ]
        assert exact([r for part, _ in sizes for r in part]) == want
        assert op.live() == 0 and op.next_due() == FOREVER
        assert stretch > 700 or max(size for _, size in sizes) < 1 << 19
