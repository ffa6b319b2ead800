"""Quotas of a server's users: sessions, rows in a second, state; others go on."""

from __future__ import annotations

import pytest

from dsms.engine import Engine
from dsms.operators.pieces import finished
from dsms.rights import Rights, User
from dsms.settings import Settings
from dsms_server.quotas import LONGEST, Meter, Quotas
from tests.waiting import wait_until

ADMIN = "the-token-of-the-administrator"
ALICE = "a-token-that-is-alices-alone"
BOB = "a-token-that-is-bobs-alone-1"
DECLARED = f"""
CREATE USER alice TOKEN '{ALICE}' WITH (rows_per_second = 10, sessions = 2);
CREATE USER bob TOKEN '{BOB}'; GRANT CREATE, INSERT, SELECT ON ALL TO alice, bob;
CREATE STREAM s (k INT) RETAIN 1 HOUR;
"""


class Clock:
    """Seconds, and what is to be called later."""

    def __init__(self) -> None:
        self.now = 100.0
        self.due: list[tuple[float, object]] = []

    def __call__(self) -> float:
        return self.now

    def later(self, seconds: float, then) -> None:
        self.due.append((self.now + seconds, then))

    def go_on(self, seconds: float) -> None:
        self.now += seconds
        ready = [then for due, then in self.due if due <= self.now]
        self.due = [entry for entry in self.due if entry[0] > self.now]
        for then in ready:
            then()


@pytest.fixture
def running(serve):
    engine = Engine(settings=Settings(quota={"sessions": 3}))
    engine.execute(DECLARED)
    return serve(engine, token=ADMIN, auth=True, quota=("sessions=3",), guess_seconds=0)


@pytest.fixture
def clock(running) -> Clock:
    """Of the quotas of the server."""
    made, quotas = Clock(), running.server.quotas

    def begin() -> None:
        quotas.elapsed, quotas.later = made, made.later

    running.on_loop(begin)
    return made


def hello(peer, token: str, **more):
    return peer.ask("hello", version=1, token=token, **more)


def code(reply: dict) -> str:
    return reply.get("error", {}).get("code", "ok")


def shown(peer, user: str) -> dict:
    (found,) = peer.ask("execute", sql=f"SHOW QUOTAS FOR {user}")["results"]
    return {row[1]: tuple(row[2:]) for row in found["rows"]}


def in_engine(running, function):
    """Called in the engine's thread."""

    async def call():
        return await running.server.core.worker.call(function)

    return running.await_(call())


def rows(count: int) -> list[list[int]]:
    return [[n] for n in range(count)]


# -- without a server


def test_a_meter_lets_a_second_come_at_once_and_then_its_rate():
    meter = Meter(0.0)
    meter.add(10, 10, 0.0)
    assert meter.wait(10, 0.0) == 0
    meter.add(30, 10, 0.0)
    assert meter.wait(10, 0.0) == 3.0 and meter.wait(10, 2.0) == 1.0
    meter.add(10, 10, 3.0)
    assert meter.wait(10, 3.0) == 1.0 and meter.wait(10, 10.0) == 0


def test_a_meter_never_lets_more_than_its_rate_pass():
    meter, now, sent = Meter(0.0), 0.0, 0
    for size in (1, 7, 50, 3, 500, 20, 1) * 20:
        now += meter.wait(10, now)
        sent += size
        meter.add(size, 10, now)
    now += meter.wait(10, now)
    assert sent <= 10 * (now + 1.0) + 1e-6


def test_a_meter_tells_the_rate():
    meter = Meter(0.0)
    for tenth in range(40):
        meter.add(5, None, tenth / 10)
    assert 45 <= meter.rate(3.95) <= 55
    assert meter.rate(4.5) == 25 and meter.rate(6.0) == 0


def test_a_change_of_the_quota_ends_the_waiting():
    clock, user = Clock(), User("u", quota=(("rows_per_second", 1),))
    found = [Rights({"u": user})]
    quotas = Quotas(lambda: found[0], {}, list, clock, clock.later)
    quotas.took("u", 1000)
    assert quotas.waits("u") and not quotas.waits("v") and not quotas.waits(None)
    clock.go_on(5)
    assert quotas.waits("u")
    found[0] = Rights({"u": User("u")})
    clock.go_on(1)
    assert not quotas.waits("u") and clock.due == []


