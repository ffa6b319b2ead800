"""Run a server until SIGTERM or Ctrl-C.

example:
  dsms serve --data ./dsms-data --http-port 7655
  dsms serve --config dsms.toml          # keys as the options, e.g.  port = 7654
"""

from __future__ import annotations

import argparse
import os
import sys

from dsms.lengths import interval_of
from dsms.sizes import size_of
from dsms_client import tokens
from dsms_client.commands.warmup import progress_line


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--config",
        metavar="FILE",
        help="TOML file with any of these options; the command line wins",
    )
    add(
        "--host",
        help="address to listen on (default 127.0.0.1); one that others reach asks for a token, "
        "or --open",
    )
    add("--port", type=int, help="default 7654; 0: any free one")
    add(
        "--http-port",
        type=int,
        help="serve /metrics, /healthz and /readyz there (default: not at all)",
    )
    add(
        "--postgres-port",
        type=int,
        help="let PostgreSQL's clients (psql, drivers, Grafana) read there (default: not at all; "
        "0: any free one)",
    )
    add(
        "--data",
        metavar="DIR",
        help="keep everything there: declarations, tables, windows, answers (default: nothing is "
        "kept)",
    )
    add(
        "--state-key-file",
        metavar="FILE",
        help="encrypt what is in --data with the key in this file (or DSMS_STATE_KEY_FILE); "
        "`dsms rekey` makes keys, and changes them",
    )
    add(
        "--files",
        action="append",
        metavar="DIR",
        help="files below this folder may be named by CREATE ... LIKE FILE and CREATE SOURCE ... "
        "FROM file (may be given several times; default: none)",
    )
    add(
        "--sink-files",
        action="append",
        metavar="DIR",
        help="CREATE SINK ... TO file may write below this folder (may be given several times; "
        "default: none)",
    )
    add(
        "--secrets",
        metavar="DIR",
        help="files of this folder are secrets that CREATE SOURCE and CREATE SINK may name: "
        "password = file('name') (default: none)",
    )
    add(
        "--functions",
        metavar="DIR",
        help="modules of this folder have functions in Python that CREATE FUNCTION and CREATE "
        "AGGREGATE may name (default: none)",
    )
    add(
        "--function-timeout",
        type=_seconds,
        metavar="TIME",
        help="what a call of one may take (default 10 s): past it its process is killed, and the "
        "query fails",
    )
    add("--function-bytes", type=_size, metavar="SIZE", help="... and of memory (default 1G)")
    add(
        "--archive",
        metavar="URL",
        help="keep archives there: a folder, or a URL that Spark and pyarrow share, such as "
        "s3://bucket/folder (default: in the data directory)",
    )
    add(
        "--spark-master",
        metavar="URL",
        help="where archive jobs run, for example spark://host:7077 or sc://host:15002 (default: "
        "on this machine)",
    )
    add(
        "--spark-memory",
        metavar="SIZE",
        help="of Spark's driver, for example 4g (default: as Spark has it, 1g)",
    )
    add(
        "--accept-loss",
        action="append",
        metavar="STREAM",
        help="a stream that takes no rows since files of it are damaged or gone goes on without "
        "what was in them; so does a stream or query whose archive is gone, with another one "
        "(may be given several times)",
    )
    tokens.add_options(parser, "what clients must show (or DSMS_TOKEN)")
    add(
        "--auth",
        action="store_true",
        default=None,
        help="each session has a user, who may do what was granted; who shows the token is the "
        "administrator",
    )
    add(
        "--admin-token-file",
        dest="token",
        action=tokens.ReadLine,
        metavar="FILE",
        help="the same as --token-file",
    )
    add(
        "--quota",
        action="append",
        metavar="NAME=N",
        help="of each user who has none of his own: queries, state (a size), rows_per_second, "
        "sessions (may be given several times)",
    )
    add(
        "--metrics-token-file",
        dest="metrics_token",
        action=tokens.ReadLine,
        metavar="FILE",
        help="what /metrics asks for, as Bearer",
    )
    add(
        "--audit-log",
        metavar="FILE",
        help="write there who did what, from where: a JSON object a line (SIGHUP opens it anew)",
    )
    add(
        "--audit",
        type=_names,
        metavar="LIST",
        help="what of it: logins, statements (or changes, selects, rights, sessions), "
        "subscriptions, ingest, refused (default all)",
    )
    add(
        "--audit-required",
        action="store_true",
        default=None,
        help="do nothing that can't be written there (DS674)",
    )
    add(
        "--audit-max-bytes",
        type=_size,
        metavar="SIZE",
        help="begin another file at this size (default 100M; 0: never)",
    )
    add("--audit-keep", type=int, metavar="N", help="earlier files that are kept (default 10)")
    add(
        "--open",
        action="store_true",
        default=None,
        help="without a token let everybody in who reaches --host",
    )
    add("--tls-cert", metavar="FILE")
    add("--tls-key", metavar="FILE")
    add(
        "--tls-client-ca",
        metavar="FILE",
        help="with --auth: certificates signed by this one show who a user is",
    )
    add("--max-frame", type=_size, metavar="SIZE", help="longest request frame (default 64M)")
    add("--max-sessions", type=int, metavar="N", help="default 1000")
    add("--max-queries", type=int, metavar="N", help="registered queries (default 1000)")
    add(
        "--state-bytes",
        type=_size,
        metavar="SIZE",
        help="state that one query may hold (default 4G)",
    )
    add(
        "--statement-bytes",
        type=_size,
        metavar="SIZE",
        help="what one statement may keep while it runs (default 1G)",
    )
    add(
        "--archive-local-bytes",
        type=_size,
        metavar="SIZE",
        help="queries read so much of archives in the server, more on Spark (default 64M)",
    )
    add(
        "--step-rows",
        type=int,
        metavar="N",
        help="results of one join at one instant (default 4194304)",
    )
    add(
        "--subscriber-bytes",
        type=_size,
        metavar="SIZE",
        help="results that may wait for one reader (default 64M)",
    )
    add(
        "--memory",
        type=_size,
        metavar="SIZE",
        help="of all that is held (default: 3/4 of the machine's; 0: any)",
    )
    add(
        "--retain-default",
        metavar="LENGTH",
        help="what is kept of streams without RETAIN for SELECT: '10 min', '1000 rows', both with "
        "a comma, or 0 (default '10 min, 1000000 rows')",
    )
    add(
        "--max-selects",
        type=int,
        metavar="N",
        help="SELECTs that run at once (default: one a core, at least 4)",
    )
    add(
        "--statement-timeout",
        type=_seconds,
        metavar="TIME",
        help="what a statement may take, for example '30 s', unless its session says otherwise "
        "(default 0: any)",
    )
    add(
        "--max-clock-step",
        type=_seconds,
        metavar="TIME",
        help="a larger jump of the system clock is followed only once it has stood for a minute "
        "(default '10 s')",
    )
    add(
        "--max-slice-ms",
        type=int,
        metavar="MS",
        help="name in the log what holds the engine for longer than that",
    )
    add(
        "--safe-mode",
        action="store_true",
        default=None,
        help="start with all queries paused, to drop what keeps the server from starting; rows "
        "wait for them",
    )
    add(
        "--no-warmup",
        dest="warmup",
        action="store_false",
        default=None,
        help="compile kernels when they are first needed instead",
    )


def run(args: argparse.Namespace) -> int:
    from dsms_server import config  # the command line is where client, server and engine meet

    options = {k: v for k, v in vars(args).items() if k not in ("command", "version", "config")}
    layers = [
        {
            "token": tokens.from_environment(),
            "state_key_file": os.environ.get("DSMS_STATE_KEY_FILE") or None,
        },
        *([config.from_file(args.config)] if args.config else []),
    ]
    built = config.build(*layers, options)
    from dsms_server import serve

    return serve.run(built, _say, progress_line if built.warmup else None)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _seconds(text: str) -> float:
    """``30 s`` -> seconds."""
    found = 0 if text.strip() == "0" else interval_of(text.strip())
    if found is None or found < 0:
        raise argparse.ArgumentTypeError(
            f"{text} is not a length of time; write 500 ms, 30 s, 5 min, or 0 for none"
        )
    return found / 1_000_000


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _size(text: str) -> int:
    """``64M`` -> bytes."""
    found = size_of(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text} is not a size; write 65536, 64K, 64M or 1G")
    return found
