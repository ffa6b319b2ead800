"""Type statements and watch results, or run a script.

examples:
  dsms shell
  dsms shell -c "SHOW STREAMS"
  dsms shell -c "SELECT COUNT(*) FROM s [RANGE 5 MIN]"   # once, from the live window (needs RETAIN, or a query's ring)
  dsms shell -c '\\subscribe q'             # the answers of query q as they come, + in, - out, > periodic, . nothing
  dsms shell -f declare.sql --format json
  dsms shell --embedded -c "SELECT 1"      # an engine of its own, no server needed
  dsms shell -c '\\?'                       # commands: files, editor, variables, copies of answers

csv and json are data: `dsms load` reads them back to equal rows.  There a second column called k is
k_1.  If the server is gone, the shell says so and waits for it: in scripts 30 s (or --wait, if that
is longer), at a terminal until Ctrl-C.  A statement that was under way is not repeated; \\subscribe
and \\watch go on where they stopped.

exit codes: 0 fine, 1 a statement failed, 2 wrong usage or no server
"""  # noqa: E501

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dsms_client.cli import FAILED, MISUSED, OK
from dsms_client.commands import connection
from dsms_client.line import Line
from dsms_client.shell.meta import Quit
from dsms_client.shell.runner import Runner
from dsms_client.shell.show import FORMATS
from dsms_client.visible import write_utf8

if TYPE_CHECKING:
    from dsms_client.sync import Client

# seconds for which a script waits for a server that is gone; people wait as long as they like
RECONNECT = 30.0


def configure(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "-c",
        "--command",
        dest="sql",
        action="append",
        metavar="SQL",
        help="run these statements and leave (given several times: one after the other, up to one "
        "that fails)",
    )
    what.add_argument(
        "-f", "--file", metavar="FILE", help="run a file (- for standard input) and leave"
    )
    parser.add_argument(
        "--format", choices=FORMATS, default="table", help="how rows are shown (default table)"
    )
    parser.add_argument("--timing", action="store_true", help="say how long statements take")
    parser.add_argument(
        "--embedded",
        action="store_true",
        help="run an engine in this process instead of connecting",
    )
    parser.add_argument(
        "--data", metavar="DIR", help="with --embedded: keep declarations and tables there"
    )
    parser.add_argument(
        "--state-key-file",
        metavar="FILE",
        default=os.environ.get("DSMS_STATE_KEY_FILE") or None,
        help="with --data: it is encrypted with the key in this file (or DSMS_STATE_KEY_FILE)",
    )
    connection.add_options(parser)


def run(args: argparse.Namespace) -> int:
    try:
        scripts = _scripts(args)
    except (OSError, UnicodeDecodeError) as problem:
        print(f"cannot read {args.file}: {problem}", file=sys.stderr)
        return MISUSED
    if args.data and not args.embedded:
        print(
            "--data goes with --embedded; a server has its own (dsms serve --data)", file=sys.stderr
        )
        return MISUSED
    if args.embedded:
        from dsms_client.commands import embedded

        with embedded.server(args.data, args.state_key_file) as (port, token):
            args.host, args.port, args.token, args.tls, args.tls_ca = (
                "127.0.0.1",
                port,
                token,
                False,
                None,
            )
            args.user = args.password = args.tls_cert = None
            return _run(args, scripts)
    return _run(args, scripts)


def _scripts(args: argparse.Namespace) -> list[str] | None:
    """The texts to run, or None for the prompt."""
    if args.sql is not None:
        return list(args.sql)
    if args.file == "-" or (args.file is None and not sys.stdin.isatty()):
        return [sys.stdin.read()]
    return None if args.file is None else [Path(args.file).read_text(encoding="utf-8")]


def _run(args: argparse.Namespace, scripts: list[str] | None) -> int:
    patience = float("inf") if scripts is None or sys.stdout.isatty() else max(args.wait, RECONNECT)

    def connect(line: Line) -> Client:
        return connection.open_client(
            args, data="rows", reconnect_seconds=patience, on_link=line.changed
        )

    write_utf8()
    runner = Runner(connect, args.format)
    runner.timing = args.timing
    with runner.client:
        if scripts is None:
            from dsms_client.shell import prompt

            return prompt.run(runner)
        try:
            return OK if all(map(runner.script, scripts)) else FAILED
        except Quit:
            return OK
