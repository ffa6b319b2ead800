"""TOPK, kept up to date row by row: against recomputation, and flat in memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.plan.physical import State
from dsms.sql.expr import AggCall
from dsms.sql.types import STRING
from tests.effort import examples, thinned
from tests.grouping import COL, STATES, batch_of, check, histories, node_of, operator

TYPES = ("k", "s", "i", "f", "d", "w", "t", "p", "b")


def topk(column: str, k: int, filter_: str | None = None) -> AggCall:
    return AggCall(
        "topk", (COL[column],), STRING, False, COL[filter_] if filter_ else None, (k,), "topk"
    )


@thinned()
@pytest.mark.parametrize("pattern", STATES)
@pytest.mark.parametrize("keys", [(), ("k",)], ids=["global", "grouped"])
@given(data=st.data())
@settings(max_examples=examples(12), deadline=None)
def test_answers_are_those_of_recomputation(pattern, keys, data):
    column = data.draw(st.sampled_from(TYPES))
    calls = [
        topk(column, data.draw(st.sampled_from([1, 2, 3, 100]))),
        topk("i", 2, "b"),
        topk(column, 1),
    ]
    log = data.draw(histories(pattern, ("k", "b", "i", column), 40))
    check(
        node_of([COL[k] for k in keys], calls),
        pattern,
        log,
        data.draw(st.lists(st.integers(-8, 200), max_size=8)),
    )


def test_many_values_and_long_lists():
    """More answers than are worked on at a time, against counting anew."""
    rng, n = np.random.default_rng(5), 3000
    op = operator(node_of([], [topk("i", 100)]), State("fifo"), False)
    empty = batch_of([], False, True)
    cols = [pa.nulls(n, c.type) for c in empty.cols]
    values = rng.zipf(1.2, n) % 400
    cols[COL["i"].index] = pa.array(values)
    ts, ids = np.arange(n, dtype=np.int64), np.arange(n, dtype=np.int64)
    out = op.step([type(empty)(ts, ts + 500, None, (ids * 0, ids), tuple(cols))], n)
    (got,) = out.cols
    for row in np.flatnonzero(out.signs() > 0).tolist()[::97]:
        at = int(out.ts[row])
        if at < 0:
            continue
        found, counts = np.unique(values[max(0, at - 499) : at + 1], return_counts=True)
        best = found[np.lexsort((found, -counts))][:100]
        assert got[row].as_py() == f"[{', '.join(map(str, best))}]"


def test_texts_that_nobody_shows_are_forgotten():
    engine = Engine()
    engine.execute("CREATE STREAM s (v INT, t TIMESTAMP) TIMESTAMP BY t")
    engine.execute("CREATE QUERY q AS SELECT TOPK(v, 2) FROM s [RANGE 1]")
    results = engine.subscribe("q")
    sizes = []
    for step in range(40):
        ts = step * 1_000_000_000 + np.arange(500) * 1_000_000
        engine.ingest("s", {"v": (ts // 1_000_000).tolist(), "t": ts.tolist()})
        results.take()
        sizes.append(engine.stats()["queries"]["q"]["state_bytes"])
    assert sizes[-1] <= 2 * sizes[5]
