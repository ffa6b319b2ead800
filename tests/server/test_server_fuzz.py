"""Frames at random: whatever comes, the server answers or closes, and serves the next peer."""

from __future__ import annotations

import random
import socket

import msgpack
import pytest

from dsms_client.protocol import HEADER, OPS, pack
from tests.waiting import WAIT

WORDS = ["s", "q", "SELECT 1", "rows", "", "\x00", "ä" * 50]


def value(rng, depth=0):
    """Any msgpack value."""
    kinds = [
        lambda: rng.choice([None, True, False, 0, -1, 2**63, -(2**63), 0.5, float("nan")]),
        lambda: rng.choice(WORDS),
        lambda: rng.randbytes(rng.randrange(40)),
        lambda: [value(rng, depth + 1) for _ in range(rng.randrange(4))],
        lambda: {rng.choice(WORDS): value(rng, depth + 1) for _ in range(rng.randrange(3))},
        lambda: msgpack.ExtType(rng.randrange(100), rng.randbytes(4)) if rng.random() < 0.1 else 7,
    ]
    return rng.choice(kinds[: 3 if depth > 2 else None])()


def request(rng):
    """A request that is nearly right."""
    name = rng.choice([*OPS, "nonsense"])
    fields = [f for op in OPS.values() for f in (*op.required, *op.optional)]
    known = [*OPS[name].required, *OPS[name].optional] if name in OPS else fields
    chosen = rng.sample(known, rng.randint(0, len(known))) + rng.sample(fields, rng.randrange(2))
    message = {"op": name, "id": rng.choice([1, "x", None, [], rng.randrange(1000)])}
    message.update({f: value(rng) for f in chosen})
    return {k: v for k, v in message.items() if rng.random() < 0.95}


def frame(rng):
    """Bytes: a request, perhaps hurt on its way."""
    data = bytearray(pack(request(rng)))
    match rng.randrange(6):
        case 0:
            data[rng.randrange(len(data))] = rng.randrange(256)
        case 1:
            del data[rng.randrange(len(data)) :]
        case 2:
            body = rng.randbytes(rng.randrange(200))
            data = bytearray(HEADER.pack(len(body)) + body)
        case 3:
            data[4:4] = rng.randbytes(rng.randrange(1, 20))
    return bytes(data)


def attack(server, seed, frames):
    rng = random.Random(seed)
    with server.peer() as peer:
        peer.socket.settimeout(WAIT)
        try:
            for _ in range(frames):
                peer.raw(frame(rng))
            peer.socket.shutdown(socket.SHUT_WR)
            answers = peer.rest()
        except OSError:
            return b""  # the server had enough and closed
    return answers


def check_alive(server):
    with server.peer() as peer:
        assert peer.ask("execute", sql="SELECT 1")["results"][0]["rows"] == [[1]]
        assert peer.ask("ingest", stream="s", rows=[[1, 0.5]])["accepted"] == 1


def run(server, seeds):
    answered = sum(bool(attack(server, seed, 20)) for seed in seeds)
    assert answered > len(seeds) // 2
    check_alive(server)
    assert server.on_loop(lambda: len(server.server.held)) == 0
    with server.peer() as peer:
        peer.ask("ping")
        codes = {
            s.labels["code"] for m in server.server.metrics.errors.collect() for s in m.samples
        }
    assert "DS900" not in codes
    assert {"DS600", "DS602", "DS603", "DS604"} <= codes


def test_nearly_right_frames(server):
    run(server, range(60))


@pytest.mark.fuzz
def test_many_nearly_right_frames(server):
    run(server, range(1000, 6000))
