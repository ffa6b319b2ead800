"""The watchdog names what holds the engine, and long slices are counted.  Time is an argument."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from types import SimpleNamespace

from dsms_server.watchdog import SliceLimit, Watchdog, step
from dsms_server.worker import EngineJob
from tests.waiting import WAIT


def worker(job, began=100.0, slices=7):
    return SimpleNamespace(
        running=job,
        began=began,
        slices=slices,
        ident=threading.get_ident(),
        doing=lambda job: f"{job.kind} {job.what}",
    )


def test_a_slice_that_holds_the_engine_is_named_once(caplog):
    job = EngineJob(lambda: iter(()), lambda result, error: None, kind="statement", what="SELECT 1")
    dog = Watchdog(worker(job))
    assert dog.look(104.9) and not dog.complaint
    assert not dog.look(105.5)
    assert dog.complaint.startswith(
        "the engine has not turned for 6 s: it is at statement SELECT 1, in "
    )
    assert not dog.look(200.0)
    assert [r.message[:38] for r in caplog.records] == ["the engine has not turned for 6 s: it "]
    dog.worker.slices += 1
    dog.worker.began = 199.0
    assert dog.look(200.0) and not dog.complaint and dog.held == 0


def test_an_idle_engine_turns():
    assert Watchdog(worker(None)).look(1e9)


def test_the_place_of_a_thread_is_told():
    from dsms.engine import Engine
    from dsms.operators import basic

    seen = []
    engine = Engine()
    engine.execute(
        "CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t; CREATE QUERY q AS SELECT k + 1 AS k "
        "FROM s"
    )
    once = basic.ProjectOp.step
    try:
        basic.ProjectOp.step = lambda self, *args: (
            seen.append(step(threading.get_ident())),
            once(self, *args),
        )[1]
        engine.ingest("s", {"k": [1], "t": [1]})
    finally:
        basic.ProjectOp.step = once
    assert "dsms" not in seen[0] and ".py:" in seen[0]
    assert step(None) == "a place unknown"


def test_slices_that_take_too_long_are_counted_and_named(caplog):
    limit = SliceLimit(0.02)
    assert not limit.see("ingest", "rows for s", 0.02)
    assert limit.see("ingest", "rows for s, query q", 0.0301)
    assert limit.over == {"ingest": 1}
    assert caplog.records[0].message == "a slice of ingest took 30.1 ms: rows for s, query q"
    assert not SliceLimit(None).see("ingest", "", 1e9)


def page(running, path):
    try:
        reply = urllib.request.urlopen(
            f"http://127.0.0.1:{running.server.http_port}{path}", timeout=WAIT
        )
        return reply.status, reply.read().decode()
    except urllib.error.HTTPError as problem:
        return problem.code, problem.read().decode()


def test_health_fails_while_the_engine_is_held_and_readiness_does_not(serve):
    running = serve(http_port=0, max_slice_ms=1)
    assert page(running, "/healthz") == (200, "ok\n")
    assert page(running, "/readyz") == (200, "ready\n")
    running.server.watchdog.limit = -1.0  # whatever runs has run for too long
    gate = threading.Event()
    entered = threading.Event()

    def steps():
        entered.set()
        gate.wait(WAIT)
        return
        yield

    running.on_loop(
        lambda: running.server.core.worker.submit(EngineJob(steps, lambda result, error: None))
    )
    assert entered.wait(WAIT)
    status, text = page(running, "/healthz")
    assert (status, text[:30]) == (503, "the engine has not turned for ")
    assert page(running, "/readyz") == (200, "ready\n")
    gate.set()
