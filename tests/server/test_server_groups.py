"""Small frames that wait for the engine together: they are one step, and nobody can tell."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import pytest

from dsms.engine import Engine
from tests.effort import thinned
from tests.server.harness import Peer, Running
from tests.waiting import WAIT

DECLARED = (
    "CREATE STREAM s (k STRING, v INT NOT NULL, t TIMESTAMP) TIMESTAMP BY t SLACK 3 s;"
    "CREATE STREAM other (v INT, t TIMESTAMP) TIMESTAMP BY t;"
    "CREATE QUERY q AS SELECT k, COUNT(*) AS n, SUM(v) AS v FROM s [RANGE 9 s] GROUP BY k"
)
PEERS = 3


def held(server: Running) -> threading.Event:
    """The engine's thread stands still until this is set."""
    gate, there = threading.Event(), threading.Event()

    def hold() -> None:
        there.set()
        gate.wait(WAIT)

    server.on_loop(lambda: server.server.core.worker.call(hold))
    assert there.wait(WAIT)
    return gate


def _requests(draw: random.Random, count: int) -> list[tuple[str, dict[str, Any]]]:
    """What one session asks: rows, good and bad, heartbeats and statements between them."""
    out: list[tuple[str, dict[str, Any]]] = []
    for k in range(count):
        rows = [[draw.choice("ab"), draw.randrange(9), (k + draw.randrange(3)) * 1_000_000]]
        seq = {"seq": k if draw.random() < 0.9 else k // 2}
        match draw.randrange(14):
            case 0:
                rows[0][1] = None
            case 1:
                rows[0][2] = -50_000_000
            case 2:
                out.append(("heartbeat", {"stream": "s", "ts": (k - 4) * 1_000_000}))
            case 3:
                out.append(("ingest", {"stream": "nowhere", "rows": rows, **seq}))
                continue
            case 4:
                out.append(("ingest", {"stream": "other", "rows": [[k, k]], **seq}))
                continue
            case 5:
                out.append(("execute", {"sql": "SHOW STREAMS"}))
            case 6:
                out.append(("ingest", {"stream": "s", "rows": 5, **seq}))
                continue
            case 7:
                columns = {"k": [], "v": ["x"], "t": [1]}
                out.append(("ingest", {"stream": "s", "columns": columns, **seq}))
                continue
            case 8 | 9:
                rows = [[draw.choice(["a", "long" * 9, None]), k, k * 1_000_000] for k in range(40)]
                if draw.random() < 0.3:
                    rows[draw.randrange(40)][1] = draw.choice(["x", None, 1.5])
            case 10:
                rows = [{"v": 1, "t": rows[0][2]}] * 2
        out.append(("ingest", {"stream": "s", "rows": rows, **seq}))
    return out


def _play(engine: Engine, seed: int, most: int) -> tuple[list[Any], list[Any], int]:
    """Replies of each session in order, the rows of the query, and how many frames went with
    others."""
    draw = random.Random(seed)
    server = Running(engine)
    worker = server.server.core.worker
    worker.most = most
    peers: list[Peer] = []
    try:
        peers = [server.peer() for _ in range(PEERS)]
        for k, peer in enumerate(peers):
            peer.ask("hello", version=1, client=f"writer{k}")
        reader = engine.subscribe("q")
        replies: list[Any] = []
        for _ in range(3):
            for peer in peers:  # one after the other, so that their order is known
                asked = _requests(draw, 25)
                gate = held(server)
                idents = [peer.send(op, **fields) for op, fields in asked]
                peer.ask("ping")  # which is answered at once, so what came before it waits now
                gate.set()
                replies += [peer.reply(ident) for ident in idents]
        grouped = worker.grouped
    finally:
        for peer in peers:
            peer.socket.close()
        server.stop()
    rows = [
        (p.seq + k, p.kind, p.at if p.ats is None else p.ats[k].as_py(), row)
        for p in reader.take()
        if p.data is not None
        for k, row in enumerate(p.data.to_pylist())
    ]
    return replies, rows, grouped


@thinned()
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("durability", [None, "interval", "sync"])
def test_replies_and_answers_are_those_of_frames_alone(
    seed: int, durability: str | None, tmp_path: Path
) -> None:
    played = []
    for most in (1, 512):
        engine = Engine(None if durability is None else str(tmp_path / str(most)))
        kept = f" WITH (durability = {durability})" if durability else ""
        engine.execute(DECLARED.replace(" SLACK 3 s;", f" SLACK 3 s{kept};"))
        replies, rows, grouped = _play(engine, seed, most)
        assert bool(grouped) == (most > 1)
        played.append(([_told(r) for r in replies], rows))
    assert played[0] == played[1]


def _told(reply: dict[str, Any]) -> Any:
    """What does not differ from run to run."""
    return "statement" if "results" in reply else reply


def test_frames_of_several_sessions_are_one_step() -> None:
    engine = Engine()
    engine.execute(DECLARED)
    server = Running(engine)
    try:
        peers = [server.peer() for _ in range(PEERS)]
        for peer in peers:
            peer.ask("hello", version=1)
        gate = held(server)
        sent = [
            (peer, [peer.send("ingest", stream="s", rows=[["a", k, 5]]) for k in range(4)])
            for peer in peers
        ]
        for peer in peers:
            peer.ask("ping")
        before = server.server.core.worker.slices
        gate.set()
        for peer, idents in sent:
            for ident in idents:
                assert peer.reply(ident)["accepted"] == 1
        assert server.server.core.worker.grouped == 4 * PEERS
        assert server.server.core.worker.slices >= before + 1
    finally:
        server.stop()
    assert engine.runtime.inputs["s"].counts.accepted == 4 * PEERS
