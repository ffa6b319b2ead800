"""Many sessions, slow readers, fast writers, cancel, limits, tokens, the graceful stop."""

from __future__ import annotations

import socket
import threading
import urllib.request

import pyarrow as pa
import pytest
from fake_engine import FakeEngine

from dsms_client import columns
from dsms_client.protocol import pack
from dsms_server import slices
from tests.waiting import WAIT, wait_until


def test_two_hundred_sessions_at_once(server):
    peers = [server.peer() for _ in range(200)]
    for number, peer in enumerate(peers):
        peer.send("hello", version=1)
        peer.send("execute", sql=f"SELECT {number}")
        peer.send("subscribe", query="q")
    for number, peer in enumerate(peers):
        assert peer.reply(1)["ok"]
        assert peer.reply(2)["results"][0]["rows"] == [[number]]
        assert peer.reply(3)["columns"] == ["k", "v"]
    for number, peer in enumerate(peers):
        peer.send("ingest", stream="s", rows=[[number, 0.5]])
    for peer in peers:
        seen = [peer.push() for _ in range(200)]
        assert [p["seq"] for p in seen] == list(range(200))
        assert sorted(p["data"][0][0] for p in seen) == list(range(200))
        peer.socket.close()


def test_pushes_have_one_instant_each_in_rows_mode(server):
    with server.peer() as peer:
        peer.ask("subscribe", query="q")
        peer.send("ingest", stream="s", rows=[[1, 0.5], [2, None], [3, 1.5]])
        pushes = [peer.push() for _ in range(3)]
    assert [(p["seq"], p["at"], p["data"]) for p in pushes] == [
        (0, 0, [[1, 0.5]]),
        (1, 1, [[2, None]]),
        (2, 2, [[3, 1.5]]),
    ]
    assert {p["kind"] for p in pushes} == {"insert"}


def test_arrow_mode_has_a_column_of_instants(server):
    with server.peer() as peer:
        assert peer.ask("hello", version=1, data="arrow")["data"] == "arrow"
        peer.ask("subscribe", query="q")
        batch = pa.record_batch(
            {"v": pa.array([1.0, 2.0], pa.float32()), "K": pa.array([7, None], pa.int32())}
        )
        assert peer.ask("ingest", stream="S", arrow=columns.ipc(batch))["accepted"] == 2
        push = peer.push()
    table = columns.from_ipc(push["data"])
    assert table.to_pydict() == {"k": [7, None], "v": [1.0, 2.0], "$at": [0, 1]}
    assert push["at"] == 1


@pytest.mark.parametrize("form", ["rows", "arrow"])
def test_resume_is_gap_free(server, form):
    with server.peer() as peer:
        peer.ask("hello", version=1, data=form)
        peer.ask("ingest", stream="s", columns={"v": [0.5] * 5000, "k": list(range(5000))})
        peer.ask("subscribe", query="q", **{"from": 1234})
        keys: list[int] = []
        while len(keys) < 5000 - 1234:
            push = peer.push()
            assert push["seq"] == 1234 + len(keys)
            data = push["data"]
            keys += (
                [r[0] for r in data]
                if form == "rows"
                else columns.from_ipc(data).column("k").to_pylist()
            )
    assert keys == list(range(1234, 5000))


def test_a_slow_reader_is_ended_and_its_session_goes_on(serve):
    running = serve(subscriber_bytes=100_000)
    with (
        running.peer() as writer,
        running.peer(receive_buffer=4096) as slow,
        running.peer() as good,
    ):
        writer.ask(
            "execute", sql="CREATE STREAM s (k INT, t STRING); CREATE QUERY q AS SELECT * FROM s"
        )
        slow.ask("subscribe", query="q")
        good.ask("subscribe", query="q")
        sent = 0
        while running.on_loop(lambda: running.server.core.delivery.slow_readers) == 0:
            writer.ask("ingest", stream="s", rows=[[i, "x" * 500] for i in range(sent, sent + 100)])
            for number in range(sent, sent + 100):
                assert good.push()["seq"] == number
            sent += 100
            assert sent < 1_000_000
        last = -1
        while (push := slow.push())["kind"] != "end":
            assert push["seq"] == last + 1
            last = push["seq"]
        assert push["code"] == "DS620"
        assert push["message"] == "results wait unread, more than the limit of 100000 bytes"
        assert last + 1 < sent
        assert slow.ask("execute", sql="SELECT 1")["ok"]
        assert slow.ask("subscribe", query="q", **{"from": last + 1})["ok"]
        for number in range(last + 1, sent):
            assert slow.push()["seq"] == number


