"""An archive of flights as a data frame, and what both jobs do the same way."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import dsms_spark
from dsms.errors import DsmsError, UsageError
from dsms_spark.session import get_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NEEDED = ("origin", "dest", "carrier", "delay", "departed")
ZONE = "America/New_York"


def flights(spark: SparkSession, archive: str, zone: str = ZONE) -> DataFrame:
    """The archived flights: `origin`, `dest`, `carrier`, `delay` (minutes), and of the departure
    the local `day` (date) and `hour` (0 to 23).

    Raises UsageError (DS640) if the archive has no such columns; DS95x if it can't be read."""
    from pyspark.sql import functions as f

    rows = dsms_spark.register(spark).read.format("dsms").option("path", archive).load()
    missing = [name for name in NEEDED if name not in rows.columns]
    if missing:
        raise UsageError(
            "DS640",
            f"{archive} is no archive of flights: it has no column {', '.join(missing)}",
            hint=f"its columns are {', '.join(rows.columns)}",
        )
    local = f.from_utc_timestamp("departed", zone)
    known = rows.where(f.col("delay").isNotNull() & f.col("departed").isNotNull())
    return known.select(*NEEDED[:4], f.to_date(local).alias("day"), f.hour(local).alias("hour"))


def options(prog: str, about: str, out: str) -> argparse.ArgumentParser:
    """The options of both jobs."""
    parser = argparse.ArgumentParser(prog=f"python -m examples.spark.{prog}", description=about)
    parser.add_argument(
        "archive", metavar="ARCHIVE", help="folder or URL, e.g. dsms-data/archive/flights"
    )
    parser.add_argument(
        "--out", type=Path, default=Path(out), metavar="FILE.png", help=f"the picture ({out})"
    )
    parser.add_argument(
        "--master", help="a Spark master, or sc://host:port (local[*], in this process)"
    )
    parser.add_argument("--zone", default=ZONE, help=f"time zone of days and hours ({ZONE})")
    return parser


def run(job: Callable[[SparkSession, argparse.Namespace], str], args: argparse.Namespace) -> int:
    """A job in a session of its own.  0, or 2 with what is wrong on stderr."""
    try:
        if not args.out.parent.is_dir():
            raise UsageError(
                "DS640", f"there is no folder {args.out.parent}", hint="--out FILE.png"
            )
        spark = get_session(args.master)
        try:
            print(job(spark, args))
        finally:
            spark.stop()
    except DsmsError as error:
        print(
            f"{error.code}: {error.message}" + (f"\n  {error.hint}" if error.hint else ""),
            file=sys.stderr,
        )
        return 2
    return 0
