"""Statements that read definitions back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dsms.sql.nodes.base import Ident
from dsms.sql.nodes.statements import Statement


class MadeKind(StrEnum):
    STREAM = "STREAM"
    TABLE = "TABLE"
    QUERY = "QUERY"
    ROLE = "ROLE"
    AGGREGATE = "AGGREGATE"
    FUNCTION = "FUNCTION"
    SOURCE = "SOURCE"
    SINK = "SINK"


@dataclass(frozen=True, slots=True)
class ShowCreate(Statement):
    """``SHOW CREATE STREAM|TABLE|QUERY|ROLE|AGGREGATE|FUNCTION|SOURCE|SINK name``, or ``SHOW CREATE
    ALL``: both None."""

    kind: MadeKind | None = None
    name: Ident | None = None
