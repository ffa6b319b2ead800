"""Sources and sinks: what a server brings in from elsewhere, and what it tells elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dsms.sql.nodes.base import Ident, Node
from dsms.sql.nodes.statements import Option, Statement


class ConnectorKind(StrEnum):
    SOURCE = "SOURCE"
    SINK = "SINK"


@dataclass(frozen=True, slots=True)
class SecretOption(Node):
    """``name = env('X')`` or ``name = file('x')``: the value is read where the server runs.

    `place`: the word before the parenthesis, lower case"""

    name: Ident
    place: str
    key: str


@dataclass(frozen=True, slots=True)
class CreateConnector(Statement):
    """``CREATE SOURCE name INTO stream FROM connector [WITH (...)]``, ``CREATE SINK name FROM query
    TO connector [WITH (...)]``

    `object`: the stream that a source feeds, the query that a sink tells of
    `or_replace`: it takes the place of one of that name, if there is one"""

    kind: ConnectorKind
    name: Ident
    object: Ident
    connector: Ident
    options: tuple[Option | SecretOption, ...] = ()
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class DropConnector(Statement):
    """``DROP SOURCE|SINK [IF EXISTS] name``"""

    kind: ConnectorKind
    name: Ident
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class PauseConnector(Statement):
    """``PAUSE SOURCE|SINK name``"""

    kind: ConnectorKind
    name: Ident


@dataclass(frozen=True, slots=True)
class ResumeConnector(Statement):
    """``RESUME SOURCE|SINK name``: one that is paused, or has failed, begins where it stands."""

    kind: ConnectorKind
    name: Ident
