"""A table that one session changes piece by piece: others that change it wait, and read it."""

from __future__ import annotations

import pytest

from dsms.engine import Engine
from tests.staged_world import few
from tests.waiting import wait_until

MADE = "CREATE TABLE r (k INT PRIMARY KEY, v STRING); CREATE TABLE u (k INT)"
MANY = "INSERT INTO r VALUES " + ", ".join(f"({i}, 'v')" for i in range(80))


@pytest.fixture
def running(serve, tmp_path):
    with few():
        engine = Engine(str(tmp_path))
        engine.execute(f"{MADE}; {MANY}")
        yield serve(engine)


def told(peer) -> set[str]:
    """The values of the table's column v."""
    reply = peer.ask("execute", sql="SELECT DISTINCT v FROM r")
    return {value for (value,) in reply["results"][0]["rows"]}


def test_those_that_change_it_wait_for_their_turn(running):
    engine, worker = running.engine, running.server.core.worker
    with running.peer() as a, running.peer() as b, running.peer() as c:
        hold = engine.runtime.holds.take("r")
        first = a.send("execute", sql="UPDATE r SET v = v || 'a'")
        wait_until(lambda: worker._parked == 1)
        second = b.send("ingest", stream="r", rows=[[1, "b"], [900, "b"]], upsert=True)
        wait_until(lambda: worker._parked == 2)
        assert told(c) == {"v"}
        assert c.ask("execute", sql="INSERT INTO u VALUES (1)")["ok"]  # another table
        engine.runtime.holds.release(hold)
        assert "80 rows updated" in str(a.reply(first)) and b.reply(second)["ok"]
        assert told(c) == {"va", "b"}


def test_big_changes_of_many_sessions_are_all_made(running):
    peers = [running.peer() for _ in range(4)]
    asked = [p.send("execute", sql=f"UPDATE r SET v = v || '{i}'") for i, p in enumerate(peers)]
    for peer, ident in zip(peers, asked, strict=True):
        assert "80 rows updated" in str(peer.reply(ident))
    (value,) = told(peers[0])
    assert sorted(value) == ["0", "1", "2", "3", "v"]
    assert not running.engine.runtime.holds.held
    for peer in peers:
        peer.socket.close()


def test_one_that_goes_away_lets_the_others_go_on(running):
    engine, worker = running.engine, running.server.core.worker
    with running.peer() as b:
        hold = engine.runtime.holds.take("r")
        a = running.peer()
        a.send("execute", sql="UPDATE r SET v = v || 'a'")
        wait_until(lambda: worker._parked == 1)
        second = b.send("execute", sql="UPDATE r SET v = v || 'b'")
        wait_until(lambda: worker._parked == 2)
        a.socket.close()
        engine.runtime.holds.release(hold)
        assert "80 rows updated" in str(b.reply(second))
        assert told(b) in ({"vb"}, {"vab"})
