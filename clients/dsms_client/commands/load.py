"""Send the rows of files to a stream or table: CSV or TSV, JSON (lines or an array), Parquet, Arrow IPC
(files, which are Feather, and streams), logs of Zeek and of web servers; each may be compressed (.gz, .zst, .bz2).  `-` is standard input.

What a file holds is known by its name, else (.txt, .log, -) by how it begins; --format says it.
Columns are matched by name: as it is written, else in any case, else with _ for what a name can't
have (id.orig_h is id_orig_h).  In JSON user.name is the key name of the object user.

--create NAME makes the stream, as the file's beginning (1 MB) has it: the names of columns, types,
which one says when a row was, and how late rows are.  What is not as wished is said by --names,
--map, --timestamp, --clauses, or by a CREATE STREAM of your own, which begins as --dry-run shows.

Lines that are not rows of the stream are reported with their numbers and left out; the others are
sent.  After --max-rejects of them the load stops.  What the shell writes as csv or json, and what
`dsms archive export` writes, is read back to equal rows.

CSV: what means NULL (an empty cell, NULL, \\N, or what --null says) does so without quotes only;
in quotes it is text.  `,` is a row of two NULLs.  A line without anything is a row where the file
has one column, else it is left out and counted.

Times: '2018-03-24 17:15:20' with fractions and offsets as usual; other forms by --time-format, as
in Python (%d/%b/%Y:%H:%M:%S %z), numbers by --time-unit.  What says no zone is UTC, or --time-zone's.

Several files, also patterns in quotes ('log.*.gz'), go one after the other; --merge sends them as
one, by time.  --follow waits for more of the last one, through rotations, until Ctrl-C.
--table NAME inserts the rows into a table.  One with a key that is there is refused, or with --upsert
takes the place of the row that has it.

The stream stays open, so more can follow; --end says that it ended, and all its instants complete.

If the server is gone, the load says so, waits for it (300 s; at a terminal until Ctrl-C) and goes
on; no row is taken twice.  Interrupted, it says what was taken, and with which line to go on.

examples:
  dsms load conn.log --create conns --dry-run               # what it would be
  dsms load conn.log --create conns --clauses 'RETAIN 1 DAY'
  dsms load flights.csv.gz --stream flights
  dsms load 'conn.*.log.gz' --stream conns
  dsms load part1.jsonl --stream s --rejects bad.csv --map name=user.name
  dsms load trace.csv --stream s --map t=timestamp --null NA
  dsms load conn.log.csv --stream conns --map t=ts --time-unit s    # 1379288667.631000
  dsms load data.txt --stream motes --names date,time,epoch,mote,temp --map t=date+time
  dsms load hosts.csv --table hosts --upsert
  tail -F access.log | dsms load - --stream web --format apache

exit codes: 0 all rows were taken, 1 some were rejected or refused, 2 wrong usage or no server,
130 interrupted
"""  # noqa: E501

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from dsms.errors import UsageError
from dsms_client.cli import FAILED, OK
from dsms_client.commands import connection
from dsms_client.files.options import (
    COLUMNAR,
    KINDS,
    Options,
    delimiter_of,
    encoding_of,
    names_of,
    pair_of,
)
from dsms_client.files.send import LoadJob
from dsms_client.files.several import expand
from dsms_client.files.source import ENDINGS, PACKED

# seconds for which a load waits for a server that is gone; at a terminal as long as people like
RECONNECT = 300.0
T = TypeVar("T")


def configure(parser: argparse.ArgumentParser) -> None:
    add_file_options(parser)
    add = parser.add_argument
    add(
        "--batch",
        type=_count,
        default=50_000,
        metavar="N",
        help="rows sent at a time (default 50000)",
    )
    add(
        "--create",
        metavar="NAME",
        help="create this stream for the file: its columns, types and time are inferred from its "
        "beginning, and shown as a statement",
    )
    add("--table", metavar="NAME", help="rows go into this table")
    add(
        "--upsert",
        action="store_true",
        help="--table: rows take the place of those that have their keys",
    )
    add("--timestamp", metavar="COLUMN", help="--create: the column of event time")
    add("--clauses", metavar="TEXT", default="", help="--create: 'SLACK 1 HOUR RETAIN 1 DAY', ...")
    add("--dry-run", action="store_true", help="--create: only show the statement, and rows")
    add("--merge", action="store_true", help="several files: rows by the stream's time")
    add("--follow", action="store_true", help="like tail -F: wait for more, through rotations")
    add(
        "--from-line",
        type=_count,
        default=0,
        metavar="N",
        help="leave out what stands before this line (row, in Parquet and Arrow) of the first "
        "file; each object of an array in JSON counts as one line at least",
    )
    connection.add_options(parser)


