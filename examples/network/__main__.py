"""Forty questions about two links of a network, registered beside each other, and a few asked once
in between.

    python -m examples.network [--seconds N] [--rate N] [--trace FILE]

The trace is synthetic, or the rows of a CSV file (times and sources at least; packets, connections,
requests).  Exit code 0 only if every answer that is recomputed on the way came out the same, or
within its bounds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dsms_client import connect
from examples.flights.server import server
from examples.flights.show import indent, title
from examples.flights.view import View, catch_up, watch
from examples.network import recompute, story
from examples.network.trace import SECOND, Trace, from_file, synthetic

HERE = Path(__file__).parent
STEP = 10 * SECOND
TABLE_ROWS = 500  # in one INSERT


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m examples.network", description=str(__doc__).splitlines()[0]
    )
    parser.add_argument(
        "--seconds", type=int, default=720, help="length of the synthetic trace (default 720)"
    )
    parser.add_argument(
        "--rate", type=int, default=150, help="its packets a second on each link (default 150)"
    )
    parser.add_argument("--trace", metavar="FILE", help="a CSV file (also .gz) instead")
    options = parser.parse_args(argv)
    trace = from_file(options.trace) if options.trace else synthetic(options.seconds, options.rate)
    began = time.monotonic()
    print(story.opening(trace))
    with server(lambda line: None) as port, connect(port=port) as client:
        problems = run(client, trace)
    for problem in problems:
        print(f"WRONG: {problem}", file=sys.stderr)
    print(
        f"\nDone in {time.monotonic() - began:.0f} s: {len(problems) or 'no'} answers were wrong."
    )
    return 1 if problems else 0


def run(client: Any, trace: Trace, say: Callable[[str], None] = print) -> list[str]:
    """The whole story; returns which answers were wrong.  `client`: what `dsms_client.connect`
    gives."""
    names = declare(client, trace)
    say(
        f"{len(names)} queries are registered; {sum(n in ON_LOOKUP for n in names)} of them are "
        "answered when asked."
    )
    views = watch(client, [name for name in names if name not in ON_LOOKUP])
    say(story.LEGEND)
    problems: list[str] = []
    alerts: list[str] = []
    steps = range(trace.begin + STEP, trace.end + STEP, STEP)
    middle = steps[len(steps) // 2]
    for boundary in steps:
        _send(client, trace, boundary)
        catch_up(client, views)
        answers = {name: view.answers.get(boundary, []) for name, view in views.items()}
        problems += recompute.wrong(trace, boundary, answers)
        alerts += [text for text in story.alerts(boundary, views) if text not in alerts]
        if boundary % (60 * SECOND) == 0:
            say(story.line(boundary, views, alerts))
            alerts = []
        if boundary == middle:
            say("\n  Asked once, while packets go on:\n\n" + indent(story.ask(client)))
    _tell(client, say, views)
    return problems


def declare(client: Any, trace: Trace) -> list[str]:
    """Streams, the table and the queries; returns the queries' names."""
    client.execute((HERE / "declare.cql").read_text(encoding="utf-8"))
    rows = [f"('{ip}', '{site}')" for ip, site in trace.sites().items() if "'" not in ip]
    for first in range(0, len(rows), TABLE_ROWS):
        client.execute(
            f"INSERT INTO hosts VALUES {', '.join(rows[first : first + TABLE_ROWS])} AT "
            "'2024-01-01'"
        )
    text = (HERE / "queries.cql").read_text(encoding="utf-8")
    client.execute(text)
    return [line.split()[2] for line in text.splitlines() if line.startswith("CREATE QUERY")]


ON_LOOKUP = ("south_load", "south_talkers", "south_p99")


def _send(client: Any, trace: Trace, boundary: int) -> None:
    """The packets before the boundary that have not been sent, and the promise that these are
    all."""
    for link, rows in trace.links.items():
        at = rows["t"].cast(pa.int64()).to_numpy()
        first, last = np.searchsorted(at, [boundary - STEP, boundary])
        if last > first:
            client.ingest(link, rows.slice(first, last - first))
        client.heartbeat(link, boundary - 1)


def _tell(client: Any, say: Callable[[str], None], views: dict[str, View]) -> None:
    say(title("SHOW QUERIES FULL, after all"))
    say(story.status(client))
    say(title("SHOW SHARING: by which rules of Golab 2006, §8.3 and §8.4.3, who shares what"))
    say(story.sharing(client))
    say(title("SHOW WINDOWS, summed up"))
    say(story.windows(client))
    say(f"\n{sum(view.seen for view in views.values())} result rows came out.")


if __name__ == "__main__":
    sys.exit(main())
