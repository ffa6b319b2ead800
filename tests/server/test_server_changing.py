"""Queries are paused, replaced and renamed while sessions read them."""

from __future__ import annotations

import pytest

from dsms.engine import Engine
from dsms.running import net_change
from dsms_client.sync import connect
from tests.server.harness import Peer, Running

S = 1_000_000
SCRIPT = """
CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;
CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 4 s] GROUP BY k;
"""
SUMS = "SELECT k, SUM(v) AS n FROM s [RANGE 4 s] GROUP BY k"


@pytest.fixture
def running(serve) -> Running:
    running = serve(Engine())
    with connect(port=running.port) as db:
        db.execute(SCRIPT)
        come(db, 0, 6)
    return running


def come(db, first: int, n: int) -> None:
    db.ingest("s", [[i % 2, i, i * S] for i in range(first, first + n)])
    db.heartbeat("s", (first + n - 1) * S)


def subscribed(port: int, **fields) -> Peer:
    peer = Peer(port)
    peer.ask("hello", version=1)
    assert "error" not in peer.ask("subscribe", query="q", **fields)
    return peer


@pytest.mark.parametrize("apart", [False, True])
def test_readers_go_on_with_the_net_change(running, apart, monkeypatch):
    monkeypatch.setattr(net_change, "LARGE", 0 if apart else 1 << 30)
    peer = subscribed(running.port)
    first = peer.push()
    assert first["kind"] == "snapshot" and sorted(first["data"]) == [[0, 2], [1, 2]]
    with connect(port=running.port) as db:
        db.execute(f"CREATE OR REPLACE QUERY q AS {SUMS}")
        gone, came = peer.push(), peer.push()
        assert (gone["kind"], gone["seq"], sorted(gone["data"])) == (
            "delete",
            first["seq"],
            [[0, 2], [1, 2]],
        )
        assert (came["kind"], came["seq"], sorted(came["data"])) == (
            "insert",
            first["seq"] + 2,
            [[0, 6], [1, 8]],
        )
        assert gone["at"] == came["at"] == 5 * S
        db.execute("PAUSE QUERY q")
        come(db, 6, 1)
        db.execute("RESUME QUERY q")
        assert [peer.push()["kind"] for _ in range(2)] == ["delete", "insert"]
    peer.socket.close()


def test_a_subscription_keeps_the_name_that_it_was_opened_by(running):
    peer = subscribed(running.port)
    peer.push()
    with connect(port=running.port) as db:
        db.execute("ALTER QUERY q RENAME TO r")
        come(db, 8, 1)
        assert peer.push()["push"] == "q"
        assert peer.ask("subscribe", query="q")["error"]["code"] == "DS401"
        assert "error" not in peer.ask("subscribe", query="r")
        while (name := peer.push()["push"]) == "q":  # in one push or in two
            pass
        assert name == "r"
        assert "error" not in peer.ask("unsubscribe", query="q")
        db.execute("DROP QUERY r")
        end = peer.push()
        assert (end["push"], end["kind"]) == ("r", "end")
    peer.socket.close()


def test_other_columns_end_a_subscription_and_one_may_subscribe_again(running):
    peer = subscribed(running.port)
    first = peer.push()
    with connect(port=running.port) as db:
        db.execute(f"CREATE OR REPLACE QUERY q AS {SUMS.replace('AS n', 'AS total')}")
        end = peer.push()
        assert (end["kind"], end["code"]) == ("end", "DS435")
        reply = peer.ask("subscribe", query="q")
        assert list(reply["columns"]) == ["k", "total"]
        again = peer.push()
        assert again["kind"] == "snapshot" and again["seq"] == first["seq"]
    peer.socket.close()


def test_writers_and_readers_of_a_stream_go_on_when_it_has_another_name(running):
    peer = subscribed(running.port)
    peer.push()
    writer = Peer(running.port)
    writer.ask("hello", version=1, client="w")
    rows = [[[0, 1, n * S]] for n in range(8, 11)]
    assert writer.ask("ingest", stream="s", seq=1, rows=rows[0])["accepted"] == 1
    with connect(port=running.port) as db:
        db.execute("ALTER STREAM s RENAME TO z; ALTER STREAM z RENAME COLUMN v TO u")
    assert writer.ask("ingest", stream="s", seq=2, rows=rows[1])["error"]["code"] == "DS401"
    assert writer.ask("ingest", stream="z", seq=1, rows=rows[0])["repeated"] == 1
    assert writer.ask("ingest", stream="Z", seq=2, rows=rows[1])["accepted"] == 1
    columns = {"k": [0], "u": [1], "t": [10 * S]}
    assert writer.ask("ingest", stream="z", seq=3, columns=columns)["accepted"] == 1
    writer.ask("heartbeat", stream="z", ts=10 * S)
    while peer.push()["at"] < 10 * S:
        pass
    peer.socket.close()
    writer.socket.close()