def add_file_options(parser: argparse.ArgumentParser) -> None:
    """What `load` and `replay` have in common."""
    add = parser.add_argument
    add("files", metavar="FILE", nargs="+")
    add(
        "--stream",
        action="append",
        default=[],
        metavar="NAME",
        help="where rows go (replay: one for all files, or one for each)",
    )
    add(
        "--map",
        action="append",
        default=[],
        type=_pair,
        metavar="COLUMN=NAME",
        help="this column of the stream is called NAME in the file, or is made of several: "
        "t=date+time (may be repeated); columns without a name are column0, column1, ... by place",
    )
    add("--end", action="store_true", help="nothing follows: end the stream")
    add("--no-end", action="store_true", help=argparse.SUPPRESS)  # what is so unless --end
    add(
        "--rejects",
        metavar="FILE",
        help="write there which lines were rejected, refused or late (CSV: line, reason, text)",
    )
    add(
        "--max-rejects",
        type=_number,
        metavar="N",
        help="stop after more (default 10000; all with --rejects)",
    )
    add("--quiet", action="store_true", help="no progress bar, no summary")
    _add_forms(parser.add_argument_group("how the file is written"))


def _add_forms(group: Any) -> None:
    add = group.add_argument
    add("--format", choices=KINDS, help="default: by its name, or how it begins")
    add("--delimiter", type=_character, help="CSV: default a comma, a tab for .tsv")
    add("--header", action="store_true", help="CSV, --create: names come first, whatever they are")
    add("--no-header", action="store_true", help="CSV: no line of names; columns are the stream's")
    add("--names", type=_names, metavar="A,B,...", help="CSV: no line of names but these")
    add("--comment", metavar="TEXT", default="", help="CSV: lines that begin so are left out")
    add(
        "--null",
        action="append",
        metavar="TEXT",
        help="CSV: means NULL where it is not quoted (default: an empty cell, NULL and \\N)",
    )
    add("--decimal", choices=(".", ","), default=".", help="CSV: 21,5 with a comma")
    add("--encoding", type=_encoding, help="latin-1, cp1252, utf-16, ... (default UTF-8)")
    add("--pattern", metavar="REGEX", help="text whose lines match; named groups are columns")
    add(
        "--time-unit",
        choices=("s", "ms", "us", "ns"),
        help="what numbers in TIMESTAMP columns count since 1970, fractions too (unsaid: such "
        "numbers are refused)",
    )
    add(
        "--time-format",
        action="append",
        default=[],
        type=_time_format,
        metavar="FORMAT",
        help="of TIMESTAMP columns: '%%d/%%m/%%Y %%H:%%M' (may be repeated)",
    )
    add("--time-zone", metavar="ZONE", type=_zone, help="of times that say none: Europe/Berlin")


def options_of(args: argparse.Namespace) -> Options:
    """How the files are to be read."""
    names = args.names or (() if args.no_header else None)
    return Options(
        kind="lines" if args.pattern and not args.format else args.format,
        delimiter=args.delimiter,
        nulls=None if args.null is None else tuple(args.null),
        names=names,
        encoding=args.encoding,
        decimal=args.decimal,
        unit=args.time_unit,
        time_formats=tuple(args.time_format),
        zone=args.time_zone,
        pattern=args.pattern,
        skip=args.comment,
        header=args.header,
    )


