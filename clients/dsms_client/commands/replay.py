"""Send the rows of files to streams at the pace of their timestamps, so that queries see them as
they once came.

Meanwhile another shell may ask one-time queries, LOOKUP, or \\subscribe to what is answered.

A file's rows must be in the order of the time column; where one steps back, it is sent at once.
Several files go on one clock: to one stream, merged by time, or each to the stream that is named in
its place.  How files may look, see `dsms load --help`.

examples:
  dsms replay flights.csv.gz --stream flights --speed 600x     # ten minutes in a second
  dsms replay trace.csv --stream s --time-column t --speed max    # boundaries of periodic queries come as fast
  dsms replay trades.csv quotes.csv --stream trades --stream quotes --speed 60x
"""  # noqa: E501

from __future__ import annotations

import argparse
import asyncio
from typing import Any

from dsms_client.cli import FAILED, OK
from dsms_client.commands import connection
from dsms_client.commands.load import add_file_options, jobs_of, with_client


def configure(parser: argparse.ArgumentParser) -> None:
    add_file_options(parser)
    parser.add_argument(
        "--speed", type=speed, default=1.0, metavar="10x|max", help="default 1x, as it was"
    )
    parser.add_argument("--time-column", metavar="COLUMN", help="default: the stream's event time")
    connection.add_options(parser)


def run(args: argparse.Namespace) -> int:
    jobs = jobs_of(args)

    async def work(client: Any, reporter: Any) -> bool:
        from dsms_client.files.replay import Pace, replay

        return (await replay(client, jobs, reporter, Pace(args.speed, args.time_column))).clean

    return OK if asyncio.run(with_client(args, work)) else FAILED


def speed(text: str) -> float:
    """``10x`` -> 10.0, ``max`` -> infinity."""
    if text == "max":
        return float("inf")
    try:
        factor = float(text.removesuffix("x"))
    except ValueError:
        factor = 0.0
    if not factor > 0:
        raise argparse.ArgumentTypeError(f"{text} is not a speed; write 1x, 0.5x, 600x or max")
    return factor
