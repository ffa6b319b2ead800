"""Who comes to the PostgreSQL port: TLS, passwords, keys, bytes that are no messages, peers that
say nothing, read nothing or go."""

from __future__ import annotations

import struct

import pytest
from postgres_peer import (
    GSS_REQUEST,
    SSL_REQUEST,
    SYNC,
    TERMINATE,
    Wire,
    bind,
    execute,
    fields,
    message,
    parse,
    query,
    startup,
)

from dsms.engine import Engine
from tests.waiting import wait_until

ADMIN = "the-token-of-the-administrator"
DECLARED = """
CREATE STREAM s (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 HOUR;
CREATE STREAM hidden (k STRING, t TIMESTAMP) TIMESTAMP BY t;
CREATE QUERY q AS SELECT k, v FROM s [RANGE 1 HOUR];
CREATE USER bob PASSWORD 'correct horse'; CREATE USER till TOKEN 'a-token-that-is-tills-alone';
GRANT SELECT ON s TO bob WHERE v < 3;
"""


@pytest.fixture
def users(serve):
    def start(**options):
        engine = Engine()
        engine.execute(DECLARED)
        engine.ingest("s", {"k": ["a", "b"], "v": [1, 5], "t": [0, 1]})
        engine.heartbeat("s", 2)
        return serve(engine, postgres_port=0, token=ADMIN, auth=True, guess_seconds=0, **options)

    return start


@pytest.fixture
def port(serve):
    return serve(Engine(), postgres_port=0).server.postgres_port


def password(text: str) -> bytes:
    return message(b"p", text.encode() + b"\0")


def asks(wire: Wire) -> None:
    """The server asks for a password."""
    assert wire.until(b"R") == [(b"R", struct.pack(">I", 3))]


@pytest.mark.parametrize(
    ("user", "shown", "comes"),
    [
        ("bob", "correct horse", True),
        ("BOB", "correct horse", True),
        ("till", "a-token-that-is-tills-alone", True),
        ("admin", ADMIN, True),
        ("bob", "wrong", False),
        ("nobody", "correct horse", False),
        ("bob", ADMIN, False),
        ("bob", "", False),
    ],
)
def test_who_comes_in(users, user, shown, comes):
    running = users()
    with Wire(running.server.postgres_port, user) as wire:
        asks(wire)
        wire.raw(password(shown))
        if not comes:
            problem = wire.fatal()
            assert problem["C"] == "28P01" and "horse" not in str(problem)
            return
        wire.begin()
        assert [s.user for s in running.server.sessions] == [user.lower()]
        if user.lower() == "bob":
            assert wire.rows("SELECT k FROM s") == [(b"a",)]
            assert wire.rows("SELECT relname FROM pg_class") == [(b"s",)]
            assert wire.error(query("SELECT * FROM hidden"))["C"] == "42P01"
            assert wire.error(query("SUBSCRIBE TO q"))["C"] in ("42P01", "42501")
            with running.peer() as other:
                other.ask("hello", version=1, token=ADMIN)
                other.ask("execute", sql="DROP USER bob")
            assert wire.fatal()["C"] == "28P01"


def test_a_server_with_a_token_asks_for_it(serve):
    running = serve(Engine(), postgres_port=0, token="secret")
    for shown, comes in (("secret", True), ("other", False)):
        with Wire(running.server.postgres_port) as wire:
            asks(wire)
            wire.raw(password(shown))
            assert wire.begin() if comes else wire.fatal()


def test_a_password_comes_first(users):
    with Wire(users().server.postgres_port) as wire:
        asks(wire)
        wire.raw(query("SELECT 1"))
        assert wire.fatal()["C"] == "08P01"


def test_no_password_travels_in_the_clear(users, monkeypatch):
    from dsms_server.postgres import greeting

    monkeypatch.setattr(greeting, "_is_near", lambda peer: False)
    with Wire(users().server.postgres_port, "bob") as wire:
        problem = wire.fatal()
    assert problem["C"] == "28000" and "TLS" in problem["H"]


