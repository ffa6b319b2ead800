"""GEOMEAN: continuous, periodic, once, and after a restart."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from dsms import Engine
from dsms.api import Subscription

DECLARED = """
CREATE STREAM s (k STRING, f FLOAT, i INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 min;
CREATE QUERY c AS SELECT k, GEOMEAN(f) AS g FROM s [RANGE 3 s] GROUP BY k;
CREATE QUERY p AS SELECT GEOMEAN(f) AS g, COUNT(f) AS n FROM s [RANGE 4 s SLIDE 2 s];
CREATE QUERY d AS SELECT GEOMEAN(DISTINCT f) AS g FROM s [RANGE 4 s SLIDE 2 s];
CREATE QUERY i AS SELECT GEOMEAN(i) AS g FROM s [ROWS 2];
"""


def mean(*values: float) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def ingest(engine: Engine, second: float, f: float | None, i: int | None = 1) -> None:
    """One row, and no other up to its instant."""
    at = int(second * 1_000_000)
    engine.ingest("s", {"k": ["a"], "f": [f], "i": [i], "t": [at]})
    engine.heartbeat("s", at)


def told(subscription: Subscription) -> list[tuple[object, ...]]:
    return [
        tuple(r.values())
        for push in subscription.take()
        if push.data is not None
        for r in push.data.to_pylist()
    ]


def current(engine: Engine, query: str) -> object:
    (result,) = engine.execute(f"SELECT g FROM {query}")
    (row,) = result.data.to_pylist()
    return row["g"]


@pytest.fixture
def engine():  # type: ignore[no-untyped-def]
    engine = Engine()
    engine.execute(DECLARED)
    yield engine
    engine.close()


def test_what_is_not_above_zero_makes_it_null_while_it_is_in(engine: Engine) -> None:
    for second, f, want in (
        (0, 2.0, mean(2.0)),
        (1, None, mean(2.0)),
        (2, 8.0, mean(2.0, 8.0)),
        (2.5, 0.0, None),
        (4, 9.0, None),
        (5, -1.0, None),
        (8, 5e-324, mean(5e-324)),
        (9, 1e308, mean(5e-324, 1e308)),
        (12, math.nan, None),
        (16, math.inf, math.inf),
    ):
        ingest(engine, second, f)
        assert current(engine, "c") == want, second


def test_boundaries_tell_it_from_cells(engine: Engine) -> None:
    all_, different = engine.subscribe("p"), engine.subscribe("d")
    for second, f in (
        (0, 2.0),
        (1, 8.0),
        (1.5, 8.0),
        (2, None),
        (5, 3.0),
        (6, 0.0),
        (13, 7.0),
        (14, 1.0),
    ):
        ingest(engine, second, f)
    three = (mean(2.0, 8.0, 8.0), 3)
    assert told(all_) == [
        three,
        three,
        (mean(3.0), 1),
        (None, 2),
        (None, 1),
        (None, 0),
        (mean(7.0), 1),
    ]
    assert told(different)[:3] == [(mean(2.0, 8.0),), (mean(2.0, 8.0),), (mean(3.0),)]


def test_whole_numbers_and_one_time_answers(engine: Engine) -> None:
    for second, i in ((0, 4), (1, 9), (2, 16)):
        ingest(engine, second, 1.0, i)
    assert current(engine, "i") == mean(9.0, 16.0)
    (result,) = engine.execute(
        "SELECT GEOMEAN(i) AS g, GEOMEAN(i) FILTER (WHERE i > 4) AS h, EXP(AVG(LN(i))) AS e FROM "
        "s [RANGE 1 min]"
    )
    (row,) = result.data.to_pylist()
    assert (row["g"], row["h"]) == (mean(4.0, 9.0, 16.0), mean(9.0, 16.0))
    assert row["g"] == row["e"]


def test_a_restart_goes_on(tmp_path: Path) -> None:
    first = Engine(str(tmp_path))
    first.execute(DECLARED)
    for second, f in ((0, 2.0), (1, 0.0), (2, 8.0)):
        ingest(first, second, f)
    assert first.saver is not None and first.saver.checkpoint()
    ingest(first, 2.5, 4.0)
    first.close()
    again = Engine(str(tmp_path))
    assert current(again, "c") is None
    ingest(again, 4.5, 3.0)
    assert current(again, "c") == mean(8.0, 4.0, 3.0)
    boundaries = again.subscribe("p")
    ingest(again, 6, 3.0)
    assert told(boundaries) == [(None, 4), (mean(8.0, 4.0, 3.0), 3)]
    again.close()
