"""Connections that have not authenticated: what they may send, for how long, how many there are,
and guesses of tokens."""

from __future__ import annotations

import socket
import struct
import threading
import urllib.request

import msgpack
import pyarrow as pa
import pytest
from harness import ended

from dsms_client import columns
from dsms_client.protocol import HEADER, pack
from dsms_server import decode, descriptors, http, session, threshold
from dsms_server.decode import SMALL
from dsms_server.descriptors import Room
from dsms_server.guesses import AT_ONCE, FORGIVEN, LONGEST, Guesses
from dsms_server.strangers import Strangers, address_of
from tests.waiting import WAIT, wait_until

CLIENT_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01"  # its beginning
ARROW = columns.ipc(pa.record_batch({"k": pa.array([1])}))


@pytest.fixture
def undecoded(monkeypatch):
    """Nothing may be decoded as requests are."""

    def fail(*args):
        raise AssertionError("decoded")

    monkeypatch.setattr("dsms_server.session.decoded", fail)
    monkeypatch.setattr(decode, "read_stream", fail)


BEFORE = [
    {"op": "execute", "sql": "SELECT 1"},
    {"op": "ingest", "stream": "s", "rows": [[1]]},
    {"op": "ingest", "stream": "s", "columns": {"k": [1]}},
    {"op": "ingest", "stream": "s", "arrow": bytes(ARROW)},
    {"op": "hello", "version": 1, "token": "secret", "client": ["a"] * 10},
    {"op": "hello", "version": 1, "token": "secret", "x": msgpack.ExtType(5, b"x")},
    {"op": "hello", "version": 1, "token": "secret", "x": b"x"},
    {"op": "nothing"},
    [1],
]


@pytest.mark.parametrize("message", BEFORE, ids=str)
def test_nothing_is_decoded_before_the_token(serve, undecoded, message):
    running = serve(token="secret")
    with running.peer() as peer:
        body = msgpack.packb({**message, "id": 7} if isinstance(message, dict) else message)
        peer.raw(HEADER.pack(len(body)) + body)
        error = peer.read()
        assert (
            error["error"]["code"] == "DS605"
            and error["error"]["message"] == "this server asks for a token"
        )
        assert error["id"] in (7, None)
        assert peer.ask("hello", version=1, token="secret")["ok"]


def test_a_hello_is_checked_before_the_token(serve, undecoded):
    with serve(token="secret").peer() as peer:
        assert peer.ask("hello", version=1, token=5)["error"]["code"] == "DS604"
        assert peer.ask("hello", version=1, tokn="x")["error"]["code"] == "DS603"


@pytest.mark.parametrize("size", [threshold.HELLO_BYTES + 1, 1 << 20])
def test_a_frame_before_the_token_is_short(serve, size):
    running = serve(token="secret")
    with running.peer() as peer:
        peer.raw(HEADER.pack(size) + b"\x81")
        assert peer.read()["error"]["code"] == "DS601"
        assert peer.rest() == b""
    with running.peer() as peer:
        longest = {"op": "hello", "id": 1, "version": 1, "token": "secret", "client": ""}
        longest["client"] = "x" * (threshold.HELLO_BYTES - len(msgpack.packb(longest)) - 2)
        frame = pack(longest)
        assert len(frame) == 4 + threshold.HELLO_BYTES
        rows = pack({"op": "execute", "id": 2, "sql": "CREATE STREAM s (k INT)"})
        rows += pack(
            {"op": "ingest", "id": 3, "stream": "s", "rows": [[i] for i in range(200_000)]}
        )
        peer.raw(frame + rows)  # after the token all is as it was
        assert peer.reply(3)["accepted"] == 200_000


def test_memory_before_the_token_is_small(serve):
    running = serve(token="secret")
    with running.peer() as peer:
        peer.raw(HEADER.pack(4000) + b"\x81")
        wait_until(
            lambda: running.on_loop(lambda: any(s._buffer.partial for s in running.server.sessions))
        )
        (held,) = running.on_loop(
            lambda: [len(s._buffer._scratch) for s in running.server.sessions]
        )
        assert held == threshold.HELLO_BYTES + 4


