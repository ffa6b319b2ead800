"""Conversations: frames, right and wrong, that a server gets over a socket while another client
works beside them."""

from __future__ import annotations

import copy
import logging
import os
import socket
from random import Random
from typing import Any

import msgpack

from dsms.engine import Engine
from dsms.settings import Settings
from dsms_client.protocol import HEADER, OPS, pack
from tests.faults.arrow_seeds import seeds
from tests.faults.cases import Fault, judge
from tests.faults.formats import values
from tests.faults.mutate import mutated
from tests.server.harness import Running

LIFE = 2000
MANY = 64  # frames of a conversation that says hello first
THREADS = True
BESIDE = 16  # of so many conversations after one the neighbour speaks
DECLARED = ("CREATE STREAM s (k INT, v FLOAT); CREATE STREAM e (k STRING, t TIMESTAMP) TIMESTAMP "
            "BY t; CREATE TABLE r (k INT PRIMARY KEY); CREATE QUERY q AS SELECT k, SUM(v) FROM s "
            "[ROWS 8] GROUP BY k; CREATE STREAM beside (k INT); CREATE QUERY heard AS SELECT "
            "ISTREAM(k) FROM beside [NOW]")  # text  # fmt: skip
STATEMENTS = ("SELECT 1", "SHOW STREAMS", "SELECT * FROM r", "INSERT INTO r VALUES (1)", "SELECT",
              "", "DROP QUERY q",
              "CREATE QUERY q AS SELECT * FROM s [NOW]", "SHOW QUERIES; SELECT 2",
              "EXPLAIN SELECT * FROM s [ROWS 1]",
              "DELETE FROM r", "\x00", "é" * 50, "SHOW SESSIONS",
              "SELECT 1/0")  # a long list  # fmt: skip
WORDS = ("s", "e", "r", "q", "rows", "", "\x00", "nobody", "é" * 50)
COLUMNS: tuple[Any, ...] = (
    {"k": [1], "v": [0.5]},
    {"k": ["a"], "t": [1]},
    {"k": [1, 2]},
    {},
    {"k": 1},
    {1: [2]},
)
ROWS: tuple[Any, ...] = (
    [[1, 0.5]],
    [["a", 5]],
    [],
    [[1]],
    [[None, None]],
    [1],
    [{"k": 1}],
    [[2**63, "x"]],
)
ARROW = seeds()[:12]
HELLO = pack({"op": "hello", "id": -1, "version": 1})


