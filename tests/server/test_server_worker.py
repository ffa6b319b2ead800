"""The engine thread alone: lanes keep their order, urgent work passes bulk between slices, nothing
starves."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref

import pytest

from dsms.api import Chunk, Push
from dsms.errors import InternalError, UsageError
from dsms_client import columns
from dsms_server.decode import StreamShape
from dsms_server.feeds import SubscriptionFeed
from dsms_server.pieces import join, part
from dsms_server.pushes import push_frames
from dsms_server.worker import Alike, EngineJob, Lane, Urgency, Worker
from tests.waiting import WAIT


class Bench:
    """A worker whose first job waits for `go`, so that a test can fill its queue first."""

    def __init__(self):
        self.trace = []
        self.results = {}
        self.go = threading.Event()

    async def run(self, jobs):
        """`jobs`: (name, slices, urgency, lane); gives the order in which slices ran."""
        loop = asyncio.get_running_loop()
        worker = Worker(loop)
        worker.start()
        gate = worker.call(lambda: self.go.wait(WAIT))
        ended = [loop.create_future() for _ in jobs]
        for (name, slices, urgency, lane), future in zip(jobs, ended, strict=True):

            def done(result, error, name=name, future=future):
                self.results[name] = error or result
                future.set_result(None)

            worker.submit(
                EngineJob(lambda name=name, slices=slices: self.steps(name, slices), done, urgency),
                lane,
            )
        self.go.set()
        await asyncio.gather(gate, *ended)
        await worker.stop()
        return self.trace

    def steps(self, name, slices):
        for number in range(slices):
            self.trace.append(name)
            if number < slices - 1:
                yield
        return name.upper()


def trace(*jobs):
    return "".join(asyncio.run(Bench().run(jobs)))


def test_bulk_lanes_take_turns():
    assert trace(("a", 3, Urgency.BULK, None), ("b", 3, Urgency.BULK, None)) == "ababab"


def test_a_lane_keeps_its_order():
    lane = Lane()
    jobs = [
        ("a", 2, Urgency.BULK, lane),
        ("b", 1, Urgency.CONTROL, lane),
        ("c", 1, Urgency.STATEMENT, lane),
    ]
    assert trace(*jobs, ("x", 2, Urgency.BULK, None)) == "axabcx" or trace(*jobs) == "aabc"
    assert trace(*jobs) == "aabc"


def test_statements_and_heartbeats_pass_a_big_frame():
    assert (
        trace(
            ("a", 4, Urgency.BULK, None),
            ("s", 1, Urgency.STATEMENT, None),
            ("h", 1, Urgency.CONTROL, None),
        )
        == "hsaaaa"
    )


def test_bulk_is_not_starved_by_statements():
    jobs = [("a", 1, Urgency.BULK, None), *(("s", 1, Urgency.STATEMENT, None) for _ in range(100))]
    assert 50 < trace(*jobs).index("a") < 80


class Rows:
    """What a frame brings."""


async def _together(count):
    """So many jobs that are applied as one: what is still there of their rows when all are done."""
    loop, go = asyncio.get_running_loop(), threading.Event()
    worker = Worker(loop)
    worker.start()
    gate = worker.call(lambda: go.wait(WAIT))

    def start(rows):
        return [len(rows)] * len(rows)
        yield

    frames = [Rows() for _ in range(count)]
    known = [weakref.ref(rows) for rows in frames]
    ended = [loop.create_future() for _ in frames]
    for rows, future in zip(frames, ended, strict=True):
        job = EngineJob(lambda: start([0]), lambda result, _, to=future: to.set_result(result))
        job.alike = Alike("s", 1, 100, rows, start)
        worker.submit(job, Lane())
    del frames, rows, job
    go.set()
    await gate
    assert await asyncio.gather(*ended) == [count] * count
    await worker.stop()
    return [ref for ref in known if ref() is not None]


def test_jobs_that_went_together_leave_no_circle_for_the_collector():
    gc.disable()  # which stops everybody while it looks
    try:
        assert not asyncio.run(_together(3))
    finally:
        gc.enable()


def test_results_and_errors_reach_the_loop():
    async def run():
        worker = Worker(asyncio.get_running_loop())
        worker.start()
        assert await worker.call(lambda: 5) == 5
        with pytest.raises(UsageError):
            await worker.call(lambda: (_ for _ in ()).throw(UsageError("DS400", "no")))
        with pytest.raises(InternalError, match="please report"):
            await worker.call(lambda: 1 / 0)
        await worker.stop()
        assert not worker.alive

    asyncio.run(run())


def test_a_queued_job_is_dropped_and_a_running_one_is_not():
    async def run():
        worker = Worker(asyncio.get_running_loop())
        go, lane = threading.Event(), Lane()
        worker.start()
        first = worker.submit(EngineJob(lambda: wait(go), lambda r, e: None), lane)
        ran = []
        second = worker.submit(EngineJob(lambda: note(ran, 2), lambda r, e: None), lane)
        third = worker.submit(EngineJob(lambda: note(ran, 3), lambda r, e: None), lane)
        other = worker.submit(EngineJob(lambda: note(ran, 4), lambda r, e: None))
        while first.steps is None:
            await asyncio.sleep(0)
        assert worker.drop(second)
        assert not worker.drop(second)
        assert worker.drop(other)
        assert not worker.drop(first)
        go.set()
        await worker.stop()
        return ran, third

    def wait(go):
        go.wait(WAIT)
        return
        yield

    def note(ran, number):
        ran.append(number)
        return
        yield

    assert asyncio.run(run())[0] == [3]


def test_a_frame_is_joined_and_parted_with_the_places_of_its_rows():
    from dsms.intake.convert import to_batch
    from dsms.sql.types import INT, Field

    shape = StreamShape("s", (Field("k", INT),))
    pieces = [to_batch(rows, shape.schema) for rows in ([[1], ["x"]], [[2]], [["y"], [3], [4]])]
    whole = join(pieces, shape.schema)
    assert [(r.reason, r.count, r.first) for r in whole.refusals] == [("wrong value", 2, 1)]
    assert (whole.sent, whole.kept.tolist(), whole.columns[0].to_pylist()) == (
        6,
        [0, 2, 4, 5],
        [1, 2, 3, 4],
    )
    first, second = part(whole, 0, 3), part(whole, 3, 3)
    assert (first.kept.tolist(), len(first.refusals)) == ([0, 2, 4], 1)
    assert (second.kept.tolist(), second.columns[0].to_pylist(), second.refusals) == ([5], [4], ())
    plain = part(join(pieces[1:2] * 2, shape.schema), 1, 1)
    assert plain.kept.tolist() == [1]


def frames(item, form):
    import msgpack

    out = []
    for data in push_frames(item, "q", ("INT",), form, 1 << 20):
        while data:
            size = int.from_bytes(data[:4])
            out.append(msgpack.unpackb(data[4 : 4 + size]))
            data = data[4 + size :]
    return out


def test_chunks_become_runs_of_one_kind_and_instant():
    import numpy as np

    batch = columns.rows_to_batch([[i] for i in range(6)], ["k"], ["INT"])
    chunk = Chunk(10, np.array([-1, 1, 1, 1, -1, 1], np.int8), np.array([1, 1, 1, 2, 3, 3]), batch)
    assert [(f["seq"], f["kind"], f["at"], f["data"]) for f in frames(chunk, "rows")] == [
        (10, "delete", 1, [[0]]),
        (11, "insert", 1, [[1], [2]]),
        (13, "insert", 2, [[3]]),
        (14, "delete", 3, [[4]]),
        (15, "insert", 3, [[5]]),
    ]
    arrow = frames(chunk, "arrow")
    assert [(f["seq"], f["kind"], f["at"]) for f in arrow] == [
        (10, "delete", 1),
        (11, "insert", 2),
        (14, "delete", 3),
        (15, "insert", 3),
    ]
    assert columns.from_ipc(arrow[1]["data"]).to_pydict() == {"k": [1, 2, 3], "$at": [1, 1, 2]}
    assert frames(chunk, "auto") == frames(chunk, "rows")
    many = columns.rows_to_batch([[i] for i in range(3000)], ["k"], ["INT"])
    long = Chunk(0, np.ones(3000, np.int8), np.arange(3000) // 2000, many)
    assert isinstance(frames(long, "auto")[0]["data"], bytes)
    assert [(f["seq"], len(f["data"])) for f in frames(long, "rows")] == [(0, 2000), (2000, 1000)]


def test_an_end_takes_its_number_from_what_came_before():
    feed = SubscriptionFeed(None, "q")
    batch = columns.rows_to_batch([[1], [2]], ["k"], ["INT"])
    feed.number(Push("q", 7, "insert", 5, batch))
    assert feed.number(Push("q", -1, "end", None)).seq == 9
    assert frames(Push("q", 9, "end", None, message="over", code="DS620"), "rows") == [
        {
            "push": "q",
            "seq": 9,
            "kind": "end",
            "at": None,
            "data": None,
            "message": "over",
            "code": "DS620",
        }
    ]
