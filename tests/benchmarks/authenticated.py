"""What it costs a server to know who is there: the rate at which it takes rows and tells results
with users and without.

Two servers stand beside each other: an open one, and one with `--auth` where a writer, who has
INSERT on the stream, and a reader, who has SUBSCRIBE on the query, have shown their passwords.
Each run is made on both, one after the other, and counts the CPU seconds of the server; the ratio
is the median of the runs' ratios.  `small` frames have ten rows each, `large` ones ten thousand.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from tests.benchmarks import tcp
from tests.benchmarks.harness import Options, Section, Table, same, shown

COLUMNS = "(ts TIMESTAMP, k INT, v FLOAT) TIMESTAMP BY ts"
KEYS = 10
QUERY = "SELECT k, v FROM s WHERE k = 7"
TOKEN, PASSWORD = "the administrator's token", "a long enough password"
USERS = f"""
CREATE USER writer PASSWORD '{PASSWORD}'; CREATE USER reader PASSWORD '{PASSWORD}';
GRANT INSERT ON s TO writer; GRANT SUBSCRIBE ON q TO reader
"""
HEADER = ("frames", "rows a frame", "open, rows/s", "with users, rows/s", "ratio")
BAR = 0.97


@dataclass(slots=True)
class Peers:
    """A server with the two who use it."""

    server: tcp.Server
    admin: tcp.Wire
    writer: tcp.Wire
    reader: tcp.Wire
    told: int = 0  # result rows

    def run(self, frames: list[bytes], rows: int) -> float:
        """CPU seconds of the server for these frames and their results."""
        before = self.server.cpu()
        tcp.ingest(self.server, self.writer, frames)
        self.told += rows
        while self.told > 0:
            push = self.reader.push()
            self.told -= len(push["data"]) if push["kind"] == "insert" else 0
        same("result rows that were not asked for", self.told, 0)
        return self.server.cpu() - before


def section(options: Options) -> Section:
    """Both kinds of frames."""
    repeats, rows, start = options.pick(21, 11, 1), [], 0
    sizes = (("small", 10, options.pick(2000, 500, 20)), ("large", 10_000, options.pick(40, 10, 2)))
    with both(options.pick(True, True, False)) as servers:
        for name, size, frames in sizes:
            took: list[tuple[float, float]] = []
            for number in range(repeats):
                pieces = [_rows(start + k * size, size) for k in range(frames)]
                start += size * frames
                spent = {}
                for k in (0, 1) if number % 2 else (1, 0):
                    peers = servers[k]
                    made = (tcp.row_frames if name == "small" else tcp.arrow_frames)(
                        peers.writer, "s", pieces
                    )
                    spent[k] = peers.run(made, size * frames // KEYS)
                took.append((spent[0], spent[1]))
            rates = [size * frames / statistics.median(t[k] for t in took) for k in (0, 1)]
            found = statistics.median(bare / checked for bare, checked in took)
            rows.append((name, str(size), *map(shown, rates), f"{found:.3f} ×"))
    notes = (f"the ratio should be {BAR:g} at least",)
    table = Table("CPU of the server, over TCP", HEADER, tuple(rows), notes)
    return Section("Authenticated throughput", __doc__ or "", [table])


def _rows(start: int, count: int) -> pa.RecordBatch:
    numbers = np.arange(start, start + count)
    return pa.RecordBatch.from_pydict({"ts": numbers * 10, "k": numbers % KEYS, "v": numbers / 7})


@contextmanager
def both(warm: bool) -> Iterator[tuple[Peers, Peers]]:
    """The open server, and the one with users."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        token = folder / "token"
        token.write_text(TOKEN)
        token.chmod(0o600)
        plain = stack.enter_context(tcp.server(warm))
        known = stack.enter_context(tcp.server(warm, "--auth", "--token-file", str(token)))
        yield (
            _declared(stack, plain, {}, {}, {}, ""),
            _declared(
                stack,
                known,
                {"token": TOKEN},
                {"user": "writer", "password": PASSWORD},
                {"user": "reader", "password": PASSWORD},
                USERS,
            ),
        )


def _declared(
    stack: ExitStack,
    server: tcp.Server,
    admin: dict[str, str],
    writer: dict[str, str],
    reader: dict[str, str],
    users: str,
) -> Peers:
    first = stack.enter_context(server.wire(**admin))
    first.ask("execute", sql=f"CREATE STREAM s {COLUMNS}; CREATE QUERY q AS {QUERY}; {users}")
    wires = [stack.enter_context(server.wire("rows", **shows)) for shows in (writer, reader)]
    wires[1].ask("subscribe", query="q", **{"from": 0})
    return Peers(server, first, *wires)
