"""A big answer is put together in pieces, and what follows each other in a store is not copied one
by one."""

from __future__ import annotations

import mmap

import numpy as np
import pyarrow as pa
import pytest

from dsms.engine import Engine
from dsms.operators.pieces import finished
from dsms.state import columns, joining, rows
from dsms.state.batch import concat
from dsms.state.columns import column_store, run_of
from dsms.state.rows import RowStore

ROWS = 100


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(rows, "GATHERED", 7)
    monkeypatch.setattr(columns, "LONG", 4)


@pytest.mark.parametrize(
    ("places", "run"),
    [
        ([3, 4, 5, 6], slice(3, 7)),
        ([3, 4, 5], None),  # few
        ([3, 4, 6, 7], None),
        ([3, 5, 4, 6], None),
        ([3, 3, 4, 6], None),
        ([6, 5, 4, 3], None),
    ],
)
def test_positions_that_follow_each_other(places, run):
    assert run_of(np.array(places)) == run


@pytest.mark.parametrize(
    "values",
    [
        pa.array(range(30)),
        pa.array([None if i % 3 else i for i in range(30)], pa.int64()),
        pa.array([None if i % 7 == 0 else f"text {i}" for i in range(30)]),
    ],
)
@pytest.mark.parametrize("cuts", [[30], [16, 8, 6], [20, 6, 3, 1]])
def test_a_run_is_gathered_as_any_other_positions(values, cuts):
    store, first = column_store(values.type), 0
    for count in cuts:
        store.append(values.slice(first, count))
        first += count
    for run in ((0, 30), (5, 25), (16, 24), (1, 30), (29, 30)):
        places = np.arange(*run)
        assert store.gather(places).equals(values.slice(run[0], run[1] - run[0]))
    before = store.gather(np.arange(2, 20)).to_pylist()
    store.keep(np.arange(10, 30))
    assert before == values.slice(2, 18).to_pylist()


def engine() -> Engine:
    db = Engine()
    db.execute("CREATE STREAM s (v INT, name STRING, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h")
    at = np.arange(ROWS)
    db.ingest("s", {"v": at * 7 % 101, "name": [f"name {i}" for i in at], "t": at * 1000})
    db.heartbeat("s", 1000 * ROWS)
    return db


def test_the_first_answer_is_put_together_a_column_at_a_time():
    db = engine()
    query = "CREATE QUERY {} AS SELECT DISTINCT v % 50 AS v, name FROM s [RANGE {} ms]"
    few = sum(1 for _ in db.slices(query.format("p", 4)))
    assert sum(1 for _ in db.slices(query.format("q", 60))) == few + 2
    (chunk,) = db.runtime.queries["q"].log.chunks  # readers have it, or do not, as a whole
    first = {(row["v"], row["name"]) for row in chunk.data.to_pylist()}
    at = range(ROWS - 59, ROWS)
    assert {(i * 7 % 101 % 50, f"name {i}") for i in at} <= first
    assert len(first) == len(chunk.data)


def test_pieces_of_rows_are_those_of_all():
    store = RowStore(engine().runtime.inputs["s"].definition.schema, 1)
    store.append(concat(engine().runtime.rings["s"].rows(-1)))
    for slots in (np.arange(ROWS), np.arange(ROWS)[::-1], np.arange(0, ROWS, 3), np.arange(3)):
        expected = store.columns(slots)
        found, pieces = store.gathering(slots), store.gathering(slots)
        assert [c.to_pylist() for c in finished(found)] == [c.to_pylist() for c in expected]
        assert sum(1 for _ in pieces) >= (len(slots) > 7) * len(expected)


def test_rows_that_are_joined_as_they_come_lie_in_memory_without_huge_pages():
    place = joining._place(10, np.int64)
    place[:] = 1
    base = place
    while isinstance(base, np.ndarray):
        base = base.base
    assert isinstance(base, mmap.mmap) or isinstance(base.obj, mmap.mmap)
