"""ALTER STREAM and ALTER TABLE."""

from __future__ import annotations

from dataclasses import dataclass

from dsms.sql.nodes.base import Ident, Instant
from dsms.sql.nodes.statements import ColumnDef, Statement


@dataclass(frozen=True, slots=True)
class AlterStream(Statement):
    """``ALTER STREAM s SET CLOCK TO instant``; `clock` None: NOW."""

    name: Ident
    clock: Instant | None = None


@dataclass(frozen=True, slots=True)
class Reopen(Statement):
    """``ALTER STREAM s REOPEN``: takes back its end."""

    name: Ident


@dataclass(frozen=True, slots=True)
class AddColumn(Statement):
    """``ALTER STREAM s ADD COLUMN c type [NOT NULL] [DEFAULT value]``"""

    name: Ident
    column: ColumnDef
