"""Changes handed to functions and to `async for`, in the process of the engine."""

from __future__ import annotations

import asyncio
import logging

import pytest

from dsms.engine import Engine
from dsms.errors import InternalError, UsageError
from examples import embedded

DDL = """
CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t;
CREATE STREAM u (k INT, t TIMESTAMP) TIMESTAMP BY t;
CREATE QUERY big AS SELECT k FROM s WHERE k > 1;
CREATE QUERY n AS SELECT COUNT(*) AS n FROM s [RANGE 10 s];
CREATE QUERY fed AS SELECT k FROM u
"""


@pytest.fixture
def engine() -> Engine:
    made = Engine()
    made.execute(DDL)
    return made


def rows(changes):
    table = changes.arrow()
    return list(zip(*(c.to_pylist() for c in table.drop_columns("$at").columns), strict=True))


def test_functions_are_called_in_their_order_when_the_call_is_over(engine):
    told = []

    @engine.on("n")
    def count(changes):
        told.append(("n", rows(changes)))

    @engine.on("big")
    def feed(changes):
        told.append(("big", rows(changes)))
        for k, _ in rows(changes):  # the engine is at rest: it may be used
            engine.ingest("u", [[k * 10, k]])

    @engine.on("fed")
    def fed(changes):
        told.append(("fed", rows(changes)))

    assert told == [("n", [(0, 1)])]  # the snapshot
    del told[:]
    engine.ingest("s", [[1, 0], [2, 0], [3, 0]])
    assert told == [("big", [(2, 1), (3, 1)]), ("fed", [(20, 1), (30, 1)])]
    engine.ingest("s", [[4, 1]])  # so the instant 0 is complete
    assert told[2:] == [("n", [(0, -1), (3, 1)]), ("big", [(4, 1)]), ("fed", [(40, 1)])]
    del told[:]
    engine.off(feed)
    engine.execute("DROP QUERY fed; HEARTBEAT s AT 20 s")
    assert [name for name, _ in told] == ["n", "fed"]  # the end is told, too
    assert [listener.query for listener in engine.listeners] == ["n"]


def test_what_is_told_before_any_clock_has_no_instant(engine):
    engine.ingest("s", [[1, 0], [2, 1]])
    told = engine.subscribe("n", 0).take_changes()
    assert told.arrow().column("$at").cast("int64").to_pylist() == [None, 0, 0]
    assert told.arrow().to_pylist()[0] == {"n": 0, "$sign": 1, "$at": None}


def test_a_function_that_fails_harms_nobody(engine, caplog):
    told = []

    @engine.on("big")
    def wrong(changes):
        raise ValueError("of the function")

    @engine.on("big")
    def right(changes):
        told.extend(rows(changes))

    with caplog.at_level(logging.ERROR, "dsms"):
        assert engine.ingest("s", [[5, 0]]).accepted == 1
        engine.ingest("s", [[6, 1]])
    assert told == [(5, 1), (6, 1)]
    failed, well = engine.listeners
    assert (failed.failures, str(failed.error), well.failures) == (2, "of the function", 0)
    assert "wrong, which is told the changes of big, has failed" in caplog.text
    assert "of the function" in caplog.text


def test_a_task_waits_for_changes_until_the_query_ends(engine):
    async def read(told):
        async with engine.changes("big") as reader:
            async for changes in reader:
                told.append(rows(changes))

    async def run():
        told, late = [], []
        task = asyncio.create_task(read(told))
        for k in (2, 3):
            await asyncio.sleep(0)
            engine.ingest("s", [[k, k]])
            while len(told) < k - 1:
                await asyncio.sleep(0)
        engine.execute("DROP QUERY big")
        await task
        reader = engine.changes("n", conflate=True)
        waiting = asyncio.create_task(anext(reader, None))
        first = rows(await waiting)
        engine.ingest("s", [[1, 10], [1, 11], [1, 12]])
        late += rows(reader.take())
        waiting = asyncio.create_task(anext(reader, None))
        await asyncio.sleep(0)
        reader.close()
        return told, first, late, await waiting

    told, first, late, closed = asyncio.run(run())
    assert told == [[(2, 1)], [(3, 1)]]
    assert first == [(1, 1)] and late == [(1, -1), (4, 1)] and closed is None


def test_an_error_that_ends_a_query_ends_its_reading(engine):
    engine.execute("CREATE QUERY f AS SELECT 1 / k AS x FROM s WITH (on_error = stop)")

    async def run():
        reader = engine.changes("f")
        engine.ingest("s", [[0, 0]])
        async for _ in reader:
            pass

    with pytest.raises(UsageError):
        asyncio.run(run())


def test_the_example_says_who_is_slow_and_who_is_not_any_more(capsys):
    embedded.main()
    first, *_, last, asked = capsys.readouterr().out.splitlines()
    assert first == "12:00:04 alpha is slow: 55.0 ms"
    assert last == "12:00:18 alpha was slow: 70.0 ms"
    assert asked == "60 ms or more: alpha"


def test_a_notebook_shows_mistakes_in_short(engine):
    with pytest.raises(UsageError) as found:
        engine.execute("DROP QUERY nn")
    assert found.value._render_traceback_()[0].startswith("UsageError DS401")
    assert not hasattr(InternalError("DS900", "a bug"), "_render_traceback_")
