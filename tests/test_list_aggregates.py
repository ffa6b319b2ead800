"""ARRAY_AGG, HISTOGRAM and SAMPLE: the same by every path, and drawn as they say."""

from __future__ import annotations

import json
import math
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.aggregates import buckets
from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.registry import algebra
from dsms.engine import Engine
from dsms.errors import QueryError
from dsms.sql.expr import AggCall, Col
from dsms.sql.types import INT, STRING, list_of
from tests.asking import pushed
from tests.effort import examples
from tests.oracle.aggregates import _AGGREGATES

SECOND = 1_000_000
STREAM = "CREATE STREAM s (k INT, x INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h"
CALLS = "ARRAY_AGG(x, 3) AS a, HISTOGRAM(x, [2, 7, 40]) AS h, SAMPLE(x, 4) AS d, "
CALLS += "ARRAY_AGG(x, 3 ORDER BY x DESC, t) AS o, ARRAY_AGG(x, 9 ORDER BY x % 5 NULLS FIRST) AS p"
ROWS = [(i % 3, (i * 37) % 50 if i % 7 else None, i * SECOND) for i in range(60)]


def rows(engine: Engine, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in engine.execute(sql)[-1].data.to_pylist()]


def filled(folder: str | None = None) -> Engine:
    engine = Engine(folder)
    engine.execute(STREAM)
    return engine


# ---------------------------------------------------------------- paths


@pytest.mark.parametrize("path", ["", " WITH (path = ws)"])
def test_periodic_answers_are_those_of_one_time_queries(path: str) -> None:
    engine = filled()
    window = "FROM s [RANGE 20 SECONDS SLIDE 10 SECONDS] GROUP BY k"
    engine.execute(f"CREATE QUERY p AS SELECT k, {CALLS} {window}{path}")
    for first in range(0, 60, 10):
        engine.ingest("s", ROWS[first : first + 10])
        engine.heartbeat("s", (first + 10) * SECOND - 1)
        told = rows(engine, "SELECT * FROM p")
        once = rows(engine, f"SELECT k, {CALLS} FROM s [RANGE 20 SECONDS] GROUP BY k")
        assert sorted(told) == sorted(once)


def test_continuous_answers_are_those_of_one_time_queries() -> None:
    engine = filled()
    calls = CALLS.rpartition(", SAMPLE")[0]
    engine.execute(f"CREATE QUERY c AS SELECT k, {calls} FROM s [RANGE 9 SECONDS] GROUP BY k")
    for first in range(0, 60, 5):
        engine.ingest("s", ROWS[first : first + 5])
        engine.heartbeat("s", (first + 5) * SECOND - 1)
        once = rows(engine, f"SELECT k, {calls} FROM s [RANGE 9 SECONDS] GROUP BY k")
        assert sorted(rows(engine, "SELECT * FROM c")) == sorted(once)


def test_they_are_answered_on_lookup() -> None:
    engine = filled()
    engine.execute(
        f"CREATE QUERY l AS SELECT k, {CALLS} FROM s [RANGE 20 SECONDS] GROUP BY k ON LOOKUP"
    )
    engine.ingest("s", ROWS)
    engine.heartbeat("s", 60 * SECOND - 1)
    once = rows(engine, f"SELECT k, {CALLS} FROM s [RANGE 20 SECONDS] GROUP BY k")
    assert sorted(rows(engine, "LOOKUP l")) == sorted(once)


def test_they_outlast_restarts(tmp_path: Any) -> None:
    whole, calls = filled(), CALLS.rpartition(", SAMPLE")[0]
    parts = filled(str(tmp_path / "data"))
    for engine in (whole, parts):
        engine.execute(f"CREATE QUERY c AS SELECT k, {calls} FROM s [RANGE 9 s] GROUP BY k")
        engine.execute(
            f"CREATE QUERY p AS SELECT k, {CALLS} FROM s [RANGE 20 s SLIDE 10 s] GROUP BY k"
        )
    for first in range(0, 60, 15):
        for engine in (whole, parts):
            engine.ingest("s", ROWS[first : first + 15])
            engine.heartbeat("s", (first + 15) * SECOND - 1)
        parts.close()
        parts = Engine(str(tmp_path / "data"))
        for name in "cp":
            assert rows(parts, f"SELECT * FROM {name}") == rows(whole, f"SELECT * FROM {name}")
    parts.close()


