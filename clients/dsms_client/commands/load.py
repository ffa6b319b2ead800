"""Send the rows of a file to a stream: CSV or TSV with a header, JSON lines, Parquet; each may be
gzipped (.gz).

Columns are matched by name, as it is written, else in any case.  Lines that are not rows of the
stream are reported with their numbers and left out; the others are sent.  At the end the stream is
ended, so that all instants complete, unless --no-end.  What the shell writes as csv or json, and
what `dsms archive export` writes, is read back to equal rows.

CSV: what means NULL (an empty cell, NULL, \\N, or what --null says) does so without quotes only;
in quotes it is text.  `,` is a row of two NULLs.  A line without anything is a row where the file
has one column, else it is left out and counted.

If the server is gone, the load says so, waits for it (300 s; at a terminal until Ctrl-C) and goes
on; no row is taken twice.

examples:
  dsms load flights.csv.gz --stream flights
  dsms load part1.jsonl --stream s --no-end --rejects bad.csv
  dsms load trace.csv --stream s --map t=timestamp --null NA
  dsms load conn.log.csv --stream conns --map t=ts --time-unit s    # 1379288667.631000

exit codes: 0 all rows were taken, 1 some were rejected or refused, 2 wrong usage or no server
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any

from dsms_client.cli import FAILED, OK
from dsms_client.commands import connection

# seconds for which a load waits for a server that is gone; at a terminal as long as people like
RECONNECT = 300.0


def configure(parser: argparse.ArgumentParser) -> None:
    add_file_options(parser)
    parser.add_argument(
        "--batch",
        type=_count,
        default=50_000,
        metavar="N",
        help="rows sent at a time (default 50000)",
    )
    connection.add_options(parser)


def add_file_options(parser: argparse.ArgumentParser) -> None:
    """What `load` and `replay` have in common."""
    add = parser.add_argument
    add("file", metavar="FILE")
    add("--stream", required=True, metavar="NAME")
    add(
        "--map",
        action="append",
        default=[],
        type=_pair,
        metavar="COLUMN=NAME",
        help="this column of the stream is called NAME in the file (may be repeated)",
    )
    add(
        "--time-unit",
        choices=("s", "ms", "us", "ns"),
        help="what numbers in TIMESTAMP columns count since 1970, fractions too (unsaid: such "
        "numbers are refused)",
    )
    add(
        "--null",
        action="append",
        metavar="TEXT",
        help="CSV: means NULL where it is not quoted (default: an empty cell, NULL and \\N)",
    )
    add("--delimiter", type=_character, help="CSV: default a comma, a tab for .tsv")
    add("--no-end", action="store_true", help="more will follow: do not end the stream")
    add("--rejects", metavar="FILE", help="write rejected lines there (CSV: line, reason, text)")
    add("--quiet", action="store_true", help="no progress bar, no summary")


def run(args: argparse.Namespace) -> int:
    from dsms_client.files.send import LoadJob, load

    job = LoadJob(
        args.file,
        args.stream,
        dict(args.map),
        args.null,
        args.delimiter,
        args.batch,
        not args.no_end,
        args.time_unit,
    )
    outcome = asyncio.run(_load(args, job, load))
    return OK if outcome.clean else FAILED


async def _load(args, job, work):  # type: ignore[no-untyped-def]
    from dsms_client.aio import AsyncClient
    from dsms_client.files.report import Reporter
    from dsms_client.line import Line

    with Reporter(args.rejects, args.quiet) as reporter:
        line = Line(reporter.say)
        patience = float("inf") if sys.stderr.isatty() else max(args.wait, RECONNECT)
        more: dict[str, Any] = {"reconnect_seconds": patience, "on_link": line.changed}
        async with AsyncClient(
            args.host, args.port, **connection.session_options(args), **more
        ) as client:
            with line.waiting():
                return await work(client, job, reporter)


def _pair(text: str) -> tuple[str, str]:
    column, equals, name = text.partition("=")
    if not (column and equals and name):
        raise argparse.ArgumentTypeError(f"{text} is not of the form column=name")
    return column, name


def _character(text: str) -> str:
    text = {"\\t": "\t", "tab": "\t"}.get(text, text)
    if len(text) != 1 or not text.isascii() or text in '"\r\n':
        raise argparse.ArgumentTypeError(
            "a delimiter is one ASCII character, and no quote or line end"
        )
    return text


def _count(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text} is not a number of rows")
    return int(text)