def test_tls(users, certificate, monkeypatch):
    from dsms_server.postgres import greeting

    monkeypatch.setattr(greeting, "_is_near", lambda peer: False)
    cert, key = certificate
    running = users(tls_cert=cert, tls_key=key)
    with Wire(running.server.postgres_port, None) as wire:
        wire.raw(GSS_REQUEST)
        assert wire._take(1) == b"N"
        wire.secure()
        wire.raw(startup(user="bob"))
        asks(wire)
        wire.raw(password("correct horse"))
        wire.begin()
        assert wire.rows("SELECT v FROM s") == [(b"1",)]


def test_bytes_before_the_handshake_are_none_of_what_comes_under_it(users, certificate):
    cert, key = certificate
    running = users(tls_cert=cert, tls_key=key)
    with Wire(running.server.postgres_port, None) as wire:
        wire.raw(SSL_REQUEST + startup(user="bob"))
        assert wire._take(1) == b"S"
        assert b"R" not in wire.rest()[:1]


def test_without_tls_a_client_goes_on_in_the_clear(port):
    with Wire(port, None) as wire:
        for asked in (SSL_REQUEST, GSS_REQUEST):
            wire.raw(asked[:3])
            wire.raw(asked[3:])
            assert wire._take(1) == b"N"
        wire.raw(startup(user="me"))
        wire.begin()
        wire.raw(TERMINATE)
        assert wire.rest() == b""


def test_who_asks_again_and_again_is_let_go(port):
    with Wire(port, None) as wire:
        wire.raw(SSL_REQUEST * 10)
        assert wire.rest() == b"NNNN"


@pytest.mark.parametrize(
    "first",
    [
        struct.pack(">II", 8, 2 << 16),
        struct.pack(">II", 9, 3 << 16) + b"\0",
        struct.pack(">II", 1 << 30, 3 << 16),
        struct.pack(">II", 3, 3 << 16),
        startup(),
        startup(database="x"),
        startup(user="x", replication="true"),
        startup(user="x")[:-2] + b"xx",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03",
    ],
)
def test_first_messages_that_can_not_be(port, first):
    with Wire(port, None) as wire:
        wire.raw(first)
        assert wire.fatal()["C"] in ("08P01", "28000", "0A000")


def test_a_newer_minor_version_is_answered_with_what_is_spoken(port):
    with Wire(port, None) as wire:
        wire.raw(startup(3 << 16 | 2, user="me", **{"_pq_.x": "1"}))
        (kind, body) = wire.read()
        assert kind == b"v" and struct.unpack(">II", body[:8]) == (3 << 16, 1)
        wire.begin()


@pytest.mark.parametrize(
    "bad",
    [
        b"\xff\0\0\0\4",
        b"Q\0\0\0\3",
        b"Q\x7f\xff\xff\xff",
        b"q",
        message(b"Q", b"SELECT 1"),
        message(b"Q", b"SELECT '\xff'\0"),
        message(b"Q", b"SELECT 1\0more"),
        message(b"B", b"\0\0\0\1"),
        message(b"D", b"x\0"),
        message(b"E", b"\0"),
        message(b"P", b"\0SELECT 1\0\xff\xff"),
        message(b"p", b"again\0"),
        parse("", "SELECT 1") + bind(forms=(7,)),
        parse("", "SELECT $1") + message(b"B", b"\0\0" + struct.pack(">HHi", 0, 1, -7)),
    ],
)
def test_messages_that_can_not_be_read_end_the_session(port, bad):
    with Wire(port) as wire, Wire(port) as other:
        wire.begin()
        wire.raw(bad + SYNC)
        assert wire.fatal()["C"] == "08P01"
        assert other.begin().rows("SELECT 1") == [(b"1",)]


def test_values_that_can_not_be_read_end_the_statement_alone(port):
    with Wire(port) as wire:
        wire.begin()
        for oid, form, value in (
            (20, 1, b"123"),
            (20, 0, b"12x"),
            (1700, 1, b"\xff\xff\0\0\0\0\0\0"),
            (1016, 1, struct.pack(">iii", 1, 0, 20) + struct.pack(">ii", 1 << 30, 1)),
            (1186, 1, struct.pack(">qii", 0, 0, 1)),
            (16, 0, b"perhaps"),
            (600, 1, b"x"),
        ):
            asked = parse("", "SELECT $1", oid), bind(values=(value,), forms=(form,)), execute()
            assert wire.error(*asked, SYNC)["M"].startswith("DS618"), (oid, value)
        assert wire.error(parse("", "SELECT $1"), bind(), SYNC)["M"].startswith("DS617")


