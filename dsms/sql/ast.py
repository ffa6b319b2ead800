"""The syntax tree: what a statement says, before names and types are looked up.

All nodes are frozen; two nodes are equal when they say the same, wherever they stand: `pos` takes no part in equality.
Instants are int microseconds since the epoch (UTC), durations are `Duration`.  Spellings that mean the same give the
same node (`WINDOW t` is `RANGE t`, `!=` is `<>`, `+x` is `x`, `-5` is a literal), so that
``parse(to_sql(node)) == node`` holds for every node the parser can make (dsms.sql.printer).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Pos:
    """A place in the text; both count from 1."""

    line: int
    column: int


NOWHERE = Pos(0, 0)


@dataclass(frozen=True, slots=True)
class Node:
    """Base of everything: knows its place."""

    pos: Pos = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


# ---------------------------------------------------------------- names, types, times


@dataclass(frozen=True, slots=True)
class Ident(Node):
    """A name as written.  Unquoted names match in any case, quoted ones exactly."""

    text: str
    quoted: bool = False

    def matches(self, declared: str) -> bool:
        """Does this name mean the thing declared as `declared`?"""
        return self.text == declared if self.quoted else self.text.casefold() == declared.casefold()


@dataclass(frozen=True, slots=True)
class TypeName(Node):
    """A type as written, upper case: ``DECIMAL(10,2)`` is name DECIMAL, args (10, 2).  Known names: dsms.sql.types."""

    name: str
    args: tuple[int, ...] = ()


class Unit(StrEnum):
    """Units of duration, coarsest last.  DAY and longer are calendar units under TIME ZONE; MONTH and YEAR always."""

    MICROSECOND = "us"
    MILLISECOND = "ms"
    SECOND = "s"
    MINUTE = "min"
    HOUR = "h"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"


@dataclass(frozen=True, slots=True)
class Duration(Node):
    """A length of time.  `micros` for units up to WEEK (then months is 0), `months` for MONTH and YEAR (micros is 0).

    `unit` is the one written, or the next finer one that divides the length (1.5 h is 90 min).
    """

    micros: int
    unit: Unit = Unit.SECOND
    months: int = 0


@dataclass(frozen=True, slots=True)
class Instant(Node):
    """A moment: microseconds since the epoch, UTC."""

    micros: int


# ---------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True)
class Expr(Node):
    """Base of expressions."""


@dataclass(frozen=True, slots=True)
class IntLit(Expr):
    """Fits in 64 bits (the parser checks), sign included."""

    value: int


@dataclass(frozen=True, slots=True)
class FloatLit(Expr):
    """``1.5``, ``1e3``: plain decimals are FLOAT; always finite."""

    value: float


@dataclass(frozen=True, slots=True)
class DecimalLit(Expr):
    """``DECIMAL '1.50'``: exact, scale kept; `text` is [-]digits[.digits] without leading zeros, at most 38 digits."""

    text: str


@dataclass(frozen=True, slots=True)
class StringLit(Expr):
    value: str


@dataclass(frozen=True, slots=True)
class BytesLit(Expr):
    """``X'ff00'``"""

    value: bytes


@dataclass(frozen=True, slots=True)
class BoolLit(Expr):
    value: bool


@dataclass(frozen=True, slots=True)
class NullLit(Expr):
    pass


@dataclass(frozen=True, slots=True)
class IntervalLit(Expr):
    """``INTERVAL '5' MINUTE``; may be negative; never MONTH or YEAR (INTERVAL counts microseconds)."""

    duration: Duration


@dataclass(frozen=True, slots=True)
class TimestampLit(Expr):
    """``TIMESTAMP '2013-01-01 00:00:00'`` (UTC unless an offset is written); ``DATE '...'`` is midnight."""

    micros: int


@dataclass(frozen=True, slots=True)
class ColumnRef(Expr):
    """``a`` or ``s.a``"""

    name: Ident
    table: Ident | None = None


@dataclass(frozen=True, slots=True)
class Negate(Expr):
    """Unary minus; never over a bare non-negative number (that is a negative literal)."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """`op`: + - * / % ||"""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Comparison(Expr):
    """`op`: = <> < <= > >="""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class And(Expr):
    """Two or more operands: ``a AND b AND c`` is one node."""

    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Or(Expr):
    """Two or more operands."""

    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Not(Expr):
    """``NOT x``, also of EXISTS; NOT IN, NOT LIKE, NOT BETWEEN, IS NOT are flags of their nodes."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class IsNull(Expr):
    operand: Expr
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsBool(Expr):
    """``x IS [NOT] TRUE|FALSE``"""

    operand: Expr
    value: bool
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsDistinct(Expr):
    """``left IS [NOT] DISTINCT FROM right``: comparison in which NULL equals NULL."""

    left: Expr
    right: Expr
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Between(Expr):
    operand: Expr
    low: Expr
    high: Expr
    negated: bool = False


