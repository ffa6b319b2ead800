"""Statements and their clauses."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from dsms.sql.nodes.base import Duration, Ident, Instant, Node, TypeName
from dsms.sql.nodes.expressions import Expr
from dsms.sql.nodes.queries import Query


@dataclass(frozen=True, slots=True)
class Statement(Node):
    """Base of statements."""


@dataclass(frozen=True, slots=True)
class Option(Node):
    """``name = value`` of WITH (...); words (``upa``) and strings are both str."""

    name: Ident
    value: str | int | float | bool | Duration


@dataclass(frozen=True, slots=True)
class SelectStatement(Statement):
    """A SELECT on its own: one-time, answered now (or the target of EXPLAIN)."""

    query: Query
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True)
class ColumnDef(Node):
    """`computed`: what it is made of; None: it is given.  `default`: what stands there if rows
    leave it out."""

    name: Ident
    type: TypeName
    not_null: bool = False
    computed: Expr | None = None
    default: Expr | None = None


@dataclass(frozen=True, slots=True)
class TimestampBy(Node):
    """``TIMESTAMP BY column [UNIT s|ms|us|ns]``; `unit` as written, lower case.  With `computed`:
    ``TIMESTAMP BY (computed) AS column``, which adds that column."""

    column: Ident
    unit: str | None = None
    computed: Expr | None = None


@dataclass(frozen=True, slots=True)
class Late(Node):
    """``LATE DROP`` (into is None) or ``LATE INTO stream``"""

    into: Ident | None = None


@dataclass(frozen=True, slots=True)
class Archive(Node):
    """``ARCHIVE [FOR keep] [CLUSTER BY c] [UPDATE EVERY d]``"""

    keep: Duration | None = None
    cluster_by: Ident | None = None
    update_every: Duration | None = None


@dataclass(frozen=True, slots=True)
class Confidential(Node):
    """``CONFIDENTIAL FOR length TO role``: who has not that role sees rows when they are so old."""

    length: Duration
    role: Ident


@dataclass(frozen=True, slots=True)
class CreateStream(Statement):
    """Without `timestamp` the stream is stamped on arrival.  None everywhere means: not said.
    `key`: a row takes the place of the one with its key.

    `query`: what enters (or leaves) its answer are the rows, and its columns are those of the
    stream, with that of `timestamp` behind them."""

    name: Ident
    columns: tuple[ColumnDef, ...]
    if_not_exists: bool = False
    timestamp: TimestampBy | None = None
    slack: Duration | None = None
    late: Late | None = None
    max_future: Duration | None = None
    idle_timeout: Duration | None = None
    subwindow: Duration | None = None
    retain: Duration | None = None
    index_by: tuple[Ident, ...] = ()
    archive: Archive | None = None
    confidential: Confidential | None = None
    options: tuple[Option, ...] = ()
    query: Query | None = None
    key: tuple[Ident, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTable(Statement):
    """An inline ``k INT PRIMARY KEY`` stands in `primary_key` too (and leaves no mark on the
    column)."""

    name: Ident
    columns: tuple[ColumnDef, ...]
    primary_key: tuple[Ident, ...] = ()
    non_retroactive: bool = False
    if_not_exists: bool = False
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True)
class Into(Node):
    """``INSERT INTO stream [(columns)]`` before the SELECT of a query that feeds it."""

    stream: Ident
    columns: tuple[Ident, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateQuery(Statement):
    """``CREATE QUERY q AS [INSERT INTO s] select [ON LOOKUP] [ARCHIVE ...] [WITH (...)]``

    `or_replace`: it takes the place of one of that name, if there is one"""

    name: Ident
    query: Query
    if_not_exists: bool = False
    on_lookup: bool = False
    archive: Archive | None = None
    options: tuple[Option, ...] = ()
    into: Into | None = None
    or_replace: bool = False


class ObjectKind(StrEnum):
    STREAM = "STREAM"
    TABLE = "TABLE"
    QUERY = "QUERY"


class FunctionKind(StrEnum):
    AGGREGATE = "AGGREGATE"
    FUNCTION = "FUNCTION"


@dataclass(frozen=True, slots=True)
class Drop(Statement):
    """`cascade`: what reads or feeds it goes with it"""

    kind: ObjectKind
    name: Ident
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class Describe(Statement):
    """``DESCRIBE [STREAM|TABLE|QUERY|AGGREGATE|FUNCTION] name``"""

    name: Ident
    kind: ObjectKind | FunctionKind | None = None


class ShowKind(StrEnum):
    STREAMS = "STREAMS"
    TABLES = "TABLES"
    QUERIES = "QUERIES"
    FUNCTIONS = "FUNCTIONS"
    AGGREGATES = "AGGREGATES"
    WINDOWS = "WINDOWS"
    SHARING = "SHARING"
    ARCHIVES = "ARCHIVES"
    SETTINGS = "SETTINGS"
    SESSIONS = "SESSIONS"
    MEMORY = "MEMORY"
    USERS = "USERS"
    GRANTS = "GRANTS"
    QUOTAS = "QUOTAS"
    SOURCES = "SOURCES"
    SINKS = "SINKS"


@dataclass(frozen=True, slots=True)
class Show(Statement):
    """`like`: only what has a name that fits this pattern; `of`: GRANTS or QUOTAS FOR that
    user or role alone; `full`: QUERIES with all their columns; `where`: only the rows of the answer
    that meet it."""

    what: ShowKind
    like: str | None = None
    of: Ident | None = None
    full: bool = False
    where: Expr | None = None


@dataclass(frozen=True, slots=True)
class Assignment(Node):
    column: Ident
    value: Expr


@dataclass(frozen=True, slots=True)
class Conflict(Node):
    """``ON CONFLICT [(key)] DO UPDATE SET ... [WHERE ...]``, or without assignments ``DO
    NOTHING``."""

    key: tuple[Ident, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    where: Expr | None = None


@dataclass(frozen=True, slots=True)
class Insert(Statement):
    """Either `rows` (VALUES) or `query`; `columns` empty: all, in order.  `conflict`: what becomes
    of rows whose key is there already."""

    table: Ident
    columns: tuple[Ident, ...] = ()
    rows: tuple[tuple[Expr, ...], ...] = ()
    query: Query | None = None
    at: Instant | None = None
    conflict: Conflict | None = None


@dataclass(frozen=True, slots=True)
class Update(Statement):
    table: Ident
    assignments: tuple[Assignment, ...]
    where: Expr | None = None
    at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Delete(Statement):
    table: Ident
    where: Expr | None = None
    at: Instant | None = None


@dataclass(frozen=True, slots=True)
class PauseQuery(Statement):
    """``PAUSE QUERY q``: it computes nothing until it is resumed."""

    name: Ident


@dataclass(frozen=True, slots=True)
class ResumeQuery(Statement):
    """``RESUME QUERY q``: one that is paused, or has stopped, begins anew."""

    name: Ident


@dataclass(frozen=True, slots=True)
class RenameQuery(Statement):
    """``ALTER QUERY q RENAME TO r``"""

    name: Ident
    to: Ident


@dataclass(frozen=True, slots=True)
class SetQuery(Statement):
    """``ALTER QUERY q SET (option = value, ...)``"""

    name: Ident
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class Comment(Statement):
    """``COMMENT ON STREAM|TABLE|QUERY x IS 'text'``; `text` None: NULL, there is none any more."""

    kind: ObjectKind
    name: Ident
    text: str | None


class ExplainFormat(StrEnum):
    TEXT = "TEXT"
    GRAPHVIZ = "GRAPHVIZ"
    MERMAID = "MERMAID"


@dataclass(frozen=True, slots=True)
class Explain(Statement):
    """``EXPLAIN [ANALYZE] [FORMAT f] target``; an Ident as target is ``[QUERY] name``, a
    registered query.  `calls`: what calls of functions of one's own in it stand for."""

    target: SelectStatement | CreateQuery | Ident
    analyze: bool = False
    format: ExplainFormat = ExplainFormat.TEXT
    calls: tuple[tuple[Expr, Expr], ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Set(Statement):
    """``SET option = value``"""

    option: Option


@dataclass(frozen=True, slots=True)
class Lookup(Statement):
    """``LOOKUP q [(value, ...)]``: the answer, now, of a query registered ON LOOKUP; `values`:
    those of its parameters."""

    name: Ident
    values: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class CancelSession(Statement):
    """``CANCEL SESSION n`` ends what session n is running; ``CLOSE SESSION n`` ends the session,
    too."""

    session: int
    close: bool = False
