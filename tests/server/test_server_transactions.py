"""One-time queries beside ingest: read in slices, run beside the engine's thread, in order within a
session."""

from __future__ import annotations

import threading
import urllib.request

import pytest

from dsms.engine import Engine
from dsms.settings import Settings
from dsms_client import UsageError, connect
from tests.effort import effort
from tests.waiting import WAIT, wait_until

S = 1_000_000
DECLARE = (
    "CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1000 SECONDS "
    "SUBWINDOW 5 SECONDS"
)
COUNT = "SELECT COUNT(*), MIN(t), MAX(t) FROM s [RANGE 500 SECONDS] WHERE v >= 0"
SLOW = (
    "SELECT COUNT(*) FROM s [RANGE 400 S] a, s [RANGE 400 S] b, s [RANGE 400 S] c WHERE a.v + "
    "b.v < c.v"
)


def rows(first: int, last: int) -> list[list[int]]:
    """A row a second."""
    return [[i % 7, i % 100, i * S] for i in range(first, last)]


class Writer(threading.Thread):
    """Another session that sends rows until it is told to stop."""

    def __init__(self, port: int, start: int, each: int) -> None:
        super().__init__(daemon=True)
        self.port, self.at, self.each = port, start, each
        self.enough = threading.Event()
        self.sent = threading.Semaphore(0)
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            with connect(port=self.port) as db:
                while not self.enough.is_set():
                    db.ingest("s", rows(self.at, self.at + self.each))
                    self.at += self.each
                    self.sent.release()
        except BaseException as problem:
            self.problem = problem

    def wait(self, frames: int) -> None:
        for _ in range(frames):
            assert self.sent.acquire(timeout=WAIT), self.problem

    def wait_for_a_new_one(self) -> None:
        """Until a frame has been applied that had not been sent when this was called."""
        while self.sent.acquire(blocking=False):
            pass
        self.wait(2)  # the first of them may have been applied already

    def __enter__(self) -> Writer:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.enough.set()
        self.join(WAIT)
        assert self.problem is None


@pytest.fixture
def running(serve):
    def start(kind: str = "ttu", slice_seconds: float = 0.0, **options):
        server = serve(
            Engine(settings=Settings(transaction_scheduler=kind, deferred=True)), **options
        )
        server.server.core.read_seconds = slice_seconds
        with connect(port=server.port) as db:
            db.execute(DECLARE)
            db.ingest("s", rows(0, 1000))
        return server

    return start


