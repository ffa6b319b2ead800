"""Replies that are not read: their session's statements wait, others go on, and in the end the
session is let go."""

from __future__ import annotations

from typing import Any

import pytest

import dsms
from dsms_client.protocol import pack
from tests.effort import effort

COUNT = 200 if effort() else 80
SQL = "SELECT repeat('x', 1000000) AS x"  # a megabyte


@pytest.fixture
def running(serve: Any) -> Any:
    return serve(
        dsms.Engine(settings=dsms.Settings(deferred=True)),
        reply_bytes=2 << 20,
        reply_seconds=3600.0,
    )


def flooded(running: Any) -> Any:
    """A peer that has asked for a lot and read none of it, when its lane is held."""
    peer = running.peer(receive_buffer=4096)
    peer.raw(b"".join(pack({"op": "execute", "id": k, "sql": SQL}) for k in range(COUNT)))
    while not held(running):
        pass
    return peer


def held(running: Any) -> list[Any]:
    return running.on_loop(lambda: [s for s in running.server.sessions if s.replies.waiting])


def test_statements_wait_until_replies_are_read_and_all_are_answered(running: Any) -> None:
    with running.peer() as other, flooded(running) as peer:
        (session,) = held(running)
        for _ in range(3):  # whatever could run has run when another's statement has
            assert other.ask("execute", sql="SELECT 1")["ok"]
        # the system's buffers take some
        assert running.on_loop(lambda: len(session.requests.jobs)) > COUNT - 40
        assert running.on_loop(lambda: running.server.unread) < 6 << 20
        for k in range(COUNT):
            assert len(peer.reply(k)["results"][0]["rows"][0][0]) == 1_000_000
        assert not held(running)
        assert peer.ask("execute", sql="SELECT 1")["ok"]
    while running.on_loop(lambda: running.server.sessions):
        pass
    assert running.on_loop(lambda: running.server.unread) == 0


def test_the_total_of_all_sessions_counts_too(serve: Any) -> None:
    running = serve(dsms.Engine(settings=dsms.Settings(deferred=True)), total_reply_bytes=2 << 20)
    with flooded(running) as peer:
        assert running.on_loop(lambda: running.server.unread) < 6 << 20
        for k in range(COUNT):
            assert peer.reply(k)["ok"]


def test_who_reads_nothing_for_too_long_is_let_go(running: Any) -> None:
    with running.peer() as other, flooded(running):
        (session,) = held(running)
        while session in running.on_loop(lambda: set(running.server.sessions)):
            running.on_loop(session.replies.look)  # what its timer would do
        assert running.on_loop(lambda: running.server.unread) == 0
        assert running.server.metrics.errors.labels("DS620")._value.get() == 1
        assert other.ask("execute", sql="SELECT 1")["ok"]


def test_a_named_writer_whose_session_was_held_goes_on_in_another(running: Any) -> None:
    with running.peer() as first:
        first.ask("hello", version=1, client="w")
        first.raw(
            b"".join(pack({"op": "execute", "id": 100 + k, "sql": SQL}) for k in range(COUNT))
        )
        while not held(running):
            pass
        with running.peer() as second:
            assert second.ask("hello", version=1, client="w")["ok"]
            (session,) = held(running)
            running.on_loop(session.transport.abort)
            assert second.ask("execute", sql="SELECT 1")["ok"]


def test_a_server_stops_while_a_session_is_held(serve: Any) -> None:
    running = serve(
        dsms.Engine(settings=dsms.Settings(deferred=True)), reply_bytes=2 << 20, stop_seconds=0.0
    )
    with flooded(running):
        running.await_(running.server.stop())
