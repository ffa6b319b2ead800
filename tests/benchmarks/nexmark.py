"""NEXMark: events a second for each of its queries alone, in process and over TCP, with a reader
that takes all that is told.

Of fifty events one is a person, three are auctions and 46 are bids, 10,000 a second of event time,
in frames of 50,000; all of them are sent, and counted, whatever the query reads.  Continuous
queries tell each change: the average price of a category as often as it changes.  DuckDB answers
the same question once, when all events are there, in one thread, from memory.  What is told is held
against that answer before anything is timed: rows that stay with their instants, views at the end.

Over TCP the server takes Arrow frames that were made beforehand, and a reader in a process of its
own takes the results as Arrow; the time ends with the last of them, the CPU time is the server's.
Query 10 writes files, and query 12 goes by the clock of the system: both in process alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import dsms
from dsms_client.columns import ipc
from tests.benchmarks import delivery, tcp
from tests.benchmarks.harness import (
    Options,
    Section,
    Table,
    Took,
    clean_heap,
    median,
    ratio,
    same,
    shown,
    took,
)
from tests.nexmark import events as ev
from tests.nexmark.play import SILENCE, STREAMS, Frame, bids_for, feed, newest, played, ready
from tests.nexmark.queries import DECLARE, NAMES, definition, side_input, statement
from tests.nexmark.truth import Truth

IN_PROCESS_ALONE = ("q10", "q12")
HEADER = (
    "query",
    "result rows",
    "events/s",
    "events/s of CPU",
    "DuckDB, events/s of CPU",
    "dsms : DuckDB",
    "over TCP, events/s",
    "of the server's CPU",
)


@dataclass(frozen=True, slots=True)
class Case:
    """A query, what comes, and how many result rows there are."""

    name: str
    frames: list[Frame]
    results: int
    batch: Took  # by DuckDB


def section(options: Options) -> Section:
    """One table."""
    with tcp.server(options.pick(True, True, False), *WAITING) as server:
        return Section("NEXMark", __doc__ or "", [table(options, NAMES, server)])


WAITING = ("--subscriber-bytes", str(delivery.WAITING))


def table(options: Options, names: Sequence[str], server: tcp.Server | None) -> Table:
    """A line for each of these queries; without a server nothing is sent over TCP."""
    events = ev.make(options.pick(1_000_000, 100_000, 3_000))
    size = options.pick(50_000, 20_000, 1_000)
    rows = tuple(_line(name, events, size, options.repeats, server) for name in names)
    return Table(f"{events.count:,} events, {size:,} a frame", HEADER, rows)


def _line(
    name: str, events: ev.Events, size: int, repeats: int, server: tcp.Server | None
) -> tuple[str, ...]:
    case = _checked(name, events, size, repeats)
    spent = median(_in_process(case) for _ in range(repeats))
    count = events.count
    over = ("", "")
    if server is not None and name not in IN_PROCESS_ALONE:
        sent = median(_over_tcp(server, case) for _ in range(repeats))
        over = (shown(count / sent.wall), shown(count / max(sent.cpu, 1e-9)))
    return (
        name,
        f"{case.results:,}",
        shown(count / spent.wall),
        shown(count / spent.cpu),
        shown(count / max(case.batch.cpu, 1e-9)),
        ratio(case.batch.cpu / spent.cpu),
        *over,
    )


def _checked(name: str, events: ev.Events, size: int, repeats: int) -> Case:
    """Run once, its answer held against DuckDB's."""
    with tempfile.TemporaryDirectory() as folder:
        found = played((name,), events, size, dsms.Settings(archive=folder))
    truth = Truth(events, found.arrived)
    told = found.told[name]
    same(name, truth.complaints(name, told, truth.some_instants(1)), [])
    truth.until(None)
    ask = f"CREATE OR REPLACE TEMP TABLE answer AS {definition(name)}"
    batch = median(took(lambda: truth.con.execute(ask)) for _ in range(repeats))
    return Case(name, list(events.frames(size)), told.num_rows, batch)


def _in_process(case: Case) -> Took:
    with tempfile.TemporaryDirectory() as folder:
        engine = ready((case.name,), dsms.Settings(archive=folder))
        reader = engine.subscribe(case.name, 0, limit_bytes=1 << 40)
        bids = bids_for((case.name,))
        with clean_heap():
            spent = took(lambda: feed(engine, case.frames, bids, reader.take_changes))
        same(f"{case.name}: result rows", engine.next_seq(case.name), case.results)
        engine.close()
    return spent


def _over_tcp(server: tcp.Server, case: Case) -> Took:
    with server.wire() as wire, tempfile.TemporaryDirectory() as folder:
        named_q = statement(case.name).replace(f"CREATE QUERY {case.name}", "CREATE QUERY q")
        wire.ask("execute", sql=DECLARE)
        wire.ask("ingest", stream="side_input", arrow=bytes(ipc(side_input())))
        wire.ask("execute", sql=named_q)
        path = Path(folder) / "read.arrow"
        reader = delivery._reader(server.port, "arrow", case.results, path)
        assert reader.stdout is not None
        frames = [
            message
            for frame in case.frames
            for stream, rows in frame
            for message in tcp.arrow_frames(wire, stream, [rows])
        ]
        last = max(newest(rows) for _, rows in case.frames[-1]) + SILENCE
        frames += [wire.frame("heartbeat", stream=stream, ts=last) for stream in STREAMS]
        frames += [wire.frame("end", stream=stream) for stream in STREAMS]
        cpu = server.cpu()

        def run() -> None:
            tcp.ingest(server, wire, frames)
            same("the reader's last word", reader.stdout.readline(), "done\n")  # type: ignore[union-attr]

        spent = Took(took(run).wall, server.cpu() - cpu)
        reader.communicate()
        wire.ask("execute", sql=_DROPS)
    return spent


_DROPS = (
    "DROP QUERY q; DROP STREAM bid; DROP STREAM auction; DROP STREAM person; "
    "DROP STREAM arrived_bid; DROP TABLE side_input; DROP FUNCTION count_char"
)
