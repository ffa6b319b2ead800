"""Statements that tell how far streams have come, as their sources can."""

from __future__ import annotations

from dataclasses import dataclass

from dsms.sql.nodes.base import Ident, Instant
from dsms.sql.nodes.expressions import Expr
from dsms.sql.nodes.statements import Statement


@dataclass(frozen=True, slots=True)
class Heartbeat(Statement):
    """``HEARTBEAT s AT instant``: no row up to there follows."""

    name: Ident
    at: Instant


@dataclass(frozen=True, slots=True)
class EndStream(Statement):
    """``END STREAM s``: no row follows."""

    name: Ident


@dataclass(frozen=True, slots=True)
class Punctuate(Statement):
    """``PUNCTUATE s WHERE k = 5 [UPTO instant]``: no row of these values (and of an instant up to
    there) follows.  `where`: equalities, joined by AND."""

    name: Ident
    where: Expr
    upto: Instant | None = None
