"""Write down what is declared, as statements that make it again.

Roles, users, streams, tables and queries, each behind what it needs, then who may do what; with
--tables also the rows of tables, as they are now, with --comments what COMMENT ON has said.  What
no statement can tell is not there: passwords and tokens (users get new tokens), states of queries.
It takes an administrator.

--windows DIR also writes the rows that streams keep, in a new folder: DIR/dump.sql has the
statements (with the rows of tables), beside it lies a Parquet file for each stream.  Restored, they
are sent again behind all declarations, so that windows and synopses are filled and queries answer
anew, with numbers from 0, and clocks stand where they were.  Rows that wait behind a clock are not
among them, nor are those of streams that queries feed, which come about again from what their
sources keep (older ones do not); rows that are stamped when they come are stamped anew.

examples:
  dsms dump > definitions.sql
  dsms dump --tables --comments > all.sql
  dsms restore all.sql --port 7655      # into another server, which is empty
  dsms dump --windows copy --comments && dsms restore copy/dump.sql --port 7655

exit codes: 0 fine, 2 wrong usage or no server
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dsms.errors import UsageError
from dsms_client import literals
from dsms_client.commands import connection
from dsms_client.visible import write_utf8

if TYPE_CHECKING:
    from dsms_client.results import RowSet
    from dsms_client.sync import Client

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
        texts = [*dump(client, True, args.comments), *written(client, folder)]
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
    yield HEAD
    said = client.query("SHOW CREATE ALL").rows
    noted = _comments(client) if comments else {}
    if any(kind == "user" for kind, _, _ in said):
        yield NEW_TOKENS
    for kind, name, statement in said:
        made = not statement.startswith("--")
        yield f"{statement};" if made else statement
        if made and (text := noted.get(name)):
            yield f"COMMENT ON {kind.upper()} {literals.name(name)} IS {literals.quoted(text)};"
        if tables and kind == "table":
            yield from rows_of(name, client.query(f"SELECT * FROM {literals.name(name)}"))


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