# ---------------------------------------------------------------- what is drawn


def drawn(keys: list[int | None], values: list[Any], k: int, cuts: list[int]) -> Any:
    """What cells answer that are put together of pieces."""
    call = AggCall("sample", (Col(0, STRING), Col(1, INT)), list_of(STRING), params=(k,))
    how, state = algebra(call), None
    for low, high in zip([0, *cuts], [*cuts, len(keys)], strict=True):
        order = np.arange(high - low)
        args = (pa.array(values[low:high], pa.string()), pa.array(keys[low:high], pa.int64()))
        piece = how.lift(CellRows(np.zeros_like(order), order, order, args), 1)
        state = piece if state is None else how.combine(state, piece)
    return how.lower(state)[0].as_py()


@settings(max_examples=examples(80), deadline=None)
@given(
    st.lists(
        st.tuples(st.none() | st.integers(-3, 3), st.none() | st.sampled_from("abc")), max_size=12
    ),
    st.integers(1, 5),
    st.data(),
)
def test_samples_of_pieces_are_those_of_the_whole(
    found: list[tuple[int | None, str | None]], k: int, data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(found)), max_size=3)))
    call = AggCall("sample", (Col(0, STRING), Col(1, INT)), list_of(STRING), params=(k,))
    wanted = _AGGREGATES["sample"]([(x, h) for h, x in found if x is not None], call)
    assert drawn([h for h, _ in found], [x for _, x in found], k, cuts) == wanted


def samples(size: int, k: int, draws: int) -> list[list[int]]:
    engine = filled()
    engine.ingest("s", [(0, i, i) for i in range(size)])
    engine.heartbeat("s", SECOND)
    calls = [f"SAMPLE(x, HASH(x, {seed}), {k}) AS d{seed}" for seed in range(draws)]
    return [json.loads(text) for text in rows(engine, f"SELECT {', '.join(calls)} FROM s")[0]]


def test_all_sets_of_rows_are_drawn_alike() -> None:
    """Chi square of the 10 pairs of 5 rows over 300 seeds: 9 degrees of freedom, below 27.9 in 999
    of 1,000 cases."""
    counts = dict.fromkeys(combinations(range(5), 2), 0)
    for one in samples(5, 2, 300):
        counts[tuple(sorted(one))] += 1  # type: ignore[index]
    assert sum((n - 30) ** 2 / 30 for n in counts.values()) < 27.9


def test_means_of_samples_have_no_bias_and_the_error_that_is_told() -> None:
    """Of 400 samples of 10 out of 100: the mean of the means within 4 standard errors of 49.5, and
    their spread within a tenth of STDDEV / sqrt(k) * sqrt(1 - k / n)."""
    means = np.array([sum(one) / len(one) for one in samples(100, 10, 400)])
    error = np.std(np.arange(100), ddof=1) / math.sqrt(10) * math.sqrt(1 - 10 / 100)
    assert abs(means.mean() - 49.5) < 4 * error / math.sqrt(400)
    assert abs(means.std() / error - 1) < 0.1


def test_a_sample_is_what_the_reference_says() -> None:
    engine = filled()
    engine.ingest("s", [(0, i, i) for i in range(20)])
    engine.heartbeat("s", SECOND)
    for sample, chosen in (
        ("SAMPLE(x, 5)", "HASH(HASH(k, x, t))"),
        ("SAMPLE(x, HASH(x), 5)", "HASH(HASH(x))"),
        ("SAMPLE(x, x, 5)", "HASH(x)"),
    ):
        found = json.loads(rows(engine, f"SELECT {sample} FROM s")[0][0])
        wanted = rows(engine, f"SELECT x FROM s ORDER BY {chosen} LIMIT 5")
        assert sorted(found) == sorted(x for (x,) in wanted)


