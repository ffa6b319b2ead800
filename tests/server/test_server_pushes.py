"""A boundary is one push, and so is what an instant inserts or deletes; parts only of what is too
long for a frame."""

from __future__ import annotations

from itertools import groupby, pairwise
from types import SimpleNamespace

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsms.api import Chunk, Push
from dsms.engine import Engine
from dsms.settings import Settings
from dsms_client import columns
from dsms_client.sync import connect
from dsms_server import pushes
from dsms_server.config import Config
from dsms_server.pushes import push_frames
from dsms_server.serve import make_engine
from tests.effort import thinned
from tests.faults.simfiles import SimFiles

SECOND = 1_000_000
NAMES, TYPES = ("k", "w"), ("INT", "STRING")


# -- frames of a chunk -----------------------------------------------------------------------------


@pytest.fixture(scope="module", autouse=True)
def small_pieces():
    """Pieces so small that every way to cut is met."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pushes, "ROWS_PIECE", 8)
        patched.setattr(pushes, "ARROW_PIECE", 16)
        yield


def frames(item, form, limit):
    out = []
    for data in push_frames(item, "q", TYPES, form, limit):
        while data:
            size = int.from_bytes(data[:4])
            out.append((size, msgpack.unpackb(data[4 : 4 + size])))
            data = data[4 + size :]
    return out


def rows_of(frame):
    """(kind, instant, row) of each row."""
    data, at = frame["data"], frame["at"]
    if isinstance(data, list):
        return [(frame["kind"], at, tuple(row)) for row in data]
    table = columns.from_ipc(data)
    ats = table.column("$at").to_pylist() if "$at" in table.schema.names else [at] * table.num_rows
    rows = columns.batch_to_rows(table.select(list(NAMES)))
    return [(frame["kind"], at, row) for at, row in zip(ats, rows, strict=True)]


@st.composite
def chunks(draw):
    """Runs of random lengths; periodic or not."""
    periodic = draw(st.booleans())
    runs = draw(
        st.lists(
            st.tuples(st.integers(1, 40), st.booleans(), st.integers(0, 1)), min_size=1, max_size=8
        )
    )
    sign, at, now = [], [], 0
    for length, insert, step in runs:
        now += 1 if periodic else step
        sign += [0 if periodic else 1 if insert else -1] * length
        at += [now] * length
    words = draw(st.lists(st.text("xy", max_size=30), min_size=len(at), max_size=len(at)))
    data = columns.rows_to_batch([[i, w] for i, w in enumerate(words)], NAMES, TYPES)
    return Chunk(draw(st.integers(0, 3000)), np.array(sign, np.int8), np.array(at, np.int64), data)


@given(
    chunks(),
    st.sampled_from(("rows", "arrow", "auto")),
    st.sampled_from((60, 100, 300, 1000, 10_000, 1 << 20)),
)
def test_frames_are_cut_between_instants(chunk, form, limit):
    got = [frame for _, frame in frames(chunk, form, limit)]
    rows = [row for frame in got for row in rows_of(frame)]
    kinds = {0: "result", 1: "insert", -1: "delete"}
    values = columns.batch_to_rows(chunk.data)
    assert rows == [
        (kinds[s], a, v)
        for s, a, v in zip(chunk.sign.tolist(), chunk.at.tolist(), values, strict=True)
    ]
    seq = chunk.seq
    for frame in got:
        assert frame["seq"] == seq
        seq += len(rows_of(frame))
    for before, after in pairwise(got):
        goes_on = rows_of(before)[-1][:2] == rows_of(after)[0][:2]
        assert before.get("more", False) is goes_on
    assert not got[-1].get("more")


@given(chunks(), st.sampled_from((60, 100, 300, 1000)))
def test_parts_are_as_long_as_a_frame_may_be(chunk, limit):
    got = frames(chunk, "rows", limit)
    whole = {frame["seq"]: size for size, frame in frames(chunk, "rows", 1 << 30)}
    for size, frame in got:
        assert size <= limit or len(frame["data"]) == 1
        assert (
            not frame.get("more") or frame["seq"] not in whole or whole[frame["seq"]] > limit - 60
        )


@given(chunks(), st.sampled_from((400, 1000, 10_000)))
def test_arrow_frames_have_few_bytes(chunk, limit):
    for _, frame in frames(chunk, "arrow", limit):
        table = columns.from_ipc(frame["data"])
        assert table.select(list(NAMES)).nbytes <= limit or table.num_rows == 1


@pytest.mark.parametrize("form", ["rows", "arrow"])
def test_a_snapshot_is_one_push(form):
    data = columns.rows_to_batch([[i, "x" * 20] for i in range(100)], NAMES, TYPES)
    snapshot = Push("q", 7, "snapshot", 5, data)
    ((_, frame),) = frames(snapshot, form, 1 << 20)
    assert "more" not in frame and len(rows_of(frame)) == 100
    parts = [frame for _, frame in frames(snapshot, form, 600)]
    assert [f["seq"] for f in parts] == [7] * len(parts)
    assert [f.get("more", False) for f in parts] == [True] * (len(parts) - 1) + [False]
    assert [row for f in parts for row in rows_of(f)] == rows_of(frame)
    ((_, empty),) = frames(Push("q", 7, "snapshot", 5, data.slice(0, 0)), form, 600)
    assert rows_of(empty) == []


def test_a_long_run_is_built_between_turns():
    data = columns.rows_to_batch([[i, "x"] for i in range(100)], NAMES, TYPES)
    chunk = Chunk(0, np.zeros(100, np.int8), np.ones(100, np.int64), data)
    pieces = list(push_frames(chunk, "q", TYPES, "rows", 1 << 20))
    assert [bool(piece) for piece in pieces] == [False] * 13 + [True]


# -- over TCP --------------------------------------------------------------------------------------

SCRIPT = """
CREATE STREAM s (k INT, g INT, t TIMESTAMP) TIMESTAMP BY t;
CREATE QUERY p AS SELECT k, g FROM s [RANGE 2 s SLIDE 1 s];
CREATE QUERY v AS SELECT g, COUNT(*) AS n FROM s [RANGE 2 s] GROUP BY g;
CREATE QUERY i AS SELECT k FROM s [NOW];
"""
ROWS = [[k, k % 700, (k // 900) * SECOND] for k in range(4500)]


def instants(pushes):
    """[(kind, at, rows)]: parts joined, pushes of several instants taken apart."""
    out, going_on = [], False
    for push in pushes:
        rows = zip(push.instants, push.rows, strict=True)
        for number, (at, group) in enumerate(groupby(rows, key=lambda row: row[0])):
            group = [row for _, row in group]
            if going_on and number == 0:
                assert out[-1][:2] == (push.kind, at)
                out[-1][2].extend(group)
            else:
                out.append((push.kind, at, group))
        going_on = push.more
    assert not going_on
    return out


@pytest.fixture(scope="module")
def in_process():
    """What each query tells an engine without a server, by instants."""
    engine = Engine()
    engine.execute(SCRIPT)
    subs = {name: engine.subscribe(name, 0) for name in "pvi"}
    engine.ingest("s", ROWS)
    engine.end("s")
    return {name: instants([_shown(push) for push in sub.take()]) for name, sub in subs.items()}


def _shown(push):
    rows = [] if push.data is None else columns.batch_to_rows(push.data)
    ats = [push.at] * len(rows) if push.ats is None else push.ats.to_pylist()
    return SimpleNamespace(kind=push.kind, rows=rows, instants=ats, more=False)


def taken(db, query, count, start=0):
    """Pushes from row `start` on, until `count` rows are there."""
    with db.subscribe(query, start=start) as results:
        out, have = [], 0
        while have < count:
            out.append(next(results))
            have += len(out[-1])
    return out


@thinned()
@pytest.mark.parametrize("form", ["rows", "arrow", "auto"])
@pytest.mark.parametrize("max_frame", [1 << 26, 20_000])
def test_pushes_over_tcp_are_those_in_process(serve, in_process, form, max_frame):
    running = serve(make_engine(Config()), max_frame=max_frame)
    with connect(port=running.port, data=form) as db:
        db.execute(SCRIPT)
        for first in range(0, len(ROWS), 611):
            db.ingest("s", ROWS[first : first + 611])
        db.end("s")
        for query, want in in_process.items():
            size = sum(len(rows) for _, _, rows in want)
            pushes = taken(db, query, size)
            assert instants(pushes) == want
            if max_frame == 1 << 26:
                assert not any(push.more for push in pushes)
            for start in (1, 1023, 1024, size - 5):
                rest = instants(taken(db, query, size - start, start))
                assert rest == _behind(want, start)


def _behind(want, start):
    """The instants without the first `start` rows."""
    out = []
    for kind, at, rows in want:
        left, start = rows[start:], max(0, start - len(rows))
        if left:
            out.append((kind, at, left))
    return out


def test_results_of_rows_that_may_not_be_on_the_disk_are_not_told(serve, tmp_path):
    """A restart could tell others of the same numbers."""
    engine = Engine(str(tmp_path), Settings(group_commit=True), SimFiles())
    server = serve(engine)
    with server.peer() as peer:
        for stream in "su":
            script = (
                f"CREATE STREAM {stream} (k INT, t TIMESTAMP) TIMESTAMP BY t "
                f"WITH (durability = sync); CREATE QUERY q{stream} AS SELECT k FROM {stream}"
            )
            assert peer.ask("execute", sql=script)["ok"]
            assert peer.ask("subscribe", query=f"q{stream}", **{"from": 0})["ok"]
            assert peer.ask("ingest", stream=stream, rows=[[1, 1]])["ok"]
            assert peer.push()["data"] == [[1]]
        engine.runtime.durable.journal._logs["s"]._file.broken = True
        assert peer.ask("ingest", stream="s", rows=[[2, 2]])["error"]["code"] == "DS552"
        end = peer.push()
        assert (end["kind"], end["push"], end["seq"], end["code"]) == ("end", "qs", 1, "DS552")
        assert "rows of s that may not be on the disk" in end["message"]
        assert peer.ask("subscribe", query="qs", **{"from": 1})["ok"]
        assert (peer.push()["kind"], peer.ask("ping")["ok"]) == ("end", True)
        assert peer.ask("ingest", stream="u", rows=[[2, 2]])["ok"]
        assert peer.push()["data"] == [[2]]