def test_messages_come_a_byte_at_a_time(port):
    with Wire(port, None) as wire:
        for sent in (startup(user="me"), query("SELECT 5")):
            for k in range(len(sent)):
                wire.raw(sent[k : k + 1])
            found = wire.ready()
        assert (b"C", b"SELECT 1\0") in found


def test_who_goes_while_an_answer_is_made_holds_nothing(serve):
    engine = Engine()
    engine.execute("CREATE TABLE r (id INT PRIMARY KEY, x STRING)")
    engine.execute(
        "INSERT INTO r VALUES " + ", ".join(f"({k}, '{'x' * 500}{k}')" for k in range(300))
    )
    running = serve(engine, postgres_port=0)
    with Wire(running.server.postgres_port) as wire:
        wire.begin()
        wire.raw(query("SELECT COUNT(*) FROM r a, r b, r c, r d WHERE a.x = b.x OR c.x <> d.x"))
    wait_until(lambda: not running.server.sessions)
    wait_until(lambda: running.server.core.runners.running == 0)
    assert running.on_loop(lambda: running.server.unprocessed) == 0
    with Wire(running.server.postgres_port) as wire:
        wire.begin()
        wire.raw(query("SELECT a.x || b.x FROM r a, r b"))
        wire.until(b"D")
    wait_until(lambda: not running.server.sessions)
    assert running.on_loop(lambda: running.server.unread) == 0


def test_a_statement_is_cancelled_by_its_key_alone(serve):
    engine = Engine()
    engine.execute("CREATE TABLE r (id INT PRIMARY KEY)")
    engine.execute("INSERT INTO r VALUES " + ", ".join(f"({k})" for k in range(300)))
    running = serve(engine, postgres_port=0)
    endless = "SELECT COUNT(*) FROM r a, r b, r c, r d, r e WHERE a.id + b.id <> c.id + d.id"
    catalog = "SELECT count(*) FROM pg_class, range(1000000000) a, range(1000) b"
    with Wire(running.server.postgres_port) as wire:
        wire.begin()
        for sql in (endless, catalog):
            wire.raw(query(sql))
            wait_until(lambda: running.server.core.runners.running)
            for key in ((wire.key[0], wire.key[1] ^ 1), (99, wire.key[1]), wire.key):
                wait_until(lambda: running.server.core.runners.running)
                with Wire(running.server.postgres_port, None) as other:
                    other.raw(struct.pack(">IIII", 16, 80877102, *key))
                    assert other.rest() == b""
            found = wire.ready()
            assert fields(found[-2][1])["C"] == "57014", sql
        wire.ask(query("SET statement_timeout = 100"))
        assert wire.error(query(endless))["C"] == "57014"


def test_who_says_nothing_is_let_go(serve):
    running = serve(Engine(), postgres_port=0, token="secret")
    hours = running.hours()
    with (
        Wire(running.server.postgres_port, None) as silent,
        Wire(running.server.postgres_port) as slow,
    ):
        asks(slow)
        wait_until(lambda: len(hours.waiting) == 2)
        hours.go_on(running.config.handshake_seconds + running.config.hello_seconds)
        assert silent.rest() == b""
        assert slow.fatal()["C"] == "28P01"


def test_there_are_so_many_sessions(serve):
    running = serve(Engine(), postgres_port=0, max_sessions=1)
    with Wire(running.server.postgres_port) as wire:
        wire.begin()
        with Wire(running.server.postgres_port) as other:
            assert other.fatal()["C"] == "53300"


def test_a_server_that_stops_says_so(serve):
    running = serve(Engine(), postgres_port=0)
    with Wire(running.server.postgres_port) as wire:
        wire.begin()
        running.await_(running.server.stop())
        assert wire.fatal()["C"] == "57P01"


def test_the_other_port_names_this_one(serve):
    running = serve(Engine(), postgres_port=0)
    with Wire(running.port) as wire:
        told = wire.fatal()["M"]
    assert told.endswith(f"PostgreSQL's clients are on port {running.server.postgres_port}")