def test_a_fast_writer_is_slowed_and_nothing_is_dropped(serve):
    engine = FakeEngine()
    running = serve(engine, unprocessed_bytes=100_000)
    with running.peer() as writer, running.peer() as other:
        writer.ask("execute", sql="CREATE STREAM s (k INT, v FLOAT)")
        engine.gate.clear()
        other.send("execute", sql="GATE")
        assert engine.at_the_gate.wait(WAIT)
        many, rows = 2000, [[i, 0.5] for i in range(1000)]

        def send_all() -> None:
            for number in range(many):
                writer.raw(pack({"op": "ingest", "id": number, "stream": "s", "rows": rows}))
            writer.socket.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send_all)
        sender.start()
        while not running.on_loop(lambda: len(running.server.held)):
            assert sender.is_alive()
        assert 100_000 < running.on_loop(lambda: running.server.unprocessed) < 600_000
        assert sender.is_alive()
        engine.gate.set()
        replies = writer.rest()
        sender.join()
        assert replies.count(b"accepted") == many
        assert other.ask("execute", sql="SELECT COUNT(*) FROM s")["results"][0]["rows"] == [
            [1000 * many]
        ]
        assert running.server.metrics.paused._value.get() > 0


def test_cancel_stops_a_running_statement_and_drops_a_queued_one(server):
    with server.peer() as peer, server.peer() as other:
        running = peer.send("execute", sql="SPIN")
        queued = peer.send("execute", sql="CREATE STREAM never (a INT)")
        assert server.engine.spinning.wait(WAIT)
        assert peer.ask("cancel", request=queued)["cancelled"] is True
        assert peer.ask("cancel", request=running)["cancelled"] is True
        assert peer.ask("cancel", request=999)["cancelled"] is False
        assert peer.ask("execute", sql="SELECT 1")["ok"]
        assert other.ask("names")["streams"].keys() == {"s"}


def test_cancelled_statements_answer_ds610(server):
    with server.peer() as peer:
        for ident, sql in (("a", "SPIN"), ("b", "SELECT 1")):
            peer.raw(pack({"op": "execute", "id": ident, "sql": sql}))
        assert server.engine.spinning.wait(WAIT)
        peer.raw(
            pack({"op": "cancel", "id": "c", "request": "b"})
            + pack({"op": "cancel", "id": "d", "request": "a"})
        )
        answers = [peer.read() for _ in range(4)]
    codes = {a["id"]: a.get("error", {}).get("code") for a in answers}
    assert codes == {"a": "DS610", "b": "DS610", "c": None, "d": None}


def test_a_lost_session_stops_its_statement(server):
    peer = server.peer()
    peer.send("execute", sql="SPIN")
    assert server.engine.spinning.wait(WAIT)
    # close by reset
    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    peer.socket.close()
    with server.peer() as other:
        assert other.ask("execute", sql="SELECT 1")["ok"]


def test_statements_before_a_failing_one_stand(server):
    with server.peer() as peer:
        reply = peer.ask("execute", sql="CREATE STREAM a (x INT); NONSENSE here; SELECT 1")
        assert reply["error"]["statement"] == 1
        assert reply["error"]["code"] == "DS100"
        assert (reply["error"]["line"], reply["error"]["column"]) == (1, 9)
        assert reply["results"] == [{"kind": "done", "message": "stream a created"}]
        assert "a" in peer.ask("names")["streams"]


