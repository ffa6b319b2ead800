"""How long a tuple that is sent alone over TCP waits for its answer: one row in one frame, a filter
query, and the push that reports it, all seen from the client.

First one at a time, then at 10 %, 50 % and 90 % of the rate at which one connection gets single
rows answered when it sends as fast as it can.  A wait is counted from the instant at which the row
should have been sent, so a client that is held up does not hide it.  Client and server share the
machine."""

from __future__ import annotations

import select
import time

import msgpack
import numpy as np

from dsms_client.protocol import HEADER
from tests.benchmarks import tcp
from tests.benchmarks.harness import Options, Plot, Section, Table, same, shown

STREAMS = {
    "system time": "CREATE STREAM s (id INT, v FLOAT)",
    "event time": "CREATE STREAM s (id INT, v FLOAT, at TIMESTAMP) TIMESTAMP BY at",
}
SHARES = (0.1, 0.5, 0.9)


def section(options: Options) -> Section:
    """Both kinds of streams."""
    seconds, burst, single = options.pick((8.0, 40_000, 2_000), (1.0, 8_000, 400), (0.1, 500, 50))
    rows, lines = [], {}
    with tcp.server(options.pick(True, True, False)) as server:
        for kind, declare in STREAMS.items():
            waits, most = _measure(server, kind, declare, seconds, burst, single)
            rows += [_row(kind, label, most, w) for label, w in waits.items()]
            shares = [100 * s for s in SHARES]
            for percent in (50, 99):
                values = [float(np.percentile(waits[_label(s)], percent)) * 1e3 for s in SHARES]
                lines[f"{kind}, p{percent}"] = (shares, values)
    header = ("stream", "load", "rows/s", "p50, ms", "p99, ms", "largest, ms", "rows")
    out = Section(
        "Latency of single tuples", __doc__ or "", [Table("Answer times", header, tuple(rows))]
    )
    out.parts.append(
        Plot(
            "latency.png",
            "Answer times of single tuples",
            "% of the largest rate",
            "ms",
            lines,
            (False, True),
        )
    )
    return out


def _label(share: float) -> str:
    return f"{100 * share:.0f} %"


def _row(kind: str, label: str, most: float, waits: np.ndarray) -> tuple[str, ...]:
    p50, p99 = np.percentile(waits, [50, 99]) * 1e3
    rate = "–" if label == "one at a time" else shown(most * float(label[:-2]) / 100)
    return (
        kind,
        label,
        rate,
        f"{p50:.2f}",
        f"{p99:.2f}",
        f"{waits.max() * 1e3:.2f}",
        f"{len(waits):,}",
    )


def _measure(
    server: tcp.Server, kind: str, declare: str, seconds: float, burst: int, single: int
) -> tuple[dict[str, np.ndarray], float]:
    with server.wire("rows") as wire:
        for drop in ("QUERY q", "STREAM s"):
            wire.socket.sendall(wire.frame("execute", sql=f"DROP {drop}"))
            wire.read()
        wire.ask("execute", sql=f"{declare}; CREATE QUERY q AS SELECT id FROM s WHERE v > 0.5")
        wire.ask("subscribe", query="q")
        runner = Runner(wire, kind == "event time")
        runner.run(single // 10, None)
        waits = {"one at a time": runner.one_at_a_time(single)}
        runner.run(burst // 4, None)
        began = time.perf_counter()
        runner.run(burst, None)
        most = burst / (time.perf_counter() - began)
        for share in SHARES:
            waits[_label(share)] = runner.run(max(20, int(seconds * share * most)), share * most)
        return waits, most


class Runner:
    """Sends single rows and waits for the pushes that report them, on one thread."""

    def __init__(self, wire: tcp.Wire, event_time: bool) -> None:
        self.wire, self.event_time = wire, event_time
        self.next_id = 0
        self.got = bytearray()

    def frames(self, count: int) -> list[bytes]:
        """One ingest request per row; all rows pass the filter."""
        ids = range(self.next_id, self.next_id + count)
        self.next_id += count
        rows = ([i, 1.0, 1000 * i] if self.event_time else [i, 1.0] for i in ids)
        return [self.wire.frame("ingest", stream="s", rows=[row]) for row in rows]

    def one_at_a_time(self, count: int) -> np.ndarray:
        """Seconds from sending a row to its push, the next one sent after it."""
        return np.concatenate([self.run(1, None) for _ in range(count)])

    def run(self, count: int, rate: float | None) -> np.ndarray:
        """Send `count` rows, `rate` a second (None: at once); seconds that each waited."""
        first, frames = self.next_id, self.frames(count)
        answered, acknowledged, sent = np.zeros(count), 0, 0
        left = memoryview(b"")
        self.wire.socket.setblocking(False)
        began = time.perf_counter()
        due_at = began + (np.arange(count) / rate if rate else np.zeros(count))
        while not answered.all() or acknowledged < count:
            now = time.perf_counter()
            due = count if rate is None else min(count, int((now - began) * rate) + 1)
            if not left and due > sent:
                left, sent = memoryview(b"".join(frames[sent:due])), due
            timeout = max(0.0, float(due_at[sent]) - now) if sent < count else tcp.PATIENCE
            readable, writable, _ = select.select(
                [self.wire.socket], [self.wire.socket] if left else [], [], timeout
            )
            if writable:
                left = left[self.wire.socket.send(left) :]
            if readable:
                acknowledged += self._take(first, answered)
        self.wire.socket.setblocking(True)
        return answered - due_at

    def _take(self, first: int, answered: np.ndarray) -> int:
        """Read what has come; notes when each row was reported, answers the number of
        acknowledgements."""
        self.got += self.wire.socket.recv(1 << 18)
        now, start, acknowledged = time.perf_counter(), 0, 0
        while len(self.got) - start >= HEADER.size:
            (length,) = HEADER.unpack_from(self.got, start)
            if len(self.got) - start - HEADER.size < length:
                break
            start += HEADER.size + length
            message = msgpack.unpackb(memoryview(self.got)[start - length : start])
            if "push" in message:
                for (ident,) in message["data"]:
                    answered[ident - first] = now
            else:
                same("refusals", message.get("error"), None)
                acknowledged += 1
        del self.got[:start]
        return acknowledged
