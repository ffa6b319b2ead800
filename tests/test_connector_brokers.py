"""Each connector against the real thing, where that answers on this machine: rows come and go,
through restarts, once or at least once as it promises, and what is wrong is said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.connectors.brokers import BROKERS, Broker
from tests.connectors.world import World, world
from tests.waiting import wait_until

STREAM = "CREATE STREAM s (k INT, v FLOAT) RETAIN 1 h"
QUERY = "CREATE QUERY q AS SELECT k, v FROM s"
AWAY = {
    "kafka": "brokers = '127.0.0.1:1', topic = 'a'",
    "mqtt": "url = 'mqtt://127.0.0.1:1', topic = 'a'",
    "nats": "url = 'nats://127.0.0.1:1', subject = 'a'",
    "postgres": "url = 'postgresql://127.0.0.1:1/x', table = 'a', cursor = 'id'",
    "rabbitmq": "url = 'amqp://127.0.0.1:1', queue = 'a'",
    "redis": "url = 'redis://127.0.0.1:1', stream = 'a'",
}


@pytest.fixture(params=sorted(BROKERS))
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    kind = BROKERS[request.param]
    kind.check()
    made = kind()
    made.begin()
    yield made
    made.end()


def rows(first: int, stop: int) -> list[dict[str, Any]]:
    return [{"k": k, "v": k / 2} for k in range(first, stop)]


def keys(it: World) -> list[int]:
    return it.values("SELECT k FROM s [RANGE UNBOUNDED] ORDER BY k")


def test_rows_come_through_restarts(broker, tmp_path):
    with world(tmp_path) as it:
        it.run(STREAM, f"CREATE SOURCE b INTO s FROM {broker.source}")
        it.until("b", state="running")
        broker.put(rows(0, 100))
        it.until("b", rows=100)
    broker.put(rows(100, 150))
    with world(tmp_path) as it:
        wait_until(lambda: len(set(keys(it))) == 150)
        assert it.until("b", state="running")["rejected"] == 0
        assert sorted(set(keys(it))) == list(range(150))
        if broker.exact_source:
            assert keys(it) == list(range(150))


def test_results_go_through_restarts(broker, tmp_path):
    with world(tmp_path) as it:
        it.run(STREAM, QUERY, f"CREATE SINK t FROM q TO {broker.sink}")
        it.until("t", "sink", state="running")
        it.client.ingest("s", [[r["k"], r["v"]] for r in rows(0, 60)])
        it.until("t", "sink", rows=60)
        it.run("PAUSE SINK t")
        it.client.ingest("s", [[r["k"], r["v"]] for r in rows(60, 80)])
    with world(tmp_path) as it:
        it.run("RESUME SINK t")
        it.until("t", "sink", position="80")
    wait_until(lambda: len(broker.told()) >= 80)
    assert broker.told() == rows(0, 80)


@pytest.mark.parametrize("kind", sorted(AWAY))
def test_another_side_that_is_away_is_waited_for(kind):
    BROKERS[kind].check_library()
    with world() as it:
        it.run("CREATE STREAM s (k INT)", f"CREATE SOURCE b INTO s FROM {kind} WITH ({AWAY[kind]})")
        wait_until(lambda: it.line("b")["last_error"] is not None)
        line = it.line("b")
        assert (line["state"], line["last_error"][:6]) == ("waiting", "DS664:")
