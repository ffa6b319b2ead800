"""ALTER STREAM and ALTER TABLE."""

from __future__ import annotations

from dataclasses import dataclass

from dsms.sql.nodes.base import Ident, Instant
from dsms.sql.nodes.statements import ColumnDef, ObjectKind, Option, Statement


@dataclass(frozen=True, slots=True)
class AlterStream(Statement):
    """``ALTER STREAM s SET CLOCK TO instant``; `clock` None: NOW."""

    name: Ident
    clock: Instant | None = None


@dataclass(frozen=True, slots=True)
class SetSince(Statement):
    """``ALTER STREAM s SET SINCE TO instant``: earlier rows are unknown; `since` None: NOW."""

    name: Ident
    since: Instant | None = None


@dataclass(frozen=True, slots=True)
class SetStream(Statement):
    """``ALTER STREAM s SET (option = value, ...)``"""

    name: Ident
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class Reopen(Statement):
    """``ALTER STREAM s REOPEN``: takes back its end."""

    name: Ident


@dataclass(frozen=True, slots=True)
class AddColumn(Statement):
    """``ALTER STREAM s ADD COLUMN c type [NOT NULL] [DEFAULT value]``"""

    name: Ident
    column: ColumnDef


@dataclass(frozen=True, slots=True)
class Rename(Statement):
    """``ALTER STREAM|TABLE s RENAME TO t``; of queries: `RenameQuery`."""

    kind: ObjectKind
    name: Ident
    to: Ident


@dataclass(frozen=True, slots=True)
class RenameColumn(Statement):
    """``ALTER STREAM|TABLE s RENAME COLUMN a TO b``"""

    kind: ObjectKind
    name: Ident
    column: Ident
    to: Ident
