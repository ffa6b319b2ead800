"""What it costs to hand out all results: the rate of a query with a reader that takes everything,
and without, in process and over TCP with the reader in a process of its own.

W1 filter, W2 SUM and COUNT per key each 100 ms, W2c the same with every change, W3 MAX over 1 s, W5
DISTINCT over 1 s.  The reader takes changes in columns (`take_changes`, `Client.changes` as Arrow).
In process CPU time counts, over TCP the time until the reader has the last row; the answers it was
handed are checked against NumPy.  Each ratio is of two runs next to each other, the best of three.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

import dsms
from dsms.api import Changes
from dsms_client.sync import connect
from tests.benchmarks import ours, sliding, tcp
from tests.benchmarks import workloads as w
from tests.benchmarks.harness import Options, Section, Table, ratio, same, shown, took

STATEMENTS = {
    "W1": ours.QUERIES["W1"],
    "W2": sliding.W2,
    "W2c": ours.QUERIES["grouped"],
    "W3": ours.QUERIES["W3"],
    "W5": ours.QUERIES["W5"],
}
CHECKED = {"W1": "W1", "W2c": "grouped", "W3": "W3", "W5": "W5"}
BATCHES = (100, 10_000, 100_000)
HEADER = ("query", "rows a batch", "result rows", "without, rows/s", "with, rows/s", "ratio")


def section(options: Options) -> Section:
    """Both tables."""
    cases = [(name, batch, _rows(options, name, batch)) for name in STATEMENTS for batch in BATCHES]
    data = {rows: w.make(rows) for rows in {rows for *_, rows in cases}}
    repeats = options.pick(3, 2, 1)
    inside = [_row(name, batch, data[rows], repeats, in_process) for name, batch, rows in cases]
    with tcp.server(options.pick(True, True, False), "--subscriber-bytes", "1G") as server:
        over = [
            _row(name, batch, data[rows], repeats, lambda *a, s=server: over_tcp(s, *a))
            for name, batch, rows in cases
        ]
    return Section(
        "Delivery of all results",
        __doc__ or "",
        [
            Table("In process", HEADER, tuple(inside)),
            Table("Over TCP, the reader in its own process", HEADER, tuple(over)),
        ],
    )


def _rows(options: Options, name: str, batch: int) -> int:
    """So many that a run takes longer than the start of its reader; W2c has four result rows for
    each."""
    if batch == 100:
        return options.pick(50_000, 20_000, 3_000)
    return options.pick(1_000_000 if name == "W2c" else 4_000_000, 400_000, 3_000)


Run = Callable[[str, int, w.Data, bool], tuple[float, int]]


def _row(name: str, batch: int, data: w.Data, repeats: int, run: Run) -> tuple[str, ...]:
    runs = [(run(name, batch, data, False), run(name, batch, data, True)) for _ in range(repeats)]
    without = min(bare for (bare, _), _ in runs)
    taken = min(read for _, (read, _) in runs)
    count = runs[0][1][1]
    rates = shown(data.rows / without), shown(data.rows / taken)
    return (name, str(batch), shown(count), *rates, ratio(without / taken))


def _check(name: str, data: w.Data, out: ours.Output) -> None:
    if name == "W2":
        _check_periodic(data, out)
    else:
        ours.check(CHECKED[name], data, out)


def _check_periodic(data: w.Data, out: ours.Output) -> None:
    """A row stamped t is in the answers of the boundaries in (t, t + 1 s]."""
    ts, _, v = w.columns(data.s)
    for at in np.unique(out.at).tolist():
        mine, live = out.at == at, (ts < at) & (ts >= at - w.SECOND)
        same(f"W2 rows at {at}", int(out.column(2)[mine].sum()), int(live.sum()))
        same(f"W2 sum at {at}", float(out.column(1)[mine].sum()), float(v[live].sum()), 1e-6)


# -- in process ------------------------------------------------------------------------------------


def in_process(name: str, batch: int, data: w.Data, read: bool) -> tuple[float, int]:
    """CPU seconds, and how many result rows there were."""
    engine = dsms.Engine()
    engine.execute(f"{ours.DECLARE}; CREATE QUERY q AS {STATEMENTS[name]}")
    reader = engine.subscribe("q", 0, limit_bytes=1 << 40) if read else None
    got: list[Changes] = []

    def feed() -> None:
        for start in range(0, data.rows, batch):
            engine.ingest("s", data.s.slice(start, batch))
            if reader is not None:
                got.append(reader.take_changes())
        engine.end("s")
        if reader is not None:
            got.append(reader.take_changes())

    spent = took(feed)
    if read:
        _check(name, data, ours._output([told.rows for told in got if told.rows is not None]))
    return spent.cpu, engine.next_seq("q")


# -- over TCP --------------------------------------------------------------------------------------


def over_tcp(
    server: tcp.Server, name: str, batch: int, data: w.Data, read: bool
) -> tuple[float, int]:
    """Seconds until the last row is answered and read, and how many result rows there were."""
    count = in_process(name, 100_000, data, False)[1]
    with server.wire() as wire, tempfile.TemporaryDirectory() as folder:
        wire.ask("execute", sql=f"CREATE STREAM s {COLUMNS}; CREATE QUERY q AS {STATEMENTS[name]}")
        path = Path(folder) / "read.arrow"
        reader = _reader(server.port, count, path) if read else None
        pieces = [data.s.slice(start, batch) for start in range(0, data.rows, batch)]
        frames = [*tcp.arrow_frames(wire, "s", pieces), wire.frame("end", stream="s")]

        def feed() -> None:
            tcp.ingest(server, wire, frames)
            if reader is not None:
                assert reader.stdout is not None
                same("the reader's last word", reader.stdout.readline(), "done\n")

        spent = took(feed)
        if reader is not None:
            reader.communicate()
            _check(name, data, _output(path))
        wire.ask("execute", sql="DROP QUERY q; DROP STREAM s")
    return spent.wall, count


COLUMNS = "(ts TIMESTAMP, k INT, v FLOAT) TIMESTAMP BY ts"


def _reader(port: int, count: int, path: Path) -> subprocess.Popen[str]:
    """A client in a process of its own, subscribed."""
    command = [sys.executable, "-m", __name__, str(port), str(count), str(path)]
    reader = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert reader.stdout is not None
    same("the reader's first word", reader.stdout.readline(), "ready\n")
    return reader


def _output(path: Path) -> ours.Output:
    table = pa.ipc.open_stream(path.read_bytes()).read_all()
    sign, at = (table.column(name).cast(pa.int64()).to_numpy() for name in ("$sign", "$at"))
    return ours.Output(sign, at, table.drop_columns(["$sign", "$at"]))


def _load() -> None:
    """What the first changes load, as in a reader that is at work already."""
    from dsms_client.changes import changes_of
    from dsms_client.columns import ipc

    row = ipc(pa.table({"k": [0], "$sign": pa.array([1], pa.int8()), "$at": [0]}))
    push = {"seq": 0, "kind": "changes", "at": 0, "data": bytes(row)}
    changes_of(push, "q", ("k",), ("INT",)).table()


def read(port: int, count: int, path: Path) -> None:
    """Take `count` rows, say so, and write them down."""

    with connect(port=port, data="arrow") as client, client.changes("q", 0) as reader:
        print("ready", flush=True)
        tables, have = [], 0
        while have < count:
            changes = next(reader)
            tables.append(changes.table())
            have = changes.next_seq
        print("done", flush=True)
    whole = pa.concat_tables(tables)
    with pa.ipc.new_stream(path, whole.schema) as out:
        out.write_table(whole)


if __name__ == "__main__":
    read(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