@pytest.mark.parametrize(
    "first", [b"", b"\0", pack({"op": "ping", "id": 1})], ids=["silent", "begun", "ping"]
)
def test_the_token_is_shown_within_two_seconds(serve, first):
    running = serve(token="secret", hello_seconds=2.0)
    hours = running.hours()
    with running.peer() as peer, running.peer() as good:
        assert good.ask("hello", version=1, token="secret")["ok"]
        peer.raw(first)
        wait_until(lambda: len(first) in bytes_of_strangers(running))
        wait_until(lambda: hours.waiting == [2.0])
        hours.go_on(1.9)
        assert good.ask("ping")["ok"]
        assert len(running.on_loop(lambda: strangers(running))) == 1
        hours.go_on(0.2)
        last = peer.rest()
        assert (b"no token was shown within 2 s" in last) == bool(first)
        assert good.ask("ping")["ok"]


def strangers(running):
    return [s for s in running.server.sessions if s in running.server.strangers]


def bytes_of_strangers(running):
    return running.on_loop(lambda: [s.threshold.came for s in strangers(running)])


def waiting(running):
    return running.on_loop(lambda: sum(s.threshold.waiting for s in running.server.sessions))


def wrong_tokens(running):
    return running.server.metrics.wrong_tokens._value.get()


SSL_REQUEST = struct.pack(">II", 8, 80877103)  # of PostgreSQL: it goes on in plain after a N
BAD = HEADER.pack(3) + b"\x83bc"


@pytest.mark.parametrize(
    "first",
    [b"\0\0", pack({"op": "ping", "id": 1})[:-2], BAD, SSL_REQUEST],
    ids=["two bytes", "half a frame", "bad frame", "psql"],
)
def test_the_first_whole_request_must_come_in_time(serve, first):
    running = serve(quiet_seconds=10.0)
    hours = running.hours()
    with running.peer() as peer:
        peer.raw(first)
        wait_until(lambda: len(first) in bytes_of_strangers(running))
        hours.go_on(9.9)
        assert len(running.on_loop(lambda: strangers(running))) == 1
        hours.go_on(0.2)
        assert b"no request that can be read came within 10 s" in peer.rest()


@pytest.mark.parametrize(
    ("options", "said"),
    [({"quiet_seconds": 10.0}, b"DS607"), ({"token": "secret", "hello_seconds": 10.0}, b"DS605")],
    ids=["open", "token"],
)
def test_bytes_that_trickle_in_buy_no_time(serve, options, said):
    running = serve(**options)
    hours = running.hours()
    frame = pack({"op": "ping", "id": 1})
    with running.peer() as slow, running.peer() as good:
        assert good.ask("hello", version=1, token="secret")["ok"]
        for place in range(3):
            slow.raw(frame[place : place + 1])
            wait_until(lambda come=place + 1: come in bytes_of_strangers(running))
            hours.go_on(4.0 if place < 2 else 1.9)
        assert len(running.on_loop(lambda: strangers(running))) == 1
        hours.go_on(0.2)
        assert said in slow.rest()
        hours.go_on(1000.0)
        assert good.ask("ping")["ok"]


@pytest.mark.parametrize("good", [True, False], ids=["good", "bad"])
def test_a_request_that_is_being_read_is_in_time(serve, monkeypatch, good):
    """A big frame is decoded in another thread: what becomes of the peer is known when that is
    done."""
    running, gate = serve(quiet_seconds=10.0), threading.Event()
    hours, decoded = running.hours(), session.decoded

    def slowly(body, shape):
        assert gate.wait(WAIT)
        return decoded(body, shape)

    monkeypatch.setattr(session, "decoded", slowly)
    with running.peer() as peer:
        frame = pack({"op": "ping", "id": 1, "more": "x" * SMALL})
        peer.raw(frame if good else frame[:4] + b"\x85" + frame[5:])
        wait_until(
            lambda: (
                running.on_loop(lambda: [s._decoding for s in running.server.sessions]) == [True]
            )
        )
        hours.go_on(11.0)
        gate.set()
        if good:
            assert peer.reply(1)["error"]["code"] == "DS603"
            assert "error" not in peer.ask("ping")
        else:
            assert b"DS607" in peer.rest()


@pytest.mark.parametrize(
    "first", [b"", b"\x16", CLIENT_HELLO], ids=["silent", "begun", "half a handshake"]
)
def test_a_handshake_has_one_limit(serve, certificate, first):
    cert, key = certificate
    running = serve(tls_cert=cert, tls_key=key, handshake_seconds=10.0)
    hours = running.hours()
    with running.peer() as peer:
        wait_until(lambda: len(hours.waiting) == 1)
        hours.go_on(9.9)
        peer.raw(first)
        door = running.server._listener
        wait_until(lambda: running.on_loop(lambda: len(door._coming)) == bool(first))
        assert running.on_loop(lambda: len(door._crowd)) == 1
        hours.go_on(0.2)
        assert ended(peer.socket)
        wait_until(lambda: running.on_loop(lambda: len(door._crowd)) == 0)
        assert hours.waiting == [] and running.on_loop(lambda: door._deadlines) == {}


