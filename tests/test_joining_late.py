"""A query that joins others' synopses when they have run for a while: it has what is held, and what
comes."""

from __future__ import annotations

import pytest

from dsms.engine import Engine
from tests.effort import thinned
from tests.stories.play import rows_of

S = 1_000_000


def go_on(engine: Engine, start: int, stop: int) -> None:
    engine.ingest("s", [[i % 3, i, i * S] for i in range(start, stop)])


@thinned()
@pytest.mark.parametrize("window", ["ROWS {} SLIDE 10", "RANGE {} s SLIDE 10 s"])
@pytest.mark.parametrize("clauses", ["", "RETAIN 7 s", "RETAIN 1 h"])
@pytest.mark.parametrize("first", ["COUNT(*)", "SUM(v)", "MAX(v)"])
def test_it_answers_what_it_would_alone(window: str, clauses: str, first: str) -> None:
    """Once it misses nothing, whatever aggregates the others have; at once, where all its rows are
    held."""
    engine = Engine()
    engine.execute(f"CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t {clauses}")
    go_on(engine, 0, 5)
    engine.execute(f"CREATE QUERY others AS SELECT {first} FROM s [{window.format(10)}]")
    go_on(engine, 5, 95)
    engine.execute(
        f"CREATE QUERY late AS SELECT COUNT(*), SUM(v), MAX(v), MIN(k) FROM s [{window.format(30)}]"
    )
    go_on(engine, 95, 171)
    told = [
        tuple(row)
        for p in engine.subscribe("late", 0).take()
        if p.data is not None
        for row in rows_of(p.data)
    ]
    expected = [(30, sum(range(end - 30, end)), end - 1, 0) for end in range(100, 171, 10)]
    assert len(told) == len(expected)
    whole = 0 if clauses == "RETAIN 1 h" else 3
    assert told[whole:] == expected[whole:]