@pytest.mark.parametrize("kind", ["serial", "ws", "lws", "ttu"])
def test_answers_stay_exact_and_fresh_while_rows_come(running, kind):
    server = running(kind)
    with Writer(server.port, 1000, 11) as writer, connect(port=server.port) as db:
        before = 0
        for _ in range(10):
            writer.wait(1)
            answer = db.query(COUNT)
            (count, first, last), at = answer.rows[0], answer.as_of
            assert (count, last, first) == (500, at // S * S, last - 499 * S)
            assert at >= before  # rows may have come before the last answer
            before = at
        assert before >= 1000 * S


def test_rows_are_taken_in_while_a_plan_runs_and_cancelling_it_ends_it(running):
    server = running()
    with server.peer() as peer, Writer(server.port, 1000, 5) as writer:
        slow = peer.send("execute", sql=SLOW.replace("400", "1000"))
        writer.wait(20)  # the plan would run for minutes
        with connect(port=server.port) as db:
            assert db.query(COUNT).rows[0][0] == 500  # others are answered
        assert peer.ask("cancel", request=slow)["cancelled"]
        assert peer.reply(slow)["error"]["code"] == "DS610"
        writer.wait(3)
        assert peer.ask("execute", sql=COUNT)["results"][0]["rows"][0][0] == 500


def test_a_server_that_stops_ends_what_runs(running):
    server = running(stop_seconds=0.2)
    with server.peer() as peer:
        peer.send("execute", sql=SLOW.replace("400", "1000"))
        peer.send("ping")
        peer.read()
    with connect(port=server.port) as db:
        assert db.query(COUNT).rows[0][0] == 500
    server.stop()
    assert server.engine.runtime.transactions.waiting() == 0
    server.stop = lambda: None


def test_statements_of_a_session_keep_their_order(running):
    server = running()
    with server.peer() as peer:
        asked = [
            peer.send("execute", sql=sql)
            for sql in (
                COUNT,
                "CREATE TABLE t (a INT)",
                "SELECT COUNT(*) FROM t",
                "INSERT INTO t VALUES (1), (2)",
                f"{COUNT}; SELECT COUNT(*) FROM t; DROP TABLE t",
                "SELECT COUNT(*) FROM t",
            )
        ]
        answered: list[int] = []
        while len(answered) < len(asked):
            message = peer.read()
            answered.append(message["id"])
            peer.replies[message["id"]] = message
        assert answered == asked
        replies = [peer.reply(i) for i in asked]
        assert replies[2]["results"][0]["rows"] == [[0]]
        assert [r.get("rows", [[None]])[0][0] for r in replies[4]["results"]] == [500, 2, None]
        assert replies[5]["error"]["code"].startswith("DS2")


def test_the_memory_of_a_plan_beside_the_engine_is_limited(running):
    server = running()
    server.engine.runtime.settings.statement_bytes = 16 << 20
    with connect(port=server.port) as db:
        with pytest.raises(UsageError, match="DS633"):
            db.query(
                "SELECT a.v, b.v, a.k, b.k FROM s [RANGE 1000 S] a, s [RANGE 1000 S] b, s [RANGE "
                "2 S] c"
            )
        assert db.query(COUNT).rows[0][0] == 500


def test_periodic_queries_and_a_replay_leave_room_for_one_time_queries(running):
    """Two shells beside each other: one replays, with many queries registered, the other one
    asks."""
    server = running(slice_seconds=0.003)
    with connect(port=server.port) as db:
        aggregates = ("SUM(v)", "COUNT(*)", "MAX(v)", "AVG(v)", "COUNT(DISTINCT v)")
        for i in range(100 if effort() else 25):
            window = f"[RANGE {50 + 5 * (i % 40)} SECONDS SLIDE {5 * (i % 4 + 1)} SECONDS]"
            db.execute(
                f"CREATE QUERY q{i} AS SELECT k, {aggregates[i % 5]} FROM s {window} GROUP BY k "
                "WITH (boundaries = elastic)"
            )
        with Writer(server.port, 1000, 100) as writer:
            seen = []
            for _ in range(20):
                writer.wait_for_a_new_one()
                answer = db.query(COUNT)
                assert answer.rows[0][0] == 500 and answer.rows[0][2] == answer.as_of // S * S
                seen.append(answer.as_of)
            assert seen == sorted(set(seen))  # each one fresher than the one before
        asof = db.query(COUNT).as_of
        stats = server.await_(_stats(server))
        assert asof >= seen[-1]
        assert all(q["evaluations"] > 0 for q in stats["queries"].values())
        assert stats["transactions_committed"] >= 21 and stats["transactions_waiting"] == 0


def scraped(server) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.server.http_port}/metrics") as page:
        lines = [line for line in page.read().decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


async def _stats(server):
    return await server.server.core.worker.call(server.engine.stats)


def test_metrics_of_transactions_and_periodic_queries(running):
    server = running(http_port=0)
    with connect(port=server.port) as db:
        db.execute("CREATE QUERY q AS SELECT COUNT(*) FROM s [RANGE 10 SECONDS SLIDE 5 SECONDS]")
        db.ingest("s", rows(1000, 1100))
        db.query(COUNT)
    wait_until(
        lambda: scraped(server).get('dsms_query_evaluations{query="q"}', 0) >= 19,
        "the engine's figures",
    )
    wait_until(lambda: scraped(server)["dsms_response_seconds_count"] == 1, "the answer's time")
    seen = scraped(server)
    assert seen["dsms_engine_transactions_committed"] == 1
    assert seen["dsms_engine_transactions_aborted"] == 0
    assert seen["dsms_engine_window_updates"] > 100
    assert seen['dsms_query_interval_seconds{query="q"}'] == 5
    assert 0 <= seen['dsms_query_staleness_seconds{query="q"}'] <= 5
    assert seen['dsms_query_lateness{query="q"}'] == 0