def test_frames_refused_before_the_token_are_counted(serve):
    with serve(token="secret").peer() as peer:
        peer.raw(pack({"op": "ping", "id": 1}) * 1000)
        assert peer.rest().count(b"DS605") == threshold.TRIES


def test_silent_strangers_take_no_place_of_others(serve):
    running = serve(max_sessions=2, max_strangers=20)
    with running.peer() as old:
        assert old.ask("ping")["ok"]
        silent = [running.peer() for _ in range(60)]
        wait_until(
            lambda: (
                running.on_loop(
                    lambda: running.server.metrics.let_go.labels("crowded")._value.get()
                )
                == 40
            )
        )
        assert b"DS621" in silent[0].rest()
        with running.peer() as new:
            assert new.ask("ping")["ok"]
            assert old.ask("ping")["ok"]
            with running.peer() as third:  # the places of proven sessions are taken
                assert third.read()["error"]["code"] == "DS621"
        for peer in silent:
            peer.socket.close()
    wait_until(
        lambda: (
            running.on_loop(lambda: len(running.server.strangers) + len(running.server.proven)) == 0
        )
    )


def test_a_place_may_be_taken_while_a_stranger_waits(serve):
    running = serve(max_sessions=1)
    with running.peer() as first, running.peer() as second:
        wait_until(lambda: len(running.on_loop(lambda: strangers(running))) == 2)
        assert first.ask("ping")["ok"]
        second.send("ping")
        assert second.read()["error"]["code"] == "DS621"
        assert second.rest() == b""


def test_one_address_does_not_crowd_out_others():
    crowd: Strangers[int] = Strangers(5)
    assert [crowd.enter(n, "a") for n in range(4)] == [None] * 4
    assert crowd.enter(10, "b") is None
    assert [crowd.enter(n, "a") for n in (4, 5)] == [0, 1]
    assert crowd.enter(11, "b") == 2
    assert len(crowd) == 5 and 10 in crowd and 2 not in crowd
    assert crowd.leave(3) and not crowd.leave(3)


def test_addresses():
    assert address_of(("10.0.0.1", 5)) == address_of(("::ffff:10.0.0.1", 5, 0, 0)) == "10.0.0.1"
    assert (
        address_of(("2001:db8::1", 5, 0, 0))
        == address_of(("2001:db8::ffff%eth0", 5, 0, 0))
        == "2001:db8::/64"
    )
    assert address_of("") == address_of(None) == ""


def test_wrong_tokens_are_answered_later_and_later():
    now = [0.0]
    guesses = Guesses(0.1, lambda: now[0])
    delays = []
    for _ in range(10):
        delays.append(guesses.wrong("a"))
        now[0] += delays[-1]
        assert guesses.wait("a") == 0.0
    assert delays == [pytest.approx(0.1 * min(2**n, LONGEST)) for n in range(10)]
    assert guesses.wrong("b") == 0.1
    now[0] += FORGIVEN + 1
    assert guesses.wrong("a") == 0.1


def test_few_wrong_tokens_of_an_address_wait_at_a_time():
    now = [0.0]
    guesses = Guesses(0.1, lambda: now[0])
    first = [guesses.wrong("a") for _ in range(AT_ONCE)]
    assert guesses.wait("a") == first[0] and guesses.wait("b") == 0.0
    now[0] += first[0]
    assert guesses.wait("a") == 0.0


def test_a_guesser_waits_and_nobody_else(serve, caplog):
    running = serve(token="secret", guess_seconds=0.1)
    hours = running.hours()
    with running.peer() as guesser, running.peer() as good:
        guesser.raw(
            b"".join(
                pack({"op": "hello", "id": n, "version": 1, "token": f"{n}"}) for n in range(100)
            )
        )
        for n in range(5):
            wait_until(lambda wrong=n + 1: wrong_tokens(running) == wrong)
            if n == 2:
                assert good.ask("hello", version=1, token="secret")["ok"]
            hours.go_on(0.1 * 2**n)
            reply = guesser.read()
            assert (reply["id"], reply["error"]["code"]) == (n, "DS605")
            assert reply["error"]["message"] == "the token is wrong"
        assert good.ask("ping")["ok"]
        assert wrong_tokens(running) == 6
    assert "a wrong token was given by 127.0.0.1" in caplog.text
    hours.go_on(1000.0)
    wait_until(
        lambda: (
            running.on_loop(lambda: len(running.server.sessions) + running.server.unprocessed) == 0
        )
    )


