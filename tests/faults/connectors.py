"""A server with a source and a sink of each kind that answers on this machine, killed again and
again while messages come.

    python -m tests.faults connectors --kills 50 [--only redis,file]

Messages are put at the other side while the server lives, dies (SIGKILL) and comes back; each
source feeds a stream of its own, whose rows a query tells and a sink puts at the other side again.
In the end all messages must be rows, and all rows must have been told: exactly once where the
connector promises that, else at least once.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dsms.errors import DsmsError
from dsms_client.sync import Client
from tests.connectors.brokers import BROKERS, Broker, name
from tests.server.process import Process
from tests.waiting import wait_until

BATCH = 40  # messages between two looks at what has come


class Files(Broker):
    """A file that grows and is rotated now and then, and one that is appended to."""

    library = "json"

    def __init__(self, folder: Path, seed: int) -> None:
        self.place, self._folder, self._random = name(), folder, Random(seed)
        self._rotated = 0

    @property
    def source(self) -> str:
        return "file WITH (path = 'in.log')"

    @property
    def sink(self) -> str:
        return "file WITH (path = 'out.jsonl')"

    def begin(self) -> None:
        (self._folder / "in.log").touch()

    def put(self, rows: Sequence[dict[str, Any]]) -> None:
        path = self._folder / "in.log"
        with path.open("a") as file:
            file.write("".join(json.dumps(row) + "\n" for row in rows))
        if self._random.random() < 0.2:
            self._rotated += 1
            path.rename(self._folder / f"in.log.{self._rotated}")
            path.touch()

    def told(self) -> list[dict[str, Any]]:
        path = self._folder / "out.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def end(self) -> None:
        """The folder goes with the test."""


def brokers(folder: Path, seed: int, only: Sequence[str]) -> dict[str, Broker]:
    """Those that are here."""
    found: dict[str, Broker] = {"file": Files(folder, seed)}
    for kind, made in BROKERS.items():
        if only and kind not in only:
            continue
        try:
            made.check()
        except pytest.skip.Exception as problem:
            print(f"without {kind}: {problem}")
            continue
        found[kind] = made()
    return {kind: one for kind, one in found.items() if not only or kind in only}


def ordeal(kills: int, seed: int, only: Sequence[str] = ()) -> dict[str, tuple[int, int, int]]:
    """By connector: messages, rows that came twice, rows that were told twice.  Raises what is not
    as it is promised."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "files"
        folder.mkdir()
        there = brokers(folder, seed, only)
        server = None
        try:
            for one in there.values():
                one.begin()
            files = ("--files", str(folder), "--sink-files", str(folder))
            server = Process(f"{place}/data", options=files)
            return _played(server, there, kills, Random(seed))
        finally:
            if server is not None:
                server.kill()
            for one in there.values():
                one.end()


def _played(
    server: Process, there: dict[str, Broker], kills: int, random: Random
) -> dict[str, tuple[int, int, int]]:
    with Client(port=server.port) as client:
        for kind, one in there.items():
            _declare(client, kind, one)
    sent = 0
    for _ in range(kills):
        for _ in range(random.randint(1, 4)):
            _put(there, sent)
            sent += BATCH
        if random.random() < 0.7:  # else it dies with nothing of it done, or while it begins
            with Client(port=server.port) as client:
                _some(client, there, sent - random.randint(0, 2 * BATCH))
        server.kill()
        if random.random() < 0.5:
            _put(there, sent)
            sent += BATCH
        server.start()
    with Client(port=server.port) as client:
        _some(client, there, sent)
        return {kind: _judged(client, kind, one, sent) for kind, one in there.items()}


def _declare(client: Client, kind: str, one: Broker) -> None:
    """The sink runs before there is anything to tell."""
    long = "WITH (result_log = 10000000)"
    client.execute(f"CREATE STREAM s_{kind} (k INT, v FLOAT) RETAIN 1 h")
    client.execute(f"CREATE QUERY q_{kind} AS SELECT k, v FROM s_{kind} {long}")
    client.execute(f"CREATE SINK t_{kind} FROM q_{kind} TO {one.sink}")
    wait_until(lambda: _runs(client, f"SHOW SINKS LIKE 't_{kind}'"), f"the sink of {kind}")
    client.execute(f"CREATE SOURCE b_{kind} INTO s_{kind} FROM {one.source}")
    wait_until(lambda: _runs(client, f"SHOW SOURCES LIKE 'b_{kind}'"), f"the source of {kind}")


def _runs(client: Client, show: str) -> bool:
    (row,) = client.query(show).rows
    return row[3] == "running"


def _put(there: dict[str, Broker], first: int) -> None:
    for one in there.values():
        one.put([{"k": k, "v": k / 2} for k in range(first, first + BATCH)])


def _came(client: Client, kind: str) -> Counter[int]:
    return Counter(k for (k,) in client.query(f"SELECT k FROM s_{kind} [RANGE UNBOUNDED]").rows)


def _some(client: Client, there: dict[str, Broker], many: int) -> None:
    """Wait until so many messages of each are rows."""
    for kind in there:
        wait_until(lambda k=kind: len(_came(client, k)) >= many, f"{many} rows of {kind}")  # type: ignore[misc]


def _judged(client: Client, kind: str, one: Broker, sent: int) -> tuple[int, int, int]:
    came = _came(client, kind)
    assert set(came) == set(range(sent)), f"{kind}: rows are missing"
    twice = came.total() - sent
    assert not (one.exact_source and twice), f"{kind}: {twice} rows came twice"
    wait_until(lambda: len({row["k"] for row in one.told()}) == sent, f"all results at {kind}")
    told = len(one.told())
    again = told - came.total()
    assert not (one.exact_sink and again), f"{kind}: {again} results were told twice"
    return sent, twice, again


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="connectors, behind commas")
    args = parser.parse_args()
    try:
        found = ordeal(args.kills, args.seed, [k for k in args.only.split(",") if k])
    except (AssertionError, DsmsError) as problem:
        print(f"seed {args.seed}: {problem}")
        return 1
    for kind, (sent, twice, again) in found.items():
        print(f"{kind}: {sent} messages, {twice} rows came twice, {again} results were told twice")
    return 0