def test_a_sample_has_no_row_twice_and_all_of_few() -> None:
    for one in samples(20, 15, 20):
        assert len(one) == len(set(one)) == 15
    assert sorted(samples(3, 15, 1)[0]) == [0, 1, 2]


def test_rows_that_nothing_tells_apart_are_not_drawn() -> None:
    engine = Engine()
    engine.execute("CREATE STREAM u (x INT)")
    with pytest.raises(QueryError) as caught:
        engine.execute("SELECT SAMPLE(x, 5) FROM u [ROWS 10]")
    assert caught.value.code == "DS367" and "HASH(column)" in str(caught.value.hint)
    engine.execute("SELECT SAMPLE(x, HASH(x), 5) FROM u [ROWS 10]")


# ---------------------------------------------------------------- edges


@pytest.mark.parametrize(
    ("type_", "edges"),
    [("TIMESTAMP", "[TIMESTAMP '1970-01-01 00:00:10', TIMESTAMP '1970-01-01 00:00:20']"),
     ("FLOAT", "[10, 20.0]"), ("INT", "[10, 20]"), ("INTERVAL", "['00:00:10', '00:00:20']"),
     ("DECIMAL(5,2)", "[10, 20]")],
)  # a table  # fmt: skip
def test_edges_of_each_type(type_: str, edges: str) -> None:
    engine = Engine()
    engine.execute(f"CREATE STREAM v (x {type_}, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h")
    unit = SECOND if type_ in ("TIMESTAMP", "INTERVAL") else 1
    engine.ingest("v", {"x": [n * unit for n in (0, 10, 15, 20, 30, 40)], "t": [1] * 6})
    engine.heartbeat("v", 10)
    assert rows(engine, f"SELECT HISTOGRAM(x, {edges}) AS h FROM v") == [("[1, 2, 3]",)]


def test_nan_is_above_all_edges_and_nothing_counts_for_nothing() -> None:
    engine = Engine()
    engine.execute("CREATE STREAM v (x FLOAT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h")
    engine.ingest("v", [(math.nan, 1), (-math.inf, 1), (-0.0, 1), (None, 1)])
    engine.heartbeat("v", 10)
    assert rows(engine, "SELECT HISTOGRAM(x, [0]) AS h FROM v") == [("[1, 2]",)]
    empty = (
        "SELECT HISTOGRAM(x, [0]) AS h, ARRAY_AGG(x, 1) AS a, SAMPLE(x, 1) AS d FROM v WHERE x > 5"
    )
    assert rows(engine, empty + " AND x < 6") == [(None, None, None)]


def test_types_of_answers() -> None:
    engine = filled()
    found = engine.execute(f"SELECT {CALLS} FROM s")[-1]
    assert found.types == ("LIST(INT)",) * 5
    assert found.arrow().schema.types == [pa.list_(pa.int64())] * 5


def test_histograms_of_a_large_batch_are_written_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(room: int) -> tuple[list[tuple[Any, ...]], list[int]]:
        pieces: list[int] = []

        def lists(counts: np.ndarray) -> pa.Array:
            pieces.append(counts.size)
            return written(counts)

        monkeypatch.setattr(buckets, "ROOM", room)
        monkeypatch.setattr(buckets, "_lists", lists)
        engine = Engine()
        engine.execute(
            "CREATE STREAM s (k INT, x INT, t TIMESTAMP) TIMESTAMP BY t;"
            "CREATE QUERY q AS SELECT k, HISTOGRAM(x, [1, 3, 5]) AS h FROM s [ROWS 9] GROUP BY k"
        )
        engine.ingest("s", [[t % 3, None if t % 7 == 0 else t % 8, t] for t in range(40)])
        engine.heartbeat("s", 40)
        return pushed(engine, "q"), pieces

    written = buckets._lists
    whole, large = told(1 << 16)
    assert len(whole) > 20 and max(large) > 16
    for room in (1, 16):
        parts, small = told(room)
        assert parts == whole and max(small) <= max(room, 4)