def test_a_guesser_of_many_connections_waits(serve):
    running = serve(token="secret")
    hours = running.hours()
    peers = [running.peer() for _ in range(3 * AT_ONCE)]
    for peer in peers:
        peer.send("hello", version=1, token="guess")
    wait_until(lambda: waiting(running) == 3 * AT_ONCE)
    assert wrong_tokens(running) == AT_ONCE
    with running.peer() as good:
        good.send("hello", version=1, token="secret")
        wait_until(lambda: waiting(running) == 3 * AT_ONCE + 1)
        hours.go_on(1000.0)
        assert good.reply(1)["ok"]
    for peer in peers:
        peer.socket.close()
    wait_until(lambda: running.on_loop(lambda: len(running.server.sessions)) == 0)
    assert running.on_loop(lambda: running.server.unprocessed) == 0


def test_handshakes_are_limited(serve, certificate):
    cert, key = certificate
    running = serve(tls_cert=cert, tls_key=key, max_strangers=10)
    silent = [running.peer() for _ in range(15)]
    for peer in silent:
        peer.raw(b"")
    begun = [running.peer() for _ in range(15)]
    for peer in begun:
        peer.raw(CLIENT_HELLO)
    wait_until(
        lambda: (
            running.on_loop(lambda: running.server.metrics.let_go.labels("crowded")._value.get())
            == 20
        )
    )
    assert running.on_loop(lambda: len(running.server._listener._crowd)) == 10
    assert ended(silent[0].socket) and ended(begun[0].socket)
    for peer in silent + begun:
        peer.socket.close()
    wait_until(lambda: running.on_loop(lambda: len(running.server._listener._crowd)) == 0)


def test_slow_http_clients_are_let_go(serve):
    running = serve(http_port=0)
    hours = running.hours()
    port = running.server.http_port
    slow = [socket.create_connection(("127.0.0.1", port), WAIT) for _ in range(http.AT_ONCE + 5)]
    for one in slow:
        one.sendall(b"GET /metrics HTTP/1.1\r\n")
    let_go = running.server.metrics.let_go
    wait_until(lambda: let_go.labels("crowded")._value.get() == 5)
    assert (
        urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=WAIT).read() == b"ok\n"
    )
    hours.go_on(http.SECONDS)
    wait_until(lambda: let_go.labels("quiet")._value.get() == http.AT_ONCE - 1)
    for one in slow:
        assert ended(one)
    assert running.on_loop(lambda: running.server._http._deadlines) == {}


def test_descriptors_are_kept_for_files(serve):
    running = serve()
    running.server.room.below = 0
    with running.peer() as peer:
        assert peer.read()["error"]["code"] == "DS621"
        assert peer.rest() == b""
    running.server.room.below = 1 << 20
    with running.peer() as peer:
        assert peer.ask("ping")["ok"]
    assert not Room().left_by(Room().below)


def test_as_many_descriptors_as_the_system_allows(monkeypatch):
    limits = [(1024, 4096)]
    monkeypatch.setattr(descriptors.resource, "getrlimit", lambda what: limits[-1])
    monkeypatch.setattr(descriptors.resource, "setrlimit", lambda what, pair: limits.append(pair))
    descriptors.raise_limit()
    assert limits[-1] == (4096, 4096) and Room().below == 4096 - descriptors.RESERVED


def test_the_system_looks_whether_peers_are_there(serve):
    running = serve()
    with running.peer() as peer:
        peer.ask("ping")
        (option,) = running.on_loop(lambda: [asked(s) for s in running.server.sessions])
    assert option == (1, 60)


def asked(session):
    connection = session.transport.get_extra_info("socket")
    idle = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
    return connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE), idle


def test_a_vanished_guesser_leaves_nothing(serve):
    running = serve(token="secret")
    hours = running.hours()
    with running.peer() as peer:
        peer.send("hello", version=1, token="guess")
        wait_until(lambda: len(hours.waiting) == 2)
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    hours_left = lambda: hours.waiting == []  # noqa: E731
    wait_until(lambda: running.on_loop(lambda: len(running.server.sessions)) in (0, 1))
    hours.go_on(10.0)
    wait_until(hours_left)
    wait_until(
        lambda: (
            running.on_loop(lambda: len(running.server.sessions) + running.server.unprocessed) == 0
        )
    )