def jobs_of(args: argparse.Namespace, **more: Any) -> list[LoadJob]:
    """What goes to each stream: all files to the one, or each to its own."""
    paths, streams = args.files, args.stream
    if len(streams) == 1:
        return [_job(args, expand(paths), streams[0], more)]
    if not streams:
        raise UsageError(
            "DS530", "which stream do the rows go to?", hint="give --stream NAME, or --table"
        )
    if len(streams) != len(paths):
        raise UsageError(
            "DS530",
            f"{len(paths)} files for {len(streams)} streams",
            hint="give one --stream for all files, or one for each, in their order",
        )
    of: dict[str, list[str]] = {}
    for path, stream in zip(paths, streams, strict=True):
        of.setdefault(stream, []).extend(expand([path]))
    return [_job(args, found, stream, more) for stream, found in of.items()]


def _job(
    args: argparse.Namespace, paths: Sequence[str], stream: str, more: dict[str, Any]
) -> LoadJob:
    return LoadJob(
        tuple(paths),
        stream,
        dict(args.map),
        options_of(args),
        end=args.end,
        max_rejects=args.max_rejects,
        **more,
    )


def run(args: argparse.Namespace) -> int:
    if args.follow and (args.format in COLUMNAR or any(map(_is_no_text, args.files))):
        raise UsageError("DS530", "only files of text grow line by line", hint="leave out --follow")
    if args.follow and "-" in args.files:
        raise UsageError("DS530", "standard input is read to its end anyway: leave out --follow")
    from dsms_client.files.create import as_said, inferred_job, show

    statement = None
    if args.create is not None:
        args.stream = [args.create]
    _check_table(args)
    more = {
        "table": args.table is not None,
        "upsert": args.upsert,
        "batch": args.batch,
        "merge": args.merge,
        "follow": args.follow,
        "first": args.from_line,
    }
    jobs = jobs_of(args, **more)
    if args.create is not None:
        jobs[0], inferred = inferred_job(jobs[0], args.timestamp, args.clauses)
        statement = inferred.statement(args.create, args.clauses)
        show(inferred, statement, args.dry_run, args.quiet)
        if args.dry_run:
            return OK
    elif args.dry_run or args.timestamp or args.clauses:
        raise UsageError("DS530", "--timestamp, --clauses and --dry-run are for --create")

    async def work(client: Any, reporter: Any) -> bool:
        from dsms_client.files.send import load

        if statement is not None:
            with as_said(statement, args.create, args.clauses):
                await client.execute(statement)
        return all([(await load(client, job, reporter)).clean for job in jobs])

    return OK if asyncio.run(with_client(args, work)) else FAILED


def _is_no_text(path: str) -> bool:
    base, _, ending = path.lower().rpartition(".")
    return bool(base) and (ending in PACKED or ENDINGS.get(ending) in COLUMNAR)


def _check_table(args: argparse.Namespace) -> None:
    """--table takes the place of --stream; what speaks of a stream does not go with it."""
    if args.table is None:
        if args.upsert:
            raise UsageError("DS530", "--upsert is for --table: rows of a stream replace none")
        return
    given = {"--end": args.end, "--merge": args.merge, "--stream or --create": args.stream}
    for name, said in given.items():
        if said:
            raise UsageError("DS530", f"{name} is for streams", hint="leave it out, or --table")
    args.stream = [args.table]


async def with_client(
    args: argparse.Namespace, work: Callable[[Any, Any], Awaitable[bool]]
) -> bool:
    """Do the work with a connection and an account of it."""
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
                return await work(client, reporter)


def _pair(text: str) -> tuple[str, str]:
    return _read(pair_of, text)


def _character(text: str) -> str:
    return _read(delimiter_of, text)


def _count(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text} is not a number of rows")
    return int(text)


def _number(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text} is not a number of lines")
    return int(text)


def _names(text: str) -> tuple[str, ...]:
    return _read(names_of, text)


def _encoding(text: str) -> str:
    return _read(encoding_of, text)


def _time_format(text: str) -> str:
    from dsms_client.files.times import compiled

    _read(compiled, text)
    return text


def _zone(text: str) -> str:
    from dsms_client.files.times import check_zone

    _read(check_zone, text)
    return text


def _read(reader: Callable[[str], T], text: str) -> T:
    try:
        return reader(text)
    except UsageError as problem:
        raise argparse.ArgumentTypeError(problem.message) from None