def test_ingest_says_what_does_not_fit(server):
    with server.peer() as peer:
        cases = [
            ({"columns": {"k": [1], "v": [1.0], "w": [1]}}, "DS501", "no column 'w'"),
            ({"columns": {"k": [1], "v": [1.0, 2.0]}}, "DS504", "k 1, v 2"),
            (
                {"columns": {"k": ["x"], "v": [1.0]}},
                "DS503",
                "column 'k' of stream s: expected INT",
            ),
            ({"arrow": b"nonsense"}, "DS510", "not an Arrow IPC stream"),
            (
                {"arrow": columns.ipc(pa.record_batch({"k": ["x"], "v": [1.0]}))},
                "DS503",
                "expected INT, got str 'x' in row 0",
            ),
        ]
        for data, code, says in cases:
            error = peer.ask("ingest", stream="s", **data)["error"]
            assert error["code"] == code
            assert says in error["message"]
        unknown = peer.ask("ingest", stream="ss", rows=[])["error"]
        assert unknown["hint"] == "did you mean `s`?"
        assert peer.ask("execute", sql="SELECT COUNT(*) FROM s")["results"][0]["rows"] == [[0]]


def test_rows_that_are_wrong_alone_are_refused_and_the_others_stand(server):
    with server.peer() as peer:
        many: list = [[i, 0.5] for i in range(9000)]
        many[5000] = [1]
        many[8191], many[8192] = [1, "x"], [1, "y"]
        reply = peer.ask("ingest", stream="s", rows=many)
        assert (reply["accepted"], reply["late"], reply["refused"]) == (8997, 0, 3)
        assert any("row 5000: 1 values for 2 columns (k, v)" in r for r in reply["reasons"])
        assert any(
            "2 rows refused (wrong value): row 8191: column v" in r for r in reply["reasons"]
        )
        reply = peer.ask("ingest", stream="s", rows=[[1.5, 0.5], [1, 2.5], 7])
        assert (reply["accepted"], reply["refused"]) == (1, 2)
        reply = peer.ask("ingest", stream="s", rows=[["x", 0.5]])  # nothing is left of the frame
        assert (reply["accepted"], reply["refused"]) == (0, 1)
        assert "expected INT, got str 'x'" in reply["reasons"][0]
        assert peer.ask("execute", sql="SELECT COUNT(*) FROM s")["results"][0]["rows"] == [[8998]]


def test_all_types_travel_both_ways(server):
    kinds = "b BOOL, i INT, f FLOAT, d DECIMAL(10,2), s STRING, y BYTES, t TIMESTAMP, n INTERVAL"
    row = [True, -5, float("inf"), "12.50", "ä", b"\x00\xff", 1_600_000_000_000_000, -1]
    with server.peer() as peer:
        peer.send(
            "execute", sql=f"CREATE STREAM every ({kinds}); CREATE QUERY e AS SELECT * FROM every"
        )
        peer.send("subscribe", query="e")
        assert peer.ask("ingest", stream="every", rows=[row, [None] * 8])["accepted"] == 2
        assert [peer.push()["data"] for _ in range(2)] == [[row], [[None] * 8]]
        peer.ask("hello", version=1, data="arrow")
        peer.send("ingest", stream="every", rows=[row])
        table = columns.from_ipc(peer.push()["data"])
    assert table.schema.types[-2:] == [pa.timestamp("us"), pa.duration("us")]
    assert columns.batch_to_rows(table) == [tuple(row)]


def test_repeated_frames_are_applied_once(server):
    with server.peer() as peer:
        assert peer.ask("ingest", stream="s", seq=1, rows=[])["error"]["code"] == "DS603"
        peer.ask("hello", version=1, client="writer")
        rows = [[i, 0.5] for i in range(20_000)]
        for seq, repeated in ((1, False), (1, True), (2, False), (1, True), (2, True)):
            reply = peer.ask("ingest", stream="s", seq=seq, rows=rows)
            assert reply.get("repeated", False) is repeated
        assert peer.ask("execute", sql="SELECT COUNT(*) FROM s")["results"][0]["rows"] == [[40_000]]


def test_a_second_session_of_a_writer_takes_over(server):
    with server.peer() as first, server.peer() as second:
        first.ask("hello", version=1, client="writer")
        second.ask("hello", version=1, client="writer")
        assert first.read()["error"]["code"] == "DS642"
        assert first.rest() == b""
        assert second.ask("ping")["ok"]


