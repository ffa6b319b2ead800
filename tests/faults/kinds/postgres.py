"""Conversations in PostgreSQL's protocol: messages, right and wrong, that a server gets at its port
for that while another client works beside them."""

from __future__ import annotations

import logging
import os
import socket
import struct
from random import Random

from dsms.engine import Engine
from dsms.settings import Settings
from tests.faults.cases import Fault, judge
from tests.faults.kinds.wire import Tracebacks
from tests.faults.mutate import mutated
from tests.server import postgres_peer as pg
from tests.server.harness import Running

LIFE = 2000
THREADS = True
BESIDE = 16  # of so many conversations after one the neighbour asks
DECLARED = (
    "CREATE STREAM s (k INT, v FLOAT, t TIMESTAMP) TIMESTAMP BY t; CREATE TABLE r (k INT PRIMARY "
    "KEY, x STRING); INSERT INTO r VALUES (1, 'a'), (2, NULL)"
)
TEXTS = (
    "SELECT 1",
    "SELECT * FROM r",
    "SELECT * FROM r WHERE k = $1",
    "SELECT $1, $2",
    "",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SET a = 'b'",
    "SHOW a",
    "SHOW ALL",
    "SHOW STREAMS",
    "SELECT relname FROM pg_class",
    "SELECT $1::regclass",
    "SELECT k FROM s LIMIT $1",
    "DECLARE c CURSOR FOR SELECT * FROM r",
    "FETCH 1 c",
    "FETCH ALL c",
    "CLOSE c",
    "DISCARD ALL",
    "DROP STREAM s",
    "SELECT 'x",
    "SELECT 1/0",
    "SELECT k FROM s WHERE t > '2020-01-01'",
    "EXPLAIN SELECT 1",
    "SELECT current_setting('a'); SELECT 2",
    "é" * 40,
    "\x01",
    "VALUES (1)",
    "SELECT pg_catalog.format_type(20, -1)",
    "COPY r TO STDOUT",
    "DEALLOCATE ALL",
    "FETCH 1 c WITH (timeout = '1ms')",
    "SELECT * FROM public.r WHERE x ~ 'a'",
)
OIDS = (0, 16, 17, 20, 21, 23, 25, 26, 114, 701, 1016, 1082, 1184, 1186, 1700, 2950, 705, 99999)
VALUES = (
    None,
    b"",
    b"1",
    b"abc",
    b"\x00" * 8,
    b"\xff" * 4,
    b"{1,2}",
    b"{",
    b"1.5",
    b"2020-01-01",
    struct.pack(">q", 5),
    struct.pack(">hhhh", 1, 0, 0, 0) + b"\0\1",
    struct.pack(">qii", 1, 2, 3),
    struct.pack(">iiiii", 1, 0, 20, 1, 1) + struct.pack(">iq", 8, 1),
)
NAMES = ("", "a", "b", "c", "é")
START = pg.startup(user="me")


class Victim:
    """A server in this process, and a neighbour."""

    def __init__(self) -> None:
        self.log = Tracebacks()
        logging.getLogger().addHandler(self.log)
        engine = Engine(settings=Settings(state_bytes=64 << 20, statement_bytes=64 << 20))
        engine.execute(DECLARED)
        self.running = Running(engine, postgres_port=0)
        self.port = self.running.server.postgres_port or 0
        self.neighbour = pg.Wire(self.port).begin()
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
        with pg.Wire(self.port, None) as wire:
            try:
                wire.raw(data + pg.SYNC + pg.TERMINATE)
                wire.socket.shutdown(socket.SHUT_WR)
                rest = wire.rest()
            except OSError:
                return "closed"  # it had enough
        said, at = [], 0
        while at + 5 <= len(rest):
            (length,) = struct.unpack(">I", rest[at + 1 : at + 5])
            kind, body = rest[at : at + 1], rest[at + 5 : at + 1 + length]
            at += 1 + length
            if kind == b"E":
                said.append(self._judged(pg.fields(body)))
            elif kind in b"C1TD":
                said.append("answered")
        self.judged = max(1, len(said))
        return next((end for end in said if end != "answered"), said[0] if said else "silence")

    def _judged(self, found: dict[str, str]) -> str:
        if len(found.get("C", "")) != 5:
            raise Fault(f"an error without SQLSTATE: {found}")
        code, _, text = found.get("M", "").partition(":")
        return judge(code, text)

    def _beside(self) -> None:
        if self.neighbour.rows("SELECT COUNT(*) FROM r") != [(b"2",)]:
            raise Fault("the neighbour is told something else")
        opened = len(os.listdir("/proc/self/fd"))
        self._open = self._open or opened
        if opened > self._open + 50:
            raise Fault(f"{opened} descriptors are open, {self._open} were")

    def close(self) -> None:
        self.neighbour.socket.shutdown(socket.SHUT_RDWR)
        self.neighbour.socket.close()
        self.running.stop()
        logging.getLogger().removeHandler(self.log)


make = Victim


def draw(rng: Random) -> bytes:
    """A first message and some others, of which some have been hurt on their way."""
    first = START if rng.random() < 0.95 else mutated(rng, START)
    data = first + b"".join(_message(rng) for _ in range(rng.choice((1, 2, 4, 8, 16))))
    return mutated(rng, data) if rng.random() < 0.1 else data


def _message(rng: Random) -> bytes:
    data = _whole(rng)
    if rng.random() < 0.6:
        return data
    body = mutated(rng, data[5:])
    return data[:1] + struct.pack(">I", 4 + len(body)) + body


def _whole(rng: Random) -> bytes:
    name, other = rng.choice(NAMES), rng.choice(NAMES)
    match rng.randrange(9):
        case 0 | 1:
            return pg.query(rng.choice(TEXTS))
        case 2 | 3:
            oids = [rng.choice(OIDS) for _ in range(rng.choice((0, 0, 1, 2)))]
            return pg.parse(name, rng.choice(TEXTS), *oids)
        case 4 | 5:
            values = tuple(rng.choice(VALUES) for _ in range(rng.choice((0, 1, 1, 2))))
            forms = tuple(rng.randrange(2) for _ in range(rng.choice((0, 1, len(values)))))
            return pg.bind(other, name, values, forms, (rng.randrange(2),) * rng.randrange(2))
        case 6:
            return pg.describe(rng.choice("SP"), name)
        case 7:
            return pg.execute(name, rng.choice((0, 0, 1, -1)))
        case _:
            return rng.choice((pg.SYNC, pg.FLUSH, pg.close(rng.choice("SP"), name)))
