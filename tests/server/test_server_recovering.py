"""While the engine comes back the ports are open and say so."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import threading
import urllib.error
import urllib.request

import pytest
from harness import Peer

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.settings import Settings
from dsms_client import aio
from dsms_client.aio import AsyncClient
from dsms_client.protocol import pack
from dsms_client.sync import connect
from dsms_server import recovering
from dsms_server.accepting import Bound
from dsms_server.config import Config
from dsms_server.recovering import WaitingRoom
from tests.waiting import WAIT, reserved, wait_until


@pytest.fixture
def room():
    with reserved() as first, reserved() as second:
        room = WaitingRoom(Config(port=first.getsockname()[1], http_port=second.getsockname()[1]))
        room.open()
        yield room
        room.leave().close()
        room.join()


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
    other = WaitingRoom(room.config)  # what is taken stays closed, and is no error
    other.open()
    assert other.leave() == Bound()
    other.join()
    assert len(room.bound.port) == len(room.bound.http) == 1


@pytest.fixture
def hand_over(serve):
    """Open a waiting room; when the server takes over, `gap` is done after the room has left and
    before the server listens.  Gives the room and what starts the server."""
    held: list[socket.socket] = []

    def begin(**options):
        held.extend((reserved(), reserved()))
        port, http_port = (each.getsockname()[1] for each in held[-2:])
        options = {"port": port, "http_port": http_port, **options}
        room = WaitingRoom(Config(**options))
        room.open()

        def start(gap=lambda: None):
            def take_ports():
                bound = room.leave()
                gap()
                return bound

            running = serve(take_ports=take_ports, **options)
            room.join()
            return running

        return room, start

    yield begin
    for each in held:
        each.close()


def test_the_server_gets_the_sockets_that_listen(hand_over):
    room, start = hand_over()
    came = []

    def gap():
        # nobody is refused, and what is asked is answered by the server
        peer = Peer(room.config.port)
        peer.send("hello", version=1)
        web = socket.create_connection(("127.0.0.1", room.config.http_port), WAIT)
        web.sendall(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
        came.extend((peer, web))

    running = start(gap)
    peer, web = came
    with peer, web:
        assert peer.reply(1)["ok"] and peer.ask("ping")["ok"]
        assert web.recv(100).startswith(b"HTTP/1.1 200 ")
    assert running.port == room.config.port and running.server.http_port == room.config.http_port
    assert page(room, "/readyz") == (200, "ready\n")


@pytest.mark.parametrize(
    "said", [b"", b"\0\0", pack({"op": "ping", "id": 1})[:-1]], ids=["silent", "begun", "half"]
)
def test_who_has_not_asked_is_answered_and_goes_in_order(hand_over, monkeypatch, said):
    monkeypatch.setattr(recovering, "FAREWELL", WAIT)
    room, start = hand_over()
    with Peer(room.config.port) as peer:
        peer.raw(said)
        wait_until(lambda: len(room._guests) == 1)
        answered = []

        def gap():
            answered.append(peer.read())
            peer.raw(b"x" * 1000)  # what still comes is read
            assert peer.rest() == b""
            peer.socket.shutdown(socket.SHUT_WR)

        start(gap)
    (answer,) = answered
    assert (answer["id"], answer["error"]["code"]) == (None, "DS647")


def test_http_clients_may_still_ask_after_the_hand_over(hand_over, monkeypatch):
    monkeypatch.setattr(recovering, "FAREWELL", WAIT)
    room, start = hand_over()
    with socket.create_connection(("127.0.0.1", room.config.http_port), WAIT) as web:
        wait_until(lambda: len(room._guests) == 1)
        read = []

        def gap():
            web.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            while piece := web.recv(1000):
                read.append(piece)
            web.shutdown(socket.SHUT_WR)

        start(gap)
    assert b"".join(read).startswith(b"HTTP/1.1 200 OK") and read[-1].endswith(b"applied\n")


def test_tls_guests_are_answered_too(hand_over, certificate, monkeypatch):
    monkeypatch.setattr(recovering, "FAREWELL", WAIT)
    cert, key = certificate
    room, start = hand_over(tls_cert=cert, tls_key=key)
    context = ssl.create_default_context(cafile=cert)
    plain = socket.create_connection(("127.0.0.1", room.config.port), WAIT)
    with context.wrap_socket(plain, server_hostname="localhost") as guest:
        read = []

        def gap():
            while piece := guest.recv(1000):
                read.append(piece)
            guest.unwrap().close()

        start(gap)
    assert b"DS647" in b"".join(read)
    with connect(port=room.config.port, tls=context) as db:
        db.ping()


def test_a_client_waits_through_a_start():
    """Closed without a word, reset, told DS647, and then served."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def play():
            for last_words in (
                b"",
                None,
                pack({"id": 0, "error": {"code": "DS647", "message": "coming back"}}),
            ):
                peer, _ = listener.accept()
                with peer:
                    peer.recv(1000)
                    if last_words is None:
                        peer.setsockopt(
                            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                        )
                    else:
                        peer.sendall(last_words)

            served.append(1)
            peer, _ = listener.accept()
            with peer:
                peer.recv(1000)
                peer.sendall(pack({"id": 0, "ok": True, "run": "x"}))
                peer.recv(1000)

        served: list[int] = []
        player = threading.Thread(target=play)
        player.start()
        connect(port=listener.getsockname()[1], connect_seconds=WAIT).close()
        player.join()
    assert served == [1]


def test_who_gives_up_says_after_how_long_and_what_lengthens_it(room):
    with pytest.raises(DsmsError) as caught:
        connect(port=room.config.port, connect_seconds=0.25)
    assert caught.value.code == "DS647"
    assert "(gave up after 0.25 s)" in caught.value.message
    assert caught.value.hint == "try again in a moment; a larger connect_seconds tries for longer"


async def gave_up(port, monkeypatch):
    """The error of a request whose server does not come back in time."""
    client = AsyncClient(port=port, reconnect_seconds=0.01)
    monkeypatch.setattr(aio, "FIRST_DELAY", 0.001)
    client._met = True
    with pytest.raises(DsmsError) as caught:
        await client.ping()
    return caught.value


def test_a_writer_that_gives_up_says_so_too(room, monkeypatch):
    problem = asyncio.run(gave_up(room.config.port, monkeypatch))
    assert problem.code == "DS647" and "(gave up after 0.01 s)" in problem.message
    assert problem.hint == "try again in a moment; a larger reconnect_seconds tries for longer"


def test_a_peer_of_another_protocol_is_not_tried_again():
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def play():
            while True:
                peer, _ = listener.accept()
                seen.append(peer)
                peer.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        seen: list[socket.socket] = []
        threading.Thread(target=play, daemon=True).start()
        with pytest.raises(DsmsError, match=r"does not speak the dsms protocol") as caught:
            connect(port=listener.getsockname()[1], connect_seconds=5.0)
        assert caught.value.code == "DS607" and len(seen) == 1
        for peer in seen:
            peer.close()


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
