"""Raw sockets: how frames are cut, what is no frame, and that no other session is harmed."""

from __future__ import annotations

import socket

import msgpack
import pytest

from dsms_client.protocol import HEADER, pack
from tests.waiting import WAIT


def test_execute_answers_rows(server):
    with server.peer() as peer:
        reply = peer.ask("execute", sql="SELECT 1; CREATE STREAM t (a INT)")
    assert reply["results"] == [
        {
            "kind": "rows",
            "columns": ["1"],
            "types": ["INT"],
            "as_of": reply["results"][0]["as_of"],
            "rows": [[1]],
        },
        {"kind": "done", "message": "stream t created"},
    ]


def test_a_frame_may_come_byte_by_byte_and_many_in_one_piece(server):
    with server.peer() as peer:
        peer.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in pack({"op": "ping", "id": "slow"}):
            peer.raw(bytes([byte]))
        assert peer.reply("slow") == {"id": "slow", "ok": True}
        peer.raw(b"".join(pack({"op": "ping", "id": i}) for i in range(500)))
        assert [peer.read()["id"] for _ in range(500)] == list(range(500))


def test_a_big_frame_is_whole_whatever_its_pieces(server):
    rows = [[i, i / 2] for i in range(60_000)]
    frame = pack({"op": "ingest", "id": 1, "stream": "s", "rows": rows})
    assert len(frame) > 600_000
    with server.peer() as peer:
        peer.raw(pack({"op": "ping", "id": 0}) + frame[:100])
        for first in range(100, len(frame), 77_777):
            peer.raw(frame[first : first + 77_777])
        assert peer.reply(1) == {"id": 1, "ok": True, "accepted": 60_000, "late": 0, "refused": 0}
        assert peer.ask("execute", sql="SELECT COUNT(*) FROM s")["results"][0]["rows"] == [[60_000]]


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        (b"\xc1", "DS600", "not valid msgpack: no value begins with the byte 0xc1"),
        (b"", "DS600", "not valid msgpack: it is empty"),
        (b"\x81\xa2op", "DS600", "it ends too early"),
        (b"\x81\xa1\xff\x01", "DS600", "a text that is not UTF-8"),
        (msgpack.packb([1, 2]), "DS600", "one msgpack map"),
        (msgpack.packb({"op": "ping", "id": 1}) + b"\x00", "DS600", "bytes are left over"),
        (msgpack.packb({1: 2}), "DS600", "a map in it has a key that is no text"),
        (
            msgpack.packb({"op": "ping", "id": 1, "x": msgpack.ExtType(5, b"x")}),
            "DS600",
            "extension type 5",
        ),
        (b"\x91" * 3000, "DS600", "nested too deep"),
        (
            b"\x81\xa2op\xdd\x7f\xff\xff\xff",
            "DS600",
            "it has 2,147,483,647 items in one place, and 1,048,576 are the most",
        ),
        (
            msgpack.packb({"op": "ingest", "id": 1, "x": "y" * 20_000})[:-1],
            "DS600",
            "not valid msgpack",
        ),
        (msgpack.packb({"id": 7}), "DS602", "has no `op`"),
        (msgpack.packb({"op": "exekute", "id": 7}), "DS602", "unknown request 'exekute'"),
        (msgpack.packb({"op": "execute", "id": 7}), "DS603", "needs the field `sql`"),
        (
            msgpack.packb({"op": "execute", "id": 7, "sql": 5}),
            "DS604",
            "`sql` of `execute` must be text, not int",
        ),
        (
            msgpack.packb({"op": "execute", "id": 7, "sql": "x", "sqll": "x"}),
            "DS603",
            "no field `sqll`",
        ),
        (
            msgpack.packb({"op": "ingest", "id": 7, "stream": "s"}),
            "DS603",
            "exactly one of arrow, columns and rows",
        ),
        (
            msgpack.packb({"op": "ingest", "id": 7, "stream": "s", "rows": [], "arrow": b""}),
            "DS603",
            "exactly one",
        ),
        (msgpack.packb({"op": "ping"}), "DS603", "needs an `id`"),
        (msgpack.packb({"op": "ping", "id": [1]}), "DS603", "needs an `id`"),
        (
            msgpack.packb({"op": "subscribe", "id": 7, "query": "q", "from": True}),
            "DS604",
            "must be an integer",
        ),
    ],
)
def test_a_bad_frame_is_answered_and_the_session_goes_on(server, body, code, says):
    with server.peer() as other, server.peer() as peer:
        other.ask("ping")
        peer.raw(HEADER.pack(len(body)) + body + pack({"op": "ping", "id": "after"}))
        error = peer.read()
        assert error["error"]["code"] == code
        assert says in error["error"]["message"]
        assert peer.read() == {"id": "after", "ok": True}
        assert other.ask("ping")["ok"]


