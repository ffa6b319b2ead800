"""Make again what `dsms dump` has written down, on a server that has nothing of these names.

The statements run one after the other, up to one that fails: what ran before it stays.  New tokens
of users are printed, and nowhere else.  What is made belongs to whoever restores it; who owned it
is granted ADMIN on it.

examples:
  dsms restore all.sql
  dsms dump --tables --port 7654 | dsms restore - --port 7655

exit codes: 0 fine, 1 a statement failed, 2 wrong usage or no server
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dsms.errors import DsmsError, UsageError
from dsms_client.commands import connection
from dsms_client.results import Done
from dsms_client.shell import copying, show
from dsms_client.shell.statements import Statement, split
from dsms_client.visible import prose

if TYPE_CHECKING:
    from dsms_client.sync import Client

FAILED, MISUSED = 1, 2
PARTIAL = "answers are partial"  # of a warning
_COUNTED = ("role", "user", "stream", "table", "query")  # as CREATE names them


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="what dsms dump wrote (- for standard input)")
    connection.add_options(parser)


def run(args: argparse.Namespace) -> int:
    try:
        data = sys.stdin.buffer.read() if args.file == "-" else Path(args.file).read_bytes()
        folder = Path() if args.file == "-" else Path(args.file).parent
        text = data.decode("utf-8")  # with the ends of lines that strings hold
    except (OSError, UnicodeDecodeError) as problem:
        print(f"cannot read {args.file}: {problem}", file=sys.stderr)
        return MISUSED
    with connection.open_client(args, data="rows") as client:
        return restore(client, split(text), folder)


def restore(client: Client, statements: list[Statement], folder: Path) -> int:
    """Run them, and say what came of it; the exit code.  Files that COPY names lie in `folder`."""
    made: Counter[str] = Counter()
    others = _partial(client).keys()
    for done, statement in enumerate(statements):
        try:
            if copying.is_copy(statement.text):
                made["row"] += _copied(client, statement.text, folder)
                continue
            results = client.execute(statement.text)
        except DsmsError as problem:
            for line in show.error(problem, statement.text, statement.line, statement.column):
                print(line, file=sys.stderr)
            print(f"{done} of {len(statements)} statements ran before that", file=sys.stderr)
            _tell_partial(client, others)
            return FAILED
        words = statement.text.lower().split(maxsplit=2)[:2]
        kind = words[1] if words[0] == "create" else ""
        made[kind] += 1
        for result in results:
            if isinstance(result, Done):
                _tell(result, kind)
    _tell_partial(client, others)
    counts = [f"{_plural(kind, made[kind])}" for kind in (*_COUNTED, "row") if made[kind]]
    print(f"restored: {', '.join(counts) or 'nothing'}")
    return 0


def _copied(client: Client, text: str, folder: Path) -> int:
    """COPY: how many rows were taken.  Raises DS530 where some were not."""
    from dsms_client.files.report import Reporter
    from dsms_client.files.said import in_sql

    copy = copying.read(text)
    copy = replace(copy, path=str(folder / copy.path))
    with Reporter(None, quiet=True, words=in_sql) as reporter:
        outcome = client.work(lambda one: copying.run(one, copy, reporter))
    if not outcome.clean or outcome.report.late:
        raise UsageError("DS530", f"not all rows of {copy.path} were taken")
    return outcome.report.accepted


def _tell(result: Done, kind: str) -> None:
    """A user's token; and what there is to mind."""
    if kind == "user":
        print(prose(result.message))
    for warning in result.warnings:
        if PARTIAL not in warning:  # rows and time may follow that end it
            print(prose(f"NOTE: {warning}"), file=sys.stderr)


def _tell_partial(client: Client, others: Collection[str]) -> None:
    """Queries, but for those that were there, whose answers still lack rows."""
    for query, until in _partial(client).items():
        if until is not None and query not in others:
            print(prose(f"NOTE: query {query}: {PARTIAL} {until}"), file=sys.stderr)


def _partial(client: Client) -> dict[str, str | None]:
    """All queries, and until when their answers are partial, if they are."""
    shown = client.query("SHOW QUERIES FULL")
    name, until = shown.columns.index("query"), shown.columns.index("partial")
    return {row[name]: row[until] for row in shown.rows}


def _plural(kind: str, count: int) -> str:
    many = "queries" if kind == "query" else f"{kind}s"
    return f"{count} {kind if count == 1 else many}"