@dataclass(frozen=True, slots=True)
class RowExpr(Expr):
    """``(a, b)``, two or more items: the left side of IN, or a member of its list."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class InList(Expr):
    operand: Expr
    items: tuple[Expr, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class InQuery(Expr):
    operand: Expr
    query: Query
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Exists(Expr):
    query: Query


@dataclass(frozen=True, slots=True)
class ScalarQuery(Expr):
    """``(SELECT MAX(a) FROM s)`` as a value."""

    query: Query


@dataclass(frozen=True, slots=True)
class Like(Expr):
    operand: Expr
    pattern: Expr
    escape: Expr | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class When(Node):
    condition: Expr
    result: Expr


@dataclass(frozen=True, slots=True)
class Case(Expr):
    """``CASE [operand] WHEN .. THEN .. [ELSE ..] END``; with an operand each condition is a value to equal it."""

    whens: tuple[When, ...]
    operand: Expr | None = None
    otherwise: Expr | None = None


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    """``CAST(x AS type)`` and ``x::type``"""

    operand: Expr
    type: TypeName


@dataclass(frozen=True, slots=True)
class FuncCall(Expr):
    """Scalar functions and aggregates alike.  `star`: ``COUNT(*)`` (args is then empty).

    ``EXTRACT(HOUR FROM t)`` is the call EXTRACT('hour', t).
    """

    name: Ident
    args: tuple[Expr, ...] = ()
    distinct: bool = False
    star: bool = False
    filter: Expr | None = None


@dataclass(frozen=True, slots=True)
class WstreamArg(Expr):
    """``Wstream(SUM(a))[ROWS 10]`` as the argument of an aggregate (thesis §3.4); found nowhere else."""

    operand: Expr
    window: Window


# ---------------------------------------------------------------- windows


@dataclass(frozen=True, slots=True)
class Slide(Node):
    """``SLIDE every [ALIGN TO instant] [TIME ZONE 'zone']``; `every` is a row count only in ROWS windows."""

    every: Duration | int
    align_to: Instant | None = None
    time_zone: str | None = None


@dataclass(frozen=True, slots=True)
class Window(Node):
    """Base of windows.  `archive`: the archived part of the stream is included (``[RANGE 2 h ARCHIVE]``)."""

    internal: bool = field(default=False, kw_only=True)
    slide: Slide | None = field(default=None, kw_only=True)
    archive: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class RangeWindow(Window):
    """``RANGE t [UNTIL u AGO]``: tuples with ts in (now - length, now - until]."""

    length: Duration
    until: Duration | None = None


@dataclass(frozen=True, slots=True)
class RowsWindow(Window):
    """``[PARTITION BY c, ...] ROWS n [UNTIL m AGO]``: the newest n (per partition), or the n-th to m-th newest."""

    rows: int
    until: int | None = None
    partition_by: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class NowWindow(Window):
    """``NOW``: the tuples of this very instant."""


@dataclass(frozen=True, slots=True)
class UnboundedWindow(Window):
    """``RANGE UNBOUNDED``: everything so far."""


@dataclass(frozen=True, slots=True)
class LandmarkWindow(Window):
    """``SINCE instant``: everything from that instant on."""

    since: Instant


# ---------------------------------------------------------------- queries


class OutputKind(StrEnum):
    ISTREAM = "Istream"
    DSTREAM = "Dstream"
    RSTREAM = "Rstream"
    WSTREAM = "Wstream"


@dataclass(frozen=True, slots=True)
class Output(Node):
    """The relation-to-stream function around the select list.

    `restore`: the -restore form.  `window`: given for Wstream, and only there.  Dstream-restore is not in the grammar;
    Wstream-restore is, so that the binder can say why it has no meaning.
    """

    kind: OutputKind
    restore: bool = False
    window: Window | None = None


@dataclass(frozen=True, slots=True)
class SelectItem(Node):
    expr: Expr
    alias: Ident | None = None


@dataclass(frozen=True, slots=True)
class StarItem(Node):
    """``*`` or ``t.*``"""

    table: Ident | None = None


@dataclass(frozen=True, slots=True)
class FromItem(Node):
    """Base of what may stand in FROM."""


@dataclass(frozen=True, slots=True)
class TableRef(FromItem):
    """A stream, table or registered query by name.  `archive`: ``FROM ARCHIVE s``, the archived part alone."""

    name: Ident
    alias: Ident | None = None
    window: Window | None = None
    archive: bool = False


@dataclass(frozen=True, slots=True)
class SubqueryRef(FromItem):
    """``(SELECT ...) [window] [alias]``; the alias may be missing, as in the thesis."""

    query: Query
    alias: Ident | None = None
    window: Window | None = None


class JoinKind(StrEnum):
    INNER = "INNER"
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    FULL = "FULL"
    CROSS = "CROSS"


@dataclass(frozen=True, slots=True)
class Join(FromItem):
    """`on` or `using` is given, except for CROSS, which has neither."""

    kind: JoinKind
    left: FromItem
    right: FromItem
    on: Expr | None = None
    using: tuple[Ident, ...] = ()


@dataclass(frozen=True, slots=True)
class Select(Node):
    """One SELECT block.  `distinct` also when written inside: ``Rstream(DISTINCT a)``.

    `from_` is empty for ``SELECT 1``.  `window` is the final ``WINDOW t``: it applies to every stream of the FROM list.
    """

    items: tuple[SelectItem | StarItem, ...]
    from_: tuple[FromItem, ...] = ()
    where: Expr | None = None
    group_by: tuple[Expr, ...] = ()
    having: Expr | None = None
    distinct: bool = False
    output: Output | None = None
    window: Window | None = None


class SetOpKind(StrEnum):
    UNION = "UNION"
    INTERSECT = "INTERSECT"
    EXCEPT = "EXCEPT"


@dataclass(frozen=True, slots=True)
class SetOp(Node):
    """INTERSECT binds tighter than UNION and EXCEPT, which are left-associative.

    An operand is a `Query` only if it is parenthesised and has its own ORDER BY or LIMIT.
    """

    kind: SetOpKind
    left: Select | SetOp | Query
    right: Select | SetOp | Query
    all: bool = False


@dataclass(frozen=True, slots=True)
class OrderItem(Node):
    """`nulls_first` None: as by default (NULLs last)."""

    expr: Expr
    descending: bool = False
    nulls_first: bool | None = None


@dataclass(frozen=True, slots=True)
class Query(Node):
    """A whole query: what stands in CREATE QUERY, in a subquery, and as a statement."""

    body: Select | SetOp | Query
    order_by: tuple[OrderItem, ...] = ()
    limit: int | None = None
    offset: int | None = None


# ---------------------------------------------------------------- statements


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
    name: Ident
    type: TypeName
    not_null: bool = False


@dataclass(frozen=True, slots=True)
class TimestampBy(Node):
    """``TIMESTAMP BY column [UNIT s|ms|us|ns]``; `unit` as written, lower case."""

    column: Ident
    unit: str | None = None


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
class CreateStream(Statement):
    """Without `timestamp` the stream is stamped on arrival.  None everywhere means: not said."""

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
    archive: Archive | None = None
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTable(Statement):
    """An inline ``k INT PRIMARY KEY`` stands in `primary_key` too (and leaves no mark on the column)."""

    name: Ident
    columns: tuple[ColumnDef, ...]
    primary_key: tuple[Ident, ...] = ()
    non_retroactive: bool = False
    if_not_exists: bool = False
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateQuery(Statement):
    """``CREATE QUERY q AS select [ON LOOKUP] [ARCHIVE ...] [WITH (...)]``"""

    name: Ident
    query: Query
    if_not_exists: bool = False
    on_lookup: bool = False
    archive: Archive | None = None
    options: tuple[Option, ...] = ()


class ObjectKind(StrEnum):
    STREAM = "STREAM"
    TABLE = "TABLE"
    QUERY = "QUERY"


@dataclass(frozen=True, slots=True)
class Drop(Statement):
    kind: ObjectKind
    name: Ident
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Describe(Statement):
    """``DESCRIBE [STREAM|TABLE|QUERY] name``"""

    name: Ident
    kind: ObjectKind | None = None


class ShowKind(StrEnum):
    STREAMS = "STREAMS"
    TABLES = "TABLES"
    QUERIES = "QUERIES"
    WINDOWS = "WINDOWS"
    SHARING = "SHARING"
    SETTINGS = "SETTINGS"


@dataclass(frozen=True, slots=True)
class Show(Statement):
    what: ShowKind


@dataclass(frozen=True, slots=True)
class Insert(Statement):
    """Either `rows` (VALUES) or `query`; `columns` empty: all, in order."""

    table: Ident
    columns: tuple[Ident, ...] = ()
    rows: tuple[tuple[Expr, ...], ...] = ()
    query: Query | None = None
    at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Assignment(Node):
    column: Ident
    value: Expr


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


class ExplainFormat(StrEnum):
    TEXT = "TEXT"
    GRAPHVIZ = "GRAPHVIZ"
    MERMAID = "MERMAID"


@dataclass(frozen=True, slots=True)
class Explain(Statement):
    """``EXPLAIN [ANALYZE] [FORMAT f] target``; an Ident as target is ``QUERY name``, a registered query."""

    target: SelectStatement | CreateQuery | Ident
    analyze: bool = False
    format: ExplainFormat = ExplainFormat.TEXT


@dataclass(frozen=True, slots=True)
class Set(Statement):
    """``SET option = value``"""

    option: Option


@dataclass(frozen=True, slots=True)
class Lookup(Statement):
    """``LOOKUP q``: the answer, now, of a query registered ON LOOKUP."""

    name: Ident


# ---------------------------------------------------------------- walking


_PARTS: dict[type[Node], tuple[str, ...]] = {}  # the field names of a kind of node


def _parts(node: Node) -> tuple[str, ...]:
    kind = type(node)
    if kind not in _PARTS:
        _PARTS[kind] = tuple(f.name for f in fields(node) if f.name != "pos")
    return _PARTS[kind]


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below `node`, in field order."""
    for name in _parts(node):
        item = getattr(node, name)
        if isinstance(item, Node):
            yield item
        elif type(item) is tuple:
            yield from _members(item)


def _members(items: tuple[object, ...]) -> Iterator[Node]:
    for item in items:
        if isinstance(item, Node):
            yield item
        elif type(item) is tuple:  # rows of VALUES
            yield from _members(item)


def walk(node: Node) -> Iterator[Node]:
    """`node` and all below it, parents first, without recursion."""
    stack = [node]
    while stack:
        item = stack.pop()
        yield item
        stack.extend(reversed(list(children(item))))