class Tracebacks(logging.Handler):
    """What the log may not have."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        if record.exc_info or "Traceback" in text or record.name == "asyncio":
            self.seen.append(text)


class Victim:
    """A server in this process, and a neighbour."""

    def __init__(self) -> None:
        self.log = Tracebacks()
        logging.getLogger().addHandler(self.log)
        engine = Engine(
            settings=Settings(queries=20, state_bytes=64 << 20, statement_bytes=64 << 20)
        )
        engine.execute(DECLARED)
        self.running = Running(engine, ping_seconds=0.0)
        self.neighbour = self.running.peer()
        self._must(self.neighbour.ask("subscribe", query="heard"))
        self._told = self._open = 0
        self.judged = 1

    def suffer(self, data: bytes) -> str:
        answers = self._answers(data)
        self._told += 1
        if self._told % BESIDE == 1:
            self._beside()
        if self.log.seen:
            raise Fault("the log has " + self.log.seen[0])
        return answers

    def _answers(self, data: bytes) -> str:
        with self.running.peer() as peer:
            try:
                peer.raw(data)
                peer.socket.shutdown(socket.SHUT_WR)
                rest = peer.rest()
            except OSError:
                return "closed"  # it had enough
        said, at = [], 0
        while at < len(rest):
            (length,) = HEADER.unpack(rest[at : at + 4])
            body, at = rest[at + 4 : at + 4 + length], at + 4 + length
            if len(body) < length:
                break  # its side was closed as well
            message = msgpack.unpackb(body, strict_map_key=False)
            if "push" not in message:
                said.append(self._judged(message))
        self.judged = max(1, len(said) - 1) if data.startswith(HELLO) else 1
        return next((end for end in said if end != "answered"), said[0] if said else "silence")

    def _judged(self, message: dict[str, Any]) -> str:
        error = message.get("error")
        return judge(str(error.get("code")), str(error.get("message"))) if error else "answered"

    def _beside(self) -> None:
        """A row of the neighbour comes back."""
        reply = self.neighbour.ask("ingest", stream="beside", rows=[[self._told]], wait=True)
        if reply.get("accepted") != 1:
            raise Fault(f"the neighbour is told {reply}")
        while True:
            push = self.neighbour.push()
            if push["kind"] == "insert" and [self._told] in [list(row) for row in push["data"]]:
                break
        opened = len(os.listdir("/proc/self/fd"))
        self._open = self._open or opened
        if opened > self._open + 50:
            raise Fault(f"{opened} descriptors are open, {self._open} were")

    def _must(self, reply: dict[str, Any]) -> None:
        if not reply.get("ok"):
            raise Fault(f"the neighbour is told {reply}")

    def close(self) -> None:
        self.neighbour.socket.close()
        self.running.stop()
        logging.getLogger().removeHandler(self.log)


make = Victim


def draw(rng: Random) -> bytes:
    """One to eight frames, of which some have been hurt on their way; or many behind a hello, each
    of which is answered."""
    if rng.random() < 0.5:
        return HELLO + b"".join(_other_frame(rng, number) for number in range(MANY))
    data = b"".join(_frame(rng) for _ in range(rng.choice((1, 2, 4, 8))))
    return mutated(rng, data) if rng.random() < 0.2 else data


def _frame(rng: Random) -> bytes:
    data = pack(_request(rng))
    if rng.random() < 0.6:
        return data
    body = mutated(rng, data[4:])
    return HEADER.pack(len(body)) + body


def _other_frame(rng: Random, number: int) -> bytes:
    """One that is hurt in its values or its bytes; its length and mostly its id are right."""
    message = {**copy.deepcopy(_request(rng)), "id": number}
    if rng.random() < 0.5:
        values.changed(rng, message, lambda rng, value: _anything(rng))
    try:
        data = pack(message)
    except (ValueError, OverflowError, RecursionError):  # msgpack has no such value
        data = pack({"op": "ping", "id": number})
    if rng.random() < 0.5:
        return data
    body = mutated(rng, data[4:])
    return HEADER.pack(len(body)) + body


def _request(rng: Random) -> dict[str, Any]:
    name = rng.choice(list(OPS)) if rng.random() < 0.97 else "nonsense"
    message: dict[str, Any] = {"op": name, "id": rng.choice((1, "x", None, rng.randrange(1000)))}
    if name in OPS:
        op = OPS[name]
        some = [field for field in op.optional if rng.random() < 0.4]
        message |= {field: _field(rng, field) for field in (*op.required, *some)}
    return {k: v for k, v in message.items() if rng.random() < 0.98}


def _field(rng: Random, name: str) -> Any:
    """What may stand in that field, or anything."""
    if rng.random() < 0.1:
        return _anything(rng)
    match name:
        case "sql":
            return rng.choice(STATEMENTS)
        case "columns":
            return rng.choice(COLUMNS)
        case "rows":
            return rng.choice(ROWS)
        case "arrow":
            return rng.choice(ARROW)
        case "wait":
            return rng.random() < 0.5
        case "version":
            return rng.choice((1, 1, 1, 0, 2))
        case "from" | "seq" | "ts" | "every" | "request":
            return rng.choice((0, 1, -1, 5, 2**62, 10**6))
    return rng.choice(WORDS)


def _anything(rng: Random, depth: int = 0) -> Any:
    match rng.randrange(6 if depth < 3 else 3):
        case 0:
            return rng.choice((None, True, 0, -1, 2**63, -(2**63), 0.5, float("nan"), float("inf")))
        case 1:
            return rng.choice(WORDS)
        case 2:
            return rng.randbytes(rng.randrange(40))
        case 3:
            return [_anything(rng, depth + 1) for _ in range(rng.randrange(4))]
        case 4:
            return {rng.choice(WORDS): _anything(rng, depth + 1) for _ in range(rng.randrange(3))}
    return msgpack.ExtType(rng.randrange(100), rng.randbytes(rng.choice((4, 8, 12))))
