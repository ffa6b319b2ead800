"""Frames that wait together, applied as one: as one after the other, in answers, replies, numbers
of writers, and after a crash."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import msgpack
import pytest

from dsms.api import Subscription
from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.frames import Frame
from dsms.intake.convert import to_batch
from dsms.intake.grouped import packed_together, together
from dsms.settings import Settings
from tests.effort import thinned

DECLARED = (
    "CREATE STREAM s (k STRING, v INT NOT NULL, t TIMESTAMP) TIMESTAMP BY t",
    "CREATE STREAM s (k STRING, v INT NOT NULL, t TIMESTAMP) TIMESTAMP BY t SLACK 5 s",
    "CREATE STREAM s (k STRING, v INT NOT NULL, t TIMESTAMP) TIMESTAMP BY t MAX FUTURE 20 s",
    "CREATE STREAM aside (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t;"
    "CREATE STREAM s (k STRING, v INT NOT NULL, t TIMESTAMP) TIMESTAMP BY t LATE INTO aside",
)
QUERIES = (
    "CREATE QUERY sums AS SELECT k, COUNT(*) AS n, SUM(v) AS v FROM s [RANGE 10 s] GROUP BY k",
    "CREATE QUERY slides AS SELECT SUM(v) AS v FROM s [RANGE 10 s SLIDE 5 s]",
    "CREATE QUERY rows AS SELECT k, v FROM s WHERE v > 3",
    "CREATE QUERY last AS SELECT MAX(v) AS v FROM s [ROWS 7]",
)


def _engine(declared: str, folder: Any = None) -> Engine:
    engine = Engine(folder, Settings(checkpoint_bytes=0))
    engine.execute(";".join((declared, *QUERIES)))
    return engine


def _row(draw: random.Random, at: int) -> list[Any]:
    """A row near that second; late, too far ahead, or wrong at times."""
    t = at + draw.choice((0, 0, 0, 1, 2, -1, -4, -15, 60 if draw.random() < 0.1 else 0))
    row: list[Any] = [draw.choice(["a", "b", None]), draw.randrange(9), max(t, 0) * 1_000_000]
    match draw.randrange(40):
        case 0:
            row[1] = None
        case 1:
            row[1] = "x"
        case 2:
            row[2] = None
        case 3:
            row.pop()
    return row


def _frames(draw: random.Random, count: int) -> list[tuple[list[list[Any]], str | None, int]]:
    """Rows, writer and number of each; numbers are repeated and fall back at times."""
    numbers = {"x": 0, "y": 0}
    out = []
    for k in range(count):
        rows = [_row(draw, k) for _ in range(draw.choice((1, 1, 1, 2, 5, 0)))]
        client = draw.choice(("x", "y", None))
        if client is not None:
            numbers[client] = max(1, numbers[client] + draw.choice((1, 1, 1, 1, 0, -1, 3)))
        out.append((rows, client, numbers.get(client or "", 0)))
    return out


def _one_by_one(engine: Engine, frames: list[Any]) -> list[Any]:
    out: list[Any] = []
    for rows, client, seq in frames:
        try:
            out.append(engine.ingest("s", rows, client=client, seq=seq if client else None))
        except DsmsError as problem:
            out.append((problem.code, problem.message))
    return out


def _in_groups(engine: Engine, frames: list[Any], draw: random.Random) -> list[Any]:
    out: list[Any] = []
    schema = engine.runtime.inputs["s"].definition.schema
    while frames:
        size = draw.choice((1, 2, 5, 20))
        group, frames = frames[:size], frames[size:]
        cuts = (
            together([rows for rows, _, _ in group], schema) if any(r for r, *_ in group) else None
        )
        made = [
            Frame(cuts[k] if cuts else to_batch(rows, schema), client, seq if client else None)
            for k, (rows, client, seq) in enumerate(group)
        ]
        out += [
            (r.code, r.message) if isinstance(r, DsmsError) else r
            for r in engine.ingest_group("s", made)
        ]
    return out


def _numbered(reader: Subscription) -> list[Any]:
    """Each row of the results, with its number; how many go in one push is not promised."""
    return [
        (push.seq + k, push.kind, push.at if push.ats is None else push.ats[k].as_py(), row)
        for push in reader.take()
        for k, row in enumerate(push.data.to_pylist())
    ]


@thinned()
@pytest.mark.parametrize("declared", DECLARED)
@pytest.mark.parametrize("seed", range(6))
def test_groups_answer_as_frames_do(declared: str, seed: int) -> None:
    draw = random.Random(seed)
    frames = _frames(draw, 80)
    alone, grouped = _engine(declared), _engine(declared)
    pushes = {}
    for engine in (alone, grouped):
        pushes[engine] = [engine.subscribe(name) for name in ("sums", "slides", "rows", "last")]
    assert _in_groups(grouped, list(frames), draw) == _one_by_one(alone, frames)
    for engine in (alone, grouped):
        engine.heartbeat("s", 200_000_000)
    for one, other in zip(pushes[alone], pushes[grouped], strict=True):
        assert _numbered(other) == _numbered(one)
    counts = [engine.runtime.inputs["s"].counts for engine in (alone, grouped)]
    assert counts[0] == counts[1]
    assert grouped.writers.newest == alone.writers.newest


@pytest.mark.parametrize("seed", range(4))
def test_a_crash_leaves_whole_groups(seed: int, tmp_path: Path) -> None:
    """The journal ends anywhere: what comes back is a row of whole frames, and sending all that
    have numbers again gives what would have been without the crash."""
    draw = random.Random(seed)
    frames = [(rows, "x", k + 1) for k, (rows, _, _) in enumerate(_frames(draw, 30))]
    engine = _engine(DECLARED[0], str(tmp_path / "data"))
    _in_groups(engine, list(frames), draw)
    assert engine.saver is not None
    engine.saver.catalog.close()  # what a killed process leaves to the system
    (log,) = (tmp_path / "data").rglob("streams/s/*.log")
    for part in (0.2, 0.5, 0.77, 1.0):
        copied = tmp_path / f"cut{part}"
        shutil.copytree(tmp_path / "data", copied)
        for name in copied.rglob("synced-*"):
            name.unlink()  # so nothing says that the end had reached the disk
        path = copied / log.relative_to(tmp_path / "data")
        written = path.read_bytes().rstrip(b"\0")
        path.write_bytes(written[: int(len(written) * part)])
        back = Engine(str(copied), Settings(checkpoint_bytes=0))
        if back.saver is not None and back.saver.durable.journal.failures:
            back.execute("ALTER STREAM s ACCEPT LOSS")
        whole = Engine()
        whole.execute(";".join((DECLARED[0], *QUERIES)))
        done = back.writers.newest.get(("x", "s"))
        _one_by_one(whole, frames[: done.seq if done else 0])
        assert back.runtime.inputs["s"].next_arrival == whole.runtime.inputs["s"].next_arrival
        again = _in_groups(back, list(frames), draw)
        assert [r.repeated for r in again] == [
            int(done is not None and k < done.seq) for k in range(30)
        ]
        _one_by_one(whole, frames[done.seq if done else 0 :])
        for name in ("sums", "slides", "last"):
            got, want = (
                [sorted(map(str, p.data.to_pylist())) for p in e.subscribe(name).take()]
                for e in (back, whole)
            )
            assert got == want
        back.close()


def test_rows_are_converted_together_as_alone() -> None:
    schema = _engine(DECLARED[0]).runtime.inputs["s"].definition.schema
    lists = [[["a", 1, 5]], [[None, 2, 6], ["b", 3, 7]], []]
    found = together(lists, schema)
    assert found is not None
    for rows, one in zip(lists, found, strict=True):
        alone = to_batch(rows, schema)
        assert one.sent == alone.sent
        assert [c.to_pylist() for c in one.alone.columns] == [c.to_pylist() for c in alone.columns]
    found = packed_together([memoryview(msgpack.packb(rows)) for rows in lists], schema)
    assert found is not None
    assert [c.alone.columns[1].to_pylist() for c in found] == [[1], [2, 3], []]
    odd = memoryview(msgpack.packb([["a", None, 5]]))
    assert packed_together([memoryview(msgpack.packb(lists[0])), odd], schema) is None
    for odd in ([["a", 1.0, 5]], [["a", 1]], [{"v": 1}], [["a", None, 5]], ["a"]):
        assert together([*lists, odd], schema) is None
