"""Write down what is declared, as statements that make it again.

Roles, users, streams, tables and queries, each behind what it needs, then who may do what, then
sources and sinks, which begin where they are restored, as if they were new; with
--tables also the rows of tables, as they are now, with --comments what COMMENT ON has said.  What
no statement can tell is not there: passwords and tokens (users get new tokens), states of queries.
Nor are promises (PUNCTUATE): they are what sources say of what follows, where they send it.
It takes an administrator.

--windows DIR also writes the rows that streams keep, in a new folder: DIR/dump.sql has the
statements (with the rows of tables), beside it lies a Parquet file for each stream.  Restored, they
are sent again behind all declarations, so that windows and synopses are filled and queries answer
anew, with numbers from 0, and clocks stand where they were.  Of a stream that has let go of rows it
says since when it has them all, so that answers which lack rows say so.  Rows that wait behind a
clock are not among them; rows that are stamped when they come are stamped anew.  Streams that
queries feed have their rows, too, if these have their instants in a column (TIMESTAMP BY) and rest
on none that are stamped anew: what their queries make again of those times is late there, and
counted.  A stream AS SELECT is one and a query that feeds it then.  Rows of other such streams come
about again from what their sources keep (older ones do not).

examples:
  dsms dump > definitions.sql
  dsms dump --tables --comments > all.sql
  dsms restore all.sql --port 7655      # into another server, which is empty
  dsms dump --windows copy --comments && dsms restore copy/dump.sql --port 7655

exit codes: 0 fine, 2 wrong usage or no server
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsms.errors import UsageError
from dsms_client import literals
from dsms_client.commands import connection
from dsms_client.files.fed import Made
from dsms_client.visible import write_utf8

if TYPE_CHECKING:
    from dsms_client.results import RowSet
    from dsms_client.sync import Client

Rows = Sequence[Sequence[Any]]
CONNECTORS = ("source", "sink")
ROWS, LETTERS = 1000, 100_000  # of one INSERT
HEAD = """\
-- Written by dsms dump; dsms restore runs it, on a server that has nothing of these names.
"""
NEW_TOKENS = """\
-- Passwords and tokens can't be read back.  Each user gets a new token, which dsms restore prints
-- where it runs; ALTER USER name PASSWORD '...' gives a password.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tables", action="store_true", help="also the rows of tables")
    parser.add_argument("--comments", action="store_true", help="also comments")
    parser.add_argument(
        "--windows", metavar="DIR", help="also the rows that streams keep, into this new folder"
    )
    connection.add_options(parser)


def run(args: argparse.Namespace) -> int:
    write_utf8()
    data = "rows" if args.windows is None else "arrow"
    with connection.open_client(args, data=data) as client:
        if args.windows is None:
            for text in dump(client, args.tables, args.comments):
                print(text)
            return 0
        from dsms_client.files.windows import written

        folder = _made(args.windows)
        begin, made = declared(client, True, args.comments)
        texts = [*begin, *written(client, folder, made), *connectors(client)]
        (folder / "dump.sql").write_bytes("".join(f"{text}\n" for text in texts).encode())
    return 0


def _made(name: str) -> Path:
    """The folder, which is new or empty, and its owner's alone.  Raises DS530."""
    folder = Path(name)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        empty = not any(folder.iterdir())
    except OSError as problem:
        raise UsageError("DS530", f"cannot write into {name}: {problem.strerror}") from None
    if not empty:
        raise UsageError("DS530", f"{name} is not empty", hint="name a new folder")
    return folder


def dump(client: Client, tables: bool, comments: bool = False) -> Iterator[str]:
    """The file, a piece at a time."""
    begin, made = declared(client, tables, comments)
    yield from begin
    for one in made:
        yield from one.texts
    yield from connectors(client)


def connectors(client: Client) -> Iterator[str]:
    """Sources and sinks, which begin when all else is there."""
    for kind, name, statement in client.query("SHOW CREATE ALL").rows:
        if kind in CONNECTORS:
            yield from Made(kind, name, statement).texts


def declared(client: Client, tables: bool, comments: bool) -> tuple[list[str], Iterator[Made]]:
    """How the file begins, and what is declared, in an order in which it can be made."""
    said = [line for line in client.query("SHOW CREATE ALL").rows if line[0] not in CONNECTORS]
    users = any(kind == "user" for kind, _, _ in said)
    return [HEAD, NEW_TOKENS] if users else [HEAD], _each(client, said, tables, comments)


def _each(client: Client, said: Rows, tables: bool, comments: bool) -> Iterator[Made]:
    noted = _comments(client) if comments else {}
    for kind, name, statement in said:
        one = Made(kind, name, statement)
        if not statement.startswith("--") and (text := noted.get(name)):
            about = f"{kind.upper()} {literals.name(name)}"
            one.behind.append(f"COMMENT ON {about} IS {literals.quoted(text)};")
        if tables and kind == "table":
            one.behind += rows_of(name, client.query(f"SELECT * FROM {literals.name(name)}"))
        yield one


def _comments(client: Client) -> dict[str, str]:
    """By name: streams, tables and queries have names of their own."""
    asked = (client.query(f"SHOW {what}") for what in ("STREAMS", "TABLES", "QUERIES FULL"))
    return {
        row[0]: row[answer.columns.index("comment")]
        for answer in asked
        for row in answer.rows
        if row[answer.columns.index("comment")] is not None
    }


def rows_of(table: str, found: RowSet) -> Iterator[str]:
    """INSERTs that are not too long to be run."""
    lines: list[str] = []
    for row in found.rows:
        lines.append(literals.row(row, found.types))
        if len(lines) == ROWS or sum(map(len, lines)) > LETTERS:
            yield _insert(table, lines)
            lines = []
    if lines:
        yield _insert(table, lines)


def _insert(table: str, lines: list[str]) -> str:
    return f"INSERT INTO {literals.name(table)} VALUES\n" + ",\n".join(lines) + ";"
