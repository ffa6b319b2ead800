"""What it costs to hand out all results: the rate of a query with a reader that takes everything,
and without, in process and over TCP with the reader in a process of its own.

W1 filter, W2 SUM and COUNT per key each 100 ms, W2c the same with every change, W3 MAX over 1 s, W5
DISTINCT over 1 s.  The reader takes changes in columns (`take_changes`, `Client.changes` as Arrow).
In process CPU time counts, over TCP the time until the reader has the last row; the answers it was
handed are checked against NumPy.  Each ratio is of two runs next to each other, the best of three.
Over TCP in both forms, in and out: Arrow, and lists of rows in msgpack.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache, lru_cache, partial
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa

import dsms
from dsms.api import Changes
from dsms_client.sync import connect
from tests.benchmarks import ours, sliding, tcp
from tests.benchmarks import workloads as w
from tests.benchmarks.harness import Options, Plot, Section, Table, ratio, same, shown, took

STATEMENTS = {
    "W1": ours.QUERIES["W1"],
    "W2": sliding.W2,
    "W2c": ours.QUERIES["grouped"],
    "W3": ours.QUERIES["W3"],
    "W5": ours.QUERIES["W5"],
}
CHECKED = {"W1": "W1", "W2c": "grouped", "W3": "W3", "W5": "W5"}
BATCHES = (1, 100, 1_000, 10_000, 100_000)
FORMS = ("arrow", "rows")  # as a hello asks for them; both travel in msgpack
WAITING = 1 << 30  # bytes of results that may wait for the reader, at the server and at the reader
HEADER = ("query", "rows a batch", "result rows", "without, rows/s", "with, rows/s", "ratio")


def section(options: Options) -> Section:
    """In process, then over TCP in both forms."""
    repeats = options.pick(3, 2, 1)
    sizes = options.pick(BATCHES, BATCHES, BATCHES[1:])
    cases = list(product(STATEMENTS, sizes))
    inside = [
        _row(name, size, _data(_rows(options, name, size)), repeats, in_process)
        for name, size in cases
    ]
    with tcp.server(options.pick(True, True, False), "--subscriber-bytes", str(WAITING)) as server:
        over = {
            form: [
                _row(
                    name,
                    size,
                    _data(_rows(options, name, size, form)),
                    repeats,
                    partial(over_tcp, server, form),
                )
                for name, size in cases
            ]
            for form in FORMS
        }
    tables: list[Table | Plot] = [Table("In process", HEADER, tuple(inside))]
    for form, rows in over.items():
        tables.append(
            Table(f"Over TCP as {form}, the reader in its own process", HEADER, tuple(rows))
        )
    return Section("Delivery of all results", __doc__ or "", tables)


def _rows(options: Options, name: str, batch: int, form: str = "arrow") -> int:
    """So many that a run takes longer than the start of its reader; W2c has four result rows for
    each."""
    few = options.pick(50_000, 20_000, 3_000)
    if batch <= 100:
        return few if batch == 100 else few // 10
    most = 4_000_000 if form == "arrow" and name != "W2c" else 1_000_000
    if form == "rows":  # each is an object for each of its values, at both ends
        most = 200_000 if name == "W2c" else 400_000
    return options.pick(most if batch > 1_000 else most // 4, min(most, 400_000), 3_000)


_data = lru_cache(maxsize=None)(w.make)
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


@cache
def _results(name: str, rows: int) -> int:
    """How many result rows there will be."""
    return in_process(name, 100_000, _data(rows), False)[1]


def over_tcp(
    server: tcp.Server, form: str, name: str, batch: int, data: w.Data, read: bool
) -> tuple[float, int]:
    """Seconds until the last row is answered and read, and how many result rows there were."""
    count = _results(name, data.rows)
    with server.wire() as wire, tempfile.TemporaryDirectory() as folder:
        wire.ask("execute", sql=f"CREATE STREAM s {COLUMNS}; CREATE QUERY q AS {STATEMENTS[name]}")
        path = Path(folder) / "read.arrow"
        reader = _reader(server.port, form, count, path) if read else None
        pieces = [data.s.slice(start, batch) for start in range(0, data.rows, batch)]
        framed = tcp.arrow_frames if form == "arrow" else tcp.row_frames
        frames = [*framed(wire, "s", pieces), wire.frame("end", stream="s")]

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


def _reader(port: int, form: str, count: int, path: Path) -> subprocess.Popen[str]:
    """A client in a process of its own, subscribed."""
    command = [sys.executable, "-m", __name__, str(port), form, str(count), str(path)]
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


def read(port: int, form: str, count: int, path: Path) -> None:
    """Take `count` rows, say so, and write them down."""
    with connect(port=port, data=form) as client, client.changes("q", 0) as reader:
        # what comes faster than rows can be made of it waits here: were it let go, it would have to
        # come again from a log that is shorter
        reader._inner.buffer_bytes = WAITING
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
    read(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