def test_order_within_a_session(server):
    with server.peer() as peer:
        peer.send("ingest", stream="s", rows=[[i, 0.5] for i in range(30_000)])
        peer.send("heartbeat", stream="s", ts=5)
        count = peer.send("execute", sql="SELECT COUNT(*) FROM s")
        peer.send("end", stream="S")
        assert peer.reply(count)["results"][0]["rows"] == [[30_000]]
        peer.ask("ping")
        assert peer.ask("heartbeat", stream="t", ts=5)["error"]["code"] == "DS401"
    assert server.engine.calls == [("heartbeat", "s", 5), ("end", "s")]


def test_a_stream_created_just_before_takes_rows(server):
    with server.peer() as peer:
        peer.send("execute", sql="CREATE STREAM fresh (a INT)")
        assert (
            peer.ask("ingest", stream="fresh", rows=[[i] for i in range(10_000)])["accepted"]
            == 10_000
        )


def test_without_wait_the_answer_comes_before_the_rows_are_applied(server):
    with server.peer() as peer, server.peer() as other:
        server.engine.gate.clear()
        other.send("execute", sql="GATE")
        assert server.engine.at_the_gate.wait(WAIT)
        assert peer.ask("ingest", stream="s", rows=[[1, 1.0]], wait=False) == {
            "id": 1,
            "ok": True,
            "queued": True,
        }
        server.engine.gate.set()
        assert peer.ask("execute", sql="SELECT COUNT(*) FROM s")["results"][0]["rows"] == [[1]]


def test_the_id_of_a_request_that_was_answered_is_free(server):
    """Also while its rows still wait to be applied."""
    with server.peer() as peer, server.peer() as other:
        server.engine.gate.clear()
        other.send("execute", sql="GATE")
        assert server.engine.at_the_gate.wait(WAIT)
        for _ in range(3):
            peer.socket.sendall(
                pack({"op": "ingest", "id": 7, "stream": "s", "rows": [[1, 1.0]], "wait": False})
            )
            assert peer.reply(7) == {"id": 7, "ok": True, "queued": True}
        peer.socket.sendall(pack({"op": "execute", "id": 7, "sql": "SELECT COUNT(*) FROM s"}))
        peer.socket.sendall(pack({"op": "execute", "id": 7, "sql": "SELECT 1"}))
        assert peer.reply(7)["error"]["code"] == "DS603"
        server.engine.gate.set()
        assert peer.reply(7)["results"][0]["rows"] == [[3]]


def test_subscriptions_are_checked_and_given_up(server):
    with server.peer() as peer:
        assert peer.ask("subscribe", query="nope")["error"]["code"] == "DS402"
        peer.send("subscribe", query="q")
        assert peer.ask("subscribe", query="q")["error"]["code"] == "DS643"
        assert peer.ask("unsubscribe", query="x")["error"]["hint"] == "it has q"
        assert peer.ask("unsubscribe", query="Q")["ok"]
        peer.send("ingest", stream="s", rows=[[1, 1.0]])
        peer.ask("execute", sql="SELECT 1")
        assert peer.pushes == []
    assert server.engine.subs == []


def test_limits_have_codes(serve):
    running = serve(max_sessions=2, max_requests=3, max_reply=10_000)
    with running.peer() as first, running.peer() as second:
        first.ask("ping")
        second.ask("ping")
        with running.peer() as third:
            assert third.read()["error"]["code"] == "DS621"
            assert third.rest() == b""
        running.engine.gate.clear()
        first.send("execute", sql="GATE")
        assert running.engine.at_the_gate.wait(WAIT)
        for _ in range(2):
            first.send("execute", sql="SELECT 1")
        assert first.ask("execute", sql="SELECT 1")["error"]["code"] == "DS622"
        running.engine.gate.set()
        assert first.reply(4)["ok"]
        first.ask("execute", sql="CREATE STREAM s (k INT)")
        first.ask("ingest", stream="s", rows=[[i] for i in range(9000)])
        assert first.ask("execute", sql="SELECT * FROM s")["error"]["code"] == "DS623"
    with running.peer() as later:
        assert later.ask("ping")["ok"]


