from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fake_engine import FakeEngine
from harness import Running


@pytest.fixture
def serve() -> Iterator[Callable[..., Running]]:
    """Start servers over a fake engine (or the one given); all are stopped at the end of the test."""
    started: list[Running] = []

    def start(engine: Any = None, **options: Any) -> Running:
        started.append(Running(engine or FakeEngine(), **options))
        return started[-1]

    yield start
    for running in started:
        running.stop()


@pytest.fixture
def server(serve: Callable[..., Running]) -> Running:
    """A server with a stream s(k INT, v FLOAT) and a query q over it."""
    running = serve()
    with running.peer() as peer:
        reply = peer.ask("execute", sql="CREATE STREAM s (k INT, v FLOAT); CREATE QUERY q AS SELECT * FROM s")
        assert reply["ok"], reply
    return running