@pytest.mark.parametrize("other", [None, 2])
def test_what_was_too_much_is_forgotten_with_its_quota(other: int | None):
    clock, found = Clock(), [Rights({"u": User("u", quota=(("rows_per_second", 1),))})]
    quotas = Quotas(lambda: found[0], {}, list, clock, clock.later)
    quotas.took("u", 1000)
    before = found[0]
    found[0] = Rights({"u": User("u", quota=(("rows_per_second", other),) if other else ())})
    clock.go_on(1)
    assert not quotas.waits("u")
    found[0] = before
    quotas.took("u", 1)
    assert not quotas.waits("u")
    quotas.took("u", 10)
    assert quotas.waits("u")


# -- with one


def test_sessions_are_counted_by_user(running):
    with running.peer() as one, running.peer() as two, running.peer() as three:
        assert code(hello(one, ALICE)) == code(hello(two, ALICE, client="w")) == "ok"
        refusal = hello(three, ALICE)
        assert code(refusal) == "DS683"
        message = refusal["error"]["message"]
        assert "the quota sessions is 2 (of alice), and 2 are used" in message
        with running.peer() as four, running.peer() as five:
            assert code(hello(four, BOB)) == "ok"  # others go on
            assert code(hello(five, ALICE, client="w")) == "ok"  # takes the place of `two`
            assert shown(four, "bob")["sessions"] == (3, 1, "the server")
            (found,) = five.ask("execute", sql="SHOW SESSIONS")["results"]
            names = [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]
            assert [(line["user"], line["client"]) for line in names][-1] == ("alice", "w")
            assert shown(five, "alice")["sessions"] == (2, 2, "alice")
    wait_until(lambda: not running.server.sessions)
    with running.peer() as again, running.peer() as admin:
        assert code(hello(again, ALICE)) == "ok"
        hello(admin, ADMIN)
        admin.ask("execute", sql="ALTER USER bob WITH (sessions = 0)")
        with running.peer() as none:
            refusal = hello(none, BOB)
            assert code(refusal) == "DS683" and "is 0 (of bob)" in str(refusal)


def test_administrators_have_no_quota_but_their_own(running):
    peers = [running.peer() for _ in range(5)]
    assert [code(hello(peer, ADMIN)) for peer in peers] == ["ok"] * 5
    for peer in peers:
        peer.socket.close()


def test_who_sends_too_many_rows_is_slowed_and_nobody_else(running, clock: Clock):
    with running.peer() as peer, running.peer() as other, running.peer() as bob:
        hello(peer, ALICE)
        hello(other, ALICE)
        hello(bob, BOB)
        assert peer.ask("ingest", stream="s", rows=rows(10))["accepted"] == 10
        assert peer.ask("ingest", stream="s", rows=rows(20))["accepted"] == 20
        wait_until(lambda: running.server.quotas.waits("alice"))
        held = running.on_loop(lambda: {s.user for s in running.server.held})
        assert held == {"alice"}
        waiting = [peer.send("ingest", stream="s", rows=rows(1)), other.send("ping")]
        assert bob.ask("ingest", stream="s", rows=rows(1000))["accepted"] == 1000
        assert shown(bob, "bob")["rows_per_second"] == (None, 1000, None)
        with running.peer() as admin:
            hello(admin, ADMIN)
            assert shown(admin, "alice")["rows_per_second"] == (10, 30, "alice")
        for _ in range(2):  # 30 rows are three seconds, of which one may come at once
            assert running.on_loop(lambda: running.server.quotas.waits("alice"))
            running.on_loop(lambda: clock.go_on(1.0))
        assert peer.reply(waiting[0])["accepted"] == 1  # none was lost
        assert other.reply(waiting[1])["ok"]


