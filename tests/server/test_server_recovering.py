"""While the engine comes back the ports are open and say so."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request

import pytest
from harness import Peer

from dsms.engine import Engine
from dsms.settings import Settings
from dsms_server.config import Config
from dsms_server.recovering import WaitingRoom
from tests.waiting import WAIT, reserved


@pytest.fixture
def room():
    with reserved() as first, reserved() as second:
        room = WaitingRoom(Config(port=first.getsockname()[1], http_port=second.getsockname()[1]))
        room.open()
        yield room
        room.close()


def ended(stranger: socket.socket) -> bool:
    try:
        return stranger.recv(100) == b""
    except ConnectionResetError:
        return True


def page(room, path):
    try:
        reply = urllib.request.urlopen(
            f"http://127.0.0.1:{room.config.http_port}{path}", timeout=WAIT
        )
        return reply.status, reply.read().decode()
    except urllib.error.HTTPError as problem:
        return problem.code, problem.read().decode()


def test_requests_are_refused_with_a_code(room):
    room.see(12)
    with Peer(room.config.port) as peer:
        reply = peer.ask("hello", version=1)
        assert reply["error"]["code"] == "DS647"
        assert "12 records" in reply["error"]["message"]
    with socket.create_connection(("127.0.0.1", room.config.port), timeout=WAIT) as stranger:
        stranger.sendall(b"\xff" * 100)
        assert ended(stranger)


def test_readiness_fails_with_the_progress_and_health_does_not(room):
    assert page(room, "/readyz") == (503, "recovering: 0 records of the journal applied\n")
    room.see(7)
    assert page(room, "/readyz") == (503, "recovering: 7 records of the journal applied\n")
    assert page(room, "/healthz") == (200, "recovering: 7 records of the journal applied\n")


def test_a_port_that_is_taken_is_no_error_yet(room):
    room_ports = list(room.ports)
    with Peer(room.config.port):
        other = WaitingRoom(room.config)  # what is taken stays closed, and is no error
        other.open()
        assert other.ports == [] and len(room_ports) == 2
        other.close()


def test_recovery_tells_how_far_it_is(tmp_path):
    engine = Engine(str(tmp_path))
    engine.execute("CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t")
    for k in (1, 2, 3):
        engine.ingest("s", {"k": [k], "t": [k]})
    engine.saver.durable.close()  # as if it had died
    engine.saver.catalog.close()
    seen = []
    Engine(str(tmp_path), Settings(recovering=seen.append)).close()
    assert seen == [1, 2, 3, 4]
