"""What the engine does against what this machine can do: each operation beside a bare kernel over
the same arrays, which only loops, keeps nothing and reports nothing.

In process: pyarrow.compute or Numba.  Over TCP: the same frames received by a socket in this
process and decoded, by Arrow's IPC reader or by msgpack, and then forgotten.  Every answer is
checked.  Medians of three."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import msgpack
import numpy as np
import pyarrow as pa

from dsms_client.protocol import HEADER
from tests.benchmarks import bare, ours, peers, tcp, workloads
from tests.benchmarks.harness import (
    Options,
    Section,
    Table,
    Took,
    clean_heap,
    median,
    same,
    shown,
    took,
)
from tests.benchmarks.peers import Rate

IN_PROCESS = (
    ("filter and project", "W1", "pyarrow.compute"),
    ("window equi-join, 100,000 keys, 2 s", "W4", "Numba symmetric join"),
    ("DISTINCT, 1 s", "W5", "Numba"),
    ("SUM and COUNT by key, 1 s, each change", "grouped", "Numba, new values after each row"),
    (
        "SUM and COUNT by key, no window, each change",
        "grouped, unbounded",
        "Numba, new values after each row",
    ),
    ("sliding MAX per tuple, 1 s", "W3", "Numba monotonic queue"),
)


def section(options: Options) -> Section:
    """All limits."""
    data = workloads.make(options.pick(2_000_000, 300_000, 20_000))
    rows = [_in_process(data, options, *case) for case in IN_PROCESS]
    with tcp.server(options.pick(True, True, False)) as server:
        rows += _over_tcp(server, data, options)
    header = ("operation", "dsms, rows/s", "limit", "its rows/s", "ratio, wall", "ratio, CPU")
    return Section("Engine against limits", __doc__ or "", [Table("Limits", header, tuple(rows))])


def _in_process(
    data: workloads.Data, options: Options, label: str, name: str, limit: str
) -> tuple[str, ...]:
    ours.check(name, data, ours.run(name, data)[1])
    here = Rate.of(data.rows, median(ours.run(name, data)[0] for _ in range(options.repeats)))
    return _row(label, here, limit, peers.repeat(data.rows, options, _kernel(name, data)))


def _kernel(name: str, data: workloads.Data) -> Callable[[], object]:
    match name:
        case "W1":
            return lambda: bare.filter_project(data.s)
        case "W3":
            return peers.bare_max(data)
        case "W4":
            return peers.bare_join(data)
        case "W5":
            return peers.bare_distinct(data)
        case _:
            return _bare_grouped(data, None if "unbounded" in name else workloads.SECOND)


def _bare_grouped(data: workloads.Data, width: int | None) -> Callable[[], object]:
    ts, k, v = workloads.columns(data.s)
    counts, sums = np.empty(len(ts), np.int64), np.empty(len(ts))

    def run() -> tuple[np.ndarray, np.ndarray]:
        count, total = np.zeros(workloads.KEYS, np.int64), np.zeros(workloads.KEYS)
        bare.grouped(ts, k, v, width or 1 << 60, count, total, counts, sums)
        return count, total

    expected = workloads.grouped(data.s, width)
    same(
        "bare grouped",
        bool((run()[0] == expected[0]).all() and (np.abs(run()[1] - expected[1]) < 1e-6).all()),
        True,
    )
    return run


def _over_tcp(server: tcp.Server, data: workloads.Data, options: Options) -> list[tuple[str, ...]]:
    pieces = list(bare.pieces(data.s, options.pick(1 << 17, 1 << 16, 1 << 12)))
    few = list(bare.pieces(data.s.slice(0, data.rows // 4), tcp.SMALL))
    out = []
    for label, batches, frames, decode, query in (
        ("TCP, Arrow frames, no query", pieces, tcp.arrow_frames, _arrow, None),
        ("TCP, Arrow frames, filter query", pieces, tcp.arrow_frames, _arrow, "W1"),
        ("TCP, msgpack rows, no query", few, tcp.row_frames, _msgpack, None),
        ("TCP, msgpack rows, filter query", few, tcp.row_frames, _msgpack, "W1"),
    ):
        count = sum(b.num_rows for b in batches)
        _ingest(server, batches[:1], frames, query)
        here = median(_ingest(server, batches, frames, query) for _ in range(options.repeats))
        with server.wire() as wire:
            sent = frames(wire, "s", batches)
        limit = median(loopback(sent, decode, count) for _ in range(options.repeats))
        name = "socket and Arrow IPC" if decode is _arrow else "socket and msgpack"
        out.append(_row(label, Rate.of(count, here), name, Rate.of(count, limit)))
    return out


def _ingest(
    server: tcp.Server, batches: list[pa.RecordBatch], frames: Callable, query: str | None
) -> Took:
    with server.wire() as wire:
        peers.declare(wire, query or "W1")
        if query is None:
            wire.ask("execute", sql="DROP QUERY q")
        spent = tcp.ingest(server, wire, frames(wire, "s", batches))
        shown_stream = wire.ask("execute", sql="SHOW STREAMS")["results"][0]
    same("rows that the server took", _accepted(shown_stream), sum(b.num_rows for b in batches))
    return spent


def _accepted(result: dict) -> int:
    """The `accepted` count of stream s in what SHOW STREAMS answers."""
    if "arrow" in result:
        rows = pa.ipc.open_stream(result["arrow"]).read_all().to_pylist()
    else:
        rows = [dict(zip(result["columns"], row, strict=True)) for row in result["rows"]]
    (row,) = [r for r in rows if next(iter(r.values())) == "s"]
    return int(row["accepted"])


def loopback(frames: list[bytes], decode: Callable[[bytes], int], expected: int) -> Took:
    """Frames through a socket of this process, decoded at the other end."""
    near, far = socket.socketpair()
    sender = threading.Thread(target=lambda: [near.sendall(f) for f in frames])
    seen = []

    def receive() -> None:
        sender.start()
        for frame in frames:
            body = bytearray(len(frame))
            view, got = memoryview(body), 0
            while got < len(body):
                got += far.recv_into(view[got:])
            seen.append(decode(bytes(view[HEADER.size :])))
        sender.join()

    with clean_heap():
        spent = took(receive)
    near.close()
    far.close()
    same("rows through the socket", sum(seen), expected)
    return spent


def _arrow(body: bytes) -> int:
    return pa.ipc.open_stream(pa.py_buffer(msgpack.unpackb(body)["arrow"])).read_all().num_rows


def _msgpack(body: bytes) -> int:
    return len(msgpack.unpackb(body)["rows"])


def _row(label: str, here: Rate, limit: str, there: Rate) -> tuple[str, ...]:
    wall, cpu = here.wall / there.wall, here.cpu / there.cpu
    return (label, shown(here.wall), limit, shown(there.wall), f"{wall:.3f}", f"{cpu:.3f}")