def test_big_results_come_whole(server):
    with server.peer() as peer:
        peer.ask("ingest", stream="s", rows=[[i, i / 2] for i in range(20_000)])
        rows = peer.ask("execute", sql="SELECT * FROM s")["results"][0]["rows"]
        assert rows == [[i, i / 2] for i in range(20_000)]
        peer.ask("hello", version=1, data="arrow")
        result = peer.ask("execute", sql="SELECT * FROM s")["results"][0]
        assert columns.from_ipc(result["arrow"]).num_rows == 20_000


def test_a_token_is_asked_for(serve):
    running = serve(token="secret")
    with running.peer() as peer:
        assert peer.ask("execute", sql="SELECT 1")["error"]["code"] == "DS605"
        assert peer.ask("hello", version=1, token="guess")["error"]["code"] == "DS605"
        assert peer.ask("hello", version=2, token="secret")["error"]["code"] == "DS606"
        assert peer.ask("hello", version=1, token="secret")["ok"]
        assert peer.ask("execute", sql="SELECT 1")["ok"]
    with running.peer() as peer:
        peer.raw(b"\x00\x02\x00\x00")
        assert peer.read()["error"]["code"] == "DS601"


def test_a_graceful_stop_finishes_what_was_accepted(serve):
    running = serve()
    with running.peer() as reader, running.peer() as writer:
        writer.ask(
            "execute", sql="CREATE STREAM s (k INT, v FLOAT); CREATE QUERY q AS SELECT * FROM s"
        )
        reader.ask("subscribe", query="q")
        ident = writer.send("ingest", stream="s", rows=[[i, 0.5] for i in range(20_000)])
        while not running.on_loop(lambda: running.server.unprocessed):
            writer.ask("ping")
            if writer.pushes or running.engine.rows["s"]:
                break
        running.await_(running.server.stop())
        assert writer.reply(ident)["accepted"] == 20_000
        seen = 0
        while (push := reader.push())["kind"] != "end":
            seen += len(push["data"])
        assert seen == 20_000 == push["seq"]
        assert push["code"] == "DS641"
        assert reader.rest() == b""
    assert running.engine.closed
    with pytest.raises(OSError):
        running.peer()


def test_a_big_frame_of_rows_does_not_block_the_others(server, monkeypatch):
    """Each slice of it waits here until another session has been answered."""
    monkeypatch.setattr(slices, "MAX_SLICE", 4096)  # so that there are many, however quick they are
    ingest, begun, go_on = server.engine.ingest, threading.Semaphore(0), threading.Semaphore(0)

    def slowly(*args, **options):
        begun.release()
        assert go_on.acquire(timeout=WAIT)
        return ingest(*args, **options)

    server.engine.ingest = slowly
    with server.peer() as writer, server.peer() as other:
        ident = writer.send("ingest", stream="s", rows=[[i, 0.5] for i in range(300_000)])
        for _ in range(5):
            assert begun.acquire(timeout=WAIT)
            assert other.ask("ping")["ok"]
            go_on.release()
        assert begun.acquire(timeout=WAIT)  # so it is not done yet
        go_on.release(300_000)
        assert writer.reply(ident)["accepted"] == 300_000


def test_metrics_and_health(serve):
    running = serve(http_port=0)
    with running.peer() as peer:
        peer.ask("execute", sql="CREATE STREAM s (k INT)")
        peer.ask("ingest", stream="s", rows=[[1], [2]])
        peer.ask("nonsense")
        base = f"http://127.0.0.1:{running.server.http_port}"
        assert urllib.request.urlopen(f"{base}/healthz", timeout=WAIT).read() == b"ok\n"
        lines = (
            'dsms_ingested_rows_total{fate="accepted"} 2.0',
            'dsms_errors_total{code="DS602"} 1.0',
            "dsms_sessions 1.0",
            'dsms_requests_total{op="ingest"} 1.0',
            "dsms_engine_rows 2.0",
            'dsms_stream_accepted{stream="s"} 2.0',
        )

        def counted() -> bool:
            """A scrape does not wait long for a busy engine."""
            text = urllib.request.urlopen(f"{base}/metrics", timeout=WAIT).read().decode()
            return all(line in text for line in (*lines, "dsms_loop_lag_seconds_bucket"))

        wait_until(counted, f"{lines} among the metrics")
