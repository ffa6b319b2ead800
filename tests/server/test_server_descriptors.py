"""A server with few descriptors: streams come and go, and whoever connects is served."""

from __future__ import annotations

import re
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dsms_client.protocol import pack
from dsms_client.sync import Client
from tests.effort import effort
from tests.server.process import Process
from tests.waiting import wait_until

FEW = 160  # descriptors: 40 of them for logs, 40 in reserve
MANY = 2 * FEW if effort() else FEW + FEW // 4  # streams


@contextmanager
def none_left() -> Iterator[None]:
    """Within it this process can open nothing more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def streams(client: Client) -> set[str]:
    return {row[0] for row in client.query("SHOW STREAMS")}


def test_more_streams_than_descriptors(tmp_path):
    process = Process(str(tmp_path / "data"), FEW)
    try:
        with Client(port=process.port) as client:
            for i in range(MANY):
                durability = ("sync", "interval", "none")[i % 3]
                made = f"CREATE STREAM s{i} (v INT, t TIMESTAMP) TIMESTAMP BY t"
                client.execute(f"{made} WITH (durability = {durability})")
                client.ingest(f"s{i}", [(i, i)])
            others = [Client(port=process.port) for _ in range(10)]
            for number, other in enumerate(others):
                other.ingest(f"s{number}", [(2, 10_000_000)])
                other.close()
            for i in range(10, MANY):
                client.execute(f"DROP STREAM s{i}")
        with Client(port=process.port) as client:
            assert streams(client) == {f"s{i}" for i in range(10)}
        process.kill()
        process.start()
        with Client(port=process.port) as client:
            assert streams(client) == {f"s{i}" for i in range(10)}
            client.ingest("s0", [(3, 20_000_000)])
    finally:
        process.kill()


@pytest.mark.parametrize("which", ["port", "http_port"])
def test_who_comes_while_no_descriptor_is_left_waits(serve, which, caplog):
    running = serve(http_port=0)
    failures = running.server.metrics.accept_failures._value
    with socket.socket() as peer:
        with none_left():
            peer.connect(("127.0.0.1", getattr(running.server, which)))
            wait_until(lambda: failures.get() > 2)
        peer.sendall(
            pack({"op": "ping", "id": 1}) if which == "port" else b"GET /metrics HTTP/1.0\r\n\r\n"
        )
        said = b""
        while not re.search(rb"\xa2ok\xc3|dsms_accept_failures_total", said):
            piece = peer.recv(1 << 16)
            assert piece, said
            said += piece
    assert "connections have to wait, none can be accepted: Too many open files" in caplog.text