def test_frames_that_are_too_long_are_refused(running):
    most = 10 * LONGEST
    with running.peer() as peer, running.peer() as bob:
        hello(peer, ALICE)
        hello(bob, BOB)
        for wait in (True, False):
            reply = peer.ask("ingest", stream="s", rows=rows(most + 1), wait=wait)
            assert code(reply) == "DS682" and "smaller frames" in reply["error"]["hint"]
        made = peer.send("execute", sql="CREATE STREAM n (k INT)")
        late = peer.send("ingest", stream="n", rows=rows(most + 1))  # its stream is not there yet
        assert code(peer.reply(made)) == "ok" and code(peer.reply(late)) == "DS682"
        assert bob.ask("ingest", stream="s", rows=rows(most + 1))["accepted"] == most + 1
        assert peer.ask("ingest", stream="s", rows=rows(1))["accepted"] == 1


def test_streams_of_who_keeps_too_much_take_no_rows_and_others_do(running):
    with running.peer() as peer, running.peer() as bob, running.peer() as admin:
        hello(peer, ALICE)
        hello(bob, BOB)
        hello(admin, ADMIN)
        assert code(peer.ask("execute", sql="CREATE STREAM mine (k INT) RETAIN 1 HOUR")) == "ok"
        assert bob.ask("ingest", stream="mine", rows=rows(1000))["accepted"] == 1000
        admin.ask("execute", sql="ALTER USER alice WITH (state = 1)")
        in_engine(running, lambda: finished(running.server._look_at_state()))
        own = peer.ask("ingest", stream="mine", rows=rows(1))
        assert code(own) == "DS681" and "the quota state is 1 (of alice)" in str(own)
        for wait in (True, False):
            his = bob.ask("ingest", stream="MINE", rows=rows(1), wait=wait)
            assert code(his) == "DS681" and "alice" not in str(his)
        assert bob.ask("ingest", stream="s", rows=rows(1))["accepted"] == 1
        assert code(peer.ask("execute", sql="CREATE STREAM more (k INT)")) == "DS681"
        assert code(peer.ask("execute", sql="DROP STREAM mine")) == "ok"
        in_engine(running, lambda: finished(running.server._look_at_state()))
        assert code(peer.ask("execute", sql="CREATE STREAM mine (k INT)")) == "ok"
        assert peer.ask("ingest", stream="mine", rows=rows(1))["accepted"] == 1


def over_quota(running) -> None:
    """Alice has a stream, and may keep nothing."""

    def make() -> None:
        running.engine.execute("CREATE STREAM mine (k INT)", user="alice")
        running.engine.execute("ALTER USER alice WITH (state = 0)")

    in_engine(running, make)


def test_a_hidden_stream_is_not_told_by_its_owners_quota(running):
    with running.peer() as peer, running.peer() as admin:
        hello(admin, ADMIN)
        admin.ask("execute", sql="CREATE USER carl TOKEN 'a-token-that-is-carls-own-1'")
        hello(peer, "a-token-that-is-carls-own-1")
        over_quota(running)
        in_engine(running, lambda: finished(running.server._look_at_state()))
        for wait in (True, False):
            reply = peer.ask("ingest", stream="mine", rows=rows(1), wait=wait)
            assert code(reply) == "DS401"


def test_metrics_tell_of_each_user(serve):
    engine = Engine()
    engine.execute(DECLARED)
    running = serve(engine, token=ADMIN, auth=True)
    with running.peer() as peer:
        hello(peer, ALICE)
        peer.ask("ingest", stream="s", rows=rows(5))
        running.server.metrics.engine = in_engine(running, engine.stats)
        text = running.server.metrics.text().decode()
    for line in (
        'dsms_user_sessions{user="alice"} 1.0',
        'dsms_user_sessions_limit{user="alice"} 2.0',
        'dsms_user_rows_per_second_limit{user="alice"} 10.0',
        'dsms_user_queries{user="bob"} 0.0',
        'dsms_user_state{user="bob"} 0.0',
    ):
        assert line in text


def test_the_server_looks_at_what_users_keep(running):
    over_quota(running)
    wait_until(lambda: "alice" in running.server.quotas.full)  # once a second, on its own
