"""Write down what is declared, as statements that make it again.

Roles, users, streams, tables and queries, each behind what it needs, then who may do what; with
--tables also the rows of tables, as they are now.  What no statement can tell is not there:
passwords and tokens (users get new tokens), rows of streams, states of queries.  It takes an
administrator.

examples:
  dsms dump > definitions.sql
  dsms dump --tables > all.sql
  dsms restore all.sql --port 7655      # into another server, which is empty

exit codes: 0 fine, 2 wrong usage or no server
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

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
    connection.add_options(parser)


def run(args: argparse.Namespace) -> int:
    write_utf8()
    with connection.open_client(args, data="rows") as client:
        for text in dump(client, args.tables):
            print(text)
    return 0


def dump(client: Client, tables: bool) -> Iterator[str]:
    """The file, a piece at a time."""
    yield HEAD
    said = client.query("SHOW CREATE ALL").rows
    if any(kind == "user" for kind, _, _ in said):
        yield NEW_TOKENS
    for kind, name, statement in said:
        yield statement if statement.startswith("--") else f"{statement};"
        if tables and kind == "table":
            yield from rows_of(name, client.query(f"SELECT * FROM {literals.name(name)}"))


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
