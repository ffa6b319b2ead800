"""Peers that promise to say something: who keeps silent for longer is dead."""

from __future__ import annotations

import pytest
from harness import ended

from dsms_client.sync import connect
from dsms_server import alive
from tests.waiting import wait_until


def test_a_peer_that_breaks_its_promise_is_dead(serve):
    running = serve(ping_seconds=60.0)
    hours = running.hours()
    with running.peer() as dead, running.peer() as old:
        assert dead.ask("hello", version=1)["ping_seconds"] == 60.0
        assert old.ask("hello", version=1)["ok"]  # of an earlier version: it promises nothing
        assert dead.ask("ping", every=60.0)["ok"]
        for _ in range(3):
            hours.go_on(170.0)
            assert dead.ask("ping", every=60)["ok"]
        assert hours.waiting == [180.0]
        hours.go_on(181.0)
        assert ended(dead.socket)
        assert old.ask("ping")["ok"]
        assert running.server.metrics.let_go.labels("dead")._value.get() == 1
        assert hours.waiting == []


def test_who_is_not_read_is_not_dead(serve):
    running = serve(unprocessed_bytes=1)
    hours = running.hours()
    with running.peer() as peer:
        peer.ask("ping", every=1)
        running.engine.gate.clear()
        peer.send("execute", sql="GATE")
        wait_until(
            lambda: (
                running.on_loop(lambda: [s.read_paused for s in running.server.sessions]) == [True]
            )
        )
        hours.go_on(100.0)
        running.engine.gate.set()
        assert peer.reply(2)["ok"]


@pytest.mark.parametrize("says", [True, False])
def test_who_reads_nothing_is_dead_unless_it_says_something(serve, says):
    """A slow reader's pings lie in its socket as long as its results do; a program that hangs sends
    none."""
    running = serve()
    hours = running.hours()
    with running.peer(receive_buffer=4096) as reader, running.peer() as writer:
        script = "CREATE STREAM s (k INT, v STRING); CREATE QUERY q AS SELECT * FROM s"
        assert writer.ask("execute", sql=script)["ok"]
        assert reader.ask("subscribe", query="q")["ok"] and reader.ask("ping", every=60.0)["ok"]

        def reading():
            found = [s for s in running.server.sessions if s.requests.feeds]
            return found[0] if found else None

        while not running.on_loop(lambda: reading().write_paused):
            assert writer.ask("ingest", stream="s", rows=[[1, "x" * 100_000]])["ok"]
        line = reading().transport.get_extra_info("socket")
        for _ in range(3 if says else 0):
            waits = alive.unread(line)
            reader.send("ping", every=60.0)
            wait_until(lambda n=waits: alive.unread(line) > n)
            hours.go_on(181.0)
            assert running.on_loop(lambda: reading().write_paused)
        hours.go_on(181.0)
        wait_until(lambda: running.on_loop(reading) is None, "the end of the session")
        assert running.server.metrics.let_go.labels("dead")._value.get() == 1


def test_clients_promise_at_once(serve):
    running = serve(ping_seconds=1000.0)
    with connect(port=running.port):
        wait_until(
            lambda: running.on_loop(
                lambda: [s._pulse is not None for s in running.server.sessions] == [True]
            )
        )


def pings(running) -> float:
    """Pings so far, as a scrape shows them."""
    running.on_loop(running.server.metrics.text)
    return running.server.metrics.requests.labels("ping")._value.get()


def test_clients_keep_their_promise(serve):
    running = serve(ping_seconds=0.01)
    with connect(port=running.port):
        wait_until(lambda: pings(running) > 2)
        assert running.on_loop(lambda: [s._pulse is not None for s in running.server.sessions]) == [
            True
        ]
    with connect(port=serve(ping_seconds=0.0).port) as db:
        db.ping()


@pytest.mark.parametrize("every", [float("nan"), float("inf"), -1.0, 1e300])
def test_a_promise_that_is_no_time(serve, every):
    with serve().peer() as peer:
        assert peer.ask("ping", every=every)["ok"]
        assert peer.ask("ping")["ok"]