def test_an_error_names_the_request_and_a_near_name(server):
    with server.peer() as peer:
        assert peer.ask("exekute", sql="x")["error"]["hint"] == "did you mean `execute`?"
        assert (
            peer.ask("execute", sqll="x")["error"]["message"] == "`execute` needs the field `sql`"
        )


def test_an_oversized_length_is_answered_then_the_session_ends(serve):
    running = serve(max_frame=1000)
    with running.peer() as other, running.peer() as peer:
        peer.raw(pack({"op": "ping", "id": 1}) + HEADER.pack(1001) + b"x" * 1001)
        assert peer.read()["ok"]
        error = peer.read()["error"]
        assert error["code"] == "DS601"
        assert "1001 bytes is over the limit of 1000" in error["message"]
        assert peer.rest() == b""
        assert other.ask("ping")["ok"]


def test_what_was_asked_before_an_oversized_frame_is_still_answered(serve):
    running = serve(max_frame=1000)
    with running.peer() as other, running.peer() as peer:
        running.engine.gate.clear()
        other.send("execute", sql="GATE")
        assert running.engine.at_the_gate.wait(WAIT)
        peer.raw(pack({"op": "execute", "id": 1, "sql": "SELECT 1"}) + HEADER.pack(1001))
        assert peer.read()["error"]["code"] == "DS601"
        running.engine.gate.set()
        assert peer.read()["results"][0]["rows"] == [[1]]
        assert peer.rest() == b""


def test_a_length_over_the_limit_at_once(server):
    with server.peer() as peer:
        peer.raw(b"\xff\xfe\xfd\xfc\x81")
        assert peer.read()["error"]["code"] == "DS601"


def test_a_length_claims_no_memory(serve):
    running = serve(max_frame=1 << 30)
    with running.peer() as peer:
        peer.raw(pack({"op": "ping", "id": 1}))
        assert peer.read()["ok"]
        peer.raw(HEADER.pack(1 << 30) + b"x" * 10)
        peer.socket.shutdown(socket.SHUT_WR)
        assert peer.rest() == b""


def test_half_closed_peers_get_all_their_answers(server):
    with server.peer() as peer:
        for number in range(50):
            peer.send("execute", sql=f"SELECT {number}")
        peer.socket.shutdown(socket.SHUT_WR)
        answers = [peer.read()["results"][0]["rows"][0][0] for _ in range(50)]
        assert answers == list(range(50))
        assert peer.rest() == b""


def test_subscribers_that_hang_up_leave_no_session_behind(server):
    with server.peer() as writer:
        for _ in range(3):
            with server.peer() as peer:
                assert peer.ask("subscribe", query="q")["ok"]
        with server.peer() as peer:
            assert peer.ask("subscribe", query="q")["ok"]
            writer.ask("ingest", stream="s", rows=[[1, 0.5]])
            peer.socket.shutdown(socket.SHUT_WR)
            assert b"insert" in peer.rest()  # what was due is told, then the server closes too
        while server.on_loop(lambda: len(server.server.sessions)) > 1:
            assert writer.ask("ping")["ok"]


def test_a_peer_that_vanishes_in_a_frame_harms_nobody(server):
    with server.peer() as other:
        for cut in (1, 4, 10):
            with server.peer() as peer:
                peer.raw(pack({"op": "execute", "id": 1, "sql": "SELECT 1"})[:cut])
        assert other.ask("ping")["ok"]
